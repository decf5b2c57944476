// Model of Gowin's output pad for simulation.
`timescale 1ns / 1ps
`default_nettype none

module OBUF (
    input  wire I,
    output wire O
);
  assign O = I;
endmodule

`default_nettype wire
