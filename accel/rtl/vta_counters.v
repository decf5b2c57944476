// Performance counters: one 32-bit counter an event, wrapping, cleared by the reset of the core.
// Contract: counter k adds amount k when event k is high in a cycle with count_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_counters #(
    // Counters, at least 1
    parameter COUNTERS = 4
) (
    input  wire                   clk_i,
    input  wire                   rst_ni,
    input  wire                   count_i,
    input  wire [   COUNTERS-1:0] event_i,
    // what counter k adds, 1 to 255
    input  wire [ COUNTERS*8-1:0] amount_i,
    output wire [COUNTERS*32-1:0] value_o
);
  genvar k;
  generate
    for (k = 0; k < COUNTERS; k = k + 1) begin : g_counter
      reg [31:0] value_q;
      assign value_o[k*32+:32] = value_q;
      always @(posedge clk_i)
        if (!rst_ni) value_q <= 32'd0;
        else if (count_i && event_i[k]) value_q <= value_q + {24'd0, amount_i[k*8+:8]};
    end
  endgenerate
endmodule

`resetall
