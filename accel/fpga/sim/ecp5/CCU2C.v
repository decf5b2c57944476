// Model of the ECP5's slice with carry for simulation: two bits of a sum.
// Each bit looks up two functions: INIT over DCBA says whether the carry passes on, its low four bits over BA the carry
// where it does not.  INJECT "YES" takes the carry out of the bit.
`timescale 1ns / 1ps
`default_nettype none

module CCU2C #(
    parameter [15:0] INIT0 = 16'h0000,
    parameter [15:0] INIT1 = 16'h0000,
    parameter INJECT1_0 = "YES",
    parameter INJECT1_1 = "YES"
) (
    input  wire CIN,
    input  wire A0,
    input  wire B0,
    input  wire C0,
    input  wire D0,
    input  wire A1,
    input  wire B1,
    input  wire C1,
    input  wire D1,
    output wire S0,
    output wire S1,
    output wire COUT
);
  localparam ALONE0 = INJECT1_0 == "YES";
  localparam ALONE1 = INJECT1_1 == "YES";

  wire pass0 = INIT0[{D0, C0, B0, A0}];
  wire pass1 = INIT1[{D1, C1, B1, A1}];
  wire make0 = ALONE0 ? 1'b0 : INIT0[{2'b00, B0, A0}];
  wire make1 = ALONE1 ? 1'b0 : INIT1[{2'b00, B1, A1}];
  wire carry = pass0 ? CIN : make0;

  assign S0   = pass0 ^ (ALONE0 ? 1'b0 : CIN);
  assign S1   = pass1 ^ (ALONE1 ? 1'b0 : carry);
  assign COUT = pass1 ? carry : make1;
endmodule

`default_nettype wire
