  // Memories begin alike; users keep apart per bank and cycle, and OUTPUT reads groups that an entry has.
  wire [BLOCK_OUT*32-1:0] c_a, c_b;
  wire [OUT_LANES*32-1:0] o_a, o_b;
  wire [BLOCK_OUT*8-1:0] r_a, r_b;
  wire [2:0] read_a, read_b;
  wire [3:0] write_a, write_b;
  vta_acc_mem_fabric #(BLOCK_OUT, ACC_DEPTH, ACC_BANKS, OUT_LANES, BEAT_W, BEAT_ADDR_W, ROW) u_fabric (
      .*, .c_rdata_o(c_a), .o_rdata_o(o_a), .r_rdata_o(r_a), .clash_read_o(read_a), .clash_write_o(write_a));
  vta_acc_mem_fast #(BLOCK_OUT, ACC_DEPTH, ACC_BANKS, OUT_LANES, BEAT_W, BEAT_ADDR_W, ROW) u_fast (
      .*, .c_rdata_o(c_b), .o_rdata_o(o_b), .r_rdata_o(r_b), .clash_read_o(read_b), .clash_write_o(write_b));

  reg met = 1'b0, reads = 1'b0, read_1 = 1'b0, read = 1'b0, row_1 = 1'b0, row = 1'b0;
  always @(posedge clk_i) begin
    met    <= met || read_a != 3'd0 || write_a != 4'd0;
    reads  <= c_re_i;
    read_1 <= read_1 || o_re_i;
    read   <= read_1;
    row_1  <= row_1 || (ROW != 0 && r_re_i);
    row    <= row_1;
  end
  always @* assume ({26'd0, o_rgroup_i} < BLOCK_OUT / OUT_LANES);
  always @* if (!met) begin
    assert (read_a == read_b && write_a == write_b);
    if (reads) assert (c_a == c_b);
    if (read) assert (o_a == o_b);
    if (row) assert (r_a == r_b);
  end
