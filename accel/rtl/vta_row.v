// ROW unit: softmax and norms of rows of int8 numbers in the accumulators, in place, a quarter of an entry a cycle.
// Four rows are in it at a time, a round each: for its maximum, its sums, what it is divided by, and its results.
// Contract: acc_i is valid in the second cycle behind that of the read, until the next one; coefficients in the cycle
// behind that of the look.  All time follows from the instruction; see "ROW" in TIMING.md.
// Latency: an entry that is read for results in a cycle is written in the 20th cycle from there; acc_we_o is high in the
// one before.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_row #(
    // Lanes of an accumulator entry: 4 to 64
    parameter BLOCK_OUT = 4,
    // Entries of accumulators
    parameter ACC_DEPTH = 1024
) (
    input  wire                      clk_i,
    input  wire                      rst_ni,
    input  wire                      stop_i,
    // head of the queue; start_i pops it
    input  wire                      head_valid_i,
    input  wire [             255:0] insn_i,
    input  wire [              31:0] index_i,
    output wire                      want_o,
    input  wire                      start_i,
    // accumulators: the low bytes of an entry; writes a cycle before their bytes
    output wire                      acc_re_o,
    output wire [              15:0] acc_raddr_o,
    input  wire [   BLOCK_OUT*8-1:0] acc_i,
    output wire                      acc_we_o,
    output wire [              15:0] acc_waddr_o,
    output wire [   BLOCK_OUT*8-1:0] acc_wdata_o,
    // coefficients: an entry for each lane, for sums and for results
    output wire                      cof_s_re_o,
    output wire [BLOCK_OUT/4*16-1:0] cof_s_raddr_o,
    input  wire [BLOCK_OUT/4*16-1:0] cof_s_i,
    output wire                      cof_r_re_o,
    output wire [BLOCK_OUT/4*16-1:0] cof_r_raddr_o,
    input  wire [BLOCK_OUT/4*48-1:0] cof_r_i,
    // tokens of a finished instruction; done_index_o also names the instruction that writes
    output wire                      give_o,
    output wire [              15:0] set_o,
    output wire [              31:0] done_index_o,
    output wire                      idle_o,
    // instruction that reads the accumulators, and whether it reads outside of them
    output wire [              31:0] read_index_o,
    output wire                      fault_o
);
  localparam LANES = BLOCK_OUT / `VTA_ROW_QUARTERS;
  localparam LANES_LOG = $clog2(LANES);
  localparam ACC_W = $clog2(ACC_DEPTH);
  localparam QUARTER_W = LANES * 8;
  localparam SUM_W = 28 + LANES_LOG;

  // the instruction
  reg         busy_q;
  reg         softmax_q, rms_q, step_q;
  reg  [ 7:0] zero_point_q, inp_zero_q;
  reg  [15:0] columns_q, cof_base_q, entry_step_q, multiplier_q, set_q;
  reg  [16:0] visible_q;
  reg  [47:0] epsilon_q;
  reg  [ 6:0] shift_q;
  reg  [31:0] index_q;
  wire [ 1:0] kind = insn_i[`VTA_ROW_KIND];

  wire active, first, ninth, last;
  wire [ 2:0] read;
  wire [15:0] row;

  vta_row_walk #(
      .BLOCK_OUT(BLOCK_OUT)
  ) u_walk (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .stop_i      (stop_i),
      .start_i     (start_i),
      .rows_i      (insn_i[`VTA_ROW_ROWS]),
      .columns_i   (insn_i[`VTA_ROW_COLUMNS]),
      .acc_base_i  (insn_i[`VTA_ROW_ACC_BASE]),
      .row_step_i  (insn_i[`VTA_ROW_ROW_STEP]),
      .entry_step_i(insn_i[`VTA_ROW_ENTRY_STEP]),
      .active_o    (active),
      .first_o     (first),
      .ninth_o     (ninth),
      .last_o      (last),
      .read_o      (read),
      .raddr_o     (acc_raddr_o),
      .row_o       (row)
  );

  assign want_o       = head_valid_i && !busy_q;
  assign acc_re_o     = |read;
  assign read_index_o = index_q;
  assign done_index_o = index_q;
  assign set_o        = set_q;
  assign idle_o       = !busy_q;
  wire [15:0] outside = acc_raddr_o >> ACC_W;
  assign fault_o = acc_re_o && outside != 16'd0;

  // cycles behind the last slot, in the fourth of which tokens are given
  reg [4:1] done_q;
  assign give_o = done_q[4] && !stop_i;
  always @(posedge clk_i)
    if (!rst_ni || stop_i) {busy_q, done_q} <= 5'd0;
    else begin
      busy_q <= start_i || (busy_q && !done_q[4]);
      done_q <= {done_q[3:1], last};
    end

  always @(posedge clk_i)
    if (start_i) begin
      softmax_q    <= kind == `VTA_ROWKIND_SOFTMAX;
      rms_q        <= kind == `VTA_ROWKIND_RMS_NORM;
      zero_point_q <= insn_i[`VTA_ROW_ZERO_POINT];
      inp_zero_q   <= (kind == `VTA_ROWKIND_RMS_NORM) ? insn_i[`VTA_ROW_INP_ZERO] : 8'd0;
      columns_q    <= insn_i[`VTA_ROW_COLUMNS];
      cof_base_q   <= insn_i[`VTA_ROW_COF_BASE];
      entry_step_q <= insn_i[`VTA_ROW_ENTRY_STEP];
      multiplier_q <= insn_i[`VTA_ROW_MULTIPLIER];
      step_q       <= insn_i[`VTA_ROW_VISIBLE_STEP];
      epsilon_q    <= {insn_i[`VTA_ROW_EPSILON_HIGH], insn_i[`VTA_ROW_EPSILON_LOW]};
      shift_q      <= insn_i[`VTA_ROW_SHIFT];
      set_q        <= insn_i[`VTA_INSN_SET];
      index_q      <= index_i;
    end

  // the last shift: none for softmax; by 35 nothing is left either
  wire [5:0] shift = softmax_q ? 6'd0 : (shift_q[5:0] > 6'd35) ? 6'd35 : shift_q[5:0];
  wire [35:0] half = (36'd1 << shift) >> 1;

  // columns that count: of the row for its maximum, then with the rows from round to round.  What bounds them is read as
  // the instruction begins.
  reg bounded_q, looked_q;
  reg [15:0] columns_bound_q;
  wire [15:0] bound = (looked_q && bounded_q && cof_r_i[15:0] < columns_q) ? cof_r_i[15:0] : columns_bound_q;
  always @(posedge clk_i) looked_q <= start_i;
  always @(posedge clk_i)
    if (start_i) bounded_q <= kind == `VTA_ROWKIND_SOFTMAX && insn_i[`VTA_ROW_BOUNDED];
  always @(posedge clk_i) columns_bound_q <= start_i ? insn_i[`VTA_ROW_COLUMNS] : bound;
  reg [15:0] limit_a_q, limit_b_q, limit_d_q, limit_c_q;
  wire [15:0] limit = (softmax_q && visible_q < {1'b0, bound}) ? visible_q[15:0] : bound;
  reg second_q;
  always @(posedge clk_i) second_q <= first;
  always @(posedge clk_i)
    if (start_i) visible_q <= {1'b0, insn_i[`VTA_ROW_VISIBLE]};
    else if (first) visible_q <= visible_q + {16'd0, step_q};
  always @(posedge clk_i) if (first) {limit_c_q, limit_d_q, limit_b_q, limit_a_q} <= {limit_d_q, limit_b_q, limit_a_q, limit};

  // Streams of quarters, for maximum, sums and results.  An entry is in its register from the third cycle behind its read
  // on, for four cycles; counts: lanes whose column counts.
  wire [2:0] loads;
  wire [2:0] valid;
  wire [3*QUARTER_W-1:0] quarters;
  wire [3*LANES-1:0] counts;
  wire [47:0] limits = {limit_c_q, limit_b_q, limit_a_q};
  wire [47:0] lefts;
  genvar i;
  generate
    for (i = 0; i < 3; i = i + 1) begin : g_stream
      reg [6:1] behind_q;
      reg [BLOCK_OUT*8-1:0] entry_q;
      reg [15:0] left_q;
      wire [15:0] fewer = left_q - LANES[15:0];
      always @(posedge clk_i)
        if (!rst_ni) behind_q <= 6'd0;
        else behind_q <= {behind_q[5:1], read[i]};
      always @(posedge clk_i)
        if (loads[i]) entry_q <= acc_i;
        else if (valid[i]) entry_q <= entry_q >> QUARTER_W;
      always @(posedge clk_i)
        if (second_q) left_q <= limits[i*16+:16];
        else if (valid[i]) left_q <= (left_q < LANES[15:0]) ? 16'd0 : fewer;
      assign lefts[i*16+:16] = left_q;
      assign loads[i] = behind_q[2];
      assign valid[i] = |behind_q[6:3];
      assign quarters[i*QUARTER_W+:QUARTER_W] = entry_q[QUARTER_W-1:0];
    end
  endgenerate
  genvar lane;
  generate
    for (i = 0; i < 3; i = i + 1) begin : g_counts
      for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lane
        localparam [31:0] LANE = lane;
        assign counts[i*LANES+lane] = lefts[i*16+:16] > LANE[15:0];
      end
    end
  endgenerate

  // maximum: lanes, then one of them, then of the row
  reg valid_a1_q, valid_a2_q;
  reg [QUARTER_W-1:0] lanes, lanes_q;
  reg signed [7:0] most, most_q, top_q;
  reg [7:0] top_b_q, top_d_q, top_c_q;
  integer k;
  always @* begin
    most = lanes_q[7:0];
    for (k = 0; k < LANES; k = k + 1) begin
      lanes[k*8+:8] = counts[k] ? quarters[k*8+:8] : 8'h80;
      if ($signed(lanes_q[k*8+:8]) > most) most = lanes_q[k*8+:8];
    end
  end
  always @(posedge clk_i) {valid_a2_q, valid_a1_q} <= {valid_a1_q, valid[0]};
  always @(posedge clk_i)
    if (busy_q) begin
      lanes_q <= lanes;
      most_q  <= most;
      if (first) top_q <= 8'h80;
      else if (valid_a2_q && most_q > top_q) top_q <= most_q;
      if (first) {top_c_q, top_d_q, top_b_q} <= {top_d_q, top_b_q, top_q};
    end

  // sums
  reg [3:1] valid_b_q;
  reg valid_b4_q;
  reg [SUM_W-1:0] values, values_q;
  reg [8+LANES_LOG:0] parts, parts_q;
  reg [43:0] total_q;
  reg [22:0] sum_q, sum_d_q, sum_c_q;
  wire [LANES*27-1:0] b_value;
  wire [LANES*9-1:0] b_part;
  integer n;
  always @* begin
    values = {{SUM_W - 27{1'b0}}, b_value[26:0]};
    parts  = {{LANES_LOG + 1{b_part[8]}}, b_part[7:0]};
    for (n = 1; n < LANES; n = n + 1) begin
      values = values + {{SUM_W - 27{1'b0}}, b_value[n*27+:27]};
      parts  = parts + {{LANES_LOG + 1{b_part[n*9+8]}}, b_part[n*9+:8]};
    end
  end
  always @(posedge clk_i) {valid_b4_q, valid_b_q} <= {valid_b_q, valid[1]};
  always @(posedge clk_i)
    if (busy_q) begin
      values_q <= values;
      parts_q  <= parts;
      if (first) {total_q, sum_q} <= 67'd0;
      else if (valid_b4_q) begin
        total_q <= total_q + {{44 - SUM_W{1'b0}}, values_q};
        sum_q   <= sum_q + {{14 - LANES_LOG{parts_q[8+LANES_LOG]}}, parts_q};
      end
      if (first) {sum_c_q, sum_d_q} <= {sum_d_q, rms_q ? 23'd0 : sum_q};
    end

  // what the row is divided by; taken over where the row goes on to its results
  wire [16:0] inverse;
  wire [3:0] drop;
  wire [7:0] down;
  reg [16:0] inverse_q;
  reg [3:0] drop_q;
  reg [7:0] down_q;

  vta_row_inverse u_inverse (
      .clk_i       (clk_i),
      .en_i        (busy_q),
      .softmax_i   (softmax_q),
      .columns_i   (columns_q[14:0]),
      .epsilon_i   (epsilon_q),
      .multiplier_i(multiplier_q),
      .shift_i     (shift_q),
      .load_i      (first),
      .total_i     (total_q),
      .sum_i       (rms_q ? 23'd0 : sum_q),
      .inverse_o   (inverse),
      .drop_o      (drop),
      .down_o      (down)
  );
  always @(posedge clk_i) if (first) {inverse_q, drop_q, down_q} <= {inverse, drop, down};

  // results: the quarter in stage 7 looks up its columns
  reg [13:1] valid_c_q;
  reg [15:0] column_q;
  always @(posedge clk_i) valid_c_q <= {valid_c_q[12:1], valid[2]};
  always @(posedge clk_i)
    if (first) column_q <= cof_base_q;
    else if (valid_c_q[7]) column_q <= column_q + 16'd1;

  wire [QUARTER_W-1:0] dist_b, dist_c, bytes;
  assign cof_s_re_o = softmax_q && valid_b_q[1];
  wire [15:0] behind = insn_i[`VTA_ROW_COF_BASE] + `VTA_EXPONENTIALS;
  assign cof_r_re_o = start_i || (softmax_q ? valid_c_q[1] : valid_c_q[7]);
  generate
    for (lane = 0; lane < LANES; lane = lane + 1) begin : g_lanes
      wire [15:0] near_b = {8'd0, dist_b[lane*8+:8]};
      wire [15:0] near_c = {8'd0, dist_c[lane*8+:8]};
      assign cof_s_raddr_o[lane*16+:16] = cof_base_q + near_b;
      assign cof_r_raddr_o[lane*16+:16] = start_i ? behind : softmax_q ? cof_base_q + near_c : column_q;
      vta_row_lane u_lane (
          .clk_i       (clk_i),
          .en_i        (busy_q),
          .softmax_i   (softmax_q),
          .inp_zero_i  (inp_zero_q),
          .columns_i   (columns_q[14:0]),
          .shift_i     (shift),
          .half_i      (half),
          .zero_point_i(zero_point_q),
          .b_data_i    (quarters[QUARTER_W+lane*8+:8]),
          .b_counts_i  (counts[LANES+lane]),
          .b_top_i     (top_b_q),
          .b_dist_o    (dist_b[lane*8+:8]),
          .b_entry_i   (cof_s_i[lane*16+:16]),
          .b_value_o   (b_value[lane*27+:27]),
          .b_part_o    (b_part[lane*9+:9]),
          .c_data_i    (quarters[2*QUARTER_W+lane*8+:8]),
          .c_counts_i  (counts[2*LANES+lane]),
          .c_top_i     (top_c_q),
          .c_sum_i     (sum_c_q),
          .c_inverse_i (inverse_q),
          .c_drop_i    (drop_q),
          .c_down_i    (down_q),
          .c_dist_o    (dist_c[lane*8+:8]),
          .c_word_i    (cof_r_i[lane*48+:48]),
          .byte_o      (bytes[lane*8+:8])
      );
    end
  endgenerate

  // an entry of results, and where it goes: each one of a row an entry step behind the one before
  reg [BLOCK_OUT*8-1:0] vector_q;
  reg [19:1] written_q;
  reg [15:0] waddr_q;
  always @(posedge clk_i) if (valid_c_q[13]) vector_q <= {bytes, vector_q[BLOCK_OUT*8-1:QUARTER_W]};
  always @(posedge clk_i)
    if (!rst_ni || stop_i) written_q <= 19'd0;
    else written_q <= {written_q[18:1], read[2]};
  always @(posedge clk_i)
    if (ninth) waddr_q <= row;
    else if (acc_we_o) waddr_q <= waddr_q + entry_step_q;
  assign acc_we_o    = written_q[19];
  assign acc_waddr_o = waddr_q;
  assign acc_wdata_o = vector_q;

  wire unused = &{1'b0, active, insn_i};
endmodule

`resetall
