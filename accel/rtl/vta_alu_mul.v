// One multiplier of the ALU's MUL: the low 32 bits of the product of two int32.
// Contract: purely combinational; three products of 18 bits, the only ones that reach these bits.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_alu_mul (
    input  wire [31:0] a_i,
    input  wire [31:0] b_i,
    output wire [31:0] product_o
);
  wire [35:0] low = {18'd0, a_i[17:0]} * {18'd0, b_i[17:0]};
  wire [13:0] high = a_i[31:18] * b_i[13:0] + a_i[13:0] * b_i[31:18];
  assign product_o = {low[31:18] + high, low[17:0]};

  wire unused = &{1'b0, low};
endmodule

`resetall
