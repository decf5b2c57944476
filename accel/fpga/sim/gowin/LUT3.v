// Model of Gowin's look-up table of 3 inputs for simulation: bit I2I1I0 of INIT.
`timescale 1ns / 1ps
`default_nettype none

module LUT3 #(
    parameter [7:0] INIT = 8'h0
) (
    input  wire I0,
    input  wire I1,
    input  wire I2,
    output wire F
);
  assign F = INIT[{I2, I1, I0}];
endmodule

`default_nettype wire
