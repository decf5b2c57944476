  // Memories begin alike; a pair of beats lies in one row.
  wire [ELEM_W-1:0] a, b;
  vta_wgt_mem_fabric #(BEAT_W, WGT_BITS, FACTORS, ELEM_W, DEPTH, BEAT_ADDR_W) u_fabric (.*, .elem_o(a));
  vta_wgt_mem_fast #(BEAT_W, WGT_BITS, FACTORS, ELEM_W, DEPTH, BEAT_ADDR_W) u_fast (.*, .elem_o(b));

  reg read = 1'b0;
  always @(posedge clk_i) read <= read || re_i;
  always @* if (read) assert (a == b);
