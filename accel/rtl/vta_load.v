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
    input  wire [              1:0] one_i,
    input  wire [      BEATS_W-1:0] length_i,
    input  wire [      BEATS_W-1:0] first_beat_i,
    output wire                     want_o,
    input  wire                     start_i,
    // read requests
    output wire                     req_valid_o,
    output wire [             31:0] req_offset_o,
    // beats less one
    output wire [              5:0] req_len_o,
    input  wire                     req_ready_i,
    // OUTPUT will write INP at the end of the next cycle (bit 0), of the one behind it (bit 1)
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
  localparam BUS_LOG = $clog2(BUS);
  localparam LINE_BEATS = LINE / BUS;
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  localparam FOLLOW = (READ_OUTSTANDING < 2) ? 2 : READ_OUTSTANDING;
  localparam FOLLOW_W = 32 + 16 + 4 + 1 + 11 + 8 + BEATS_W + 18 + 16 + 16 + 32;
  localparam WINDOW_W = 8 + 8 + 16 + 16 + 16 + 16;

  wire                walk_ready;
  wire                walk_active;
  wire                walk_last;
  wire                follow_full;
  wire                follow_valid;
  wire [FOLLOW_W-1:0] follow;
  wire                follow_pop;
  wire [WINDOW_W-1:0] window;
  wire                follow_gather;
  reg  [        31:0] index_q;
  reg  [        31:0] range_index_q;

  // GATHER reads rows of one run each
  wire                is_gather = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_GATHER;
  wire [        15:0] granules = ((insn_i[`VTA_GATHER_ROW_BYTES] - 16'd1) >> (BUS_LOG + GRANULE_LOG)) + 16'd1;
  wire [        17:0] run_beats = {2'b00, is_gather ? granules : insn_i[`VTA_LOAD_Z]} << GRANULE_LOG;

  assign want_o        = head_valid_i && walk_ready && !follow_full && !stop_i;
  assign idle_o        = !walk_active && !follow_valid && load_idle && gather_idle;
  assign range_index_o = range_index_q;

  // of the walk at hand, and of the one whose burst was outside the window
  always @(posedge clk_i) begin
    if (start_i) index_q <= index_i;
    if (!range_fault_o) range_index_q <= index_q;
  end

  vta_dma_walk #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS),
      .LENGTH_W     (BEATS_W)
  ) u_walk (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .window_bytes_i(window_bytes_i),
      .ready_o       (walk_ready),
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

  vta_fifo #(
      .WIDTH(1 + WINDOW_W + FOLLOW_W),
      .DEPTH(FOLLOW)
  ) u_follow (
      .clk_i(clk_i),
      .rst_ni(rst_ni),
      .push_i(start_i),
      .data_i({
        is_gather,
        insn_i[`VTA_GATHER_PITCH],
        insn_i[`VTA_GATHER_X_STEP],
        insn_i[`VTA_GATHER_LEFT],
        insn_i[`VTA_GATHER_ROW_BYTES],
        insn_i[`VTA_GATHER_RUN],
        insn_i[`VTA_GATHER_LANE],
        index_i,
        insn_i[`VTA_INSN_SET],
        insn_i[`VTA_LOAD_MEM],
        insn_i[`VTA_LOAD_EXPAND],
        insn_i[`VTA_LOAD_PITCH],
        is_gather ? insn_i[`VTA_GATHER_PAD_VALUE] : insn_i[`VTA_LOAD_PAD_VALUE],
        first_beat_i,
        run_beats,
        insn_i[`VTA_LOAD_X],
        insn_i[`VTA_LOAD_Y],
        insn_i[`VTA_LOAD_X_PAD_1],
        insn_i[`VTA_LOAD_X_PAD_0],
        is_gather ? insn_i[`VTA_GATHER_Y_PAD_1] : insn_i[`VTA_LOAD_Y_PAD_1],
        is_gather ? insn_i[`VTA_GATHER_Y_PAD_0] : insn_i[`VTA_LOAD_Y_PAD_0]
      }),
      .full_o(follow_full),
      .valid_o(follow_valid),
      .data_o({follow_gather, window, follow}),
      .pop_i(follow_pop)
  );

  // data sides: one of them has an instruction, the next is taken when it is done with it
  wire                     load_pop, gather_pop, load_free, gather_free, load_idle, gather_idle;
  wire                     load_want, gather_want, gather_active, load_error;
  wire [             15:0] load_we;
  wire                     gather_we;
  wire [AXI_DATA_BITS/8-1:0] gather_be;
  wire [      BEATS_W-1:0] load_waddr, gather_waddr;
  wire [AXI_DATA_BITS-1:0] load_wdata, gather_wdata;
  wire                     load_give, gather_give;
  wire [             15:0] load_set, gather_set;
  wire [             31:0] load_done_index, gather_done_index, load_error_index, gather_index;

  assign follow_pop    = load_pop || gather_pop;
  assign beat_want_o   = load_want || gather_want;
  assign we_o          = gather_we ? 16'd1 << `VTA_MEM_INP : load_we;
  assign be_o          = gather_we ? gather_be : {(AXI_DATA_BITS / 8) {1'b1}};
  assign waddr_o       = gather_we ? gather_waddr : load_waddr;
  assign wdata_o       = gather_we ? gather_wdata : load_wdata;
  assign give_o        = load_give || gather_give;
  assign set_o         = gather_give ? gather_set : load_set;
  assign done_index_o  = gather_give ? gather_done_index : load_done_index;
  assign error_index_o = gather_active ? gather_index : load_error_index;

  vta_load_data #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BEATS_W      (BEATS_W),
      .FOLLOW_W     (FOLLOW_W),
      .LINE_BEATS   (LINE_BEATS)
  ) u_data (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .stop_i       (stop_i),
      .valid_i      (follow_valid && !follow_gather && gather_free),
      .follow_i     (follow),
      .pop_o        (load_pop),
      .free_o       (load_free),
      .inp_hold_i   (inp_soon_i[0]),
      .beat_want_o  (load_want),
      .beat_i       (beat_i && !gather_active),
      .data_i       (data_i),
      .error_i      (error_i),
      .we_o         (load_we),
      .expand_o     (expand_o),
      .waddr_o      (load_waddr),
      .wdata_o      (load_wdata),
      .give_o       (load_give),
      .set_o        (load_set),
      .done_index_o (load_done_index),
      .idle_o       (load_idle),
      .error_fault_o(load_error),
      .error_index_o(load_error_index)
  );

  assign error_fault_o = load_error || (beat_i && error_i && gather_active);

  vta_gather #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .INP_LANES    (INP_LANES),
      .BEATS_W      (BEATS_W),
      .FOLLOW_W     (FOLLOW_W)
  ) u_gather (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .stop_i      (stop_i),
      .valid_i     (follow_valid && follow_gather && load_free),
      .follow_i    (follow),
      .window_i    (window),
      .pop_o       (gather_pop),
      .free_o      (gather_free),
      .active_o    (gather_active),
      .inp_hold_i  (inp_soon_i[1]),
      .beat_want_o (gather_want),
      .beat_i      (beat_i),
      .data_i      (data_i),
      .we_o        (gather_we),
      .be_o        (gather_be),
      .waddr_o     (gather_waddr),
      .wdata_o     (gather_wdata),
      .give_o      (gather_give),
      .set_o       (gather_set),
      .index_o     (gather_index),
      .done_index_o(gather_done_index),
      .idle_o      (gather_idle)
  );

  wire unused = &{1'b0, walk_last, insn_i, run_beats[17]};
endmodule

`resetall
