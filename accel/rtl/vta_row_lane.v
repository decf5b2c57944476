// One lane of the row unit: what an element adds to its row's sums, and its result.
// Sums: b_data_i in stage 0, the distance from the maximum in 1 (an entry of coefficients), b_value_o and b_part_o in 3.
// Results: c_data_i in stage 0; softmax looks its entry up in stage 1 (c_dist_o), norms their column in 7; byte_o in 13.
//   softmax: 1 distance, 2 entry, 3 mantissa; norms: 1 element, 2 times the columns, 3 less the sum;
//   4 shifted, 5 and 6 times the inverse, 7 rounded, 8 shifted, 9 clipped, 10 times gain, 11 with bias, 12 shifted,
//   13 zero point and clip.
// Contract: coefficients are valid the cycle behind the one in which they are looked up.  What belongs to the row holds
// from stage 0 of its first element to stage 5 of its last one, what belongs to the instruction to the end.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_row_lane (
    input  wire        clk_i,
    input  wire        en_i,
    // the instruction: softmax or a norm, what is taken off elements, columns, last shift (at most 35), zero point
    input  wire        softmax_i,
    input  wire [ 7:0] inp_zero_i,
    input  wire [14:0] columns_i,
    input  wire [ 5:0] shift_i,
    input  wire [35:0] half_i,
    input  wire [ 7:0] zero_point_i,
    // sums
    input  wire [ 7:0] b_data_i,
    input  wire        b_counts_i,
    input  wire [ 7:0] b_top_i,
    output wire [ 7:0] b_dist_o,
    input  wire [15:0] b_entry_i,
    output wire [26:0] b_value_o,
    output wire [ 8:0] b_part_o,
    // results: of the row the maximum, the sum, its inverse, bits to drop before and behind the product; softmax: bits
    // behind it, less an element's exponent
    input  wire [ 7:0] c_data_i,
    input  wire        c_counts_i,
    input  wire [ 7:0] c_top_i,
    input  wire [22:0] c_sum_i,
    input  wire [16:0] c_inverse_i,
    input  wire [ 3:0] c_drop_i,
    input  wire [ 7:0] c_down_i,
    output wire [ 7:0] c_dist_o,
    input  wire [47:0] c_word_i,
    output wire [ 7:0] byte_o
);
  // sums
  reg [7:0] b_dist_q;
  reg signed [8:0] b_u_q;
  reg b_counts_1_q, b_counts_2_q;
  reg signed [8:0] b_u_2_q;
  reg [16:0] b_square_q;
  reg [26:0] b_value_q;
  reg [8:0] b_part_q;
  wire signed [17:0] b_square = b_u_q * b_u_q;
  wire [26:0] b_exp = {15'd0, b_entry_i[11:0]} << b_entry_i[15:12];

  assign b_dist_o  = b_dist_q;
  assign b_value_o = b_value_q;
  assign b_part_o  = b_part_q;

  always @(posedge clk_i)
    if (en_i) begin
      b_dist_q     <= b_top_i - b_data_i;
      b_u_q        <= {b_data_i[7], b_data_i} - {inp_zero_i[7], inp_zero_i};
      b_counts_1_q <= b_counts_i;
      b_square_q   <= b_square[16:0];
      b_u_2_q      <= b_u_q;
      b_counts_2_q <= b_counts_1_q;
      b_value_q    <= !b_counts_2_q ? 27'd0 : softmax_i ? b_exp : {10'd0, b_square_q};
      b_part_q     <= b_counts_2_q ? b_u_2_q : 9'd0;
    end

  // results, up to the multiplier's first operand
  reg [7:0] c_dist_q;
  reg signed [8:0] c_u_q;
  reg c_counts_1_q, c_counts_2_q;
  reg signed [23:0] c_times_q;
  reg [11:0] c_mantissa_q;
  reg [3:0] c_exponent_q;
  reg signed [24:0] c_full_q;
  reg signed [17:0] c_x_q;
  reg [4:0] c_down_4_q, c_down_5_q, c_down_6_q, c_down_7_q;

  wire signed [15:0] columns = {1'b0, columns_i};
  wire signed [24:0] times = c_u_q * columns;
  wire signed [24:0] sum = {{2{c_sum_i[22]}}, c_sum_i};
  // rounds half up; drop is 0 to 14
  wire [24:0] drop_half = (25'd1 << c_drop_i) >> 1;
  wire signed [24:0] raised = c_full_q + $signed(drop_half);
  wire signed [24:0] dropped = raised >>> c_drop_i;
  // softmax: a shift by 31 or more leaves nothing of 29 bits
  wire [7:0] down = c_down_i - {4'd0, c_exponent_q};
  wire [4:0] down_few = down[7] ? 5'd0 : (down[6] || down[5]) ? 5'd31 : down[4:0];

  assign c_dist_o = c_dist_q;

  always @(posedge clk_i)
    if (en_i) begin
      c_dist_q     <= c_top_i - c_data_i;
      c_u_q        <= {c_data_i[7], c_data_i} - {inp_zero_i[7], inp_zero_i};
      c_counts_1_q <= c_counts_i;
      c_times_q    <= times[23:0];
      c_counts_2_q <= c_counts_1_q;
      c_mantissa_q <= c_counts_2_q ? c_word_i[11:0] : 12'd0;
      c_exponent_q <= c_counts_2_q ? c_word_i[15:12] : 4'd0;
      c_full_q     <= {c_times_q[23], c_times_q} - sum;
      c_x_q        <= softmax_i ? {6'd0, c_mantissa_q} : dropped[17:0];
      c_down_4_q   <= softmax_i ? down_few : c_down_i[4:0];
      {c_down_7_q, c_down_6_q, c_down_5_q} <= {c_down_6_q, c_down_5_q, c_down_4_q};
    end

  // times the inverse, rounded and shifted
  reg signed [35:0] m_q, p_q, rounded_q, shifted_q;
  reg signed [17:0] z_q;
  wire signed [17:0] inverse = {1'b0, c_inverse_i};
  wire [35:0] down_half = (36'd1 << c_down_6_q) >> 1;
  localparam signed [35:0] Z_MOST = 36'sd131071;

  // times gain, with bias
  reg signed [15:0] gain_q;
  reg [31:0] bias_q;
  reg signed [33:0] scaled_q;
  reg signed [35:0] offset_q, total_q, result_q;
  wire signed [35:0] with_zero = result_q + {{28{zero_point_i[7]}}, zero_point_i};
  reg [7:0] byte_q;
  assign byte_o = byte_q;

  always @(posedge clk_i)
    if (en_i) begin
      m_q       <= c_x_q * inverse;
      p_q       <= m_q;
      rounded_q <= p_q + $signed(down_half);
      shifted_q <= rounded_q >>> c_down_7_q;
      z_q       <= (shifted_q > Z_MOST) ? Z_MOST[17:0] : (shifted_q < -Z_MOST) ? -Z_MOST[17:0] : shifted_q[17:0];
      gain_q    <= softmax_i ? 16'sd1 : c_word_i[15:0];
      bias_q    <= softmax_i ? 32'd0 : c_word_i[47:16];
      scaled_q  <= z_q * gain_q;
      offset_q  <= {{4{bias_q[31]}}, bias_q} + half_i;
      total_q   <= {{2{scaled_q[33]}}, scaled_q} + offset_q;
      result_q  <= total_q >>> shift_i;
      byte_q    <= (with_zero > 36'sd127) ? 8'd127 : (with_zero < -36'sd128) ? 8'h80 : with_zero[7:0];
    end

  wire unused = &{1'b0, b_square, times, dropped};
endmodule

`resetall
