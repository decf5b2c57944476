// MUL of the ALU: OUT_LANES multipliers that pass over the lanes of an entry, one group a slot.
// Contract: group_i counts up from 0 in consecutive slots (en_i); product_o is whole in the slot of the last group.
// Latency: combinational for the group at hand, registered for those before.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_alu_mul #(
    // Lanes of an entry
    parameter BLOCK_OUT = 4,
    // Multipliers, a divisor of BLOCK_OUT
    parameter OUT_LANES = 2
) (
    input  wire                    clk_i,
    input  wire                    en_i,
    input  wire [             5:0] group_i,
    input  wire [BLOCK_OUT*32-1:0] a_i,
    input  wire [BLOCK_OUT*32-1:0] b_i,
    output wire [BLOCK_OUT*32-1:0] product_o
);
  localparam GROUPS = BLOCK_OUT / OUT_LANES;
  localparam GROUP_BITS = OUT_LANES * 32;

  reg  [GROUP_BITS-1:0] a;
  reg  [GROUP_BITS-1:0] b;
  wire [GROUP_BITS-1:0] product;

  always @* begin
    a = {GROUP_BITS{1'b0}};
    b = {GROUP_BITS{1'b0}};
    if (en_i) begin
      a = a_i[group_i*GROUP_BITS+:GROUP_BITS];
      b = b_i[group_i*GROUP_BITS+:GROUP_BITS];
    end
  end

  genvar i;
  generate
    for (i = 0; i < OUT_LANES; i = i + 1) begin : g_lane
      assign product[i*32+:32] = a[i*32+:32] * b[i*32+:32];
    end
    if (GROUPS > 1) begin : g_hold
      reg [BLOCK_OUT*32-GROUP_BITS-1:0] held_q;
      assign product_o = {product, held_q};
      if (GROUPS > 2) begin : g_shift
        always @(posedge clk_i) if (en_i) held_q <= {product, held_q[BLOCK_OUT*32-GROUP_BITS-1:GROUP_BITS]};
      end else begin : g_one
        always @(posedge clk_i) if (en_i) held_q <= product;
      end
    end else begin : g_through
      assign product_o = product;
      wire unused = &{1'b0, clk_i};
    end
  endgenerate
endmodule

`resetall
