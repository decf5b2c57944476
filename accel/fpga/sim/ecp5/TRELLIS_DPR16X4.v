// Model of the ECP5's memory of 16 words of four bits in look-up tables for simulation: written at an edge, read at once.
`timescale 1ns / 1ps
`default_nettype none

module TRELLIS_DPR16X4 #(
    parameter WCKMUX = "WCK",
    parameter WREMUX = "WRE",
    parameter [63:0] INITVAL = 64'd0
) (
    input  wire [3:0] DI,
    input  wire [3:0] WAD,
    input  wire       WRE,
    input  wire       WCK,
    input  wire [3:0] RAD,
    output wire [3:0] DO
);
  reg [63:0] words_q;
  initial words_q = INITVAL;

  wire clock = WCKMUX == "INV" ? !WCK : WCK;
  wire write = WREMUX == "1" ? 1'b1 : WREMUX == "0" ? 1'b0 : WREMUX == "INV" ? !WRE : WRE;
  always @(posedge clock) if (write) words_q[{WAD, 2'b00}+:4] <= DI;

  assign DO = words_q[{RAD, 2'b00}+:4];
endmodule

`default_nettype wire
