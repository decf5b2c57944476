// induction 1

  wire [15:0] f_begin = insn_i[`VTA_GEMM_UOP_BEGIN], f_end = insn_i[`VTA_GEMM_UOP_END];
  // What the instruction is, read from its own fields and not from what the module made of them.
  wire f_gemm = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_GEMM, f_alu = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_ALU;
  wire [3:0] f_op = insn_i[`VTA_ALU_ALU_OP];
  always @* begin
    // P1 An inner step has one micro-op exactly if the range of micro-ops is one long.
    p1: assert (f_end <= f_begin || once_o[1] == ({1'b0, f_begin} + 17'd1 == {1'b0, f_end}));
    // P2 Inner and outer loops run once exactly if their count is one.
    p2: assert (once_o[2] == (insn_i[`VTA_GEMM_ITER_IN] == 1) && once_o[3] == (insn_i[`VTA_GEMM_ITER_OUT] == 1));
    // P3 A micro-op of a GEMM takes one slot; one of the ALU does if it has an immediate and is neither MUL, SHR nor CLIP.
    p3: assert (!f_gemm || once_o[0]);
    p3_alu: assert (!f_alu || once_o[0] == (insn_i[`VTA_ALU_USE_IMM] && f_op != `VTA_ALUOP_MUL && f_op != `VTA_ALUOP_SHR
        && f_op != `VTA_ALUOP_CLIP));
  end
