// Model of Gowin's look-up table of 1 input for simulation: bit I0 of INIT.
`timescale 1ns / 1ps
`default_nettype none

module LUT1 #(
    parameter [1:0] INIT = 2'h0
) (
    input  wire I0,
    output wire F
);
  assign F = INIT[I0];
endmodule

`default_nettype wire
