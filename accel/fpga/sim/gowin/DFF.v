// Model of Gowin's flip-flop for simulation; it wakes up with 0.
`timescale 1ns / 1ps
`default_nettype none

module DFF #(
    parameter [0:0] INIT = 1'b0
) (
    input  wire D,
    input  wire CLK,
    output reg  Q
);
  initial Q = INIT;
  always @(posedge CLK)
    Q <= D;
endmodule

`default_nettype wire
