// Model of the ECP5's look-up table of four inputs for simulation: bit DCBA of INIT.
`timescale 1ns / 1ps
`default_nettype none

module LUT4 #(
    parameter [15:0] INIT = 16'h0000
) (
    input  wire A,
    input  wire B,
    input  wire C,
    input  wire D,
    output wire Z
);
  assign Z = INIT[{D, C, B, A}];
endmodule

`default_nettype wire
