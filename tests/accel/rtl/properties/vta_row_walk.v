// induction 2 BLOCK_OUT=4
// induction 2 BLOCK_OUT=16
// cover 62 BLOCK_OUT=4 slow

  // Assumed: a start where nothing is walked, of an instruction that is legal. A core that stops does not go on before the
  // next reset.
  reg f_stopped = 1'b0;
  always @(posedge clk_i) f_stopped <= rst_ni && stop_i;
  always @* begin
    assume (!start_i || (!active_q && !stop_i && rst_ni));
    assume (rows_i != 0 && columns_i != 0);
    if (f_started && f_stopped && rst_ni) assume (stop_i);
  end

  // What is walked, from the instruction alone: round, slot of the round, first entry of the row that is new in the round,
  // step from there to the entry at hand.
  reg [15:0] f_rows, f_columns, f_row_step, f_entry_step;
  reg [16:0] f_round;
  reg [17:0] f_slot;
  reg [15:0] f_row, f_off;
  wire [17:0] f_entries = ({2'd0, f_columns} + BLOCK_OUT - 18'd1) / BLOCK_OUT;
  wire [17:0] f_long = 18'd4 * f_entries + 18'd16;
  wire [17:0] f_slots = (f_long < 18'd48) ? 18'd48 : f_long;
  wire [17:0] f_entry = f_slot / 4;
  wire [1:0] f_phase = f_slot[1:0];
  wire f_round_ends = f_slot == f_slots - 18'd1;
  wire f_insn_ends = f_round_ends && f_round == {1'b0, f_rows} + 17'd2;
  always @(posedge clk_i)
    if (start_i) begin
      {f_rows, f_columns, f_row_step, f_entry_step} <= {rows_i, columns_i, row_step_i, entry_step_i};
      {f_round, f_slot, f_off} <= 51'd0;
      f_row <= acc_base_i;
    end else if (active_o) begin
      f_slot <= f_round_ends ? 18'd0 : f_slot + 18'd1;
      if (f_phase == 2'd3) f_off <= f_round_ends ? 16'd0 : f_off + f_entry_step;
      if (f_round_ends) begin
        f_round <= f_round + 17'd1;
        f_row   <= f_row + f_row_step;
      end
    end

  // Rows are there in a stage from the round of their number and the stage's lag on, as many rounds as there are rows.
  wire [3:0] f_there;
  genvar f;
  generate
    for (f = 0; f < 4; f = f + 1) begin : g_f_there
      assign f_there[f] = f_round >= f && f_round < {1'b0, f_rows} + f;
    end
  endgenerate
  wire f_inside = f_entry < f_entries;
  wire [15:0] f_row_1 = f_row - f_row_step, f_row_3 = f_row_1 - 16'd2 * f_row_step;

  wire f_walks = f_started && rst_ni && active_q;
  always @* if (f_walks) begin
    // P1 Slot 4 e of a round reads for the maximum, 4 e + 1 for sums, 4 e + 2 for results, where e is an entry of a row and
    //   a row is in that stage; no other slot reads.
    p1: assert (read_o[0] == (f_inside && f_phase == 2'd0 && f_there[0]));
    p1_sums: assert (read_o[1] == (f_inside && f_phase == 2'd1 && f_there[1]));
    p1_results: assert (read_o[2] == (f_inside && f_phase == 2'd2 && f_there[3]));
    // P2 What is read is entry e of the stage's row: the base, a row step for each row before it, an entry step for each
    //   entry before it.
    p2: assert (f_phase != 2'd0 || raddr_o == f_row + f_off);
    p2_sums: assert (f_phase != 2'd1 || !f_there[1] || raddr_o == f_row_1 + f_off);
    p2_results: assert (f_phase != 2'd2 || !f_there[3] || raddr_o == f_row_3 + f_off);
    // P3 The marks of a slot are true: first and ninth of its round, last of the instruction.
    p3: assert (first_o == (f_slot == 0) && ninth_o == (f_slot == 8) && last_o == f_insn_ends);
    // P4 An instruction walks three rounds more than it has rows, of four slots for each entry and 16, at least 48.
    p4: assert (f_slot < f_slots && f_round <= {1'b0, f_rows} + 17'd2);
    // P5 The row whose results are made is named all through its round.
    p5: assert (!f_there[3] || row_o == f_row_3);
    // what the sentences rest on
    p1_counts: assert (there_q == f_there && rows_left_q == f_rows - 16'd1 - f_round[15:0] && f_rows != 0);
    p1_entries: assert (entries_q == f_entries - 18'd1 && entries_left_q == entries_q - f_entry[15:0] && f_columns != 0);
    p1_place: assert (inside_q == f_inside && phase_q == f_phase);
    p2_rows: assert (row_0_q == f_row && row_step_q == f_row_step && entry_step_q == f_entry_step);
    p2_behind: assert ((f_round < 1 || row_1_q == f_row_1) && (f_round < 2 || row_2_q == f_row_1 - f_row_step) && (f_round < 3 || row_3_q == f_row_3));
    p2_off: assert (off_q == (f_phase == 2'd3 ? f_off + f_entry_step : f_off));
    p3_low: assert (entry_low_q == (f_entry > 7 ? 3'd7 : f_entry[2:0]));
    p4_left: assert (round_q == f_slots - 18'd1 && left_q == round_q - f_slot && first_q == (f_slot == 0) && ends_q == f_round_ends);
  end

  // P6 Slots follow one another from the cycle behind the start to the last one, unless the core stops; then there are none.
  reg f_goes = 1'b0;
  always @(posedge clk_i) f_goes <= rst_ni && !stop_i && (start_i || (active_o && !last_o));
  always @* if (f_started) begin
    p6: assert (active_o == f_goes);
    p6_none: assert (active_o || (!first_o && !ninth_o && !last_o && read_o == 3'd0));
  end

  // P7 Between instructions nothing moves: what is named stays.
  reg f_rests = 1'b0;
  reg [31:0] f_named;
  always @(posedge clk_i) {f_rests, f_named} <= {!start_i && !active_o, raddr_o, row_o};
  always @* if (f_started) p7: assert (!f_rests || {raddr_o, row_o} == f_named);

  always @* if (f_started && rst_ni) begin
    c1: cover (f_walks && ninth_o && f_round == 1 && f_rows == 1);
    c2: cover (f_walks && read_o[1] && f_entry == 2 && raddr_o == 16'd3);
  end
