// LOAD unit: takes instructions (LOAD, GATHER) from its queue, walks their bursts, and lets the data side follow behind.
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
    // Bytes of an INP entry, of a line of INP
    parameter INP_LANES        = 4,
    parameter LINE             = 16,
    // Factors of a beat of weights; granules of weights behind each granule of factors, a power of two, 0: no factors
    parameter FACTORS          = 1,
    parameter FACTOR_GRANULES  = 0,
    // Width of beat counts and addresses of the scratchpads, at least 10; of the beats of a run in DRAM
    parameter BEATS_W          = 20,
    parameter LENGTH_W         = 20
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    input  wire [             31:0] window_bytes_i,
    // head of the queue; start_i pops it
    input  wire                     head_valid_i,
    input  wire [            255:0] insn_i,
    input  wire [             31:0] index_i,
    input  wire [              1:0] one_i,
    input  wire [     LENGTH_W-1:0] length_i,
    input  wire [      BEATS_W-1:0] first_beat_i,
    output wire                     want_o,
    input  wire                     start_i,
    // read requests
    output wire                     req_valid_o,
    output wire [             31:0] req_offset_o,
    // beats less one
    output wire [              5:0] req_len_o,
    input  wire                     req_ready_i,
    // OUTPUT will write INP two edges behind the one that ends this cycle (bit 0), three edges behind (bit 1)
    input  wire [              1:0] inp_soon_i,
    // beats
    output wire                     beat_want_o,
    input  wire                     beat_i,
    input  wire [AXI_DATA_BITS-1:0] data_i,
    input  wire                     error_i,
    // scratchpad writes; we_o: a bit for each scratchpad number, be_o: one for each byte of the beat
    output wire [             15:0] we_o,
    output wire [AXI_DATA_BITS/8-1:0] be_o,
    output wire                     expand_o,
    output wire [      BEATS_W-1:0] waddr_o,
    output wire [AXI_DATA_BITS-1:0] wdata_o,
    output wire [    4*FACTORS-1:0] factor_o,
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
  localparam LINE_BEATS = LINE / BUS;
  localparam FOLLOW = (READ_OUTSTANDING < 2) ? 2 : READ_OUTSTANDING;

  wire                walk_active;
  wire                walk_last;
  wire                follow_full;
  wire                follow_valid;
  wire                follow_pop;
  wire                follow_gather;
  wire [        31:0] follow_index;
  wire [ BEATS_W-1:0] follow_first;
  wire [       255:0] follow;
  wire                data_idle;
  reg  [        31:0] index_q;
  reg  [        31:0] range_index_q;

  wire                is_gather = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_GATHER;

  assign want_o        = head_valid_i && !walk_active && !follow_full;
  assign idle_o        = !walk_active && !follow_valid && data_idle;
  assign range_index_o = range_index_q;

  // of the walk at hand, and of the one whose burst was outside the window
  always @(posedge clk_i) begin
    if (start_i) index_q <= index_i;
    if (!range_fault_o) range_index_q <= index_q;
  end

  vta_dma_walk #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS),
      .COUNT_W      ((BEATS_W < 16) ? BEATS_W : 16),
      .LENGTH_W     (LENGTH_W)
  ) u_walk (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .window_bytes_i(window_bytes_i),
      .start_i       (start_i),
      .dram_i        (insn_i[`VTA_LOAD_DRAM]),
      .y_i           (insn_i[`VTA_LOAD_Y]),
      .x_i           (insn_i[`VTA_LOAD_X]),
      .y_stride_i    (insn_i[`VTA_LOAD_Y_STRIDE]),
      .x_stride_i    (insn_i[`VTA_LOAD_X_STRIDE]),
      .x_one_i       (one_i[0]),
      .y_one_i       (one_i[1]),
      .length_i      (length_i),
      .active_o      (walk_active),
      .req_valid_o   (req_valid_o),
      .req_offset_o  (req_offset_o),
      .req_len_o     (req_len_o),
      .req_last_o    (walk_last),
      .req_ready_i   (req_ready_i),
      .fault_o       (range_fault_o)
  );

  // without the fields that only the front and the walk need; an index has 28 bits
  assign follow[191:160] = 32'd0;
  assign follow_index[31:28] = 4'd0;
  assign follow[111:64]  = 48'd0;
  assign follow[47:32]   = 16'd0;
  assign follow[7:0]     = 8'd0;

  vta_fifo #(
      .WIDTH(1 + 28 + BEATS_W + 64 + 48 + 16 + 24),
      .DEPTH(FOLLOW)
  ) u_follow (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (start_i),
      .data_i ({is_gather, index_i[27:0], first_beat_i, insn_i[255:192], insn_i[159:112], insn_i[63:48], insn_i[31:8]}),
      .full_o (follow_full),
      .valid_o(follow_valid),
      .data_o ({follow_gather, follow_index[27:0], follow_first, follow[255:192], follow[159:112], follow[63:48], follow[31:8]}),
      .pop_i  (follow_pop)
  );

  vta_load_data #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .INP_LANES    (INP_LANES),
      .LINE_BEATS   (LINE_BEATS),
      .FACTORS      (FACTORS),
      .FACTOR_GRANULES(FACTOR_GRANULES),
      .BEATS_W      (BEATS_W)
  ) u_data (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .stop_i       (stop_i),
      .valid_i      (follow_valid),
      .gather_i     (follow_gather),
      .insn_i       (follow),
      .index_i      (follow_index),
      .first_beat_i (follow_first),
      .pop_o        (follow_pop),
      .inp_soon_i   (inp_soon_i),
      .beat_want_o  (beat_want_o),
      .beat_i       (beat_i),
      .data_i       (data_i),
      .error_i      (error_i),
      .we_o         (we_o),
      .be_o         (be_o),
      .expand_o     (expand_o),
      .waddr_o      (waddr_o),
      .wdata_o      (wdata_o),
      .factor_o     (factor_o),
      .give_o       (give_o),
      .set_o        (set_o),
      .done_index_o (done_index_o),
      .idle_o       (data_idle),
      .error_fault_o(error_fault_o),
      .error_index_o(error_index_o)
  );

  wire unused = &{1'b0, walk_last, insn_i, index_i};
endmodule

`resetall
