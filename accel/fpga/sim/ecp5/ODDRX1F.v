// Model of the ECP5's output cell of double data rate for simulation: D0 while the clock is high, then D1.
// Contract: both are taken at the rising edge of SCLK and are seen from that edge on.
`timescale 1ns / 1ps
`default_nettype none

module ODDRX1F (
    input  wire D0,
    input  wire D1,
    input  wire SCLK,
    input  wire RST,
    output wire Q
);
  reg high_q, low_q;
  always @(posedge SCLK) begin
    high_q <= D0 && !RST;
    low_q  <= D1 && !RST;
  end
  assign Q = SCLK ? high_q : low_q;
endmodule

`default_nettype wire
