// One output lane of the GEMM array: dot product of BLOCK_IN int8 inputs and weights.
// Contract: en_i qualifies the stage in front of each register; operands and sum hold otherwise.
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
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    input  wire [       BLOCK_IN*8-1:0] wgt_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam GROUPS = BLOCK_IN / 4;
  localparam SUM_W = $clog2(BLOCK_IN) + 16;

  function [17:0] dot4;
    input [31:0] a;
    input [31:0] b;
    dot4 = {{10{a[7]}}, a[7:0]} * {{10{b[7]}}, b[7:0]} + {{10{a[15]}}, a[15:8]} * {{10{b[15]}}, b[15:8]}
        + {{10{a[23]}}, a[23:16]} * {{10{b[23]}}, b[23:16]} + {{10{a[31]}}, a[31:24]} * {{10{b[31]}}, b[31:24]};
  endfunction

  reg [BLOCK_IN*8-1:0] wgt_q;
  always @(posedge clk_i) if (en_i[0]) wgt_q <= wgt_i;

  // running sums over the groups; the last one is the lane's
  wire [SUM_W-1:0] partial[0:GROUPS];
  assign partial[0] = {SUM_W{1'b0}};
  genvar g;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      reg [17:0] four_q;
      always @(posedge clk_i) if (en_i[1]) four_q <= dot4(inp_i[g*32+:32], wgt_q[g*32+:32]);
      if (SUM_W > 18) begin : g_extend
        assign partial[g+1] = partial[g] + {{(SUM_W - 18) {four_q[17]}}, four_q};
      end else begin : g_same
        assign partial[g+1] = partial[g] + four_q;
      end
    end
  endgenerate

  reg [SUM_W-1:0] sum_q;
  always @(posedge clk_i) if (en_i[2]) sum_q <= partial[GROUPS];
  assign sum_o = sum_q;
endmodule

`resetall
