// Model of Gowin's multiplier of 36 by 36 bits for simulation, without its registers, as yosys writes it.
`timescale 1ns / 1ps
`default_nettype none

module MULT36X36 (
    input  wire [35:0] A,
    input  wire [35:0] B,
    input  wire ASIGN,
    input  wire BSIGN,
    input  wire CLK,
    input  wire CE,
    input  wire RESET,
    output wire [71:0] DOUT
);
  wire signed [73:0] product = $signed({ASIGN && A[35], A}) * $signed({BSIGN && B[35], B});
  assign DOUT = product[71:0];
  wire unused = &{1'b0, product[73:72], CLK, CE, RESET};
endmodule

`default_nettype wire
