// A register for words that come now and then: it keeps the last one.
// Latency: a word that is sampled with valid_i shows after that edge, valid_o for one cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_stage #(
    // Width of a word in bits, at least 1
    parameter WIDTH = 8
) (
    input  wire             clk_i,
    input  wire             valid_i,
    input  wire [WIDTH-1:0] data_i,
    output wire             valid_o,
    output wire [WIDTH-1:0] data_o
);
  reg             valid_q;
  reg [WIDTH-1:0] data_q;

  assign valid_o = valid_q;
  assign data_o  = data_q;

  always @(posedge clk_i) begin
    valid_q <= valid_i;
    if (valid_i) data_q <= data_i;
  end
endmodule

`resetall
