// Registers of the accelerator: identity, launch and reset, status, window and program, watchdog, counters.
// Contract: the core runs (run_o) from a launch until done or fault.  soon_o tells a cycle ahead whether it is busy, so
// that it can be held in reset by registers while it is not; clear_o, in the cycle before a launch, is for what a host
// may still read then.  Registers keep their value while busy: writes to them are ignored then.
// A reset while busy stops the core as a fault does, waits for its transfers, and leaves STATUS at zero.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_csr #(
    // Hash of the configuration
    parameter [31:0] CONFIG_HASH = 32'd0,
    // Counters, in register order from CYCLES
    parameter COUNTERS = 18
) (
    input  wire                   clk_i,
    input  wire                   rst_ni,
    // register accesses
    input  wire                   write_i,
    input  wire [           11:0] write_addr_i,
    input  wire [           31:0] write_data_i,
    output reg                    write_known_o,
    input  wire [           11:0] read_addr_i,
    output reg  [           31:0] read_data_o,
    output reg                    read_known_o,
    // core
    output wire                   soon_o,
    output wire                   clear_o,
    output wire                   run_o,
    output wire                   stop_o,
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
    input  wire [COUNTERS*32-1:0] counters_i,
    output wire                   done_o
);
  reg         busy_q;
  reg         done_q;
  reg         abort_q;
  reg  [31:0] window_base_q;
  reg  [31:0] window_bytes_q;
  reg  [31:0] program_q;
  reg  [31:0] count_q;
  reg  [31:0] watchdog_q;

  wire        control = write_i && write_addr_i == `VTA_REG_CONTROL;
  wire        reset = control && write_data_i[1];
  wire        launch = control && write_data_i[0] && !write_data_i[1] && !busy_q;
  wire        stopped = busy_q && stop_o && (fault_i || !fault_stop_i) && drained_i;
  wire        busy = launch || (busy_q && !stopped && !(run_o && done_i));

  assign clear_o        = !rst_ni || launch || (reset && (!busy_q || stopped)) || (stopped && abort_q);
  assign soon_o         = rst_ni && busy;
  assign stop_o         = fault_stop_i || abort_q;
  assign run_o          = busy_q && !stop_o;
  assign window_base_o  = window_base_q;
  assign window_bytes_o = window_bytes_q;
  assign program_o      = program_q;
  assign count_o        = count_q;
  assign watchdog_o     = run_o && watchdog_q != 32'd0 && counters_i[31:0] >= watchdog_q;
  assign done_o         = done_q || fault_i;

  always @(posedge clk_i)
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      done_q  <= 1'b0;
      abort_q <= 1'b0;
    end else begin
      busy_q <= busy;
      if (launch || reset) done_q <= 1'b0;
      else if (run_o && done_i) done_q <= 1'b1;
      if (reset && busy_q && !stopped) abort_q <= 1'b1;
      else if (stopped) abort_q <= 1'b0;
    end

  always @(posedge clk_i)
    if (!rst_ni) begin
      window_base_q  <= 32'd0;
      window_bytes_q <= 32'd0;
      program_q      <= 32'd0;
      count_q        <= 32'd0;
      watchdog_q     <= 32'd0;
    end else if (write_i && !busy_q)
      case (write_addr_i)
        `VTA_REG_WINDOW_BASE: window_base_q <= {write_data_i[31:12], 12'd0};
        `VTA_REG_WINDOW_BYTES: window_bytes_q <= write_data_i;
        `VTA_REG_PROGRAM: program_q <= {write_data_i[31:5], 5'd0};
        `VTA_REG_COUNT: count_q <= write_data_i;
        `VTA_REG_WATCHDOG: watchdog_q <= write_data_i;
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

  localparam [31:0] COUNTERS_V = COUNTERS;
  wire [11:0] counter = (read_addr_i - `VTA_REG_CYCLES) >> 2;
  // a power of two of them, so that the address needs no comparison
  wire [1023:0] counters = {{(1024 - COUNTERS * 32) {1'b0}}, counters_i};
  wire        is_counter = read_addr_i >= `VTA_REG_CYCLES && {20'd0, counter} < COUNTERS_V;

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
      `VTA_REG_WINDOW_BASE: read_data_o = window_base_q;
      `VTA_REG_WINDOW_BYTES: read_data_o = window_bytes_q;
      `VTA_REG_PROGRAM: read_data_o = program_q;
      `VTA_REG_COUNT: read_data_o = count_q;
      `VTA_REG_WATCHDOG: read_data_o = watchdog_q;
      default: begin
        read_known_o = is_counter;
        if (is_counter) read_data_o = counters[counter[4:0]*32+:32];
      end
    endcase
  end
endmodule

`resetall
