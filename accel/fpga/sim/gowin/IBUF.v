// Model of Gowin's input pad for simulation.
`timescale 1ns / 1ps
`default_nettype none

module IBUF (
    input  wire I,
    output wire O
);
  assign O = I;
endmodule

`default_nettype wire
