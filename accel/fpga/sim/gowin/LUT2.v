// Model of Gowin's look-up table of 2 inputs for simulation: bit I1I0 of INIT.
`timescale 1ns / 1ps
`default_nettype none

module LUT2 #(
    parameter [3:0] INIT = 4'h0
) (
    input  wire I0,
    input  wire I1,
    output wire F
);
  assign F = INIT[{I1, I0}];
endmodule

`default_nettype wire
