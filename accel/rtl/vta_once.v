// Which loops of a GEMM, ALU or REQUANT instruction run exactly once: bit 0 slots of a micro-op, bit 1 micro-ops of an
// inner step, bit 2 inner steps, bit 3 outer steps.
// Contract: purely combinational; bits 0 and 1 of REQUANT, and all bits of other instructions, are undefined.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_once (
    input  wire [255:0] insn_i,
    output wire [  3:0] once_o
);
  wire       is_alu = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_ALU;
  wire [3:0] op = insn_i[`VTA_ALU_ALU_OP];
  // with an immediate
  localparam [15:0] MANY = `VTA_ALUOPS_PRODUCT | `VTA_ALUOPS_AHEAD;
  wire       many = MANY[op] || !insn_i[`VTA_ALU_USE_IMM];

  assign once_o[0] = !(is_alu && many);
  assign once_o[1] = insn_i[`VTA_GEMM_UOP_BEGIN] == insn_i[`VTA_GEMM_UOP_END] - 16'd1;
  assign once_o[2] = insn_i[`VTA_GEMM_ITER_IN] == 16'd1;
  assign once_o[3] = insn_i[`VTA_GEMM_ITER_OUT] == 16'd1;

  wire unused = &{1'b0, insn_i};
endmodule

`resetall
