// induction 2 slow
// cover 4 slow

  // Assumed: the contract of stage O, and that products come to slots of MUL alone.
  wire f_shifts = amount_i != 0;
  always @* begin
    assume (!(add_i && compare_i) && !(greater_i && !compare_i));
    assume (!f_shifts || (add_i && !zero_i && !new_i && b_i == 0));
    assume (!(zero_i && new_i));
    assume (!f_slot || f_mul || times_i == 0);
    assume (live_i == f_slot);
  end

  // The slot that was in stage O a cycle ago, as the instruction set has it.
  reg f_slot = 1'b0;
  reg f_add, f_compare, f_greater, f_mul;
  reg [1:0] f_rounding;
  reg [4:0] f_amount;
  reg signed [31:0] f_a, f_b;
  always @(posedge clk_i) begin
    f_slot <= en_i;
    {f_add, f_compare, f_greater, f_mul} <= {add_i, compare_i, greater_i, !add_i && !compare_i};
    {f_rounding, f_amount} <= {rounding_i, amount_i};
    f_a <= zero_i ? 32'd0 : new_i ? result_o : known_i;
    f_b <= b_i;
  end
  wire signed [32:0] f_wide = f_a;
  wire signed [32:0] f_half = f_amount == 0 ? 33'd0 : 33'd1 <<< (f_amount - 5'd1);
  wire signed [32:0] f_up = (f_wide + f_half) >>> f_amount, f_away = -((f_half - f_wide) >>> f_amount);
  wire signed [32:0] f_dropped = f_wide & ((33'd1 << f_amount) - 33'd1);
  wire signed [32:0] f_even = f_up - {32'd0, f_amount != 0 && f_dropped == f_half && f_up[0]};
  wire signed [32:0] f_floor = f_wide >>> f_amount;
  wire signed [32:0] f_shifted = f_rounding == `VTA_ROUNDING_HALF_UP ? f_up : f_rounding == `VTA_ROUNDING_HALF_EVEN ? f_even
      : f_rounding == `VTA_ROUNDING_FLOOR ? f_floor : f_a < 0 ? f_away : f_up;

  always @* if (f_started && f_slot) begin
    // P1 MOV and ADD, and what GEMM adds: the sum of the old value, or of none, and the second operand, modulo two to the 32.
    p1: assert (!(f_add && f_amount == 0) || result_o == f_a + f_b);
    // P2 SHR: the old value over two to the amount, 0 to 31, rounded as the mode says.
    p2: assert (!(f_add && f_b == 0) || result_o == f_shifted[31:0]);
    // P3 MIN and MAX, and each bound of CLIP: the smaller or the larger of the two, both signed.
    p3: assert (!(f_compare && !f_greater) || result_o == (f_a < f_b ? f_a : f_b));
    p3_max: assert (!(f_compare && f_greater) || result_o == (f_a > f_b ? f_a : f_b));
    // P4 MUL: what the multiplier brings.
    p4: assert (!f_mul || result_o == times_i);
    // P5 The operands of a slot that does not shift are shown as they are.
    p5: assert (f_amount != 0 || (old_o == f_a && second_o == f_b));
  end
  // P6 A lane without a slot keeps its operands.
  reg [63:0] f_shown;
  always @(posedge clk_i) f_shown <= {old_o, second_o};
  always @* if (f_started && !f_slot) p6: assert ({old_o, second_o} == f_shown);

  always @* if (f_started && f_slot) begin
    c1: cover (f_amount == 17 && f_rounding == `VTA_ROUNDING_HALF_EVEN && f_dropped == f_half && f_a < 0);
    c2: cover (f_compare && f_greater && f_a < 0 && f_b > 0);
    c3: cover (f_mul && result_o == 32'd7);
  end
