// induction 6 slow
// cover 20
// abstract: b_square = b_u_q * b_u_q; => b_square = $anyseq;
// abstract: times = c_u_q * columns; => times = $anyseq;
// abstract: <= c_x_q * inverse; => <= $anyseq;
// abstract: <= z_q * gain_q; => <= $anyseq;

  // A lane that has moved for a while, with an instruction and a row that hold; its products are any numbers of their sizes, so that
  // rounding, shifts and clips are proven apart from the multipliers.
  localparam F_W = 72;
  wire [101:0] f_holds = {softmax_i, inp_zero_i, columns_i, shift_i, half_i, zero_point_i, c_drop_i, c_down_i, c_top_i, b_top_i};
  reg [101:0] f_held;
  always @(posedge clk_i) f_held <= f_holds;
  always @* begin
    assume (!f_started || f_holds == f_held);
    // what vta_row and vta_row_inverse give
    assume (shift_i <= 35 && half_i == (36'd1 << shift_i) >> 1 && (!softmax_i || shift_i == 0) && c_drop_i <= 14);
    assume (softmax_i ? $signed(c_down_i) >= -15 && $signed(c_down_i) <= 59 : c_down_i <= 31);
    // a mantissa of 12 bits, or an element of 18, times an inverse of 17; a z of 18 bits times a gain of 16
    assume (softmax_i ? m_q >= 0 && m_q < 36'sh2000_0000 : m_q >= -36'sh4_0000_0000 && m_q < 36'sh4_0000_0000);
    assume (scaled_q > -34'sh1_0000_0000 && scaled_q <= 34'sh1_0000_0000);
  end
  reg [4:0] f_age = 5'd0;
  always @(posedge clk_i) f_age <= !en_i ? 5'd0 : (f_age != 5'd31) ? f_age + 5'd1 : f_age;

  // v over two to the power of n, to the nearest number, halves up
  function signed [F_W-1:0] f_rounded;
    input signed [F_W-1:0] v;
    input [6:0] n;
    reg signed [F_W-1:0] f_floor, f_rest;
    begin
      f_floor   = v >>> n;
      f_rest    = v - (f_floor <<< n);
      f_rounded = f_floor + ((n != 0 && 2 * f_rest >= ({{(F_W - 1) {1'b0}}, 1'b1} <<< n)) ? 1 : 0);
    end
  endfunction
  function signed [F_W-1:0] f_between;
    input signed [F_W-1:0] v, low, high;
    f_between = v < low ? low : v > high ? high : v;
  endfunction

  // Stage 4: what is multiplied, and how far the product is shifted.
  wire signed [F_W-1:0] f_full = c_full_q, f_m = m_q, f_z = f_z_8, f_scaled = scaled_q, f_bias = $signed(bias_q), f_zero = $signed(zero_point_i);
  reg [17:0] f_x;
  reg signed [8:0] f_down_4, f_down_5, f_down_6, f_down_7;
  wire signed [8:0] f_less = $signed(c_down_i) - $signed({5'd0, c_exponent_q});
  // Stage 8: the product rounded, 9: z; 10 to 13: the result.
  reg signed [F_W-1:0] f_m_6, f_m_7, f_z_8, f_z_9, f_sum_10, f_sum_11, f_value_12, f_bias_10;
  reg [7:0] f_byte_13;
  wire signed [F_W-1:0] f_sum = f_scaled + f_bias_10;
  wire signed [F_W-1:0] f_end = f_between(f_value_12 + f_zero, -128, 127);
  // An element's count, in the stages that it passes.
  reg f_c_1, f_c_2, f_b_1, f_b_2;
  reg signed [F_W-1:0] f_rounded_4;
  wire signed [F_W-1:0] f_rounded_full = f_rounded(f_full, {3'd0, c_drop_i});
  always @(posedge clk_i) begin
    f_x <= softmax_i ? {6'd0, c_mantissa_q} : f_rounded_full[17:0];
    f_down_4 <= !softmax_i ? $signed({1'b0, c_down_i}) : f_less < 0 ? 9'sd0 : f_less;
    {f_down_7, f_down_6, f_down_5} <= {f_down_6, f_down_5, f_down_4};
    {f_m_7, f_m_6} <= {f_m_6, f_m};
    f_z_8 <= f_rounded(f_m_7, f_down_7[6:0]);
    f_z_9 <= f_between(f_z_8, -131071, 131071);
    f_bias_10 <= f_bias;
    f_sum_11 <= f_sum;
    f_value_12 <= f_rounded(f_sum_11, {1'b0, shift_i});
    f_byte_13 <= f_end[7:0];
    {f_c_2, f_c_1, f_b_2, f_b_1} <= {f_c_1, c_counts_i, f_b_1, b_counts_i};
  end
  reg [15:0] f_entry_c, f_entry_b;
  reg [26:0] f_b_value;
  reg [8:0] f_b_part, f_b_u_1;
  reg signed [8:0] f_b_u_2;
  reg [47:0] f_word;
  reg [7:0] f_dist_b, f_dist_c;
  always @(posedge clk_i) begin
    f_entry_c <= f_c_2 ? c_word_i[15:0] : 16'd0;
    f_b_u_2 <= f_b_u_1;
    f_b_u_1 <= {b_data_i[7], b_data_i} - {inp_zero_i[7], inp_zero_i};
    f_b_part <= f_b_2 ? f_b_u_2 : 9'd0;
    f_b_value <= !f_b_2 ? 27'd0 : softmax_i ? {15'd0, b_entry_i[11:0]} << b_entry_i[15:12] : {10'd0, b_square_q};
    f_word <= softmax_i ? 48'd1 : c_word_i;
    {f_dist_b, f_dist_c} <= {b_top_i - b_data_i, c_top_i - c_data_i};
  end

  always @* if (f_started && f_age >= 16) begin
    // P1 An element of a norm loses its lowest bits by rounding half up, and all above 18; a softmax's is its mantissa.
    p1: assert (c_x_q == f_x);
    // P2 A product is rounded half up, of a softmax by the row's bits less the element's exponent, none if that is below 0.
    p2: assert (shifted_q == f_z_8);
    p2_down: assert (c_down_7_q == (f_down_7 > 31 ? 31 : f_down_7));
    // P3 It is then between -131071 and 131071.
    p3: assert (z_q == f_z_9);
    // P4 The result is the product with the gain and the bias, rounded half up, and the zero point, between -128 and 127.
    p4: assert (byte_o == f_byte_13);
    // P5 Of a softmax the gain is 1 and the bias 0, of a norm those that were looked up.
    p5: assert ({bias_q, gain_q} == f_word);
    // P6 An element that does not count has mantissa 0, and adds nothing to a row's sums.
    p6: assert ({c_exponent_q, c_mantissa_q} == f_entry_c);
    p6_sums: assert (b_value_o == f_b_value && b_part_o == f_b_part);
    // P7 An entry is looked up by the distance from the row's maximum.
    p7: assert (b_dist_o == f_dist_b && c_dist_o == f_dist_c);
  end

  // P8 A lane that does not move gives what it gave.
  reg f_rests = 1'b0;
  reg [59:0] f_given;
  wire [59:0] f_gives = {b_dist_o, b_value_o, b_part_o, c_dist_o, byte_o};
  always @(posedge clk_i) {f_rests, f_given} <= {!en_i, f_gives};
  always @* if (f_started) p8: assert (!f_rests || f_gives == f_given);

  always @* if (f_started && f_age >= 16) begin
    c1: cover (!softmax_i && byte_o == 8'd77 && shift_i == 9 && z_q < 0);
    c2: cover (softmax_i && byte_o == 8'd77 && c_down_i == 20 && c_down_7_q == 9);
  end
