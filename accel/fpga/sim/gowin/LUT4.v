// Model of Gowin's look-up table of 4 inputs for simulation: bit I3I2I1I0 of INIT.
`timescale 1ns / 1ps
`default_nettype none

module LUT4 #(
    parameter [15:0] INIT = 16'h0
) (
    input  wire I0,
    input  wire I1,
    input  wire I2,
    input  wire I3,
    output wire F
);
  assign F = INIT[{I3, I2, I1, I0}];
endmodule

`default_nettype wire
