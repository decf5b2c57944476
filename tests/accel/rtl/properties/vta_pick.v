// induction 1 WIDTH=5 WAYS=1 WAY_W=1
// induction 1 WIDTH=5 WAYS=2 WAY_W=1
// induction 1 WIDTH=5 WAYS=4 WAY_W=2
// induction 1 WIDTH=5 WAYS=8 WAY_W=3
// induction 1 WIDTH=3 WAYS=16 WAY_W=4
// cover 4 WIDTH=5 WAYS=8 WAY_W=3

  // The way that the last edge with en_i sampled.
  reg f_has = 1'b0;
  reg [WAY_W-1:0] f_way = 0;
  always @(posedge clk_i) if (en_i) {f_has, f_way} <= {1'b1, way_i};
  always @* assume (way_i < WAYS);

  wire [WIDTH-1:0] f_word = words_i >> f_way * WIDTH;
  always @* if (f_has) begin
    // P1 The word is that of the way which the last edge with en_i sampled, as it is now.
    p1: assert (word_o == f_word && f_way < WAYS);
  end
  generate
    if (WAYS < 4) begin : g_f_plain
      always @* if (f_has) p1_plain: assert (g_plain.way_q == f_way);
    end else begin : g_f_fours
      always @* if (f_has) p1_low: assert (g_fours.odd_q == f_way[0] && g_fours.upper_q == f_way[1] && g_fours.lower_q == !f_way[1]);
      if (WAYS > 4) begin : g_f_rest
        always @* if (f_has) p1_four: assert (g_fours.g_rest.four_q == f_way >> 2);
      end
    end
  endgenerate

  always @* c1: cover (f_has && f_way == 5 && !en_i);
