// Model of the ECP5's flip-flop for simulation, as yosys writes it; it wakes up with the value of REGSET.
// Contract: no asynchronous load (LSRMODE "PRLD").
`timescale 1ns / 1ps
`default_nettype none

module TRELLIS_FF #(
    parameter GSR = "ENABLED",
    parameter CEMUX = "1",
    parameter CLKMUX = "CLK",
    parameter LSRMUX = "LSR",
    parameter SRMODE = "LSR_OVER_CE",
    parameter REGSET = "RESET",
    parameter LSRMODE = "LSR"
) (
    input  wire CLK,
    input  wire LSR,
    input  wire CE,
    input  wire DI,
    input  wire M,
    output reg  Q
);
  localparam VALUE = REGSET == "SET";

  generate
    if (LSRMODE != "LSR") begin : g_load
      ERROR_LSRMODE_must_be_LSR u_param_error ();
    end
  endgenerate

  wire clock = CLKMUX == "INV" ? !CLK : CLK;
  wire reset = LSRMUX == "INV" ? !LSR : LSR;
  wire enable = CEMUX == "1" ? 1'b1 : CEMUX == "0" ? 1'b0 : CEMUX == "INV" ? !CE : CE;

  initial Q = VALUE;

  generate
    if (SRMODE == "ASYNC") begin : g_async
      always @(posedge clock or posedge reset)
        if (reset) Q <= VALUE;
        else if (enable) Q <= DI;
    end else if (SRMODE == "CE_OVER_LSR") begin : g_gated
      always @(posedge clock) if (enable) Q <= reset ? VALUE : DI;
    end else begin : g_sync
      always @(posedge clock)
        if (reset) Q <= VALUE;
        else if (enable) Q <= DI;
    end
  endgenerate
endmodule

`default_nettype wire
