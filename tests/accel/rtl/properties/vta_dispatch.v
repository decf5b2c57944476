// induction 3 BEATS_W=12 LENGTH_W=20
// induction 3 BEATS_W=12 LENGTH_W=20 COF_DEPTH=256
// cover 12 BEATS_W=12 LENGTH_W=20

  // Assumed: count_i holds from a reset on, which lasts three cycles at least and clears the index.
  reg [31:0] f_count_was;
  reg [2:0] f_resets = 3'd0;
  // The core has run since the reset, without a fault and without an end.
  reg f_live = 1'b0;
  always @(posedge clk_i) begin
    f_count_was <= count_i;
    f_resets <= {f_resets[1:0], !rst_ni};
    f_live <= !rst_ni || (f_live && run_i && !fault_o && !done_o);
  end
  always @* begin
    if (f_started) assume (count_i == f_count_was);
    if (f_resets[0] && f_resets != 3'b111) assume (!rst_ni);
    assume (clear_i == !rst_ni);
    assume (count_i < 32'd100);
  end

  // Instructions that were taken out of the fetch buffer, and that went on into a queue or, as FINISH, ended the program.
  wire f_leaves = |push_o || done_o;
  reg [31:0] f_taken = 0, f_gone = 0;
  always @(posedge clk_i)
    if (!rst_ni) {f_taken, f_gone} <= 64'd0;
    else begin
      f_taken <= f_taken + {31'd0, insn_pop_o};
      f_gone <= f_gone + {31'd0, f_leaves};
    end
  // Registers that another instruction may enter, in a core that runs without a fault.
  wire f_moves_3 = !third_valid_q || f_leaves;
  wire f_moves_2 = !second_valid_q || f_moves_3;
  wire [1:0] f_held = {1'b0, first_valid_q} + {1'b0, second_valid_q} + {1'b0, third_valid_q};

  // One of them, of the solver's choice, by what stands in its SET field; where it is.
  (* anyseq *) wire f_choose;
  reg [1:0] f_at = 2'd0;
  reg f_over = 1'b0;
  reg [255:0] f_insn;
  reg [31:0] f_number;
  always @(posedge clk_i)
    if (!rst_ni) {f_at, f_over} <= 3'd0;
    else if (f_at == 0) begin
      if (insn_pop_o && f_choose && !f_over) {f_at, f_insn, f_number} <= {2'd1, insn_i, f_taken};
    end else if (f_at == 1) f_at <= f_moves_2 ? 2'd2 : 2'd1;
    else if (f_at == 2) f_at <= f_moves_3 ? 2'd3 : 2'd2;
    else if (f_leaves) {f_at, f_over} <= 3'b001;

  wire f_runs = f_started && rst_ni && f_live;
  always @* if (f_runs) begin
    // P1 Nothing is lost or doubled: what was taken is in the three registers or has gone on.
    p1: assert (f_taken == f_gone + {30'd0, f_held});
    p1_flags: assert (two_q == (second_valid_q && third_valid_q) && three_q == (first_valid_q && second_valid_q && third_valid_q));
    // P2 Instructions keep their order and their bits: one that was taken n-th goes on n-th.
    p2: assert (f_at != 3 || (third_valid_q && third_q == f_insn && f_number == f_gone));
    p2_second: assert (f_at != 2 || (second_valid_q && second_q == f_insn && f_number == f_gone + {31'd0, third_valid_q}));
    p2_first: assert (f_at != 1 || (first_valid_q && first_q == f_insn
        && f_number == f_gone + {31'd0, third_valid_q} + {31'd0, second_valid_q}));
    // P3 An instruction's index is the number of those before it.
    p3: assert (index_o == f_gone);
    p3_next: assert (next_q == index_q + 28'd1);
    // P4 An instruction goes into one queue at most, and only where there is room.
    p4: assert ((push_o & full_i) == 0 && (push_o & (push_o - 5'd1)) == 0);
    p4_unit: assert (!third_valid_q || (unit_q & (unit_q - 5'd1)) == 0);
    p4_second: assert (!second_valid_q || (second_unit_q & (second_unit_q - 5'd1)) == 0);
    p4_some: assert (!third_valid_q || bad_q || (unit_q == 0) == finish_q);
    p4_second_some: assert (!second_valid_q || second_flaws_q != 0 || (second_unit_q == 0) == second_finish_q);
    // P5 Nothing is taken while the registers hold three instructions that do not move.
    p5: assert (!insn_pop_o || (insn_valid_i && (f_held != 3 || f_leaves || fault_o || !run_i)));
    // P6 Nothing goes on in a core that does not run, and no faulty instruction does.
    p6: assert (!f_leaves || (run_i && third_valid_q && !bad_q));
    // P7 The program is done only by FINISH, as the last of COUNT instructions, when all is quiet.
    p7: assert (!done_o || (finish_q && quiet_i && f_gone + 32'd1 == count_i));
    p7_last: assert (is_last_q == (f_gone + 32'd1 == count_i));
    // P8 A program that goes on behind the last of COUNT instructions has a fault at once.
    p8: assert (f_gone <= count_i && over_q == (f_gone == count_i));
    p8_fault: assert (f_gone != count_i || !run_i || fault_o);
    // P10 An instruction without a fault waits for room in its queue alone, one in the fetch buffer for a register.
    p10: assert (!(run_i && third_valid_q && !bad_q && !finish_q && (unit_q & full_i) == 0) || push_o == unit_q);
    p10_finish: assert (!(run_i && third_valid_q && finish_q && quiet_i && !fault_o) || done_o);
    p10_taken: assert (!insn_valid_i || insn_pop_o || (f_held == 3 && push_o == 0));
  end
  // P9 A fault names an instruction that is there, or that the program lacks.
  always @* if (f_runs && fault_o) p9: assert (run_i && code_o != `VTA_FAULT_NONE && (third_valid_q || f_gone >= count_i));

  always @* if (f_runs) begin
    c1: cover (done_o && f_gone == 2);
    c2: cover (fault_o && over_q && f_gone == 2);
    c3: cover (f_at == 3 && f_held == 3 && |(unit_q & full_i));
  end
