// Stops the core on a fault or an abort, and keeps the first fault with the index of its instruction.
// Contract: reports count while run_i is high, the first of them until clear_i; of several at one edge that with the
// smallest index (vta_fault).  done_index_i has a word for LOAD, COMPUTE, OUTPUT, STORE and ROW, which names the instruction of a
// report in the same cycle, of LOAD's write (clash_write_i[2]) in the cycle before, of overflow_i in the second one before.
// Latency: stop_o and fault_stop_o are high from the edge on that ends the cycle of a report or of abort_soon_i; an edge
// later for dispatch_i, watchdog_i, output_i, row_i and clash_read_i, two for clash_write_i and store_error_i, which share index
// words with overflow_i.
// due_o is high while one of these three or overflow_i is on its way.  fault_o with code and index: 14 edges behind
// fault_stop_o, 16 with a row unit.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_stop #(
    // 1: there is a row unit, whose inputs are zero otherwise
    parameter ROW = 0
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         clear_i,
    input  wire         run_i,
    input  wire         abort_soon_i,
    // dispatcher; the watchdog names its instruction too
    input  wire         dispatch_i,
    input  wire [  7:0] dispatch_code_i,
    input  wire [ 31:0] dispatch_index_i,
    input  wire         watchdog_i,
    // fetch, LOAD: bit 0 an error of the bus, bit 1 outside of the window
    input  wire [  1:0] fetch_i,
    input  wire [ 63:0] fetch_index_i,
    input  wire [  1:0] load_i,
    input  wire [ 63:0] load_index_i,
    input  wire         store_range_i,
    input  wire [ 31:0] store_range_index_i,
    // index checks of COMPUTE, OUTPUT and ROW; those that read a bank together, with the index of each (bit and word 0
    // COMPUTE, 1 OUTPUT, 2 ROW)
    input  wire         compute_i,
    input  wire [ 31:0] compute_index_i,
    input  wire         output_i,
    input  wire         row_i,
    input  wire [  2:0] clash_read_i,
    input  wire [ 95:0] read_index_i,
    // of what units end: tokens too many, writers that met in a bank (bit 0 COMPUTE, 1 OUTPUT, 2 LOAD, 3 ROW), an answer
    // of the bus to STORE
    input  wire [159:0] done_index_i,
    input  wire         overflow_soon_i,
    input  wire [  4:0] overflow_i,
    input  wire [  3:0] clash_write_i,
    input  wire         store_error_i,
    output wire         due_o,
    // nothing new starts: bit 0 semaphores, 1 LOAD, 2 COMPUTE, 3 OUTPUT, 4 STORE, 5 ROW
    output wire [  5:0] stop_o,
    // a fault was seen; a few cycles later which
    output wire         fault_stop_o,
    output wire         fault_o,
    output wire [  7:0] fault_code_o,
    output wire [ 31:0] fault_index_o
);
  // One register would drive too many others all over the chip
  wire fault_stop_soon;
  wire stop_soon = fault_stop_soon || abort_soon_i;
  reg stop_start_q, stop_load_q, stop_compute_q, stop_output_q, stop_store_q;
  wire stop_row;
  (* keep *) always @(posedge clk_i) stop_start_q <= stop_soon;
  (* keep *) always @(posedge clk_i) stop_load_q <= stop_soon;
  (* keep *) always @(posedge clk_i) stop_compute_q <= stop_soon;
  (* keep *) always @(posedge clk_i) stop_output_q <= stop_soon;
  (* keep *) always @(posedge clk_i) stop_store_q <= stop_soon;
  assign stop_o = {stop_row, stop_store_q, stop_output_q, stop_compute_q, stop_load_q, stop_start_q};

  // What a unit ends is reported when it is known whether its tokens were too many, so that all of it shares a word; reads
  // of the accumulator, which is far, and what the dispatcher finds late in its cycle, a cycle later
  reg dispatch_q, watchdog_q, output_q, row_q;
  reg [2:0] clash_read_q;
  reg [3:0] clash_seen_q, clash_write_q;
  reg error_seen_q, store_error_q;
  reg [159:0] done_seen_q, done_index_q;
  reg [31:0] load_written_q;
  reg [95:0] read_index_q;
  reg [7:0] dispatch_code_q;
  reg [31:0] dispatch_index_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      {dispatch_q, watchdog_q, output_q, row_q} <= 4'd0;
      clash_read_q <= 3'd0;
      {clash_seen_q, clash_write_q} <= 8'd0;
      {error_seen_q, store_error_q} <= 2'd0;
    end else begin
      {dispatch_q, watchdog_q, output_q, row_q} <= {dispatch_i, watchdog_i, output_i, row_i};
      clash_read_q <= clash_read_i;
      {clash_seen_q, clash_write_q} <= {clash_write_i, clash_seen_q};
      {error_seen_q, store_error_q} <= {store_error_i, error_seen_q};
    end

  always @(posedge clk_i) begin
    done_seen_q    <= done_index_i;
    done_index_q   <= done_seen_q;
    read_index_q   <= read_index_i;
    {dispatch_code_q, dispatch_index_q} <= {dispatch_code_i, dispatch_index_i};
    // a beat of LOAD is in the scratchpad an edge behind the one with its token
    load_written_q <= done_index_q[0*32+:32];
  end

  assign due_o = |{overflow_soon_i, overflow_i, clash_seen_q, clash_write_q, error_seen_q, store_error_q};

  // a source for each index word; those of ROW are the last
  localparam SOURCES = (ROW != 0) ? 15 : 13;
  wire [14:0] valid = {
    clash_write_q[3] || overflow_i[4], row_q || clash_read_q[2],
    store_error_q || overflow_i[3], clash_write_q[1] || overflow_i[2], clash_write_q[0] || overflow_i[1],
    clash_write_q[2] || overflow_i[0],
    store_range_i,
    output_q || clash_read_q[1],
    clash_read_q[0], compute_i,
    load_i, fetch_i,
    dispatch_q || watchdog_q
  };
  wire [15*8-1:0] code = {
    overflow_i[4] ? `VTA_FAULT_TOKEN_OVERFLOW : `VTA_FAULT_ACC_BANK,
    row_q ? `VTA_FAULT_SRAM_RANGE : `VTA_FAULT_ACC_BANK,
    overflow_i[3] ? `VTA_FAULT_TOKEN_OVERFLOW : `VTA_FAULT_AXI_WRITE,
    overflow_i[2] ? `VTA_FAULT_TOKEN_OVERFLOW : `VTA_FAULT_ACC_BANK,
    overflow_i[1] ? `VTA_FAULT_TOKEN_OVERFLOW : `VTA_FAULT_ACC_BANK,
    clash_write_q[2] ? `VTA_FAULT_ACC_BANK : `VTA_FAULT_TOKEN_OVERFLOW,
    `VTA_FAULT_DRAM_RANGE,
    output_q ? `VTA_FAULT_SRAM_RANGE : `VTA_FAULT_ACC_BANK,
    `VTA_FAULT_ACC_BANK, `VTA_FAULT_SRAM_RANGE,
    `VTA_FAULT_DRAM_RANGE, `VTA_FAULT_AXI_READ,
    `VTA_FAULT_DRAM_RANGE, `VTA_FAULT_AXI_READ,
    dispatch_q ? dispatch_code_q : `VTA_FAULT_WATCHDOG
  };
  wire [15*32-1:0] index = {
    done_index_q[159:128], read_index_q[95:64],
    done_index_q[127:32],
    clash_write_q[2] ? load_written_q : done_index_q[31:0],
    store_range_index_i,
    read_index_q[63:0],
    compute_index_i,
    load_index_i, fetch_index_i,
    dispatch_index_q
  };

  vta_fault #(
      .SOURCES(SOURCES)
  ) u_fault (
      .clk_i      (clk_i),
      .rst_ni     (!clear_i),
      .run_i      (run_i),
      .valid_i    (valid[SOURCES-1:0]),
      .code_i     (code[SOURCES*8-1:0]),
      .index_i    (index[SOURCES*32-1:0]),
      .stop_o     (fault_stop_o),
      .stop_soon_o(fault_stop_soon),
      .fault_o    (fault_o),
      .code_o     (fault_code_o),
      .index_o    (fault_index_o)
  );

  generate
    if (ROW != 0) begin : g_row
      reg stop_row_q;
      (* keep *) always @(posedge clk_i) stop_row_q <= stop_soon;
      assign stop_row = stop_row_q;
    end else begin : g_no_row
      assign stop_row = 1'b0;
      wire unused = &{1'b0, valid, code, index};
    end
  endgenerate
endmodule

`resetall
