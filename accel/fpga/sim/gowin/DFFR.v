// Model of Gowin's flip-flop for simulation, with a reset at the edge; it wakes up with 0.
`timescale 1ns / 1ps
`default_nettype none

module DFFR #(
    parameter [0:0] INIT = 1'b0
) (
    input  wire D,
    input  wire CLK,
    input  wire RESET,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    Q <= RESET ? 1'b0 : D;
endmodule

`default_nettype wire
