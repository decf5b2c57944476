  // Slots come as COMPUTE makes them: those ahead of an operation and MUL's groups at once one behind the other.
  wire we_a, we_b;
  wire [15:0] waddr_a, waddr_b;
  wire [BLOCK_OUT*32-1:0] wdata_a, wdata_b;
  vta_update_fabric #(BLOCK_OUT, OUT_LANES, SUM_W) u_fabric (.*, .we_o(we_a), .waddr_o(waddr_a), .wdata_o(wdata_a));
  vta_update_fast #(BLOCK_OUT, OUT_LANES, SUM_W) u_fast (.*, .we_o(we_b), .waddr_o(waddr_b), .wdata_o(wdata_b));

  localparam [6:0] LAST = BLOCK_OUT / OUT_LANES;
  wire mul = valid_i && is_alu_i && op_i == `VTA_ALUOP_MUL && !ahead_i;
  wire paired = is_alu_i && (!use_imm_i || op_i == `VTA_ALUOP_SHR || op_i == `VTA_ALUOP_CLIP);

  // the slot before
  reg ahead = 1'b0, mul_more = 1'b0, wrote = 1'b0, is_alu = 1'b0;
  reg [3:0] op;
  reg [1:0] rounding;
  reg [6:0] group;
  reg use_imm;
  reg [31:0] imm;
  reg [15:0] addr, next;
  always @(posedge clk_i) begin
    ahead    <= valid_i && ahead_i;
    mul_more <= mul && group_i != LAST;
    is_alu   <= valid_i && is_alu_i;
    wrote    <= we_a;
    next     <= next_i;
    {op, rounding, group, use_imm, imm, addr} <= {op_i, rounding_i, group_i, use_imm_i, imm_i, addr_i};
  end
  wire follows = ahead || mul_more;
  always @* begin
    assume (rst_ni);
    assume (op_i <= `VTA_ALUOP_CLIP);
    assume (!is_alu || sums_i == {BLOCK_OUT * SUM_W{1'b0}});
    if (follows) assume (valid_i && is_alu_i && !ahead_i && {op_i, rounding_i, use_imm_i, imm_i} == {op, rounding, use_imm, imm});
    if (mul_more) assume (addr_i == addr && group_i == group + 7'd1);
    if (valid_i) begin
      assume (addr_i == next);
      assume (!ahead_i || (paired && !write_i));
      assume (!paired || ahead_i || follows);
      if (!mul_more) assume (group_i == 7'd0);
      if (mul) assume (write_i == (group_i == LAST));
    end
    assert (we_a == we_b);
    if (we_a) assert (waddr_a == waddr_b);
    if (wrote) assert (wdata_a == wdata_b);
  end
