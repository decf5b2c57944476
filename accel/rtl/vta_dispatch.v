// Dispatcher: takes fetched instructions in order, checks them, and puts each into the queue of its unit.
// Contract: three registers deep; an instruction whose queue is full holds those behind it.  FINISH must be the last of
// COUNT instructions and waits for quiet_i; run_i falls with done_o.  A faulty instruction is not queued, except a
// transfer with a bad range; no unit may start after the edge that reports a fault.  count_i must be stable from before
// the reset.
// Latency: fetch buffer to queue 4 edges.  Throughput: one instruction a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_dispatch #(
    // Sizes of the configuration
    parameter BLOCK_IN      = 4,
    parameter BLOCK_OUT     = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS      = 8,
    parameter INP_DEPTH     = 1024,
    parameter WGT_DEPTH     = 1024,
    parameter ACC_DEPTH     = 1024,
    parameter OUT_DEPTH     = 1024,
    parameter UOP_DEPTH     = 512,
    parameter PRM_DEPTH     = 64,
    parameter TABLES        = 0,
    // Entries of coefficients, 0: no row unit
    parameter COF_DEPTH     = 0,
    parameter AXI_DATA_BITS = 64,
    // Bytes of a line of INP
    parameter LINE          = 16,
    // Width of beat counts, of all beats of a transfer
    parameter BEATS_W       = 20,
    parameter LENGTH_W      = 20
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    // the index outlasts a reset, not this
    input  wire               clear_i,
    input  wire               run_i,
    input  wire [       31:0] count_i,
    // fetched instructions
    input  wire               insn_valid_i,
    input  wire [      255:0] insn_i,
    output wire               insn_pop_o,
    // queues: bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE, 4 ROW
    output wire [        4:0] push_o,
    input  wire [        4:0] full_i,
    output wire [      255:0] insn_o,
    // of the instruction in the third register: those queued before it, and at the end FINISH
    output wire [       31:0] index_o,
    // what vta_once says
    output wire [        3:0] once_o,
    // of a transfer: what vta_dma_merge says of it, its length less one, and its first beat
    output wire [        1:0] one_o,
    output wire [LENGTH_W-1:0] length_o,
    output wire [BEATS_W-1:0] first_beat_o,
    // end of the program
    input  wire               quiet_i,
    output wire               done_o,
    // fault of the instruction index_o
    output wire               fault_o,
    output wire [        7:0] code_o
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  localparam GRANULE_BYTES_LOG = $clog2(BUS) + GRANULE_LOG;
  localparam [16:0] GRANULE_MASK = (1 << GRANULE_BYTES_LOG) - 1;
  localparam INP_LANES = BLOCK_IN * WGT_BITS / 8;
  localparam PITCH_MUL = (INP_LANES > BUS) ? $clog2(INP_LANES / BUS) : 0;
  localparam PITCH_DIV = (INP_LANES > BUS) ? 0 : $clog2(BUS / INP_LANES);
  localparam [7:0] OP_LOAD = `VTA_OP_LOAD, OP_GATHER = `VTA_OP_GATHER;
  // granules of weights behind each granule of factors
  localparam BLOCK_LOG = $clog2(INP_LANES * WGT_BITS / 8);
  localparam LINE_LOG = $clog2(LINE >> GRANULE_BYTES_LOG);  // granules of a line

  // first register: the instruction, and what of it needs a sum
  reg                first_valid_q;
  reg  [      255:0] first_q;
  reg  [        8:0] x_pads_q;
  reg  [        8:0] y_pads_q;
  reg                first_gather_q;
  reg                first_planes_q;

  // second register: products of one row, and all checks but that of a transfer's range
  reg                second_valid_q;
  reg  [      255:0] second_q;
  reg  [        4:0] second_unit_q;
  reg                second_finish_q;
  reg  [        3:0] second_flaws_q;
  reg                second_transfer_q;
  reg                second_gather_q;
  reg                second_planes_q;
  reg                second_factored_q;
  reg  [       35:0] padded_row_q;
  reg  [       16:0] padded_rows_q;
  reg  [       26:0] plane_q;
  reg  [       23:0] begin_q;
  reg  [BEATS_W-1:0] room_q;
  reg  [BEATS_W-1:0] second_first_beat_q;
  reg  [BEATS_W-1:0] second_row_beats_q;

  // third register: beats of all rows against the room for them
  reg                third_valid_q;
  reg  [      255:0] third_q;
  reg  [        4:0] unit_q;
  reg                finish_q;
  reg                bad_q;
  reg  [        7:0] code_q;
  reg                transfer_q;
  reg  [BEATS_W+16:0] beats_q;
  reg  [BEATS_W+1:0] fits_q;
  reg                beyond_q;
  reg                over_row_q;
  reg  [BEATS_W-1:0] first_beat_q;
  reg  [        1:0] one_q;
  reg  [        3:0] once_q;
  reg  [LENGTH_W-1:0] length_q;
  reg  [LENGTH_W-1:0] more_q;  // beats of factors, less one

  // the second and the third register hold an instruction, and all three
  reg                two_q;
  reg                three_q;
  reg  [       27:0] index_q;
  reg  [       27:0] next_q;  // one more
  reg                is_last_q;  // no instruction comes behind the one at hand
  reg                over_q;

  // whether a register may be loaded: it is empty, or one behind it is, or the third one moves on
  wire held;
  wire advance_3 = !(third_valid_q && held);
  wire advance_2 = !(two_q && held);
  wire advance_1 = !(three_q && held);
  wire first_valid = advance_1 ? insn_valid_i : first_valid_q;
  wire second_valid = advance_2 ? first_valid_q : second_valid_q;
  wire third_valid = advance_3 ? second_valid_q : third_valid_q;

  // on the way into the first register; other opcodes with these bits are no instructions
  wire load = insn_i[2:0] == OP_LOAD[2:0];
  wire gather = insn_i[2:0] == OP_GATHER[2:0];
  wire [7:0] y_pad_0 = gather ? insn_i[`VTA_GATHER_Y_PAD_0] : insn_i[`VTA_LOAD_Y_PAD_0];
  wire [7:0] y_pad_1 = gather ? insn_i[`VTA_GATHER_Y_PAD_1] : insn_i[`VTA_LOAD_Y_PAD_1];
  wire [8:0] x_pads = {1'b0, insn_i[`VTA_LOAD_X_PAD_0]} + {1'b0, insn_i[`VTA_LOAD_X_PAD_1]};
  wire [8:0] y_pads = {1'b0, y_pad_0} + {1'b0, y_pad_1};

  // on the way into the second register
  // of GATHER a run of the scratchpad is a vector, a row of DRAM the granules that hold it
  wire [17:0] vector_beats = ({10'd0, first_q[`VTA_GATHER_PITCH]} << PITCH_MUL) >> PITCH_DIV;
  wire [16:0] image_row = {1'b0, first_q[`VTA_GATHER_ROW_BYTES]} + GRANULE_MASK;
  wire [16:0] image_beats = (image_row >> GRANULE_BYTES_LOG) << GRANULE_LOG;
  wire [17:0] run_beats = first_gather_q ? vector_beats : {2'b00, first_q[`VTA_LOAD_Z]} << GRANULE_LOG;
  wire [17:0] padded_x = {2'b00, first_q[`VTA_LOAD_X]} + {9'd0, x_pads_q};
  // a LOAD with pitch counts lines: one for each run, and the distance of its last plane in steps of four
  wire [15:0] last_plane = (first_q[`VTA_LOAD_Z] >> LINE_LOG) - 16'd1;
  wire [26:0] plane = {16'd0, first_q[`VTA_LOAD_PITCH]} * {11'd0, last_plane};
  wire [35:0] padded_row = {18'd0, padded_x} * {18'd0, first_planes_q ? 18'd1 : run_beats};
  wire [35:0] load_beats = {20'd0, first_q[`VTA_LOAD_X]} * {18'd0, run_beats};
  wire [35:0] row_beats = first_gather_q ? {19'd0, image_beats} : load_beats;

  wire [4:0] unit;
  wire finish;
  wire transfer;
  wire planes;
  wire [BEATS_W-1:0] first_beat;
  wire [23:0] begins;
  wire [BEATS_W-1:0] room;
  wire [3:0] flaws;

  vta_decode #(
      .BLOCK_IN     (BLOCK_IN),
      .BLOCK_OUT    (BLOCK_OUT),
      .WGT_BITS     (WGT_BITS),
      .INP_DEPTH    (INP_DEPTH),
      .WGT_DEPTH    (WGT_DEPTH),
      .ACC_DEPTH    (ACC_DEPTH),
      .OUT_DEPTH    (OUT_DEPTH),
      .UOP_DEPTH    (UOP_DEPTH),
      .PRM_DEPTH    (PRM_DEPTH),
      .TABLES       (TABLES),
      .COF_DEPTH    (COF_DEPTH),
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .LINE         (LINE),
      .BEATS_W      (BEATS_W)
  ) u_decode (
      .insn_i      (first_q),
      .unit_o      (unit),
      .finish_o    (finish),
      .first_beat_o(first_beat),
      .transfer_o  (transfer),
      .planes_o    (planes),
      .begin_o     (begins),
      .room_o      (room),
      .flaws_o     (flaws)
  );

  // on the way into the third register
  wire [ 7:0] code = second_flaws_q[0] ? `VTA_FAULT_ILLEGAL_OPCODE : second_flaws_q[1] ? `VTA_FAULT_RESERVED_BITS
      : second_flaws_q[2] ? `VTA_FAULT_ILLEGAL_FIELD : `VTA_FAULT_SRAM_RANGE;
  wire [BEATS_W+16:0] beats = {17'd0, padded_row_q[BEATS_W-1:0]} * {{BEATS_W{1'b0}}, padded_rows_q};
  wire [BEATS_W+15:0] all_beats = {16'd0, second_row_beats_q} * {{BEATS_W{1'b0}}, second_q[`VTA_LOAD_Y]};
  // where a transfer begins, the last plane of one with pitch: in few bits, others above them are beyond every room
  wire [28:0] planes_2 = second_planes_q ? {plane_q, 2'd0} : 29'd0;
  wire beyond = |begin_q[23:BEATS_W] || |planes_2[28:BEATS_W];
  wire [BEATS_W+1:0] begin_2 = {2'd0, begin_q[BEATS_W-1:0]} + {2'd0, planes_2[BEATS_W-1:0]};

  // what a transfer moves in one piece; a row of GATHER is one run
  wire [       17:0] run_2 = {2'b00, second_q[`VTA_LOAD_Z]} << GRANULE_LOG;
  wire [        1:0] one;
  wire [LENGTH_W-1:0] length;

  vta_dma_merge #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .LENGTH_W     (LENGTH_W)
  ) u_merge (
      .y_i        (second_q[`VTA_LOAD_Y]),
      .x_i        (second_gather_q ? 16'd1 : second_q[`VTA_LOAD_X]),
      .y_stride_i (second_q[`VTA_LOAD_Y_STRIDE]),
      .x_stride_i (second_q[`VTA_LOAD_X_STRIDE]),
      .run_beats_i({{(LENGTH_W - 17) {1'b0}}, run_2[16:0]}),
      .row_beats_i({{(LENGTH_W - BEATS_W) {1'b0}}, second_row_beats_q}),
      .all_beats_i(all_beats[LENGTH_W-1:0]),
      .x_one_o    (one[0]),
      .y_one_o    (one[1]),
      .length_o   (length)
  );

  wire [15:0] last_block = (second_q[`VTA_LOAD_Z] - 16'd1) >> BLOCK_LOG;
  wire [LENGTH_W+15:0] last_factor = {{LENGTH_W{1'b0}}, last_block} << GRANULE_LOG;
  localparam [31:0] LEADS = 1 << GRANULE_LOG;

  wire [3:0] once;
  vta_once u_once (
      .insn_i(second_q),
      .once_o(once)
  );

  // in the third register; the comparison takes too long to keep an instruction out of a queue
  wire range_bad = transfer_q && (over_row_q || beyond_q || fits_q[BEATS_W+1] || |beats_q[BEATS_W+16:BEATS_W]
      || {1'b0, beats_q[BEATS_W-1:0]} > fits_q[BEATS_W:0]);
  wire early = finish_q && !is_last_q;  // FINISH before the last instruction
  wire ready = run_i && third_valid_q && !bad_q;
  assign held = finish_q || |(unit_q & full_i);
  wire go = ready && !held;

  assign push_o       = go ? unit_q : 5'd0;
  assign done_o       = ready && finish_q && !early && quiet_i;
  assign fault_o      = run_i && ((third_valid_q && (bad_q || range_bad || early)) || over_q);
  assign code_o       = over_q ? `VTA_FAULT_ILLEGAL_OPCODE : bad_q ? code_q
                      : range_bad ? `VTA_FAULT_SRAM_RANGE : `VTA_FAULT_ILLEGAL_FIELD;
  assign insn_pop_o   = insn_valid_i && advance_1;
  assign insn_o       = third_q;
  assign index_o      = {4'd0, index_q};
  assign first_beat_o = first_beat_q;
  assign one_o        = one_q;
  assign once_o       = once_q;
  assign length_o     = length_q + more_q;

  wire [27:0] after = next_q + 28'd1;
  always @(posedge clk_i) begin
    if (clear_i) begin
      index_q <= 28'd0;
      next_q  <= 28'd1;
    end else if (go || done_o) begin
      index_q <= next_q;
      next_q  <= after;
    end
    // settles long before the first instruction is here
    is_last_q <= (go || done_o) ? {4'd0, after} == count_i : {4'd0, next_q} == count_i;
  end

  always @(posedge clk_i)
    if (!rst_ni) begin
      first_valid_q  <= 1'b0;
      second_valid_q <= 1'b0;
      third_valid_q  <= 1'b0;
      two_q          <= 1'b0;
      three_q        <= 1'b0;
      over_q         <= count_i == 32'd0;
    end else begin
      first_valid_q  <= first_valid;
      second_valid_q <= second_valid;
      third_valid_q  <= third_valid;
      two_q          <= second_valid && third_valid;
      three_q        <= first_valid && second_valid && third_valid;
      // the last instruction was no FINISH
      if (go && is_last_q) over_q <= 1'b1;
    end

  always @(posedge clk_i) begin
    if (advance_1) begin
      first_q        <= insn_i;
      x_pads_q       <= load ? x_pads : 9'd0;
      y_pads_q       <= (load || gather) ? y_pads : 9'd0;
      first_gather_q <= gather;
      first_planes_q <= load && |insn_i[`VTA_LOAD_PITCH] && !insn_i[`VTA_LOAD_EXPAND];
    end
    if (advance_2) begin
      second_q            <= first_q;
      second_unit_q       <= unit;
      second_finish_q     <= finish;
      second_flaws_q      <= flaws;
      second_transfer_q   <= transfer;
      second_gather_q     <= first_gather_q;
      second_planes_q     <= planes;
      second_factored_q   <= unit[0] && !first_gather_q && first_q[`VTA_LOAD_EXPAND] && |first_q[`VTA_LOAD_PITCH];
      padded_row_q        <= padded_row;
      padded_rows_q       <= {1'b0, first_q[`VTA_LOAD_Y]} + {8'd0, y_pads_q};
      plane_q             <= plane;
      begin_q             <= begins;
      room_q              <= room;
      second_first_beat_q <= first_beat;
      second_row_beats_q  <= row_beats[BEATS_W-1:0];
    end
    if (advance_3) begin
      third_q      <= second_q;
      unit_q       <= second_unit_q;
      finish_q     <= second_finish_q;
      bad_q        <= |second_flaws_q;
      code_q       <= code;
      transfer_q   <= second_transfer_q;
      over_row_q   <= |padded_row_q[35:BEATS_W];
      beats_q      <= beats;
      fits_q       <= {2'd0, room_q} - begin_2;
      beyond_q     <= beyond;
      first_beat_q <= second_first_beat_q;
      one_q        <= one;
      once_q       <= once;
      length_q     <= length;
      more_q       <= second_factored_q ? last_factor[LENGTH_W-1:0] | (LEADS[LENGTH_W-1:0] - 1'b1) : {LENGTH_W{1'b1}};
    end
  end

  wire unused = &{1'b0, row_beats, all_beats, run_2, last_factor};
endmodule

`resetall
