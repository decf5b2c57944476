// One multiplier of the ALU's MUL: the low 32 bits of the product of two int32.
// Contract: purely combinational; three products of 18 bits, the only ones that reach these bits.  Without en_i the
// result is any, so that a simulator need not find it.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_alu_mul (
    input  wire        en_i,
    input  wire [31:0] a_i,
    input  wire [31:0] b_i,
    output reg  [31:0] product_o
);
  function [31:0] product;
    input [31:0] a, b;
    reg [31:0] low;
    reg [13:0] high;
    begin
      low = {14'd0, a[17:0]} * {14'd0, b[17:0]};
      high = a[31:18] * b[13:0] + a[13:0] * b[31:18];
      product = {low[31:18] + high, low[17:0]};
    end
  endfunction

  always @*
    if (en_i) product_o = product(a_i, b_i);
    else product_o = {32{1'bx}};
endmodule

`resetall
