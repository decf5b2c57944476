// Model of Gowin's bit of a sum for simulation: I0 + I1 where I3 is 1, I0 - I1 where it is 0.
// Contract: ALU_MODE 2, the only one that yosys takes.
`timescale 1ns / 1ps
`default_nettype none

module ALU #(
    parameter ALU_MODE = 0
) (
    input  wire I0,
    input  wire I1,
    input  wire I3,
    input  wire CIN,
    output wire COUT,
    output wire SUM
);
  generate
    if (ALU_MODE != 2) begin : g_mode
      ERROR_ALU_MODE_must_be_2 u_param_error ();
    end
  endgenerate

  wire pass = I0 ^ I1 ^ !I3;
  assign SUM  = pass ^ CIN;
  assign COUT = pass ? CIN : I0;
endmodule

`default_nettype wire
