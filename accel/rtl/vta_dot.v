// One output lane of the GEMM array: dot product of BLOCK_IN int8 inputs and weights, or of four taps, or their maximum.
// Contract: en_i qualifies the stage in front of each register; operands and result hold otherwise.  With taps_i the
// first four multipliers take the tap bytes, with the weights of one group rotated; the other weights are 0.
// Latency: 3 edges (operand, sums of four products, sum).  Throughput: one product a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dot #(
    // Products, a multiple of 4
    parameter BLOCK_IN = 4
) (
    input  wire                         clk_i,
    input  wire [                  2:0] en_i,
    // operand stage: weights of this group of four, rotated up by this many bytes
    input  wire                         taps_i,
    input  wire [                  3:0] group_i,
    input  wire [                  1:0] rotate_i,
    input  wire [       BLOCK_IN*8-1:0] wgt_i,
    // product stage
    input  wire                         taps_1_i,
    input  wire                         max_1_i,
    input  wire [                  3:0] mask_i,
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    input  wire [                 31:0] tap_i,
    // sum stage
    input  wire                         max_2_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam GROUPS = BLOCK_IN / 4;
  localparam GROUPS_LOG = $clog2(GROUPS);
  localparam SUM_W = $clog2(BLOCK_IN) + 16;

  function [17:0] dot4;
    input [31:0] a;
    input [31:0] b;
    dot4 = {{10{a[7]}}, a[7:0]} * {{10{b[7]}}, b[7:0]} + {{10{a[15]}}, a[15:8]} * {{10{b[15]}}, b[15:8]}
        + {{10{a[23]}}, a[23:16]} * {{10{b[23]}}, b[23:16]} + {{10{a[31]}}, a[31:24]} * {{10{b[31]}}, b[31:24]};
  endfunction

  wire [31:0] four;
  generate
    if (GROUPS > 1) begin : g_select
      assign four = wgt_i[group_i[GROUPS_LOG-1:0]*32+:32];
    end else begin : g_only
      assign four = wgt_i;
    end
  endgenerate
  wire [63:0] turned = {four, four} << {rotate_i, 3'b000};

  reg [BLOCK_IN*8-1:0] wgt_q;
  always @(posedge clk_i)
    if (en_i[0]) begin
      if (taps_i) wgt_q <= {{(BLOCK_IN * 8 - 32) {1'b0}}, turned[63:32]};
      else wgt_q <= wgt_i;
    end

  // running sums over the groups; the last one is the lane's
  wire [SUM_W-1:0] partial[0:GROUPS];
  assign partial[0] = {SUM_W{1'b0}};
  genvar g;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      wire [31:0] operand = (g == 0 && taps_1_i) ? tap_i : inp_i[g*32+:32];
      reg [17:0] four_q;
      always @(posedge clk_i) if (en_i[1]) four_q <= dot4(operand, wgt_q[g*32+:32]);
      if (SUM_W > 18) begin : g_extend
        assign partial[g+1] = partial[g] + {{(SUM_W - 18) {four_q[17]}}, four_q};
      end else begin : g_same
        assign partial[g+1] = partial[g] + four_q;
      end
    end
  endgenerate

  // maximum of the taps, those left out at the lowest value
  reg signed [7:0] best_0, best_1, best, tap_1, tap_3;
  reg [7:0] max_q;
  always @* begin
    {best_0, best_1, best, tap_1, tap_3} = 40'd0;
    if (max_1_i) begin
      best_0 = mask_i[0] ? tap_i[7:0] : 8'h80;
      tap_1  = mask_i[1] ? tap_i[15:8] : 8'h80;
      best_1 = mask_i[2] ? tap_i[23:16] : 8'h80;
      tap_3  = mask_i[3] ? tap_i[31:24] : 8'h80;
      if (tap_1 > best_0) best_0 = tap_1;
      if (tap_3 > best_1) best_1 = tap_3;
      best = (best_1 > best_0) ? best_1 : best_0;
    end
  end
  always @(posedge clk_i) if (en_i[1] && max_1_i) max_q <= best;

  reg [SUM_W-1:0] sum_q;
  always @(posedge clk_i) if (en_i[2]) sum_q <= max_2_i ? {{(SUM_W - 8) {max_q[7]}}, max_q} : partial[GROUPS];
  assign sum_o = sum_q;

  wire unused = &{1'b0, group_i, turned};
endmodule

`resetall
