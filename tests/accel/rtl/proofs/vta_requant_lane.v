  // Enables of a slot follow one another, up to the stage where the first slot of form add ends.
  wire [7:0] a, b, next_a, next_b;
  vta_requant_lane_fabric #(MULTIPLIER_BITS) u_fabric (.*, .result_d_o(next_a), .result_o(a));
  vta_requant_lane_fast #(MULTIPLIER_BITS) u_fast (.*, .result_d_o(next_b), .result_o(b));

  reg [7:1] came = 7'd0;
  reg live = 1'b0;
  always @(posedge clk_i) begin
    came <= en_i;
    live <= en_i[7];
  end
  always @* begin
    assume ((en_i[7:2] & ~came[6:1]) == 6'd0);
    if (live) assert (a == b);
    if (en_i[7]) assert (next_a == next_b);
  end
