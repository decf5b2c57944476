// induction 2 slow
// cover 3

  // The operands of the cycle before: one a power of two of the solver's choice, the other anything.
  (* anyconst *) reg [4:0] f_place;
  reg f_en, f_a_one, f_b_one;
  reg [31:0] f_a, f_b;
  always @(posedge clk_i) {f_en, f_a, f_b, f_a_one, f_b_one} <= {en_i, a_i, b_i, a_i == 32'd1 << f_place, b_i == 32'd1 << f_place};

  always @* if (f_started) begin
    // P1 One edge behind a power of two and any other operand their product is there, whichever of them comes first.
    p1: assert (!(f_en && f_a_one) || product_o == f_b << f_place);
    p1_second: assert (!(f_en && f_b_one) || product_o == f_a << f_place);
    // P2 The product is 0 behind a cycle without en_i.
    p2: assert (f_en || product_o == 0);
  end
  always @* if (f_started) c1: cover (f_en && product_o == 32'd35 && f_a == 7);
