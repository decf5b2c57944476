// Model of the ECP5's multiplexer that joins two look-up tables of four inputs for simulation.
`timescale 1ns / 1ps
`default_nettype none

module PFUMX (
    input  wire ALUT,
    input  wire BLUT,
    input  wire C0,
    output wire Z
);
  assign Z = C0 ? ALUT : BLUT;
endmodule

`default_nettype wire
