// induction 1

  wire signed [9:0] f_inp = {{2{inp_i[7]}}, inp_i};
  always @* begin
    // P1 Three times the input, whatever the digit.
    p1: assert ($signed(three_o) == 3 * f_inp);
    // P2 The upper digit's two and three times: two and three without a sign, minus two and minus one with one.
    p2: assert ($signed(top_two_o) == (low_i ? 2 * f_inp : -2 * f_inp));
    p2_three: assert ($signed(top_three_o) == (low_i ? 3 * f_inp : -f_inp));
  end
