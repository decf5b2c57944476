// Multiples of one input, shared by all lanes, from which the digits of weights select (vta_nibble).
// Contract: purely combinational; three times the input, and twice and three times it for the upper digit of a weight:
// with low_i the digit is 0 to 3, else 0, 1, -2, -1.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_multiples (
    input  wire [7:0] inp_i,
    input  wire       low_i,
    output wire [9:0] three_o,
    output wire [9:0] top_two_o,
    output wire [9:0] top_three_o
);
  wire [9:0] one = {{2{inp_i[7]}}, inp_i};
  wire [9:0] two = {inp_i[7], inp_i, 1'b0};
  wire [9:0] sign = {10{!low_i}};

  assign three_o     = one + two;
  assign top_two_o   = (two ^ sign) + {9'd0, !low_i};
  // 3 * inp, or -inp
  assign top_three_o = low_i ? three_o : ~one + 10'd1;
endmodule

`resetall
