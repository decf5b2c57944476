// LOAD unit: takes instructions from its queue, walks their bursts, and lets the data side follow behind.
// Contract: an instruction starts when its tokens are granted, the walk of the one before has requested its last
// burst, and fewer than READ_OUTSTANDING (at least 2) wait for the data side, which works in order.
// Latency: tokens taken at an edge, first burst request in the next cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_load #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS    = 64,
    // Longest burst
    parameter BURST_BEATS      = 64,
    // Bursts in flight
    parameter READ_OUTSTANDING = 16,
    // Width of beat counts
    parameter BEATS_W          = 20
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    input  wire [             31:0] window_bytes_i,
    // head of the queue; start_i pops it
    input  wire                     head_valid_i,
    input  wire [            255:0] insn_i,
    input  wire [             31:0] index_i,
    input  wire [      BEATS_W-1:0] row_beats_i,
    input  wire [      BEATS_W-1:0] all_beats_i,
    input  wire [      BEATS_W-1:0] first_beat_i,
    output wire                     want_o,
    input  wire                     start_i,
    // read requests
    output wire                     req_valid_o,
    output wire [             31:0] req_offset_o,
    output wire [              6:0] req_beats_o,
    input  wire                     req_ready_i,
    // beats
    output wire                     beat_want_o,
    input  wire                     beat_i,
    input  wire [AXI_DATA_BITS-1:0] data_i,
    input  wire                     error_i,
    // scratchpad writes; we_o: a bit for each scratchpad number
    output wire [             15:0] we_o,
    output wire                     expand_o,
    output wire [      BEATS_W-1:0] waddr_o,
    output wire [AXI_DATA_BITS-1:0] wdata_o,
    // tokens of a finished instruction; done_index_o also names the instruction that writes
    output wire                     give_o,
    output wire [             15:0] set_o,
    output wire [             31:0] done_index_o,
    output wire                     idle_o,
    // faults: a burst outside the window; an error response
    output wire                     range_fault_o,
    output wire [             31:0] range_index_o,
    output wire                     error_fault_o,
    output wire [             31:0] error_index_o
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  localparam FOLLOW = (READ_OUTSTANDING < 2) ? 2 : READ_OUTSTANDING;
  localparam FOLLOW_W = 32 + 16 + 4 + 1 + 8 + BEATS_W + 18 + 16 + 16 + 32;

  wire                walk_ready;
  wire                walk_active;
  wire                walk_last;
  wire                follow_full;
  wire                follow_valid;
  wire [FOLLOW_W-1:0] follow;
  wire                follow_pop;
  wire                data_idle;
  reg  [        31:0] index_q;

  wire [        17:0] run_beats = {2'b00, insn_i[`VTA_LOAD_Z]} << GRANULE_LOG;

  assign want_o        = head_valid_i && walk_ready && !follow_full && !stop_i;
  assign idle_o        = !walk_active && !follow_valid && data_idle;
  assign range_index_o = index_q;

  always @(posedge clk_i) if (start_i) index_q <= index_i;

  vta_dma_walk #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS),
      .BEATS_W      (BEATS_W)
  ) u_walk (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .stop_i        (stop_i),
      .window_bytes_i(window_bytes_i),
      .ready_o       (walk_ready),
      .start_i       (start_i),
      .dram_i        (insn_i[`VTA_LOAD_DRAM]),
      .y_i           (insn_i[`VTA_LOAD_Y]),
      .x_i           (insn_i[`VTA_LOAD_X]),
      .y_stride_i    (insn_i[`VTA_LOAD_Y_STRIDE]),
      .x_stride_i    (insn_i[`VTA_LOAD_X_STRIDE]),
      .run_beats_i   ({{(BEATS_W - 17) {1'b0}}, run_beats[16:0]}),
      .row_beats_i   (row_beats_i),
      .all_beats_i   (all_beats_i),
      .active_o      (walk_active),
      .req_valid_o   (req_valid_o),
      .req_offset_o  (req_offset_o),
      .req_beats_o   (req_beats_o),
      .req_last_o    (walk_last),
      .req_ready_i   (req_ready_i),
      .fault_o       (range_fault_o)
  );

  vta_fifo #(
      .WIDTH(FOLLOW_W),
      .DEPTH(FOLLOW)
  ) u_follow (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .push_i(start_i),
      .data_i({
        index_i,
        insn_i[`VTA_INSN_SET],
        insn_i[`VTA_LOAD_MEM],
        insn_i[`VTA_LOAD_EXPAND],
        insn_i[`VTA_LOAD_PAD_VALUE],
        first_beat_i,
        run_beats,
        insn_i[`VTA_LOAD_X],
        insn_i[`VTA_LOAD_Y],
        insn_i[`VTA_LOAD_X_PAD_1],
        insn_i[`VTA_LOAD_X_PAD_0],
        insn_i[`VTA_LOAD_Y_PAD_1],
        insn_i[`VTA_LOAD_Y_PAD_0]
      }),
      .full_o(follow_full),
      .valid_o(follow_valid),
      .data_o(follow),
      .pop_i(follow_pop)
  );

  vta_load_data #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BEATS_W      (BEATS_W),
      .FOLLOW_W     (FOLLOW_W)
  ) u_data (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .stop_i       (stop_i),
      .valid_i      (follow_valid),
      .follow_i     (follow),
      .pop_o        (follow_pop),
      .beat_want_o  (beat_want_o),
      .beat_i       (beat_i),
      .data_i       (data_i),
      .error_i      (error_i),
      .we_o         (we_o),
      .expand_o     (expand_o),
      .waddr_o      (waddr_o),
      .wdata_o      (wdata_o),
      .give_o       (give_o),
      .set_o        (set_o),
      .done_index_o (done_index_o),
      .idle_o       (data_idle),
      .error_fault_o(error_fault_o),
      .error_index_o(error_index_o)
  );

  wire unused = &{1'b0, walk_last, insn_i, run_beats[17]};
endmodule

`resetall
