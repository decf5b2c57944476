// Model of Gowin's flip-flop for simulation, with a set at the edge; it wakes up with 1.
`timescale 1ns / 1ps
`default_nettype none

module DFFS #(
    parameter [0:0] INIT = 1'b1
) (
    input  wire D,
    input  wire CLK,
    input  wire SET,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    Q <= SET ? 1'b1 : D;
endmodule

`default_nettype wire
