// induction 2 GROUPS=1 ACC_DEPTH=32 OUT_DEPTH=64 INP_PARTS=48 PRM_DEPTH=8 PART=2
// induction 2 GROUPS=4
// cover 24 GROUPS=2

  // Assumed: a start where there is room, with what vta_once says, loops that run once at least, one hold in two registers.
  // A core that stops does not go on before the next reset.
  wire [3:0] f_once;
  vta_once f_u_once (.insn_i(insn_i), .once_o(f_once));
  reg f_stopped = 1'b0;
  always @(posedge clk_i) f_stopped <= rst_ni && stop_i;
  always @* begin
    assume (!start_i || (ready_o && !stop_i));
    assume (once_i == f_once[3:2]);
    assume (hold_i == hold_start_i);
    assume (insn_i[`VTA_REQUANT_ITER_IN] != 0 && insn_i[`VTA_REQUANT_ITER_OUT] != 0);
    if (f_started && f_stopped && rst_ni) assume (stop_i);
  end

  // What is walked, from the instruction alone: row, vector, lane group, y or r; where it reads and writes.
  reg [255:0] f_insn;
  reg [15:0] f_outer, f_inner;
  reg [5:0] f_group;
  reg f_second;
  reg [15:0] f_acc, f_acc_row, f_dst, f_dst_row, f_prm;
  wire f_two = f_insn[`VTA_REQUANT_FORM] == `VTA_FORM_ADD || f_insn[`VTA_REQUANT_FORM] == `VTA_FORM_MUL;
  wire f_vector_ends = f_group == GROUPS - 1 && (!f_two || f_second);
  wire f_inner_ends = {1'b0, f_inner} + 17'd1 == {1'b0, f_insn[`VTA_REQUANT_ITER_IN]};
  wire f_outer_ends = {1'b0, f_outer} + 17'd1 == {1'b0, f_insn[`VTA_REQUANT_ITER_OUT]};
  wire [15:0] f_acc_row_next = f_acc_row + f_insn[`VTA_REQUANT_ACC_OUT], f_dst_row_next = f_dst_row + f_insn[`VTA_REQUANT_DST_OUT];
  wire [15:0] f_beside = f_acc + f_insn[`VTA_REQUANT_RES_BASE] - f_insn[`VTA_REQUANT_ACC_BASE];
  wire [15:0] f_res = f_insn[`VTA_REQUANT_STILL] ? f_insn[`VTA_REQUANT_RES_BASE] + f_outer : f_beside;
  always @(posedge clk_i)
    if (start_i) begin
      f_insn <= insn_i;
      {f_outer, f_inner, f_group, f_second} <= 0;
      {f_acc, f_acc_row} <= {2{insn_i[`VTA_REQUANT_ACC_BASE]}};
      {f_dst, f_dst_row} <= {2{insn_i[`VTA_REQUANT_DST_BASE]}};
      f_prm <= insn_i[`VTA_REQUANT_PRM_BASE];
    end else if (slot_valid_o) begin
      f_second <= f_two && !f_second;
      if (!f_two || f_second) f_group <= f_vector_ends ? 6'd0 : f_group + 6'd1;
      if (f_vector_ends) begin
        f_inner <= f_inner_ends ? 16'd0 : f_inner + 16'd1;
        f_acc <= f_inner_ends ? f_acc_row_next : f_acc + f_insn[`VTA_REQUANT_ACC_IN];
        f_dst <= f_inner_ends ? f_dst_row_next : f_dst + f_insn[`VTA_REQUANT_DST_IN];
        if (f_inner_ends) begin
          f_outer <= f_outer + 16'd1;
          {f_acc_row, f_dst_row} <= {f_acc_row_next, f_dst_row_next};
          f_prm <= f_prm + {8'd0, f_insn[`VTA_REQUANT_PRM_OUT]};
        end
      end
    end

  wire f_walks = f_started && rst_ni && active_q && !stop_i;
  wire [1:0] f_where = f_insn[`VTA_REQUANT_DST];
  wire f_outside = f_acc >= ACC_DEPTH || (f_two && f_res >= ACC_DEPTH)
      || (f_insn[`VTA_REQUANT_FORM] != `VTA_FORM_PASS && f_prm >= PRM_DEPTH)
      || (f_where == `VTA_DST_ACC ? f_dst >= ACC_DEPTH : f_where == `VTA_DST_INP ? f_dst >= INP_PARTS || f_dst % PART != 0
          : f_dst >= OUT_DEPTH);
  always @* if (f_walks) begin
    // P1 A slot reads the accumulator entry of its vector; of forms add and mul y's entry first, then r's, as far apart as
    //   their bases, or one further in each row.
    p1: assert (read_o == (f_second ? f_res : f_acc));
    p1_insn: assert (insn_q == f_insn && acc_q == f_acc && res_q == f_res && acc_row_q == f_acc_row && dst_row_q == f_dst_row);
    p1_apart: assert (apart_q == f_insn[`VTA_REQUANT_RES_BASE] - f_insn[`VTA_REQUANT_ACC_BASE]);
    p1_next: assert (acc_next_q == (f_inner_ends ? f_acc_row_next : f_acc + f_insn[`VTA_REQUANT_ACC_IN]));
    // P2 Vectors are written to the base, an inner stride for each vector and an outer one for each row further.
    p2: assert (dst_o == f_dst);
    // P3 Parameters are those of the row.
    p3: assert (prm_o == f_prm);
    // P4 A vector takes its lane groups in turn, each once, or twice for forms add and mul.
    p4: assert (group_o == f_group && second_o == f_second && f_group < GROUPS && (f_two || !f_second));
    // P5 The marks of a slot are true: last of its vector, of the instruction.
    p5: assert (vector_last_o == f_vector_ends && insn_last_o == (f_vector_ends && f_inner_ends && f_outer_ends));
    p5_rows: assert (row_last_q == f_inner_ends && out_last_q == f_outer_ends && at_end_q == insn_last_q);
    p5_one: assert (one_in_q == (f_insn[`VTA_REQUANT_ITER_IN] == 1));
    p5_left: assert (in_left_q == f_insn[`VTA_REQUANT_ITER_IN] - f_inner && out_left_q == f_insn[`VTA_REQUANT_ITER_OUT] - f_outer);
    p5_two: assert (in_two_q == (in_left_q == 2) && out_two_q == (out_left_q == 2));
    p5_counts: assert (f_inner < f_insn[`VTA_REQUANT_ITER_IN] && f_outer < f_insn[`VTA_REQUANT_ITER_OUT]);
    // P6 A vector with an index outside of its scratchpad has a fault and no slot.
    p6: assert (fault_o == f_outside && !(slot_valid_o && f_outside));
    p6_bad: assert (bad_q == f_outside);
    // P7 A slot that is held is not lost: it is there in the next cycle.
    p7: assert (slot_valid_o == (!hold_i && !f_outside));
  end
  // P8 next_in_o is the entry that the slot of the next cycle reads.
  reg f_moved = 1'b0;
  reg [15:0] f_said;
  always @(posedge clk_i) begin
    f_moved <= rst_ni && slot_valid_o && !insn_last_o;
    f_said <= next_in_o;
  end
  always @* if (f_walks && f_moved) p8: assert (read_o == f_said);
  always @* if (f_started && rst_ni) begin
    // P9 ready_o is high where no slot is left behind the one at hand, which leaves, and only there.
    p9: assert (stop_i || ready_o == (!active_q || (insn_last_o && !hold_i && !bad_q)));
    p9_copies: assert (active_q == active_start_q && at_end_q == at_end_start_q && (!active_q || bad_q == bad_start_q));
    p9_end: assert (active_q || at_end_q);
    // P10 A stop lets no slot through.
    p10: assert (!(stop_i && slot_valid_o));
  end

  always @* if (f_started && rst_ni) begin
    c1: cover (f_walks && f_two && insn_last_o && f_inner == 1 && f_outer == 1 && start_i);
    c2: cover (f_walks && fault_o && f_outer == 1);
  end
