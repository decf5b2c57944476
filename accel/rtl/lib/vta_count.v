// Up/down counter of what is in flight, with registered flags for any and full.
// Contract: add_i only while !full_o, sub_i only while any_o.
// Latency: what is added or subtracted at an edge shows after that edge.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_count #(
    // Most of them, at least 1
    parameter MAX = 2
) (
    input  wire clk_i,
    input  wire rst_ni,
    input  wire add_i,
    input  wire sub_i,
    output wire any_o,
    output wire one_o,
    output wire full_o
);
  generate
    if (MAX < 1) begin : g_param_check
      ERROR_MAX_must_be_at_least_1 u_param_error ();
    end
  endgenerate

  localparam W = $clog2(MAX + 1);
  localparam [31:0] ALMOST = MAX - 1;
  localparam [31:0] ONE = 1;

  reg  [W-1:0] count_q;
  reg          any_q;
  reg          full_q;

  assign any_o  = any_q;
  assign one_o  = count_q == ONE[W-1:0];
  assign full_o = full_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      count_q <= {W{1'b0}};
      any_q   <= 1'b0;
      full_q  <= 1'b0;
    end else if (add_i != sub_i) begin
      count_q <= add_i ? count_q + 1'b1 : count_q - 1'b1;
      any_q   <= add_i || !one_o;
      full_q  <= add_i && count_q == ALMOST[W-1:0];
    end
endmodule

`resetall
