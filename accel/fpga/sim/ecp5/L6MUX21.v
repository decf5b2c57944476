// Model of the ECP5's multiplexer that joins two look-up tables of five or more inputs for simulation.
`timescale 1ns / 1ps
`default_nettype none

module L6MUX21 (
    input  wire D0,
    input  wire D1,
    input  wire SD,
    output wire Z
);
  assign Z = SD ? D1 : D0;
endmodule

`default_nettype wire
