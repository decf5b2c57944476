// induction 1
// cover 50

  // Assumed: the unit moves from the first row's load on, and its instruction holds. What is there before belongs to none.
  reg f_loaded = 1'b0;
  reg f_softmax;
  reg [6:0] f_shift;
  reg [14:0] f_columns;
  always @(posedge clk_i) begin
    if (load_i) f_loaded <= 1'b1;
    f_softmax <= softmax_i;
    f_shift   <= shift_i;
    f_columns <= columns_i;
  end
  always @* begin
    assume (en_i);
    if (f_loaded) assume (softmax_i == f_softmax && shift_i == f_shift && columns_i == f_columns);
  end
  wire f_here = f_loaded;

  // Normalised: a bit of the solver's choice in front of it.
  (* anyconst *) reg [5:0] f_bit_at;
  always @* assume (f_bit_at < W);
  reg f_bit;
  wire [5:0] f_begin = softmax_i ? 6'd2 : 6'd26;
  wire [5:0] f_end = softmax_i ? 6'd8 : 6'd31;
  wire [W-1:0] x_d = softmax_i ? (x_q == 0 ? {{W - 1{1'b0}}, 1'b1} : x_q) : (x[W-1:4] == 0 ? {{W - 5{1'b0}}, 5'd16} : x_q);
  always @(posedge clk_i) if (step_q + 6'd1 == f_begin) f_bit <= x_d[f_bit_at];
  wire [6:0] f_bit_now = {1'b0, f_bit_at} + {1'b0, left_q};
  wire f_normalising = f_here && step_q >= f_begin;
  wire [5:0] f_turns = step_q >= f_end ? f_end - f_begin : step_q - f_begin;
  wire f_norm_done = f_here && step_q >= f_end;
  always @* if (f_here && step_q < f_begin) p1_whole: assert (left_q == 0);
  always @* if (f_normalising) begin
    // P1 A number is shifted to the left until its highest bit is the highest of 50, of norms that or the one below it, by
    //   an even number, and no bit of it is lost.
    p1: assert (f_bit_now < W ? x_q[f_bit_now[5:0]] == f_bit : !f_bit);
    p1_zeros: assert ((x_q & ~({W{1'b1}} << left_q)) == 0);
    p1_some: assert (x_q != 0);
    p1_even: assert (softmax_i || !left_q[0]);
    p1_done: assert (!f_norm_done || (softmax_i ? x_q[W-1] : |x_q[W-1:W-2]));
    // by turns of 32, 16, 8, 4, 2, 1
    p1_turns: assert (f_turns < 1 || |x_q[W-1-:32]);
    p1_turns_2: assert (f_turns < 2 || |x_q[W-1-:16]);
    p1_turns_3: assert (f_turns < 3 || |x_q[W-1-:8]);
    p1_turns_4: assert (f_turns < 4 || |x_q[W-1-:4]);
    p1_turns_5: assert (f_turns < 5 || |x_q[W-1-:2]);
    p1_left: assert (left_q <= (f_turns == 0 ? 0 : f_turns == 1 ? 32 : f_turns == 2 ? 48 : 49));
  end

  // Trials that are over, and the number that is divided as far as it has been taken.
  wire [5:0] f_trials = step_q < f_end ? 6'd0 : softmax_i ? (step_q > 24 ? 6'd17 : step_q - 6'd8) : (step_q > 46 ? 6'd16 : step_q - 6'd31);
  wire [47:0] f_taken = softmax_i ? (48'd1 << (6'd15 + f_trials)) - 48'd1 : (48'd1 << (6'd14 + {f_trials[4:0], 1'b0})) - 48'd1;
  // Of norms r r m, digit by digit: (2 r + b)^2 m = 4 r r m + 4 b r m + b m, for a digit b.
  reg [47:0] f_rrm;
  always @(posedge clk_i)
    if (load_i) f_rrm <= 48'd0;
    else if (divides) f_rrm <= {f_rrm[45:0], 2'd0} + (fits ? {14'd0, rm_q, 2'd0} + {32'd0, m} : 48'd0);
  always @* if (f_here) begin
    // P2 r of a softmax is the quotient of the highest bits of 2^32 - 1 and m: what is left is less than m.
    p2: assert (!softmax_i || {16'd0, rm_q} + {12'd0, rem_q} == f_taken);
    p2_rest: assert (!softmax_i || f_trials == 0 || rem_q < {20'd0, m});
    // P3 r of a norm is the largest number whose square times m is at most the highest bits of 2^46 - 1: what is left is
    //   less than one more would take.
    p3: assert (softmax_i || f_rrm + {12'd0, rem_q} == f_taken);
    p3_rest: assert (softmax_i || f_trials == 0 || {1'b0, rem_q} < {4'd0, rm_q, 1'b0} + {21'd0, m});
    // what they rest on
    p2_product: assert ({16'd0, rm_q} + 48'h10000 <= 48'd1 << (6'd16 + f_trials));
    p2_digits: assert ({16'd0, r_q} < 33'd1 << f_trials);
    p2_begin: assert (f_trials != 0 || (r_q == 0 && rm_q == 0 && f_rrm == 0 && rem_q == (softmax_i ? 36'h7fff : 36'h3fff)));
  end

  // P4 What a norm squares to take it off is the size of the sum that it took, whatever its sign.
  reg f_taken_now = 1'b0;
  reg signed [23:0] f_sum;
  always @(posedge clk_i) {f_taken_now, f_sum} <= {load_i, sum_i[22], sum_i};
  always @* if (f_taken_now) p4: assert ({1'b0, s_q} == (f_sum < 0 ? -f_sum : f_sum) && s_bits_q == s_q);

  // P5 r stays from its last digit on, until the next load.
  reg f_over = 1'b0;
  reg [16:0] f_r;
  always @(posedge clk_i) {f_over, f_r} <= {f_loaded && !load_i && step_q > (softmax_i ? 6'd24 : 6'd46), r_q};
  always @* if (f_here) p5: assert (!f_over || r_q == f_r);

  always @* if (f_here) begin
    c1: cover (step_q == 6'd47 && !softmax_i && r_q[15:0] == 16'hb504);
    c2: cover (step_q == 6'd41 && softmax_i && r_q == 17'h10001 && left_q == 6'd20);
  end
