// Model of the ECP5's phase-locked loop for simulation, where time is counted in cycles of the System: CLKI stands for
// CLKOP.  An output with another phase than CLKOP rises half a cycle later.
// Contract: every output runs at the frequency of CLKOP or is not used; what the loop makes of CLKI's real frequency is
// checked where the parameters are chosen.  LOCK comes 16 cycles after RST.
`timescale 1ns / 1ps
`default_nettype none

module EHXPLLL #(
    parameter FEEDBK_PATH = "CLKOP",
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter CLKOP_ENABLE = "DISABLED",
    parameter CLKOP_DIV = 8,
    parameter CLKOP_CPHASE = 0,
    parameter CLKOP_FPHASE = 0,
    parameter CLKOS_ENABLE = "DISABLED",
    parameter CLKOS_DIV = 8,
    parameter CLKOS_CPHASE = 0,
    parameter CLKOS_FPHASE = 0,
    parameter CLKOS2_ENABLE = "DISABLED",
    parameter CLKOS2_DIV = 8,
    parameter CLKOS2_CPHASE = 0,
    parameter CLKOS2_FPHASE = 0,
    parameter CLKOS3_ENABLE = "DISABLED",
    parameter CLKOS3_DIV = 8,
    parameter CLKOS3_CPHASE = 0,
    parameter CLKOS3_FPHASE = 0
) (
    input  wire CLKI,
    input  wire RST,
    input  wire STDBY,
    output wire CLKOP,
    output wire CLKOS,
    output wire CLKOS2,
    output wire CLKOS3,
    output wire LOCK
);
  localparam SHIFTED = CLKOS_CPHASE * 8 + CLKOS_FPHASE != CLKOP_CPHASE * 8 + CLKOP_FPHASE;

  generate
    if (CLKOS_ENABLE == "ENABLED" && CLKOS_DIV != CLKOP_DIV) begin : g_frequency
      ERROR_outputs_must_have_the_frequency_of_CLKOP u_param_error ();
    end
  endgenerate

  reg [15:0] stable_q;
  always @(posedge CLKI or posedge RST)
    if (RST) stable_q <= 16'd0;
    else stable_q <= {stable_q[14:0], 1'b1};

  assign LOCK   = stable_q[15];
  assign CLKOP  = CLKI;
  assign CLKOS  = CLKI ^ (SHIFTED != 0);
  assign CLKOS2 = CLKI;
  assign CLKOS3 = CLKI;
endmodule

`default_nettype wire
