// Model of the ECP5's input cell of double data rate for simulation: Q0 is what was on D at a rising edge, Q1 at the
// falling edge after it; both are seen from the next rising edge on.
`timescale 1ns / 1ps
`default_nettype none

module IDDRX1F (
    input  wire D,
    input  wire SCLK,
    input  wire RST,
    output reg  Q0,
    output reg  Q1
);
  reg rise_q, fall_q;
  always @(negedge SCLK) fall_q <= D;
  always @(posedge SCLK) begin
    rise_q <= D;
    Q0     <= rise_q && !RST;
    Q1     <= fall_q && !RST;
  end
endmodule

`default_nettype wire
