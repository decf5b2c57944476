// Model of Gowin's flip-flop for simulation, with an enable and a set at the edge that goes before it; it wakes up with 1.
`timescale 1ns / 1ps
`default_nettype none

module DFFSE #(
    parameter [0:0] INIT = 1'b1
) (
    input  wire D,
    input  wire CLK,
    input  wire CE,
    input  wire SET,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    if (SET) Q <= 1'b1;
    else if (CE) Q <= D;
endmodule

`default_nettype wire
