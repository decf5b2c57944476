// Stage 6 of COMPUTE: the new value of an accumulator entry from the old one and the GEMM sums or the ALU's operand.
// Contract: an entry that is written at the edge of its own read is taken from the forwarding register.  A slot that
// reads the source of a tensor operation (source_i) only fills the operand register.
// Latency: combinational from acc_i; the operand register adds the slot in front.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_update #(
    // Lanes of an entry
    parameter BLOCK_OUT = 4,
    // Multipliers of MUL
    parameter OUT_LANES = 2,
    // Width of a GEMM sum, 18 to 31
    parameter SUM_W     = 18
) (
    input  wire                       clk_i,
    // the read that delivers acc_i in the next cycle
    input  wire                       read_i,
    input  wire [               15:0] raddr_i,
    // stage 6
    input  wire [   BLOCK_OUT*32-1:0] acc_i,
    input  wire                       source_i,
    input  wire                       is_alu_i,
    input  wire                       is_mul_i,
    input  wire                       is_max_i,  // GEMM's maximum: as ALU, of the sums
    input  wire                       keep_i,
    input  wire [                3:0] op_i,
    input  wire [                1:0] rounding_i,
    input  wire [                5:0] group_i,
    input  wire                       use_imm_i,
    input  wire [               31:0] imm_i,
    input  wire [BLOCK_OUT*SUM_W-1:0] sums_i,
    // write at the end of stage 6
    input  wire                       write_i,
    input  wire [               15:0] waddr_i,
    output wire [   BLOCK_OUT*32-1:0] wdata_o
);
  reg                      forward_q;
  reg  [BLOCK_OUT*32-1:0]  written_q;
  reg  [BLOCK_OUT*32-1:0]  source_q;
  wire [BLOCK_OUT*32-1:0]  old = forward_q ? written_q : acc_i;
  wire [BLOCK_OUT*32-1:0]  second = use_imm_i ? {BLOCK_OUT{imm_i}} : source_q;
  wire [             3:0]  op = (is_max_i && !keep_i) ? `VTA_ALUOP_MOV : op_i;
  wire [BLOCK_OUT*32-1:0]  updated;
  wire [BLOCK_OUT*32-1:0]  product;

  assign wdata_o = is_mul_i ? product : updated;

  always @(posedge clk_i) begin
    if (read_i) forward_q <= write_i && waddr_i == raddr_i;
    if (write_i) written_q <= wdata_o;
    if (source_i) source_q <= old;
  end

  genvar i;
  generate
    for (i = 0; i < BLOCK_OUT; i = i + 1) begin : g_lane
      wire [31:0] sum = {{(32 - SUM_W) {sums_i[i*SUM_W+SUM_W-1]}}, sums_i[i*SUM_W+:SUM_W]};

      vta_alu_lane u_lane (
          .is_alu_i  (is_alu_i),
          .keep_i    (keep_i),
          .op_i      (op),
          .rounding_i(rounding_i),
          .a_i       (old[i*32+:32]),
          .sum_i     (sum),
          .b_i       (is_max_i ? sum : second[i*32+:32]),
          .result_o  (updated[i*32+:32])
      );
    end
  endgenerate

  vta_alu_mul #(
      .BLOCK_OUT(BLOCK_OUT),
      .OUT_LANES(OUT_LANES)
  ) u_mul (
      .clk_i    (clk_i),
      .en_i     (is_mul_i),
      .group_i  (group_i),
      .a_i      (old),
      .b_i      (second),
      .product_o(product)
  );
endmodule

`resetall
