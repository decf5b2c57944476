// Model of Gowin's signed multiplier of 12 by 12 bits for simulation, without its registers, as synthesis uses it.
`timescale 1ns / 1ps
`default_nettype none

module MULT12X12 (
    input  wire [11:0] A,
    input  wire [11:0] B,
    input  wire [1:0] CLK,
    input  wire [1:0] CE,
    input  wire [1:0] RESET,
    output wire [23:0] DOUT
);
  assign DOUT = $signed(A) * $signed(B);
  wire unused = &{1'b0, CLK, CE, RESET};
endmodule

`default_nettype wire
