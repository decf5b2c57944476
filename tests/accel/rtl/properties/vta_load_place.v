// induction 2 AXI_DATA_BITS=64 INP_LANES=4 LINE_BEATS=2 BEATS_W=10
// induction 2 AXI_DATA_BITS=64 INP_LANES=32 LINE_BEATS=4 BEATS_W=18
// induction 2 AXI_DATA_BITS=256 INP_LANES=32 LINE_BEATS=1 BEATS_W=11
// cover 14 AXI_DATA_BITS=64 INP_LANES=4 LINE_BEATS=2 BEATS_W=10

  // Operands, from the instruction alone; a run in beats.
  localparam F_GRANULE_BEATS = BUS < 16 ? 16 / BUS : 1;
  wire [31:0] f_lane = {16'd0, insn_i[`VTA_GATHER_LANE]}, f_window = {16'd0, insn_i[`VTA_GATHER_RUN]};
  wire [31:0] f_vector_bytes = {24'd0, insn_i[`VTA_GATHER_PITCH]} * INP_LANES;
  wire f_has_pitch = !gather_i && insn_i[`VTA_LOAD_PITCH] != 0 && !insn_i[`VTA_LOAD_EXPAND];
  wire [31:0] f_new_run = gather_i ? (f_lane % BUS + f_window + BUS - 1) / BUS : {16'd0, insn_i[`VTA_LOAD_Z]} * F_GRANULE_BEATS;
  wire [31:0] f_new_x_0 = gather_i ? 0 : {24'd0, insn_i[`VTA_LOAD_X_PAD_0]}, f_new_x_1 = gather_i ? 0 : {24'd0, insn_i[`VTA_LOAD_X_PAD_1]};
  wire [31:0] f_new_y_0 = {24'd0, gather_i ? insn_i[`VTA_GATHER_Y_PAD_0] : insn_i[`VTA_LOAD_Y_PAD_0]};
  wire [31:0] f_new_y_1 = {24'd0, gather_i ? insn_i[`VTA_GATHER_Y_PAD_1] : insn_i[`VTA_LOAD_Y_PAD_1]};
  wire [31:0] f_new_xs = f_new_x_0 + {16'd0, insn_i[`VTA_LOAD_X]} + f_new_x_1, f_new_ys = f_new_y_0 + {16'd0, insn_i[`VTA_LOAD_Y]} + f_new_y_1;
  wire [31:0] f_most = 32'd1 << BEATS_W, f_most_count = 32'd1 << COUNT_W;
  wire f_loads = load_i && move_i;

  // The position at hand: beat of its run, run of its row, row; f_stale: other operands came, as they may at the last one.
  reg f_valid = 1'b0, f_stale = 1'b0;
  reg f_planes, f_gather;
  reg [31:0] f_b, f_x, f_y, f_run, f_xs, f_ys, f_x_0, f_x_end, f_y_0, f_y_end;
  reg [BEATS_W-1:0] f_first, f_addr, f_apart, f_jump;
  reg f_pad, f_run_last, f_row_last, f_last;

  // Assumed: operands are legal and fit the scratchpad; they come where there is no position, or at the last one.
  always @* begin
    assume (!(load_i && f_valid && !f_last));
    if (load_i) begin
      assume (insn_i[`VTA_LOAD_X] != 0 && insn_i[`VTA_LOAD_Y] != 0 && f_new_run != 0);
      assume (f_new_run < f_most && f_new_xs < f_most_count && f_new_ys < f_most_count);
      assume (!gather_i || (f_window != 0 && f_lane + f_window <= f_vector_bytes && f_vector_bytes % BUS == 0));
      assume (!f_has_pitch || (f_new_run % LINE_BEATS == 0 && first_beat_i % LINE_BEATS == 0));
    end
  end

  // The next one: the beat behind, the first of the next run, or of the next row.
  wire [31:0] f_next_b = f_loads || f_run_last ? 0 : f_b + 1;
  wire [31:0] f_next_x = f_loads || f_row_last ? 0 : f_x + {31'd0, f_run_last};
  wire [31:0] f_next_y = f_loads ? 0 : f_y + {31'd0, f_row_last};
  wire [BEATS_W-1:0] f_new_first = first_beat_i + (gather_i ? f_lane / BUS : 0);
  wire [BEATS_W-1:0] f_next_first = f_loads ? f_new_first : f_run_last ? f_first + f_apart : f_first;
  // With pitch each line of a run lies f_jump beats behind the one before.
  wire f_line_ends = (f_b + 1) % LINE_BEATS == 0;
  wire [BEATS_W-1:0] f_next_addr = f_loads || f_run_last ? f_next_first
      : f_planes && f_line_ends ? f_addr + f_jump - LINE_BEATS + 1 : f_addr + 1;
  wire [31:0] f_of_run = f_loads ? f_new_run : f_run, f_of_xs = f_loads ? f_new_xs : f_xs, f_of_ys = f_loads ? f_new_ys : f_ys;
  wire [31:0] f_of_x_0 = f_loads ? f_new_x_0 : f_x_0, f_of_x_end = f_loads ? f_new_xs - f_new_x_1 : f_x_end;
  wire [31:0] f_of_y_0 = f_loads ? f_new_y_0 : f_y_0, f_of_y_end = f_loads ? f_new_ys - f_new_y_1 : f_y_end;
  wire f_to_run_last = f_next_b == f_of_run - 1, f_to_row_last = f_to_run_last && f_next_x == f_of_xs - 1;
  always @(posedge clk_i) begin
    if (move_i) f_valid <= load_i || (f_valid && !f_last);
    f_stale <= load_i && !move_i ? 1'b1 : move_i ? 1'b0 : f_stale;
    if (f_loads) begin
      {f_run, f_xs, f_ys} <= {f_new_run, f_new_xs, f_new_ys};
      {f_x_0, f_x_end, f_y_0, f_y_end} <= {f_of_x_0, f_of_x_end, f_of_y_0, f_of_y_end};
      {f_planes, f_gather} <= {f_has_pitch, gather_i};
      f_apart <= f_has_pitch ? LINE_BEATS : gather_i ? f_vector_bytes / BUS : f_new_run;
      f_jump <= 4 * LINE_BEATS * {21'd0, insn_i[`VTA_LOAD_PITCH]};
    end
    if (move_i) begin
      {f_b, f_x, f_y, f_first, f_addr} <= {f_next_b, f_next_x, f_next_y, f_next_first, f_next_addr};
      f_pad <= f_next_x < f_of_x_0 || f_next_x >= f_of_x_end || f_next_y < f_of_y_0 || f_next_y >= f_of_y_end;
      {f_run_last, f_row_last, f_last} <= {f_to_run_last, f_to_row_last, f_to_row_last && f_next_y == f_of_ys - 1};
    end
  end

  wire [31:0] f_pitch_jump = 4 * LINE_BEATS * {21'd0, pitch_q};
  wire f_walks = f_started && f_valid, f_goes = f_walks && !f_stale;
  always @* if (f_walks) begin
    // P1 Beats go one behind the other; with pitch each line of a run goes four pitches behind the one before, and runs begin a
    //   line apart; windows of GATHER begin a vector apart.
    p1: assert (addr_o == f_addr);
    p1_first: assert (f_stale || !(f_planes || f_gather) || begin_q == f_first);
    p1_place: assert (f_planes || f_addr == f_first + f_b[BEATS_W-1:0]);
    p1_line: assert (!f_planes || f_addr % LINE_BEATS == f_b % LINE_BEATS);
    p1_lines: assert (!f_planes || (f_first % LINE_BEATS == 0 && f_run % LINE_BEATS == 0 && f_apart == LINE_BEATS && !f_gather));
    // P2 Padding is what lies before or behind the rows and the runs with data, and nothing else is.
    p2: assert (pad_o == f_pad);
    // P3 The marks are true: last beat of its run, of its row, of all.
    p3: assert (run_last_o == f_run_last && row_last_o == f_row_last && last_o == f_last);
    p3_run: assert (f_b < f_run && f_run < f_most && f_run_last == (f_b == f_run - 1));
    p3_row: assert (f_x < f_xs && f_xs < f_most_count && f_row_last == (f_run_last && f_x == f_xs - 1));
    p3_all: assert (f_y < f_ys && f_ys < f_most_count && f_last == (f_row_last && f_y == f_ys - 1) && x_last_q == (f_x == f_xs - 1));
    p3_stale: assert (!f_stale || f_last);
  end
  always @* if (f_goes) begin
    p1_kind: assert (planes_q == f_planes && apart_q == (f_planes || f_gather) && f_apart == (apart_q ? f_planes ? LINE_BEATS : vector_q : f_run[BEATS_W-1:0]));
    p1_pitch: assert (!f_planes || f_jump == f_pitch_jump[BEATS_W-1:0]);
    p2_ends: assert (x_first_q == f_x_0 && x_end_q == f_x_end && y_first_q == f_y_0 && y_end_q == f_y_end);
    p2_order: assert (f_x_0 < f_x_end && f_x_end <= f_xs && f_y_0 < f_y_end && f_y_end <= f_ys);
    p2_x: assert (x_pad_q == (f_x < f_x_0 || f_x >= f_x_end) && x_q == f_x + 1);
    p2_y: assert (y_pad_q == (f_y < f_y_0 || f_y >= f_y_end) && y_q == f_y + 1);
    p2_pad: assert (f_pad == (x_pad_q || y_pad_q));
    p3_final: assert (x_final_q == f_xs - 1 && y_final_q == f_ys - 1 && x_one_q == (f_xs == 1) && y_last_q == (f_y == f_ys - 1));
    p3_length: assert (run_q == f_run && run_one_q == (f_run == 1) && (run_last_q || count_q == f_b + 2));
  end
  always @* if (f_started && f_valid) begin
    c1: cover (f_last && f_gather && f_x == 1 && f_y == 2 && f_b == 1 && f_pad);
    c2: cover (f_last && f_planes && f_x == 1 && f_y == 0 && f_b == 3 && f_jump == 16);
    c3: cover (f_last && !f_planes && !f_gather && f_x == 2 && f_y == 1 && f_pad);
  end
