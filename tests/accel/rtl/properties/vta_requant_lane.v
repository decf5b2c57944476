// induction 4 MULTIPLIER_BITS=8 slow
// cover 8 MULTIPLIER_BITS=8
// abstract: product_q <= operand_x * multiplier_x; => product_q <= $anyseq;

  // A slot of the solver's choice in a pipeline that moves for as long, form scale or pass; its product is any number, so
  // that rounding, zero point and clip are proven apart from the multiplier.
  wire f_moves = en_i == 7'h7f && !keep_i && kept_q == 0;
  localparam F_W = 112;
  reg [4:0] f_valid = 5'd0;
  // Behind stage 4: the sum and the shift; two edges later what they round to.
  wire signed [F_W-1:0] f_sum = {{(F_W - P_W) {total_q[P_W-1]}}, total_q};
  reg signed [F_W-1:0] f_sum_5, f_rounded_6;
  reg [5:0] f_shift_5;
  reg [7:0] f_result_7;
  wire signed [F_W-1:0] f_floor = f_sum_5 >>> f_shift_5;
  wire signed [F_W-1:0] f_rest = f_sum_5 - (f_floor <<< f_shift_5);
  wire signed [F_W-1:0] f_half = (f_shift_5 == 0) ? 0 : {{(F_W - 1) {1'b0}}, 1'b1} <<< (f_shift_5 - 6'd1);
  wire f_tie = f_shift_5 != 0 && f_rest == f_half, f_above = f_shift_5 != 0 && f_rest > f_half;
  wire f_up = rounding_i == `VTA_ROUNDING_HALF_UP ? f_tie || f_above : rounding_i == `VTA_ROUNDING_HALF_EVEN ? f_above || (f_tie && f_floor[0])
      : rounding_i == `VTA_ROUNDING_HALF_AWAY ? f_above || (f_tie && f_sum_5 >= 0) : 1'b0;
  wire signed [F_W-1:0] f_moved = f_rounded_6 + $signed({{(F_W - 8) {zero_point_i[7]}}, zero_point_i});
  wire signed [F_W-1:0] f_low = {{(F_W - 8) {clip_lo_i[7]}}, clip_lo_i}, f_high = {{(F_W - 8) {clip_hi_i[7]}}, clip_hi_i};
  always @(posedge clk_i) begin
    f_valid <= rst_ni && f_moves ? {f_valid[3:0], 1'b1} : 5'd0;
    {f_sum_5, f_shift_5} <= {f_sum, shift_4_q};
    f_rounded_6 <= f_floor + {{(F_W - 1) {1'b0}}, f_up};
    f_result_7 <= f_moved < f_low ? clip_lo_i : f_moved > f_high ? clip_hi_i : f_moved[7:0];
  end
  // Shifts of 62 and more give what 62 gives.
  always @* assume (shift_4_q <= 62);
  always @* if (f_started && rst_ni && f_valid[4]) begin
    // P1 The result is the sum over two to the shift, rounded as the mode says, plus the zero point, between the bounds.
    p1: assert (result_q == f_result_7);
  end

  // P2 A stage without a slot keeps what it holds.
  reg [7:1] f_en;
  reg [40+M_W:0] f_held_1;
  reg [37+M_W:0] f_held_2;
  reg [P_W+5:0] f_held_3, f_held_4;
  reg [P_W-1:0] f_kept;
  reg [30:0] f_held_5;
  reg [11:0] f_held_6;
  reg [7:0] f_held_7;
  always @(posedge clk_i) begin
    f_en     <= rst_ni ? en_i : 7'h7f;
    f_held_1 <= {addend_q, narrow_q, multiplier_1_q, shift_1_q};
    f_held_2 <= {operand_q, multiplier_2_q, shift_2_q};
    f_held_3 <= {product_q, shift_3_q};
    f_held_4 <= {total_q, shift_4_q};
    f_kept   <= kept_q;
    f_held_5 <= {sticky_q, beyond_q, window_q, sign_q, shift_5_q};
    f_held_6 <= {round_up_q, floor_q};
    f_held_7 <= result_q;
  end
  always @* if (f_started) begin
    p2_1: assert (f_en[1] || {addend_q, narrow_q, multiplier_1_q, shift_1_q} == f_held_1);
    p2_2: assert (f_en[2] || {operand_q, multiplier_2_q, shift_2_q} == f_held_2);
    p2_3: assert (f_en[3] || {product_q, shift_3_q} == f_held_3);
    p2_4: assert (f_en[4] || ({total_q, shift_4_q} == f_held_4 && kept_q == f_kept));
    p2_5: assert (f_en[5] || {sticky_q, beyond_q, window_q, sign_q, shift_5_q} == f_held_5);
    p2_6: assert (f_en[6] || {round_up_q, floor_q} == f_held_6);
    p2_7: assert (f_en[7] || result_q == f_held_7);
  end
  always @* if (f_started && rst_ni && f_valid[4]) begin
    c1: cover (result_q == 8'h80 && f_rounded_6 < -1000);
    c2: cover (f_tie && f_sum_5 < 0 && rounding_i == `VTA_ROUNDING_HALF_AWAY && f_shift_5 > 8);
  end
