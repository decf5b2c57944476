// induction 1
// cover 2

  // Assumed: the multiples are those of the same input, for a weight with a sign or without.
  (* anyseq *) wire f_low;
  wire [9:0] f_three, f_top_two, f_top_three;
  vta_multiples f_multiples (
      .inp_i(inp_i), .low_i(f_low), .three_o(f_three), .top_two_o(f_top_two), .top_three_o(f_top_three));
  always @* assume (three_i == f_three && top_two_i == f_top_two && top_three_i == f_top_three);
  wire signed [11:0] f_inp = {{4{inp_i[7]}}, inp_i};
  wire signed [11:0] f_wgt = {{8{wgt_i[3] && !f_low}}, wgt_i};
  always @* begin
    // P1 The product of any int8 input and any 4-bit weight, with a sign or without, is exact.
    p1: assert ($signed(product_o) == f_inp * f_wgt);
    c1: cover (product_o == 12'd1024);
    c2: cover (f_low && f_wgt == 15 && f_inp == -128);
  end
