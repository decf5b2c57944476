// Model of Gowin's flip-flop for simulation, with an enable; it wakes up with 0.
`timescale 1ns / 1ps
`default_nettype none

module DFFE #(
    parameter [0:0] INIT = 1'b0
) (
    input  wire D,
    input  wire CLK,
    input  wire CE,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    if (CE) Q <= D;
endmodule

`default_nettype wire
