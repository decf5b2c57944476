// One output lane of the GEMM array: dot product of BLOCK_IN int8 inputs and weights, or of four taps, or their maximum.
// Weights of 4 bits are multiplied signed, without sign (low halves), or signed and the sum times 16 (high halves).
// Contract: en_i qualifies the stage in front of each register; operands and result hold otherwise.  With taps_i the
// first four multipliers take the tap bytes, with the weights of one group rotated; the other weights are 0.
// Latency: 3 edges (operand, sums of four products, sum).  Throughput: one product a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dot #(
    // Products, a multiple of 4
    parameter BLOCK_IN = 4,
    // Bits of a weight: 8 or 4
    parameter WGT_BITS = 8,
`ifdef VERILATOR
    // Products of 4-bit weights by *, which is fast to simulate
    parameter BY_BITS  = 0
`else
    // Products of 4-bit weights bit by bit: synthesis would take a DSP for each *
    parameter BY_BITS  = 1
`endif
) (
    input  wire                         clk_i,
    input  wire [                  2:0] en_i,
    // operand stage: weights of this group of four, rotated up by this many weights
    input  wire                         taps_i,
    input  wire [                  3:0] group_i,
    input  wire [                  1:0] rotate_i,
    input  wire [BLOCK_IN*WGT_BITS-1:0] wgt_i,
    // product stage
    input  wire                         taps_1_i,
    input  wire                         max_1_i,
    input  wire [                  3:0] mask_i,
    input  wire                         low_1_i,
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    input  wire [                 31:0] tap_i,
    // sum stage
    input  wire                         max_2_i,
    input  wire                         high_2_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam GROUPS = BLOCK_IN / 4;
  localparam GROUPS_LOG = $clog2(GROUPS);
  localparam SUM_W = $clog2(BLOCK_IN) + 16;

  localparam FOUR_W = 10 + WGT_BITS;
  localparam TREE_W = $clog2(BLOCK_IN) + 8 + WGT_BITS;

  // weights of 8 bits
  function [17:0] dot4;
    input [31:0] a;
    input [31:0] b;
    dot4 = {{10{a[7]}}, a[7:0]} * {{10{b[7]}}, b[7:0]} + {{10{a[15]}}, a[15:8]} * {{10{b[15]}}, b[15:8]}
        + {{10{a[23]}}, a[23:16]} * {{10{b[23]}}, b[23:16]} + {{10{a[31]}}, a[31:24]} * {{10{b[31]}}, b[31:24]};
  endfunction

  // weights of 4 bits, low: 0 to 15
  function [13:0] half4;
    input [31:0] a;
    input [15:0] b;
    input low;
    half4 = {{6{a[7]}}, a[7:0]} * {{10{b[3] && !low}}, b[3:0]} + {{6{a[15]}}, a[15:8]} * {{10{b[7] && !low}}, b[7:4]}
        + {{6{a[23]}}, a[23:16]} * {{10{b[11] && !low}}, b[11:8]}
        + {{6{a[31]}}, a[31:24]} * {{10{b[15] && !low}}, b[15:12]};
  endfunction

  // the same bit by bit: inputs whose weight has the bit, added up; low: the highest bit counts 8, not -8
  function [9:0] plane;
    input [31:0] a;
    input [3:0] bits;
    plane = ({{2{a[7]}}, a[7:0]} & {10{bits[0]}}) + ({{2{a[15]}}, a[15:8]} & {10{bits[1]}})
        + ({{2{a[23]}}, a[23:16]} & {10{bits[2]}}) + ({{2{a[31]}}, a[31:24]} & {10{bits[3]}});
  endfunction

  function [13:0] bits4;
    input [31:0] a;
    input [15:0] b;
    input low;
    reg [9:0] p0, p1, p2, p3;
    begin
      p0 = plane(a, {b[12], b[8], b[4], b[0]});
      p1 = plane(a, {b[13], b[9], b[5], b[1]});
      p2 = plane(a, {b[14], b[10], b[6], b[2]});
      p3 = plane(a, {b[15], b[11], b[7], b[3]});
      bits4 = {{4{p0[9]}}, p0} + {{3{p1[9]}}, p1, 1'b0} + {{2{p2[9]}}, p2, 2'b00}
          + ({p3[9], p3, 3'b000} ^ {14{!low}}) + {13'd0, !low};
    end
  endfunction

  wire [4*WGT_BITS-1:0] four;
  generate
    if (GROUPS > 1) begin : g_select
      assign four = wgt_i[group_i[GROUPS_LOG-1:0]*4*WGT_BITS+:4*WGT_BITS];
    end else begin : g_only
      assign four = wgt_i;
    end
  endgenerate
  localparam WGT_LOG = $clog2(WGT_BITS);
  wire [8*WGT_BITS-1:0] turned = {four, four} << {rotate_i, {WGT_LOG{1'b0}}};

  reg [BLOCK_IN*WGT_BITS-1:0] wgt_q;
  always @(posedge clk_i)
    if (en_i[0]) begin
      if (taps_i) wgt_q <= {{(BLOCK_IN * WGT_BITS - 4 * WGT_BITS) {1'b0}}, turned[8*WGT_BITS-1:4*WGT_BITS]};
      else wgt_q <= wgt_i;
    end

  // running sums over the groups; the last one is the lane's
  wire [TREE_W-1:0] partial[0:GROUPS];
  assign partial[0] = {TREE_W{1'b0}};
  genvar g;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      wire [31:0] operand = (g == 0 && taps_1_i) ? tap_i : inp_i[g*32+:32];
      reg [FOUR_W-1:0] four_q;
      if (WGT_BITS == 8) begin : g_bytes
        always @(posedge clk_i) if (en_i[1]) four_q <= dot4(operand, wgt_q[g*32+:32]);
      end else if (BY_BITS != 0) begin : g_bits
        always @(posedge clk_i) if (en_i[1]) four_q <= bits4(operand, wgt_q[g*16+:16], low_1_i);
      end else begin : g_halves
        always @(posedge clk_i) if (en_i[1]) four_q <= half4(operand, wgt_q[g*16+:16], low_1_i);
      end
      if (TREE_W > FOUR_W) begin : g_extend
        assign partial[g+1] = partial[g] + {{(TREE_W - FOUR_W) {four_q[FOUR_W-1]}}, four_q};
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

  // the lane's sum; that of high halves times 16
  wire [SUM_W-1:0] sum;
  generate
    if (WGT_BITS == 8) begin : g_sum
      assign sum = partial[GROUPS];
    end else begin : g_shift
      assign sum = high_2_i ? {partial[GROUPS], 4'd0} : {{4{partial[GROUPS][TREE_W-1]}}, partial[GROUPS]};
    end
  endgenerate

  reg [SUM_W-1:0] sum_q;
  always @(posedge clk_i) if (en_i[2]) sum_q <= max_2_i ? {{(SUM_W - 8) {max_q[7]}}, max_q} : sum;
  assign sum_o = sum_q;

  wire unused = &{1'b0, group_i, turned, low_1_i, high_2_i};
endmodule

`resetall
