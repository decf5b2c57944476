// induction 1 LANES=1 COF_DEPTH=4 BEAT_ADDR_W=3
// induction 1 LANES=2 COF_DEPTH=2 BEAT_ADDR_W=3
// induction 1 LANES=4 COF_DEPTH=2 BEAT_W=128 BEAT_ADDR_W=3
// cover 8 LANES=4 COF_DEPTH=2 BEAT_W=128 BEAT_ADDR_W=3

  // An entry of the solver's choice, in each lane: the record that was written last to it, without what is not kept.
  (* anyconst *) reg [ADDR_W-1:0] f_entry;
  wire [15:0] f_whole = {{(16 - ADDR_W) {1'b0}}, f_entry};
  wire [LANES-1:0] f_written;
  wire [LANES*48-1:0] f_new;
  reg [LANES-1:0] f_known = 0, f_s = 0, f_r = 0;
  reg [LANES*48-1:0] f_word, f_r_out;
  reg [LANES*16-1:0] f_s_out;
  // Assumed: beats and entries of the memory's own, and no look in the cycle of a write.
  always @* assume (waddr_i < LANES * COF_DEPTH / RECORDS && !(we_i && (s_re_i || r_re_i)));
  integer f_c;
  always @* begin
    for (f_c = 0; f_c < LANES; f_c = f_c + 1) begin
      assume (!s_re_i || s_raddr_i[f_c*16+:16] < COF_DEPTH);
      assume (!r_re_i || r_raddr_i[f_c*16+:16] < COF_DEPTH);
    end
  end
  always @(posedge clk_i)
    for (f_c = 0; f_c < LANES; f_c = f_c + 1) begin
      if (f_written[f_c]) begin
        f_known[f_c] <= 1'b1;
        f_word[f_c*48+:48] <= f_new[f_c*48+:48];
      end
      if (s_re_i) begin
        f_s[f_c] <= f_known[f_c] && s_raddr_i[f_c*16+:16] == f_whole;
        f_s_out[f_c*16+:16] <= f_word[f_c*48+:16];
      end
      if (r_re_i) begin
        f_r[f_c] <= f_known[f_c] && r_raddr_i[f_c*16+:16] == f_whole;
        f_r_out[f_c*48+:48] <= f_word[f_c*48+:48];
      end
    end

  wire [LANES*48-1:0] f_stored, f_is_known, f_is_r;
  wire [LANES*16-1:0] f_is_s;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_f_lane
      localparam F_AT = i % RECORDS * RECORD_W;
      assign f_written[i] = we_i && waddr_i == (f_entry * LANES + i) / RECORDS;
      assign f_new[i*48+:48] = {wdata_i[F_AT+32+:32], wdata_i[F_AT+:16]};
      assign f_stored[i*48+:48] = {g_lane[i].bias_q[f_entry], g_lane[i].gain_q[f_entry]};
      assign f_is_known[i*48+:48] = {48{f_known[i]}};
      assign f_is_r[i*48+:48] = {48{f_r[i]}};
      assign f_is_s[i*16+:16] = {16{f_s[i]}};
    end
  endgenerate
  always @* begin
    // P1 A lane that looks for sums gets the low 16 bits of the record that was written last to its entry.
    p1: assert (((s_word_o ^ f_s_out) & f_is_s) == 0);
    // P2 A lane that looks for results gets the 48 bits of that record which are kept, bias above gain.
    p2: assert (((r_word_o ^ f_r_out) & f_is_r) == 0);
    // P3 A beat that is written changes no record of another entry or of another lane.
    p3: assert (((f_stored ^ f_word) & f_is_known) == 0);
  end

  // P4 What was looked up stays until the next look.
  reg f_s_holds = 1'b0, f_r_holds = 1'b0;
  reg [LANES*16-1:0] f_s_was;
  reg [LANES*48-1:0] f_r_was;
  always @(posedge clk_i) {f_s_holds, f_r_holds, f_s_was, f_r_was} <= {!s_re_i, !r_re_i, s_word_o, r_word_o};
  always @* if (f_started) begin
    p4: assert (!f_s_holds || s_word_o == f_s_was);
    p4_results: assert (!f_r_holds || r_word_o == f_r_was);
    c1: cover (f_s[LANES-1] && f_r[0] && f_entry == 1 && f_known == {LANES{1'b1}} && f_r_out[47:0] != f_word[47:0]);
  end
