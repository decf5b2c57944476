// Model of the ECP5's pad for simulation: drives B unless T is high; O is what is on the pad.
`timescale 1ns / 1ps
`default_nettype none

module TRELLIS_IO #(
    parameter DIR = "BIDIR"
) (
    inout  wire B,
    input  wire I,
    input  wire T,
    output wire O
);
  assign B = T ? 1'bz : I;
  assign O = B;
endmodule

`default_nettype wire
