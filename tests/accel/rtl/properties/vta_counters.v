// induction 3
// induction 3 BEATS=21845 BEAT_LOG=4
// cover 40

  // A counter of the solver's choice and what it counts, an event's worth at a time.
  (* anyconst *) reg [3:0] f_c;
  wire f_event = count_i && event_i[f_c];
  wire f_beats = BEATS[f_c];
  reg [31:0] f_total = 32'd0, f_cycles = 32'd0;
  always @(posedge clk_i)
    if (!rst_ni) {f_total, f_cycles} <= 64'd0;
    else begin
      if (f_event) f_total <= f_total + 32'd1;
      if (count_i) f_cycles <= f_cycles + 32'd1;
    end

  // Its parts: four bits, a carry that waits, and the word in the memory, or the one that goes there next.
  (* hierconn *) wire [27:0] \u_high.mem_q[0] , \u_high.mem_q[1] , \u_high.mem_q[2] , \u_high.mem_q[3] , \u_high.mem_q[4] , \u_high.mem_q[5] , \u_high.mem_q[6] , \u_high.mem_q[7] , \u_high.mem_q[8] , \u_high.mem_q[9] , \u_high.mem_q[10] , \u_high.mem_q[11] , \u_high.mem_q[12] , \u_high.mem_q[13] , \u_high.mem_q[14] , \u_high.mem_q[15] ;
  reg [27:0] f_word;
  always @* case (f_c)
      4'd0: f_word = \u_high.mem_q[0] ;
      4'd1: f_word = \u_high.mem_q[1] ;
      4'd2: f_word = \u_high.mem_q[2] ;
      4'd3: f_word = \u_high.mem_q[3] ;
      4'd4: f_word = \u_high.mem_q[4] ;
      4'd5: f_word = \u_high.mem_q[5] ;
      4'd6: f_word = \u_high.mem_q[6] ;
      4'd7: f_word = \u_high.mem_q[7] ;
      4'd8: f_word = \u_high.mem_q[8] ;
      4'd9: f_word = \u_high.mem_q[9] ;
      4'd10: f_word = \u_high.mem_q[10] ;
      4'd11: f_word = \u_high.mem_q[11] ;
      4'd12: f_word = \u_high.mem_q[12] ;
      4'd13: f_word = \u_high.mem_q[13] ;
      4'd14: f_word = \u_high.mem_q[14] ;
      4'd15: f_word = \u_high.mem_q[15] ;
  endcase
  wire [3:0] f_low = {bit_3_q[f_c], bit_2_q[f_c], bit_1_q[f_c], bit_0_q[f_c]};
  wire f_shown = shown_q == f_c;
  // The first round of the adder after a reset makes zeros of the words.
  reg [5:0] f_edges = 6'd0;
  always @(posedge clk_i) f_edges <= !rst_ni ? 6'd0 : f_edges == 6'd40 ? 6'd40 : f_edges + 6'd1;
  wire f_begun = f_edges > {2'd0, f_c};
  wire [27:0] f_high = f_shown ? high_q : f_word;
  wire [31:0] f_worth = f_beats ? 32'd1 << BEAT_LOG : 32'd1;
  reg [31:0] f_before = 32'd0;
  always @(posedge clk_i) f_before <= rst_ni ? f_total * f_worth : 32'd0;
  wire [31:0] f_sum = ({f_high, 4'd0} + (carry_q[f_c] ? f_worth << 4 : 32'd0)) + {28'd0, f_low} * f_worth;

  // Cycles since its turn.
  wire [3:0] f_since = number_q - f_c - 4'd1;
  wire [3:0] f_far = read_i - shown_q;
  reg [4:0] f_waits = 5'd0;
  reg [3:0] f_asked = 4'd0;
  always @(posedge clk_i) begin
    f_asked <= read_i;
    f_waits <= (!rst_ni || ready_o || f_edges == 0) ? 5'd0 : f_waits + 5'd1;
  end
  always @* if (f_started && f_waits != 0) assume (read_i == f_asked);


  wire f_runs = f_started && rst_ni;
  always @* if (f_runs) begin
    // P1 Nothing is lost: the parts of a counter are together the events that there were, each by its worth.
    p1: assert (!f_begun || f_sum == f_total * f_worth);
    p1_first: assert (f_begun || (!carry_q[f_c] && f_total <= {26'd0, f_edges} && {28'd0, f_low} == f_total));
    p1_carry: assert (!carry_q[f_c] || f_low <= f_since);
    p1_multiple: assert (!f_begun || !f_beats || f_high[BEAT_LOG-1:0] == 0);
    p1_turn: assert (f_edges <= 40 && turn_q == 16'd1 << number_q && (f_edges == 40 || number_q == f_edges[3:0]) && first_q == (f_edges < 16));
    p1_shown: assert (f_edges == 0 || shown_q == number_q - 4'd1);
    // P2 CYCLES counts the cycles with count_i.
    p2: assert (cycles_o == f_cycles);
    // P3 What is read when ready_o is high is the counter as it was a cycle ago.
    p3: assert (!(f_begun && ready_o && read_i == f_c) || value_o == f_before);
    p3_low: assert (!(f_shown && f_edges != 0) || beats_q == f_beats);
    // P4 A counter that is asked for has its turn within 16 cycles.
    p4: assert (f_waits < 5'd16);
    p4_turn: assert (f_waits == 0 || f_waits + {1'b0, f_far} <= 5'd15);
  end
  always @* if (f_runs) c1: cover (f_begun && f_c == 4'd3 && ready_o && read_i == f_c && value_o > 16);
