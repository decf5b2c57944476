// Model of Gowin's multiplier of 18 by 18 bits for simulation, without its registers, as yosys writes it.
`timescale 1ns / 1ps
`default_nettype none

module MULT18X18 (
    input  wire [17:0] A,
    input  wire [17:0] B,
    input  wire ASIGN,
    input  wire BSIGN,
    input  wire ASEL,
    input  wire BSEL,
    input  wire [17:0] SIA,
    input  wire [17:0] SIB,
    input  wire CLK,
    input  wire CE,
    input  wire RESET,
    output wire [35:0] DOUT
);
  wire signed [37:0] product = $signed({ASIGN && A[17], A}) * $signed({BSIGN && B[17], B});
  assign DOUT = product[35:0];
  wire unused = &{1'b0, product[37:36], CLK, CE, RESET, ASEL, BSEL, SIA, SIB};
endmodule

`default_nettype wire
