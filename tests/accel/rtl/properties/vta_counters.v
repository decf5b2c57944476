// induction 3 COUNTERS=16
// induction 3 COUNTERS=16 BEATS=21845 BEAT_LOG=4
// induction 3 COUNTERS=18 BEATS=57344
// cover 60 COUNTERS=18

  // A counter of the solver's choice and what it counts, an event's worth at a time.
  (* anyconst *) reg [4:0] f_c;
  always @* assume ({27'd0, f_c} < COUNTERS);
  wire f_event = count_i && event_i[f_c];
  wire f_beats = BEATS[f_c];
  reg [31:0] f_total = 32'd0, f_cycles = 32'd0;
  always @(posedge clk_i)
    if (!rst_ni) {f_total, f_cycles} <= 64'd0;
    else begin
      if (f_event) f_total <= f_total + 32'd1;
      if (count_i) f_cycles <= f_cycles + 32'd1;
    end

  // Its parts: the low bits, a carry that waits, and the word in the memory, or the one that goes there next.  Words lie by
  // the address of their register, from 17 on, of sixteen counters without its highest bit.
  wire [4:0] f_at = 5'd17 + f_c;
  wire [4:0] f_place = (LOW > 4) ? f_at : {1'b0, f_at[3:0]};
  (* hierconn *) wire [HIGH-1:0] \u_high.mem_q[0] , \u_high.mem_q[1] , \u_high.mem_q[2] , \u_high.mem_q[3] , \u_high.mem_q[4] , \u_high.mem_q[5] , \u_high.mem_q[6] , \u_high.mem_q[7] , \u_high.mem_q[8] , \u_high.mem_q[9] , \u_high.mem_q[10] , \u_high.mem_q[11] , \u_high.mem_q[12] , \u_high.mem_q[13] , \u_high.mem_q[14] , \u_high.mem_q[15] , \u_high.mem_q[16] , \u_high.mem_q[17] , \u_high.mem_q[18] , \u_high.mem_q[19] , \u_high.mem_q[20] , \u_high.mem_q[21] , \u_high.mem_q[22] , \u_high.mem_q[23] , \u_high.mem_q[24] , \u_high.mem_q[25] , \u_high.mem_q[26] , \u_high.mem_q[27] , \u_high.mem_q[28] , \u_high.mem_q[29] , \u_high.mem_q[30] , \u_high.mem_q[31] ;
  reg [HIGH-1:0] f_word;
  always @* case (f_place)
      5'd0: f_word = \u_high.mem_q[0] ;
      5'd1: f_word = \u_high.mem_q[1] ;
      5'd2: f_word = \u_high.mem_q[2] ;
      5'd3: f_word = \u_high.mem_q[3] ;
      5'd4: f_word = \u_high.mem_q[4] ;
      5'd5: f_word = \u_high.mem_q[5] ;
      5'd6: f_word = \u_high.mem_q[6] ;
      5'd7: f_word = \u_high.mem_q[7] ;
      5'd8: f_word = \u_high.mem_q[8] ;
      5'd9: f_word = \u_high.mem_q[9] ;
      5'd10: f_word = \u_high.mem_q[10] ;
      5'd11: f_word = \u_high.mem_q[11] ;
      5'd12: f_word = \u_high.mem_q[12] ;
      5'd13: f_word = \u_high.mem_q[13] ;
      5'd14: f_word = \u_high.mem_q[14] ;
      5'd15: f_word = \u_high.mem_q[15] ;
      5'd16: f_word = \u_high.mem_q[16] ;
      5'd17: f_word = \u_high.mem_q[17] ;
      5'd18: f_word = \u_high.mem_q[18] ;
      5'd19: f_word = \u_high.mem_q[19] ;
      5'd20: f_word = \u_high.mem_q[20] ;
      5'd21: f_word = \u_high.mem_q[21] ;
      5'd22: f_word = \u_high.mem_q[22] ;
      5'd23: f_word = \u_high.mem_q[23] ;
      5'd24: f_word = \u_high.mem_q[24] ;
      5'd25: f_word = \u_high.mem_q[25] ;
      5'd26: f_word = \u_high.mem_q[26] ;
      5'd27: f_word = \u_high.mem_q[27] ;
      5'd28: f_word = \u_high.mem_q[28] ;
      5'd29: f_word = \u_high.mem_q[29] ;
      5'd30: f_word = \u_high.mem_q[30] ;
      5'd31: f_word = \u_high.mem_q[31] ;
    endcase
  wire [4:0] f_low = {bit_4[f_c], bit_3_q[f_c], bit_2_q[f_c], bit_1_q[f_c], bit_0_q[f_c]};
  wire f_shown = shown_q == f_place[LOW-1:0];
  // The first round of the adder after a reset makes zeros of the words.
  reg [5:0] f_edges = 6'd0;
  always @(posedge clk_i) f_edges <= !rst_ni ? 6'd0 : f_edges == 6'd40 ? 6'd40 : f_edges + 6'd1;
  wire f_begun = f_edges > {1'b0, f_c};
  wire [HIGH-1:0] f_high = f_shown ? high_q : f_word;
  wire [31:0] f_worth = f_beats ? 32'd1 << BEAT_LOG : 32'd1;
  reg [31:0] f_before = 32'd0;
  always @(posedge clk_i) f_before <= rst_ni ? f_total * f_worth : 32'd0;
  wire [31:0] f_sum = ({f_high, {LOW{1'b0}}} + (carry_q[f_c] ? f_worth << LOW : 32'd0)) + {27'd0, f_low} * f_worth;

  // Turns as they count from the first one: that at hand, the one shown, the one asked for.  Cycles since its turn.
  localparam [6:0] F_ALL = COUNTERS;
  wire [NUMBER_W-1:0] f_turn = number_q - FIRST, f_show = shown_q - FIRST, f_read = read_i[NUMBER_W-1:0] - FIRST;
  wire [6:0] f_past = {{(7 - NUMBER_W) {1'b0}}, f_turn} + F_ALL - {2'd0, f_c} - 7'd1, f_since = f_past >= F_ALL ? f_past - F_ALL : f_past;
  wire [6:0] f_ahead = {{(7 - NUMBER_W) {1'b0}}, f_read} + F_ALL - {{(7 - NUMBER_W) {1'b0}}, f_show};
  wire [6:0] f_far = f_ahead >= F_ALL ? f_ahead - F_ALL : f_ahead;
  wire [5:0] f_round = f_edges % COUNTERS;
  always @* assume ({{(7 - NUMBER_W) {1'b0}}, f_read} < F_ALL);
  reg [5:0] f_waits = 6'd0;
  reg [4:0] f_asked = 5'd0;
  always @(posedge clk_i) begin
    f_asked <= read_i;
    f_waits <= (!rst_ni || ready_o || f_edges == 0) ? 6'd0 : f_waits + 6'd1;
  end
  always @* if (f_started && f_waits != 0) assume (read_i == f_asked);


  wire f_runs = f_started && rst_ni;
  always @* if (f_runs) begin
    // P1 Nothing is lost: the parts of a counter are together the events that there were, each by its worth.
    p1: assert (!f_begun || f_sum == f_total * f_worth);
    p1_first: assert (f_begun || (!carry_q[f_c] && f_total <= {26'd0, f_edges} && {27'd0, f_low} == f_total));
    p1_carry: assert (!carry_q[f_c] || {2'd0, f_low} <= f_since);
    p1_multiple: assert (!f_begun || !f_beats || f_high[BEAT_LOG-1:0] == 0);
    p1_turn: assert (f_edges <= 40 && {2'd0, f_turn} < F_ALL && turn_q == 18'd1 << f_turn
        && (f_edges == 40 || f_turn == f_round) && first_q == (f_edges < COUNTERS));
    p1_shown: assert (f_edges == 0 || f_show == ((f_turn == 0) ? F_ALL - 7'd1 : f_turn - 7'd1));
    // P2 CYCLES counts the cycles with count_i.
    p2: assert (cycles_o == f_cycles);
    // P3 What is read when ready_o is high is the counter as it was a cycle ago.
    p3: assert (!(f_begun && ready_o && f_read == f_c) || value_o == f_before);
    p3_low: assert (!(f_shown && f_edges != 0) || beats_q == f_beats);
    // P4 A counter that is asked for has its turn within as many cycles as there are counters.
    p4: assert (f_waits < COUNTERS);
    p4_turn: assert (f_waits == 0 || f_waits + f_far < F_ALL);
  end
  always @* if (f_runs) c1: cover (f_begun && f_c == 5'd3 && ready_o && f_read == f_c && value_o > 16);
