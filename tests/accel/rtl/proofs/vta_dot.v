  // A sum counts four edges behind its operands.  Without taps the choice among weights is 0; a maximum has no products.
  wire [$clog2(BLOCK_IN)+15:0] a, b;
  vta_dot_fabric #(BLOCK_IN, WGT_BITS, DSP_PRODUCTS) u_fabric (.*, .sum_o(a));
  vta_dot_fast #(BLOCK_IN, WGT_BITS, DSP_PRODUCTS) u_fast (.*, .sum_o(b));

  reg [3:0] live = 4'd0;
  reg [5:0] choice;
  always @(posedge clk_i) begin
    live   <= {live[2:0], en_i};
    choice <= {group_i, rotate_i};
  end
  always @* begin
    assume (taps_i || choice == 6'd0);
    assume (zero_i || !max_i);
    if (live[3]) assert (a == b);
  end
