// Dispatcher: takes fetched instructions in order, checks them, and puts each into the queue of its unit.
// Contract: two registers deep; an instruction whose queue is full holds those behind it.  FINISH must be the last of
// COUNT instructions and waits for quiet_i.  A faulty instruction is never queued.
// Latency: fetch buffer to queue 3 edges.  Throughput: one instruction a cycle.
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
    parameter AXI_DATA_BITS = 64,
    // Bytes of a line of INP
    parameter LINE          = 16,
    // Width of beat counts
    parameter BEATS_W       = 20
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               run_i,
    input  wire [       31:0] count_i,
    // fetched instructions
    input  wire               insn_valid_i,
    input  wire [      255:0] insn_i,
    output wire               insn_pop_o,
    // queues: bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE
    output wire [        3:0] push_o,
    input  wire [        3:0] full_i,
    output wire [      255:0] insn_o,
    output wire [       31:0] index_o,
    output wire [BEATS_W-1:0] row_beats_o,
    output wire [BEATS_W-1:0] all_beats_o,
    output wire [BEATS_W-1:0] first_beat_o,
    // end of the program
    input  wire               quiet_i,
    output wire               done_o,
    output wire               dispatched_o,
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
  localparam LINE_LOG = $clog2(LINE >> GRANULE_BYTES_LOG);  // granules of a line

  reg               first_valid_q;
  reg [      255:0] first_q;
  reg               second_valid_q;
  reg [      255:0] second_q;
  reg [BEATS_W-1:0] padded_row_q;
  reg               padded_over_q;
  reg [       26:0] plane_q;
  reg [BEATS_W-1:0] row_beats_q;
  reg [       31:0] index_q;

  // first register: products of one row
  wire        is_load = first_q[`VTA_INSN_OPCODE] == `VTA_OP_LOAD;
  wire        is_gather = first_q[`VTA_INSN_OPCODE] == `VTA_OP_GATHER;
  // of GATHER a run of the scratchpad is a vector, a row of DRAM the granules that hold it
  wire [17:0] vector_beats = ({10'd0, first_q[`VTA_GATHER_PITCH]} << PITCH_MUL) >> PITCH_DIV;
  wire [16:0] image_row = {1'b0, first_q[`VTA_GATHER_ROW_BYTES]} + GRANULE_MASK;
  wire [16:0] image_beats = (image_row >> GRANULE_BYTES_LOG) << GRANULE_LOG;
  wire [17:0] run_beats = is_gather ? vector_beats : {2'b00, first_q[`VTA_LOAD_Z]} << GRANULE_LOG;
  wire [17:0] padded_x = {2'b00, first_q[`VTA_LOAD_X]}
      + (is_load ? {10'd0, first_q[`VTA_LOAD_X_PAD_0]} + {10'd0, first_q[`VTA_LOAD_X_PAD_1]} : 18'd0);
  // a LOAD with pitch counts lines: one for each run, and the distance of its last plane in steps of four
  wire        planes = is_load && |first_q[`VTA_LOAD_PITCH];
  wire [15:0] last_plane = (first_q[`VTA_LOAD_Z] >> LINE_LOG) - 16'd1;
  wire [26:0] plane = {16'd0, first_q[`VTA_LOAD_PITCH]} * {11'd0, last_plane};
  wire [35:0] padded_row = {18'd0, padded_x} * {18'd0, planes ? 18'd1 : run_beats};
  wire [35:0] load_beats = {20'd0, first_q[`VTA_LOAD_X]} * {18'd0, run_beats};
  wire [35:0] row_beats = is_gather ? {19'd0, image_beats} : load_beats;

  // second register: checks
  wire [ 3:0] unit;
  wire        finish;
  wire        bad;
  wire [ 7:0] bad_code;
  wire [BEATS_W+15:0] all_beats = {16'd0, row_beats_q} * {{BEATS_W{1'b0}}, second_q[`VTA_LOAD_Y]};

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
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .LINE         (LINE),
      .BEATS_W      (BEATS_W)
  ) u_decode (
      .insn_i       (second_q),
      .padded_row_i (padded_row_q),
      .padded_over_i(padded_over_q),
      .plane_i      (plane_q),
      .unit_o       (unit),
      .finish_o     (finish),
      .first_beat_o (first_beat_o),
      .fault_o      (bad),
      .code_o       (bad_code)
  );

  wire is_last = index_q + 32'd1 == count_i;
  wire early = finish && !is_last;  // FINISH before the last instruction
  wire over = index_q == count_i;  // the last instruction was no FINISH
  wire ready = run_i && second_valid_q && !bad && !early;
  wire go = ready && !finish && ~|(unit & full_i);
  wire advance = !second_valid_q || go;

  assign push_o       = go ? unit : 4'd0;
  assign done_o       = ready && finish && quiet_i;
  assign dispatched_o = go || done_o;
  assign fault_o      = run_i && ((second_valid_q && (bad || early)) || over);
  assign code_o       = over ? `VTA_FAULT_ILLEGAL_OPCODE : bad ? bad_code : `VTA_FAULT_ILLEGAL_FIELD;
  assign insn_pop_o   = insn_valid_i && (!first_valid_q || advance);
  assign insn_o       = second_q;
  assign index_o      = index_q;
  assign row_beats_o  = row_beats_q;
  assign all_beats_o  = all_beats[BEATS_W-1:0];

  always @(posedge clk_i)
    if (!rst_ni) begin
      first_valid_q  <= 1'b0;
      second_valid_q <= 1'b0;
      index_q        <= 32'd0;
    end else begin
      if (insn_pop_o) first_valid_q <= 1'b1;
      else if (advance) first_valid_q <= 1'b0;
      if (advance) second_valid_q <= first_valid_q;
      if (go) index_q <= index_q + 32'd1;
    end

  always @(posedge clk_i) begin
    if (insn_pop_o) first_q <= insn_i;
    if (advance && first_valid_q) begin
      second_q      <= first_q;
      padded_row_q  <= padded_row[BEATS_W-1:0];
      padded_over_q <= |padded_row[35:BEATS_W];
      plane_q       <= plane;
      row_beats_q   <= row_beats[BEATS_W-1:0];
    end
  end

  wire unused = &{1'b0, row_beats, all_beats};
endmodule

`resetall
