// What a row of the row unit is divided by: the reciprocal of a softmax's sum, or the inverse root of a norm's variance.
// Softmax: the sum's number of bits, its 16 highest bits m, (2^32 - 1) / m by 17 trial subtractions, times the multiplier.
// Norms: n q - s s and epsilon, an even number of bits, its 16 highest m, the largest r with r r m < 2^46 digit by digit.
// Contract: load_i takes a row's sums; the results are valid from the 47th edge behind that one until the next load_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_row_inverse (
    input  wire        clk_i,
    input  wire        en_i,
    // the instruction
    input  wire        softmax_i,
    input  wire [14:0] columns_i,
    input  wire [47:0] epsilon_i,
    input  wire [15:0] multiplier_i,
    input  wire [ 6:0] shift_i,
    // a row's sums
    input  wire        load_i,
    input  wire [43:0] total_i,
    input  wire [22:0] sum_i,
    // softmax: factor of 17 bits; norms: inverse root of 16 bits
    output wire [16:0] inverse_o,
    // norms: bits that an element loses before the product, and behind it; softmax: bits(total) + shift in down_o
    output wire [ 3:0] drop_o,
    output wire [ 7:0] down_o
);
  // bits of what is normalised: an even number, of norms 2^49 at most
  localparam W = 50;

  reg [5:0] step_q;
  always @(posedge clk_i)
    if (load_i) step_q <= 6'd1;
    else if (en_i && step_q != 6'd63) step_q <= step_q + 6'd1;

  // norms: products MSB first, 23 steps; s is at most 2^21 or so, n 2^14
  reg [43:0] q_q;
  reg [22:0] s_q;
  reg [22:0] s_bits_q, n_bits_q;
  reg signed [W-1:0] x_q;
  wire [22:0] s_abs = sum_i[22] ? -sum_i : sum_i;
  wire signed [W-1:0] plus = n_bits_q[22] ? {6'd0, q_q} : {W{1'b0}};
  wire signed [W-1:0] minus = s_bits_q[22] ? {27'd0, s_q} : {W{1'b0}};

  // normalised: shifted left until one of the two highest bits is 1 (softmax: the highest)
  reg [5:0] left_q;
  wire [W-1:0] x = x_q;
  reg [5:0] by;
  reg none;
  wire [4:0] turn = step_q[4:0] - (softmax_i ? 5'd2 : 5'd26);
  always @* begin
    case (turn)
      5'd0: {by, none} = {6'd32, x[W-1:W-32] == 32'd0};
      5'd1: {by, none} = {6'd16, x[W-1:W-16] == 16'd0};
      5'd2: {by, none} = {6'd8, x[W-1:W-8] == 8'd0};
      5'd3: {by, none} = {6'd4, x[W-1:W-4] == 4'd0};
      5'd4: {by, none} = {6'd2, x[W-1:W-2] == 2'd0};
      default: {by, none} = {6'd1, !x[W-1]};
    endcase
  end
  wire normalises = softmax_i ? (step_q >= 6'd2 && step_q <= 6'd7) : (step_q >= 6'd26 && step_q <= 6'd30);
  wire [15:0] m = x_q[W-1:W-16];

  always @(posedge clk_i)
    if (load_i) begin
      q_q      <= total_i;
      s_q      <= s_abs;
      s_bits_q <= s_abs;
      n_bits_q <= {8'd0, columns_i};
      x_q      <= softmax_i ? {6'd0, total_i} : {W{1'b0}};
      left_q   <= 6'd0;
    end else if (en_i) begin
      {s_bits_q, n_bits_q} <= {s_bits_q[21:0], 1'b0, n_bits_q[21:0], 1'b0};
      if (softmax_i) begin
        if (step_q == 6'd1 && x_q == {W{1'b0}}) x_q <= {{W - 1{1'b0}}, 1'b1};
      end else if (step_q <= 6'd23) x_q <= (x_q << 1) + plus - minus;
      else if (step_q == 6'd24) x_q <= {x_q[W-5:0], 4'd0} + {2'd0, epsilon_i};
      else if (step_q == 6'd25 && x[W-1:4] == {W - 4{1'b0}}) x_q <= {{W - 5{1'b0}}, 5'd16};
      if (normalises && none) begin
        x_q    <= x << by;
        left_q <= left_q + by;
      end
    end

  // softmax: quotient, then its product with the multiplier; norms: root
  reg [16:0] r_q;
  reg [35:0] rem_q;
  reg [31:0] rm_q;
  reg [15:0] bits_q;
  reg [32:0] product_q;
  wire [35:0] next = softmax_i ? {rem_q[34:0], 1'b1} : {rem_q[33:0], 2'b11};
  wire [35:0] trial = softmax_i ? {20'd0, m} : {2'd0, rm_q, 2'd0} + {20'd0, m};
  wire fits = next >= trial;
  wire divides = softmax_i ? (step_q >= 6'd8 && step_q <= 6'd24) : (step_q >= 6'd31 && step_q <= 6'd46);
  wire multiplies = softmax_i && step_q >= 6'd25 && step_q <= 6'd40;

  always @(posedge clk_i)
    if (load_i) begin
      r_q       <= 17'd0;
      rem_q     <= softmax_i ? 36'h7fff : 36'h3fff;
      rm_q      <= 32'd0;
      bits_q    <= multiplier_i;
      product_q <= 33'd0;
    end else if (en_i) begin
      if (divides) begin
        r_q   <= {r_q[15:0], fits};
        rem_q <= fits ? next - trial : next;
        rm_q  <= {rm_q[30:0], 1'b0} + (fits ? {16'd0, m} : 32'd0);
      end
      if (multiplies) begin
        product_q <= {product_q[31:0], 1'b0} + (bits_q[15] ? {16'd0, r_q} : 33'd0);
        bits_q    <= {bits_q[14:0], 1'b0};
      end
    end

  // half = 17 - left / 2; drop = max(half + (bits(n) + 1) / 2 - 11, 0); down = 11 + half - drop
  reg [4:0] n_half;
  integer i;
  always @* begin
    n_half = 5'd0;
    for (i = 0; i < 15; i = i + 1) if (columns_i[i]) n_half = i[4:0] / 2 + 5'd1;
  end
  reg [3:0] drop_q;
  reg [7:0] down_q;
  wire signed [6:0] half = 7'sd17 - $signed({2'd0, left_q[5:1]});
  wire signed [6:0] over = half + $signed({2'd0, n_half}) - 7'sd11;
  wire [7:0] bits = 8'd50 - {2'd0, left_q};
  always @(posedge clk_i)
    if (en_i) begin
      drop_q <= over[6] ? 4'd0 : over[3:0];
      down_q <= softmax_i ? bits + {shift_i[6], shift_i} : {half[6], half} + 8'd11 - (over[6] ? 8'd0 : {4'd0, over[3:0]});
    end

  assign inverse_o = softmax_i ? product_q[32:16] : {1'b0, r_q[15:0]};
  assign drop_o    = drop_q;
  assign down_o    = down_q;

  wire unused = &{1'b0, over, r_q, rem_q[35]};
endmodule

`resetall
