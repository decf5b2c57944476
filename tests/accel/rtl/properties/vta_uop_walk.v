// induction 2 MUL_SLOTS=3 UOP_W=5
// induction 2 MUL_SLOTS=9 UOP_W=16
// cover 16 MUL_SLOTS=3 UOP_W=5

  // Assumed: a start where there is room, with what vta_once says, loops that run once at least, numbers that have UOP_W bits.
  wire [3:0] f_once;
  vta_once f_u_once (.insn_i(insn_i), .once_o(f_once));
  always @* begin
    assume (!start_i || (ready_o && !stop_i));
    if (f_started && f_stopped && rst_ni) assume (stop_i);
    assume (once_i == f_once);
    assume (insn_i[`VTA_GEMM_ITER_IN] != 0 && insn_i[`VTA_GEMM_ITER_OUT] != 0);
    assume (insn_i[`VTA_GEMM_UOP_BEGIN] < insn_i[`VTA_GEMM_UOP_END] && insn_i[`VTA_GEMM_UOP_END] < (17'd1 << UOP_W));
  end

  // A core that stops does not go on before the next reset.
  reg f_stopped = 1'b0;
  always @(posedge clk_i) f_stopped <= rst_ni && stop_i;

  // What is walked, from the instruction alone: outer step, inner step, micro-op, slot; offsets of the step and of its row.
  reg [255:0] f_insn;
  reg [15:0] f_outer, f_inner, f_uop;
  reg [7:0] f_slot;
  reg [47:0] f_at, f_row;
  wire f_alu = f_insn[`VTA_INSN_OPCODE] == `VTA_OP_ALU;
  wire [3:0] f_op = f_insn[`VTA_ALU_ALU_OP];
  wire f_mul = f_alu && f_op == `VTA_ALUOP_MUL;
  wire f_two = f_alu && (!f_insn[`VTA_ALU_USE_IMM] || f_op == `VTA_ALUOP_SHR || f_op == `VTA_ALUOP_CLIP);
  wire [7:0] f_slots = {7'd0, f_two} + (f_mul ? MUL_SLOTS : 1);
  wire f_slot_ends = f_slot + 8'd1 == f_slots;
  wire f_uop_ends = {1'b0, f_insn[`VTA_GEMM_UOP_BEGIN]} + {1'b0, f_uop} + 17'd1 == {1'b0, f_insn[`VTA_GEMM_UOP_END]};
  wire f_inner_ends = {1'b0, f_inner} + 17'd1 == {1'b0, f_insn[`VTA_GEMM_ITER_IN]};
  wire f_outer_ends = {1'b0, f_outer} + 17'd1 == {1'b0, f_insn[`VTA_GEMM_ITER_OUT]};
  wire [47:0] f_in_step = {f_insn[`VTA_GEMM_ACC_IN], f_insn[`VTA_GEMM_INP_IN], f_insn[`VTA_GEMM_WGT_IN]};
  wire [47:0] f_out_step = {f_insn[`VTA_GEMM_ACC_OUT], f_insn[`VTA_GEMM_INP_OUT], f_insn[`VTA_GEMM_WGT_OUT]};
  wire [47:0] f_begin = {insn_i[`VTA_GEMM_ACC_BASE], insn_i[`VTA_GEMM_INP_BASE], insn_i[`VTA_GEMM_WGT_BASE]};
  // three sums of 16 bits
  function [47:0] f_add;
    input [47:0] a, b;
    f_add = {a[47:32] + b[47:32], a[31:16] + b[31:16], a[15:0] + b[15:0]};
  endfunction
  always @(posedge clk_i)
    if (start_i) begin
      f_insn <= insn_i;
      {f_outer, f_inner, f_uop, f_slot} <= 0;
      {f_at, f_row} <= {2{f_begin}};
    end else if (slot_valid_o) begin
      f_slot <= f_slot_ends ? 8'd0 : f_slot + 8'd1;
      if (f_slot_ends) f_uop <= f_uop_ends ? 16'd0 : f_uop + 16'd1;
      if (f_slot_ends && f_uop_ends) begin
        f_inner <= f_inner_ends ? 16'd0 : f_inner + 16'd1;
        f_at <= f_inner_ends ? f_add(f_row, f_out_step) : f_add(f_at, f_in_step);
        if (f_inner_ends) begin
          f_outer <= f_outer + 16'd1;
          f_row <= f_add(f_row, f_out_step);
        end
      end
    end

  wire f_walks = f_started && rst_ni && active_q && !stop_i;
  always @* if (f_walks) begin
    // P1 Each slot has the micro-op whose turn it is: from the first to the last of the range, in every inner step again.
    p1: assert ({{(16 - UOP_W) {1'b0}}, uop_o} == f_insn[`VTA_GEMM_UOP_BEGIN] + f_uop);
    p1_insn: assert (insn_q == f_insn);
    p1_range: assert (f_insn[`VTA_GEMM_UOP_BEGIN] < f_insn[`VTA_GEMM_UOP_END] && f_insn[`VTA_GEMM_UOP_END] < (17'd1 << UOP_W)
        && {1'b0, f_insn[`VTA_GEMM_UOP_BEGIN]} + {1'b0, f_uop} < {1'b0, f_insn[`VTA_GEMM_UOP_END]});
    p1_before: assert ({{(16 - UOP_W) {1'b0}}, uop_before_q} == ((f_insn[`VTA_GEMM_UOP_END] - 16'd2) & ((17'd1 << UOP_W) - 17'd1)));
    // P2 Offsets are those of the step: the base, an inner stride for each inner step, an outer one for each outer step.
    p2: assert ({dst_offset_o, src_offset_o, wgt_offset_o} == f_at);
    p2_row: assert ({dst_row_q, src_row_q, wgt_row_q} == f_row);
    // P3 A micro-op takes a slot ahead if it has two operands, then one, or as many as MUL has groups of lanes.
    p3: assert (slot_exec_o == !(f_two && f_slot == 0) && f_slot < f_slots);
    p3_group: assert ({1'b0, slot_group_o} == ((f_mul && slot_exec_o) ? f_slot - {7'd0, f_two} : 8'd0));
    // P4 The marks of a slot are true: last of its micro-op, of the instruction.
    p4: assert (uop_last_o == f_slot_ends && insn_last_o == (f_slot_ends && f_uop_ends && f_inner_ends && f_outer_ends));
    p4_loops: assert (uop_last_q == f_uop_ends && in_last_q == f_inner_ends && out_last_q == f_outer_ends);
    p4_once: assert (one_uop_q == (f_insn[`VTA_GEMM_UOP_BEGIN] + 17'd1 == f_insn[`VTA_GEMM_UOP_END]) && one_in_q == (f_insn[`VTA_GEMM_ITER_IN] == 1));
    p4_left: assert (in_left_q == f_insn[`VTA_GEMM_ITER_IN] - f_inner && out_left_q == f_insn[`VTA_GEMM_ITER_OUT] - f_outer);
    p4_counts: assert (f_inner < f_insn[`VTA_GEMM_ITER_IN] && f_outer < f_insn[`VTA_GEMM_ITER_OUT]);
  end
  always @* if (f_started && rst_ni) begin
    // P5 ready_o is high where no slot is left behind the one at hand, and only there.
    p5: assert (stop_i || ready_o == (!active_q || insn_last_o));
    // P6 A stop lets no slot through.
    p6: assert (!(stop_i && slot_valid_o) && (!slot_valid_o || active_o));
  end
  // P7 The first slot is out in the cycle behind a start.
  reg f_begins = 1'b0;
  always @(posedge clk_i) f_begins <= rst_ni && start_i;
  always @* if (f_started && rst_ni && f_begins && !stop_i) p7: assert (active_o && f_outer == 0 && f_inner == 0 && f_uop == 0 && f_slot == 0);

  always @* if (f_started && rst_ni) begin
    c1: cover (f_walks && f_mul && f_two && insn_last_o && f_inner == 1 && f_outer == 0 && slot_valid_o);
    c2: cover (f_walks && !f_alu && insn_last_o && f_inner == 1 && f_outer == 1 && f_uop == 1 && start_i);
  end
