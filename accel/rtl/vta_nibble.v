// Product of an int8 input and a 4-bit weight in LUTs: two base-4 digits of the weight select multiples of the input.
// Contract: purely combinational.  The multiples are vta_multiples' of the same input; its low_i says whether the
// weight has a sign.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_nibble (
    input  wire [ 7:0] inp_i,
    input  wire [ 9:0] three_i,
    input  wire [ 9:0] top_two_i,
    input  wire [ 9:0] top_three_i,
    input  wire [ 3:0] wgt_i,
    output wire [11:0] product_o
);
  wire [9:0] one = {{2{inp_i[7]}}, inp_i};
  reg  [9:0] lower, upper;

  always @* begin
    case (wgt_i[1:0])
      2'd0: lower = 10'd0;
      2'd1: lower = one;
      2'd2: lower = {inp_i[7], inp_i, 1'b0};
      default: lower = three_i;
    endcase
    case (wgt_i[3:2])
      2'd0: upper = 10'd0;
      2'd1: upper = one;
      2'd2: upper = top_two_i;
      default: upper = top_three_i;
    endcase
  end

  assign product_o = {{2{lower[9]}}, lower} + {upper, 2'b00};
endmodule

`resetall
