// induction 2 MAX=1
// induction 2 MAX=6
// cover 10 MAX=3

  // Assumed: its contract.
  always @* if (rst_ni) begin
    assume (!(add_i && full_o));
    assume (!(sub_i && !any_o));
  end

  // What was added less what was subtracted, wider than any count that the module could hold.
  reg [15:0] f_count = 16'd0;
  always @(posedge clk_i) f_count <= !rst_ni ? 16'd0 : f_count + {15'd0, add_i} - {15'd0, sub_i};

  always @* if (f_started) begin
    // P1 The count is what was added less what was subtracted.
    p1: assert ({{(16 - W) {1'b0}}, count_q} == f_count);
    // P2 The count never passes MAX.
    p2: assert (f_count <= MAX);
    // P3 any_o is high exactly while something is under way.
    p3: assert (any_o == (f_count != 0));
    // P4 one_o is high exactly while one is under way.
    p4: assert (one_o == (f_count == 1));
    // P5 full_o is high exactly while MAX are under way.
    p5: assert (full_o == (f_count == MAX));
  end

  always @* if (f_started) begin
    c1: cover (full_o && sub_i);
    c2: cover (f_count == 0 && f_was_full);
  end
  reg f_was_full = 1'b0;
  always @(posedge clk_i) f_was_full <= rst_ni && (f_was_full || full_o);
