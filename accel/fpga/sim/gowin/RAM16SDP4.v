// Model of Gowin's memory of 16 words of four bits in look-up tables for simulation: written at an edge, read at once.
`timescale 1ns / 1ps
`default_nettype none

module RAM16SDP4 #(
    parameter [15:0] INIT_0 = 16'h0000,
    parameter [15:0] INIT_1 = 16'h0000,
    parameter [15:0] INIT_2 = 16'h0000,
    parameter [15:0] INIT_3 = 16'h0000
) (
    input  wire [3:0] DI,
    input  wire [3:0] WAD,
    input  wire       WRE,
    input  wire       CLK,
    input  wire [3:0] RAD,
    output wire [3:0] DO
);
  reg [15:0] bits_0_q, bits_1_q, bits_2_q, bits_3_q;
  initial {bits_3_q, bits_2_q, bits_1_q, bits_0_q} = {INIT_3, INIT_2, INIT_1, INIT_0};

  always @(posedge CLK) if (WRE) {bits_3_q[WAD], bits_2_q[WAD], bits_1_q[WAD], bits_0_q[WAD]} <= DI;

  assign DO = {bits_3_q[RAD], bits_2_q[RAD], bits_1_q[RAD], bits_0_q[RAD]};
endmodule

`default_nettype wire
