// One multiplier of the ALU's MUL: the low 32 bits of the product of two int32.
// Contract: product_o belongs to the operands of the cycle before, if en_i came with them, and is 0 otherwise.  Three
// products of 18 bits, the only ones that reach these bits, are held apart: their sum is on the other side of the edge.
// Latency: 1 edge.  Throughput: one product a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_alu_mul (
    input  wire        clk_i,
    input  wire        en_i,
    input  wire [31:0] a_i,
    input  wire [31:0] b_i,
    output wire [31:0] product_o
);
  reg [31:0] low_q;
  reg [13:0] left_q, right_q;

  always @(posedge clk_i)
    if (en_i) begin
      low_q   <= {14'd0, a_i[17:0]} * {14'd0, b_i[17:0]};
      left_q  <= a_i[31:18] * b_i[13:0];
      right_q <= a_i[13:0] * b_i[31:18];
    end else {low_q, left_q, right_q} <= 60'd0;

  wire [13:0] high = left_q + right_q;
  assign product_o = {low_q[31:18] + high, low_q[17:0]};
endmodule

`resetall
