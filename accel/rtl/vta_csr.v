// Registers of the accelerator: identity, launch and reset, status, window and program, watchdog, counters.
// Contract: the core runs (run_o) from a launch until done or fault.  soon_o tells a cycle ahead whether it is busy, so
// that it can be held in reset by registers while it is not; clear_o, in the cycle before a launch, is for what a host
// may still read then.  Registers keep their value while busy: writes to them are ignored then.
// A reset while busy stops the core as a fault does, waits for its transfers, and leaves STATUS at zero.
// Latency: what is read at read_addr_i is there with read_ready_o, which a counter but CYCLES and INSTRUCTIONS waits for.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_csr #(
    // 1: there is a row unit, whose counters are zero otherwise
    parameter ROW = 0,
    // Hash of the configuration
    parameter [31:0] CONFIG_HASH = 32'd0
) (
    input  wire                   clk_i,
    input  wire                   rst_ni,
    // register accesses
    input  wire                   write_i,
    input  wire                   write_control_i,  // its address is that of CONTROL
    input  wire [           11:0] write_addr_i,
    input  wire [           31:0] write_data_i,
    output reg                    write_known_o,
    input  wire [           11:0] read_addr_i,
    output reg  [           31:0] read_data_o,
    output reg                    read_known_o,
    output wire                   read_ready_o,
    // core
    output wire                   soon_o,
    output wire                   clear_o,
    output wire                   run_o,
    // a reset while busy will stop the core from the next cycle on
    output wire                   abort_soon_o,
    output wire [           31:0] window_base_o,
    output wire [           31:0] window_bytes_o,
    output wire [           31:0] program_o,
    output wire [           31:0] count_o,
    output wire                   watchdog_o,
    input  wire                   done_i,
    input  wire                   drained_i,
    // a fault stops the core at once; its code and index follow with fault_i
    input  wire                   fault_stop_i,
    input  wire                   fault_i,
    input  wire [            7:0] fault_code_i,
    input  wire [           31:0] fault_index_i,
    // counters: those between CYCLES and INSTRUCTIONS come by their number, the lowest bits of the word address
    input  wire [           31:0] cycles_i,
    input  wire [           31:0] instructions_i,
    output wire [            4:0] counter_o,
    input  wire                   counter_ready_i,
    input  wire [           31:0] counter_i,
    output wire                   done_o
);
  reg         busy_q;
  // the same for launches, which come from the bus
  reg         busy_launch_q;
  reg         done_q;
  reg         abort_q;
  reg  [31:0] window_base_q;
  reg  [31:0] window_bytes_q;
  reg  [31:0] program_q;
  reg  [31:0] count_q;
  reg  [31:0] watchdog_q;

  wire        control = write_i && write_control_i;
  wire        reset = control && write_data_i[1];
  wire        launch = control && write_data_i[0] && !write_data_i[1] && !busy_launch_q;
  wire        stop = fault_stop_i || abort_q;
  wire        stopped = busy_q && stop && (fault_i || !fault_stop_i) && drained_i;
  wire        busy = launch || (busy_q && !stopped && !(run_o && done_i));

  assign clear_o        = !rst_ni || launch || (reset && (!busy_q || stopped)) || (stopped && abort_q);
  assign soon_o         = rst_ni && busy;
  assign abort_soon_o   = !stopped && (abort_q || (reset && busy_q));
  assign run_o          = busy_q && !stop;
  assign window_base_o  = window_base_q;
  assign window_bytes_o = window_bytes_q;
  assign program_o      = program_q;
  assign count_o        = count_q;
  assign watchdog_o     = run_o && watchdog_q != 32'd0 && cycles_i >= watchdog_q;
  assign done_o         = done_q || fault_i;

  (* keep *) always @(posedge clk_i) busy_launch_q <= rst_ni && busy;

  always @(posedge clk_i)
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      done_q  <= 1'b0;
      abort_q <= 1'b0;
    end else begin
      busy_q <= busy;
      if (launch || reset) done_q <= 1'b0;
      else if (run_o && done_i) done_q <= 1'b1;
      // a reset in the cycle in which the program ends has nothing left to stop
      abort_q <= abort_soon_o && busy;
    end

  // what the registers of the host take: where alignment is asked, the bits below it are zero
  wire        keep = write_i && !busy_q;
  wire [31:0] base = {write_data_i[31:12], 12'd0};
  wire [31:0] code = {write_data_i[31:5], 5'd0};
  reg  [ 4:0] written_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      window_base_q  <= 32'd0;
      window_bytes_q <= 32'd0;
      program_q      <= 32'd0;
      count_q        <= 32'd0;
      watchdog_q     <= 32'd0;
      written_q      <= 5'd0;
    end else if (keep)
      case (write_addr_i)
        `VTA_REG_WINDOW_BASE: begin
          window_base_q <= base;
          written_q[0]  <= 1'b1;
        end
        `VTA_REG_WINDOW_BYTES: begin
          window_bytes_q <= write_data_i;
          written_q[1]   <= 1'b1;
        end
        `VTA_REG_PROGRAM: begin
          program_q    <= code;
          written_q[2] <= 1'b1;
        end
        `VTA_REG_COUNT: begin
          count_q      <= write_data_i;
          written_q[3] <= 1'b1;
        end
        `VTA_REG_WATCHDOG: begin
          watchdog_q   <= write_data_i;
          written_q[4] <= 1'b1;
        end
        default: ;
      endcase

  // decoding of addresses
  always @* begin
    write_known_o = 1'b0;
    case (write_addr_i)
      `VTA_REG_CONTROL, `VTA_REG_WINDOW_BASE, `VTA_REG_WINDOW_BYTES, `VTA_REG_PROGRAM, `VTA_REG_COUNT,
      `VTA_REG_WATCHDOG:
      write_known_o = 1'b1;
      default: write_known_o = 1'b0;
    endcase
  end

  // registers of the host once more, for reading: a memory costs less than choosing among them; what was not written
  // since the reset is zero
  wire [31:0] kept = write_addr_i == `VTA_REG_WINDOW_BASE ? base : write_addr_i == `VTA_REG_PROGRAM ? code : write_data_i;
  wire [31:0] held;

  vta_ram_async #(
      .WIDTH (32),
      .DEPTH (16),
      .ADDR_W(4)
  ) u_held (
      .clk_i  (clk_i),
      .we_i   (keep && write_known_o),
      .waddr_i(write_addr_i[5:2]),
      .wdata_i(kept),
      .raddr_i(read_addr_i[5:2]),
      .rdata_o(held)
  );

  localparam [11:0] BEHIND = (ROW != 0) ? `VTA_REG_INSTRUCTIONS : `VTA_REG_ROW_BUSY;
  wire        is_counter = read_addr_i > `VTA_REG_CYCLES && read_addr_i < BEHIND;
  assign counter_o    = read_addr_i[6:2];
  assign read_ready_o = !is_counter || counter_ready_i;

  always @* begin
    read_data_o  = 32'd0;
    read_known_o = 1'b1;
    case (read_addr_i)
      `VTA_REG_MAGIC: read_data_o = `VTA_DEVICE_MAGIC;
      `VTA_REG_VERSION: read_data_o = `VTA_ISA_VERSION;
      `VTA_REG_CONFIG_HASH: read_data_o = CONFIG_HASH;
      `VTA_REG_CONTROL: read_data_o = 32'd0;
      `VTA_REG_STATUS: read_data_o = {16'd0, fault_code_i, 5'd0, fault_i, done_q, busy_q};
      `VTA_REG_FAULT_INDEX: read_data_o = fault_index_i;
      `VTA_REG_WINDOW_BASE: read_data_o = written_q[0] ? held : 32'd0;
      `VTA_REG_WINDOW_BYTES: read_data_o = written_q[1] ? held : 32'd0;
      `VTA_REG_PROGRAM: read_data_o = written_q[2] ? held : 32'd0;
      `VTA_REG_COUNT: read_data_o = written_q[3] ? held : 32'd0;
      `VTA_REG_WATCHDOG: read_data_o = written_q[4] ? held : 32'd0;
      `VTA_REG_CYCLES: read_data_o = cycles_i;
      `VTA_REG_INSTRUCTIONS: read_data_o = instructions_i;
      `VTA_REG_ROW_BUSY, `VTA_REG_ROW_TOKEN: read_data_o = is_counter ? counter_i : 32'd0;
      default: begin
        read_known_o = is_counter;
        if (is_counter) read_data_o = counter_i;
      end
    endcase
  end
endmodule

`resetall
