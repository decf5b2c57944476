// Model of Gowin's constant 0 for simulation.
`timescale 1ns / 1ps
`default_nettype none

module GND (
    output wire G
);
  assign G = 1'b0;
endmodule

`default_nettype wire
