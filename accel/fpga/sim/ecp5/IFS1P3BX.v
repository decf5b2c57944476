// Model of the ECP5's input register at a pad for simulation: enabled by SP, set by PD at once.
`timescale 1ns / 1ps
`default_nettype none

module IFS1P3BX (
    input  wire D,
    input  wire SP,
    input  wire SCLK,
    input  wire PD,
    output reg  Q
);
  // the global reset sets what PD sets
  initial Q = 1'b1;
  always @(posedge SCLK or posedge PD)
    if (PD) Q <= 1'b1;
    else if (SP) Q <= D;
endmodule

`default_nettype wire
