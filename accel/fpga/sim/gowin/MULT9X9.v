// Model of Gowin's multiplier of 9 by 9 bits for simulation, without its registers, as yosys writes it.
`timescale 1ns / 1ps
`default_nettype none

module MULT9X9 (
    input  wire [8:0] A,
    input  wire [8:0] B,
    input  wire ASIGN,
    input  wire BSIGN,
    input  wire ASEL,
    input  wire BSEL,
    input  wire [8:0] SIA,
    input  wire [8:0] SIB,
    input  wire CLK,
    input  wire CE,
    input  wire RESET,
    output wire [17:0] DOUT
);
  wire signed [19:0] product = $signed({ASIGN && A[8], A}) * $signed({BSIGN && B[8], B});
  assign DOUT = product[17:0];
  wire unused = &{1'b0, product[19:18], CLK, CE, RESET, ASEL, BSEL, SIA, SIB};
endmodule

`default_nettype wire
