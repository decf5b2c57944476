// Model of Gowin's flip-flop for simulation, with an enable and a reset at the edge that goes before it; it wakes up with 0.
`timescale 1ns / 1ps
`default_nettype none

module DFFRE #(
    parameter [0:0] INIT = 1'b0
) (
    input  wire D,
    input  wire CLK,
    input  wire CE,
    input  wire RESET,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    if (RESET) Q <= 1'b0;
    else if (CE) Q <= D;
endmodule

`default_nettype wire
