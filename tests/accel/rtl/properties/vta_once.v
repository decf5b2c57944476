// induction 1

  wire [15:0] f_begin = insn_i[`VTA_GEMM_UOP_BEGIN], f_end = insn_i[`VTA_GEMM_UOP_END];
  always @* begin
    // P1 An inner step has one micro-op exactly if the range of micro-ops is one long.
    p1: assert (f_end <= f_begin || once_o[1] == ({1'b0, f_begin} + 17'd1 == {1'b0, f_end}));
    // P2 Inner and outer loops run once exactly if their count is one.
    p2: assert (once_o[2] == (insn_i[`VTA_GEMM_ITER_IN] == 1) && once_o[3] == (insn_i[`VTA_GEMM_ITER_OUT] == 1));
    // P3 A micro-op of a GEMM takes one slot; one of the ALU does if it has an immediate and is neither MUL, SHR nor CLIP.
    p3: assert (!is_alu ? once_o[0] : once_o[0] == (insn_i[`VTA_ALU_USE_IMM] && op != `VTA_ALUOP_MUL && op != `VTA_ALUOP_SHR
        && op != `VTA_ALUOP_CLIP));
  end
