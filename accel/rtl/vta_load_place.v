// Where the beats of LOAD and GATHER go: rows of runs of beats (of GATHER: of vectors' windows), padding around them.
// Contract: the position at hand is in registers.  At an edge with move_i it goes to the next one, and with load_i to
// the first one of the operands.  last_o: it is the last one.  Runs are consecutive, but those of GATHER and of a LOAD
// with pitch, whose lines lie four pitches apart, begin a fixed distance behind one another.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_load_place #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Bytes of an INP entry
    parameter INP_LANES     = 4,
    // Beats of a line of INP, a power of two
    parameter LINE_BEATS    = 2,
    // Width of beat counts and addresses, at least 10
    parameter BEATS_W       = 20
) (
    input  wire               clk_i,
    input  wire               load_i,
    input  wire               move_i,
    // operands: what counts at edges with load_i
    input  wire               gather_i,
    input  wire [      255:0] insn_i,
    input  wire [BEATS_W-1:0] first_beat_i,
    // the position at hand: its beat address, whether it is padding, and what it is the last of
    output wire [BEATS_W-1:0] addr_o,
    output wire               pad_o,
    output wire               run_last_o,
    output wire               row_last_o,
    output wire               last_o
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam BUS_LOG = $clog2(BUS);
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  localparam PITCH_MUL = (INP_LANES > BUS) ? $clog2(INP_LANES / BUS) : 0;
  localparam PITCH_DIV = (INP_LANES > BUS) ? 0 : $clog2(BUS / INP_LANES);
  localparam LINE_LOG = $clog2(LINE_BEATS);
  localparam [31:0] LINE = LINE_BEATS;
  localparam [31:0] BUS_BYTES = BUS;
  localparam [BEATS_W-1:0] LINE_MASK = LINE[BEATS_W-1:0] - 1'b1;
  localparam RUN_W = (BEATS_W < 18) ? BEATS_W : 18;
  localparam COUNT_W = (BEATS_W < 17) ? BEATS_W : 17;
  localparam [COUNT_W-1:0] ONE = 1;
  localparam [RUN_W-1:0] TWO = 2;

  // operands; a window of GATHER is a run of as many beats as it touches
  wire [        7:0] x_pad_0 = gather_i ? 8'd0 : insn_i[`VTA_LOAD_X_PAD_0];
  wire [        7:0] x_pad_1 = gather_i ? 8'd0 : insn_i[`VTA_LOAD_X_PAD_1];
  wire [        7:0] y_pad_0 = gather_i ? insn_i[`VTA_GATHER_Y_PAD_0] : insn_i[`VTA_LOAD_Y_PAD_0];
  wire [        7:0] y_pad_1 = gather_i ? insn_i[`VTA_GATHER_Y_PAD_1] : insn_i[`VTA_LOAD_Y_PAD_1];
  wire [       16:0] x = {1'b0, insn_i[`VTA_LOAD_X]};
  wire [       16:0] y = {1'b0, insn_i[`VTA_LOAD_Y]};
  wire [COUNT_W-1:0] x_end = x[COUNT_W-1:0] + {{(COUNT_W - 8) {1'b0}}, x_pad_0};
  wire [COUNT_W-1:0] y_end = y[COUNT_W-1:0] + {{(COUNT_W - 8) {1'b0}}, y_pad_0};
  wire [COUNT_W-1:0] x_final = x_end + {{(COUNT_W - 8) {1'b0}}, x_pad_1} - ONE;
  wire [COUNT_W-1:0] y_final = y_end + {{(COUNT_W - 8) {1'b0}}, y_pad_1} - ONE;
  wire               x_one = ~|{x_pad_0, x_pad_1} && x == 17'd1;
  wire               y_one = ~|{y_pad_0, y_pad_1} && y == 17'd1;
  wire [       15:0] lane = gather_i ? insn_i[`VTA_GATHER_LANE] : 16'd0;
  wire [  BUS_LOG:0] touched = {1'b0, lane[BUS_LOG-1:0]} + {1'b0, {BUS_LOG{1'b1}}};
  wire [       15:0] window = insn_i[`VTA_GATHER_RUN] + {{(15 - BUS_LOG) {1'b0}}, touched};
  wire [       17:0] run = gather_i ? {2'b00, window >> BUS_LOG} : {2'b00, insn_i[`VTA_LOAD_Z]} << GRANULE_LOG;
  wire [BUS_LOG+1:0] short = {1'b0, insn_i[224+:BUS_LOG+1]} + {2'b00, lane[BUS_LOG-1:0]};
  wire               window_one = ~|(insn_i[`VTA_GATHER_RUN] >> (BUS_LOG + 1)) && short <= BUS_BYTES[BUS_LOG+1:0];
  wire               run_one = gather_i ? window_one : GRANULE_LOG == 0 && insn_i[`VTA_LOAD_Z] == 16'd1;
  wire [       15:0] vector = ({8'd0, insn_i[`VTA_GATHER_PITCH]} << PITCH_MUL) >> PITCH_DIV;
  wire [       17:0] first_offset = {2'b00, lane >> BUS_LOG};
  wire [BEATS_W-1:0] first = first_beat_i + {{(BEATS_W - RUN_W) {1'b0}}, first_offset[RUN_W-1:0]};
  // with expand it stands for factors
  wire               planes = !gather_i && |insn_i[`VTA_LOAD_PITCH] && !insn_i[`VTA_LOAD_EXPAND];

  reg                planes_q;
  reg                apart_q;  // runs do not follow one another
  reg  [       10:0] pitch_q;
  reg  [       15:0] vector_q;
  reg  [  RUN_W-1:0] run_q;
  reg                run_one_q;
  // first run and row with data, one past the last, and the last one of all
  reg  [        7:0] x_first_q;
  reg  [COUNT_W-1:0] x_end_q;
  reg  [COUNT_W-1:0] x_final_q;
  reg                x_one_q;
  reg  [        7:0] y_first_q;
  reg  [COUNT_W-1:0] y_end_q;
  reg  [COUNT_W-1:0] y_final_q;

  always @(posedge clk_i)
    if (load_i) begin
      planes_q  <= planes;
      apart_q   <= planes || gather_i;
      pitch_q   <= insn_i[`VTA_LOAD_PITCH];
      vector_q  <= vector;
      run_q     <= run[RUN_W-1:0];
      run_one_q <= run_one;
      x_first_q <= x_pad_0;
      x_end_q   <= x_end;
      x_final_q <= x_final;
      x_one_q   <= x_one;
      y_first_q <= y_pad_0;
      y_end_q   <= y_end;
      y_final_q <= y_final;
    end

  // position
  reg  [BEATS_W-1:0] addr_q;
  reg  [BEATS_W-1:0] begin_q;  // of the run
  reg                pad_q;
  reg                x_pad_q;
  reg                y_pad_q;
  reg                run_last_q;
  reg                x_last_q;
  reg                y_last_q;
  reg  [  RUN_W-1:0] count_q;  // two more than the beats of the run before this one
  reg  [COUNT_W-1:0] x_q;  // next run
  reg  [COUNT_W-1:0] y_q;  // next row

  wire               row_last = run_last_q && x_last_q;
  assign addr_o     = addr_q;
  assign pad_o      = pad_q;
  assign run_last_o = run_last_q;
  assign row_last_o = row_last;
  assign last_o     = row_last && y_last_q;

  // the next beat
  wire               line_ends = &(addr_q | ~LINE_MASK);
  wire [       12:0] lines = !line_ends ? 13'd0 : planes_q ? {pitch_q, 2'b00} : 13'd1;
  wire [BEATS_W+12:0] lines_wide = {{BEATS_W{1'b0}}, lines};
  wire [BEATS_W-1:0] next_line = (addr_q >> LINE_LOG) + lines_wide[BEATS_W-1:0];
  wire [BEATS_W-1:0] next_beat = (next_line << LINE_LOG) | ((addr_q + 1'b1) & LINE_MASK);
  wire [BEATS_W+15:0] apart = {{BEATS_W{1'b0}}, planes_q ? LINE[15:0] : vector_q};
  wire [BEATS_W-1:0] addr_d = load_i ? first : (run_last_q && apart_q) ? begin_q + apart[BEATS_W-1:0] : next_beat;

  // padding: ahead of the first run with data, and from the one past the last
  wire               x_pad_d = load_i ? |x_pad_0 : row_last ? |x_first_q
      : x_q == {{(COUNT_W - 8) {1'b0}}, x_first_q} ? 1'b0 : x_pad_q || x_q == x_end_q;
  wire               y_pad_d = load_i ? |y_pad_0
      : y_q == {{(COUNT_W - 8) {1'b0}}, y_first_q} ? 1'b0 : y_pad_q || y_q == y_end_q;
  wire               x_change = load_i || run_last_q;
  wire               y_change = load_i || row_last;

  always @(posedge clk_i)
    if (move_i) begin
      addr_q     <= addr_d;
      pad_q      <= (x_change ? x_pad_d : x_pad_q) || (y_change ? y_pad_d : y_pad_q);
      run_last_q <= load_i ? run_one : run_last_q ? run_one_q : count_q == run_q;
      count_q    <= x_change ? TWO : count_q + 1'b1;
      if (x_change) begin
        begin_q  <= addr_d;
        x_pad_q  <= x_pad_d;
        x_last_q <= load_i ? x_one : row_last ? x_one_q : x_q == x_final_q;
        x_q      <= y_change ? ONE : x_q + 1'b1;
      end
      if (y_change) begin
        y_pad_q  <= y_pad_d;
        y_last_q <= load_i ? y_one : y_q == y_final_q;
        y_q      <= load_i ? ONE : y_q + 1'b1;
      end
    end

  wire unused = &{1'b0, insn_i, x, y, lane, run, first_offset, lines_wide, apart};
endmodule

`resetall
