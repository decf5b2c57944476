// Model of Gowin's constant 1 for simulation.
`timescale 1ns / 1ps
`default_nettype none

module VCC (
    output wire V
);
  assign V = 1'b1;
endmodule

`default_nettype wire
