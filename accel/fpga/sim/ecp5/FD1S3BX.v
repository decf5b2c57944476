// Model of the ECP5's flip-flop that PD sets at once, for simulation.
`timescale 1ns / 1ps
`default_nettype none

module FD1S3BX (
    input  wire D,
    input  wire CK,
    input  wire PD,
    output reg  Q
);
  // the global reset sets what PD sets
  initial Q = 1'b1;
  always @(posedge CK or posedge PD)
    if (PD) Q <= 1'b1;
    else Q <= D;
endmodule

`default_nettype wire
