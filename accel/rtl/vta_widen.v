// Widens a beat of half-width weights to two beats of WGT's width, each weight times the factor of its group.
// Contract: purely combinational; a factor field of f multiplies by f + 1, and products keep their low bits.  Weights in
// the low bits of the beat come first, and so do their factors.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_widen #(
    // Width of a beat in bits, a power of two
    parameter BEAT_W   = 64,
    // Width of a weight in bits, 4 or 8
    parameter WGT_BITS = 8,
    // Factors of a beat, a power of two
    parameter FACTORS  = 1
) (
    input  wire [   BEAT_W-1:0] beat_i,
    input  wire [4*FACTORS-1:0] factor_i,
    output wire [ 2*BEAT_W-1:0] wide_o
);
  localparam HALF = WGT_BITS / 2;
  localparam SHARE = BEAT_W / HALF / FACTORS;
  // the weight is the upper digits of vta_nibble's
  localparam LOW = 4 - HALF;
  // multiples of each factor, which need no adders
  localparam [159:0] ONE = multiples(10'd1), THREE = multiples(10'd3);
  localparam [159:0] TOP_TWO = multiples(-10'd2), TOP_THREE = multiples(-10'd1);

  function [159:0] multiples;
    input [9:0] times;
    integer i;
    for (i = 0; i < 16; i = i + 1) multiples[10*i+:10] = times * (i[9:0] + 10'd1);
  endfunction

  genvar f, w;
  generate
    for (f = 0; f < FACTORS; f = f + 1) begin : g_factor
      wire [7:0] place = {4'd0, factor_i[4*f+:4]} * 8'd10;
      wire [9:0] one = ONE[place+:10];
      for (w = f * SHARE; w < (f + 1) * SHARE; w = w + 1) begin : g_weight
        wire [3:0] weight = {{LOW{1'b0}}, beat_i[w*HALF+:HALF]} << LOW;
        wire [11:0] product;
        vta_nibble u_nibble (
            .inp_i      (one[7:0]),
            .three_i    (THREE[place+:10]),
            .top_two_i  (TOP_TWO[place+:10]),
            .top_three_i(TOP_THREE[place+:10]),
            .wgt_i      (weight),
            .product_o  (product)
        );
        assign wide_o[w*WGT_BITS+:WGT_BITS] = product[LOW+:WGT_BITS];
        wire unused = &{1'b0, product, one};
      end
    end
  endgenerate
endmodule

`resetall
