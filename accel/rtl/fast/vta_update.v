// Last three stages of COMPUTE for simulation: the module of the same name, which says what it does, for all lanes at once.
// Contract: as the synthesised form.  A slot's operation selects once what is computed for all lanes, side by side, which a
// compiler vectorises; SHR shifts by the whole amount where the result is computed.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_update #(
    // Lanes of an entry
    parameter BLOCK_OUT = 4,
    // Multipliers of MUL
    parameter OUT_LANES = 2,
    // Width of a GEMM sum, 18 to 31
    parameter SUM_W     = 18
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    // entry of the slot that comes next, being read
    input  wire [               15:0] next_i,
    // stage R
    input  wire                       valid_i,
    input  wire [               15:0] addr_i,
    input  wire                       write_i,
    input  wire                       ahead_i,
    input  wire                       is_alu_i,
    input  wire                       is_max_i,  // GEMM's maximum
    input  wire                       keep_i,    // GEMM: the old value counts
    input  wire [                3:0] op_i,
    input  wire [                1:0] rounding_i,
    input  wire [                6:0] group_i,
    input  wire                       use_imm_i,
    input  wire [               31:0] imm_i,
    input  wire [   BLOCK_OUT*32-1:0] acc_i,
    // stage O
    input  wire [BLOCK_OUT*SUM_W-1:0] sums_i,
    // stage U
    output wire                       we_o,
    output wire [               15:0] waddr_o,
    // stage W
    output wire [   BLOCK_OUT*32-1:0] wdata_o
);
  localparam [31:0] GROUPS = BLOCK_OUT / OUT_LANES;
  localparam ENTRY_W = BLOCK_OUT * 32;
  localparam GROUP_W = OUT_LANES * 32;

  function automatic [ENTRY_W-1:0] sums;
    input [ENTRY_W-1:0] a, b;
    integer i;
    for (i = 0; i < BLOCK_OUT; i = i + 1) sums[i*32+:32] = a[i*32+:32] + b[i*32+:32];
  endfunction

  function automatic [ENTRY_W-1:0] extremes;
    input [ENTRY_W-1:0] a, b;
    input greatest;
    integer i;
    for (i = 0; i < BLOCK_OUT; i = i + 1)
      extremes[i*32+:32] = (($signed(a[i*32+:32]) < $signed(b[i*32+:32])) != greatest) ? a[i*32+:32] : b[i*32+:32];
  endfunction

  // floor, and one more where the dropped bits, moved up against the left, ask for it
  function automatic [31:0] shifted;
    input [31:0] a;
    input [4:0] amount;
    input [1:0] rounding;
    reg [31:0] floor, dropped;
    reg up;
    begin
      floor = $signed(a) >>> amount;
      dropped = (amount == 5'd0) ? 32'd0 : a << (5'd0 - amount);
      case (rounding)
        `VTA_ROUNDING_HALF_UP: up = dropped[31];
        `VTA_ROUNDING_HALF_EVEN: up = dropped[31] && (|dropped[30:0] || floor[0]);
        `VTA_ROUNDING_HALF_AWAY: up = dropped[31] && (|dropped[30:0] || !a[31]);
        default: up = 1'b0;
      endcase
      shifted = floor + {31'd0, up};
    end
  endfunction

  function automatic [ENTRY_W-1:0] shifts;
    input [ENTRY_W-1:0] a, amounts;
    input [1:0] rounding;
    integer i;
    for (i = 0; i < BLOCK_OUT; i = i + 1) shifts[i*32+:32] = shifted(a[i*32+:32], amounts[i*32+:5], rounding);
  endfunction

  // stage R: what the slot does, and where its old value comes from
  localparam [15:0] ZERO = `VTA_ALUOPS_ZERO;
  localparam [15:0] COMPARE = `VTA_ALUOPS_COMPARE;
  localparam [15:0] GREATER = `VTA_ALUOPS_GREATER;
  localparam [15:0] SHIFT = `VTA_ALUOPS_SHIFT;
  localparam [15:0] PRODUCT = `VTA_ALUOPS_PRODUCT;
  localparam [15:0] BOUNDS = `VTA_ALUOPS_BOUNDS;
  wire        is_mul = is_alu_i && PRODUCT[op_i];
  wire        is_shr = is_alu_i && SHIFT[op_i];
  wire        is_clip = is_alu_i && BOUNDS[op_i];
  wire        is_max = is_alu_i ? GREATER[op_i] || (is_clip && ahead_i) : is_max_i && keep_i;
  wire        is_min = is_alu_i && COMPARE[op_i] && !is_max;
  wire        is_mov = is_alu_i ? ZERO[op_i] : !keep_i;
  wire        is_source = ahead_i && !use_imm_i;
  wire        by_imm = is_alu_i && use_imm_i;
  // the lower bound of CLIP, then the upper one, or the lower one again if that is above it: the result is the same
  wire        crossed = $signed(imm_i[15:0]) < $signed(imm_i[31:16]);
  wire [15:0] bound = (ahead_i || crossed) ? imm_i[31:16] : imm_i[15:0];
  // MUL: groups behind the first one move down to the lanes that have a multiplier
  wire        turn = is_mul && !ahead_i && group_i != 7'd0;

  reg valid_o_q, write_o_q, source_o_q, zero_o_q, compare_o_q, greater_o_q, shr_o_q, mul_o_q, alu_o_q;
  reg valid_u_q, write_u_q, compare_u_q, greater_u_q, shr_u_q, mul_u_q;
  reg write_w_q;
  reg [1:0] rounding_o_q, rounding_u_q;
  reg [15:0] addr_o_q, addr_u_q, addr_w_q;
  reg [6:0] group_o_q, group_u_q;
  reg [31:0] imm_o_q;

  // where the old value comes from: the slot in front (of MUL: the last group's lanes), what it wrote, what was written
  // before, MUL's next group, or else the entry that was read
  wire hit_o = write_o_q && addr_o_q == addr_i;
  wire hit_u = write_u_q && addr_u_q == addr_i;
  wire hit_w = write_w_q && addr_w_q == addr_i;
  reg new_q, new_last_q, write_q, read_q, turn_q, turn_b_q, source_q, late_q;

  always @(posedge clk_i)
    if (!rst_ni) {valid_o_q, valid_u_q, write_o_q, write_u_q, write_w_q, source_o_q} <= 6'd0;
    else begin
      {valid_o_q, valid_u_q} <= {valid_i, valid_o_q};
      {write_o_q, write_u_q, write_w_q} <= {valid_i && write_i, write_o_q, write_u_q};
      source_o_q <= valid_i && is_source;
    end

  always @(posedge clk_i) begin
    late_q <= write_w_q && addr_w_q == next_i;
    if (valid_i) begin
      new_q       <= (hit_o && !mul_o_q && !turn) || (is_clip && !ahead_i);
      new_last_q  <= (hit_o && !turn) || (is_clip && !ahead_i);
      write_q     <= hit_o || hit_u;
      read_q      <= !hit_o && !hit_u && !hit_w && !turn;
      turn_q      <= turn;
      turn_b_q    <= turn && !use_imm_i;
      source_q    <= source_o_q;
      addr_o_q    <= addr_i;
      zero_o_q    <= is_mov && !ahead_i;
      compare_o_q <= is_min || is_max;
      greater_o_q <= is_max;
      shr_o_q     <= is_shr;
      mul_o_q     <= is_mul;
      alu_o_q     <= is_alu_i;
      group_o_q   <= group_i;
      rounding_o_q <= rounding_i;
      imm_o_q     <= is_shr ? {27'd0, use_imm_i ? imm_i[4:0] : 5'd0} : !by_imm ? 32'd0 : is_clip ? {{16{bound[15]}}, bound} : imm_i;
    end
    if (valid_o_q) begin
      {compare_u_q, greater_u_q, shr_u_q, mul_u_q} <= {compare_o_q, greater_o_q, shr_o_q, mul_o_q};
      {rounding_u_q, group_u_q, addr_u_q} <= {rounding_o_q, group_o_q, addr_o_q};
    end
    if (valid_u_q) addr_w_q <= addr_u_q;
  end

  reg [ENTRY_W-1:0] entry_q, old_q, second_q, result_q, written_q;
  wire [GROUP_W-1:0] product;

  // stage O: the old value and the second operand; of SHR the amounts
  wire [ENTRY_W-1:0] wide;
  genvar g;
  generate
    for (g = 0; g < BLOCK_OUT; g = g + 1) begin : g_wide
      assign wide[g*32+:32] = {{(32 - SUM_W) {sums_i[g*SUM_W+SUM_W-1]}}, sums_i[g*SUM_W+:SUM_W]};
    end
  endgenerate

  // stage U: the new value.  Nothing is found where there is no slot.
  reg [ENTRY_W-1:0] updated;
  always @* begin
    if (valid_u_q) begin
      if (mul_u_q) updated = {GROUPS{product}};
      else if (shr_u_q) updated = shifts(old_q, second_q, rounding_u_q);
      else if (compare_u_q) updated = extremes(old_q, second_q, greater_u_q);
      else updated = sums(old_q, second_q);
    end else updated = `VTA_DONT_CARE(ENTRY_W);
  end

  always @(posedge clk_i)
    if (valid_o_q) begin
      if (zero_o_q) old_q <= {ENTRY_W{1'b0}};
      else if (new_q) old_q <= updated;
      else begin
        if (turn_q) old_q <= old_q >> GROUP_W;
        else if (read_q) old_q <= entry_q;
        else if (write_q) old_q <= result_q;
        else old_q <= written_q;
        if (new_last_q) old_q[ENTRY_W-1:ENTRY_W-GROUP_W] <= updated[ENTRY_W-1:ENTRY_W-GROUP_W];
      end
      if (!alu_o_q) second_q <= wide;
      else if (turn_b_q) second_q <= second_q >> GROUP_W;
      else if (source_q) second_q <= old_q;
      else second_q <= {BLOCK_OUT{imm_o_q}};
    end

  wire multiplies = valid_u_q && mul_u_q && group_u_q != GROUPS[6:0];
  generate
    for (g = 0; g < OUT_LANES; g = g + 1) begin : g_mul
      vta_alu_mul u_mul (
          .clk_i    (clk_i),
          .en_i     (multiplies),
          .a_i      (old_q[g*32+:32]),
          .b_i      (second_q[g*32+:32]),
          .product_o(product[g*32+:32])
      );
    end
  endgenerate

  // stage W
  integer n;
  always @(posedge clk_i) begin
    if (valid_i) begin
      if (late_q) entry_q <= written_q;
      else entry_q <= acc_i;
    end
    if (write_w_q) written_q <= result_q;
    if (valid_u_q && !mul_u_q) result_q <= updated;
    if (valid_u_q && mul_u_q)
      for (n = 0; n < GROUPS; n = n + 1)
        if (group_u_q == n[6:0] + 7'd1) result_q[n*GROUP_W+:GROUP_W] <= product;
  end

  assign we_o    = write_u_q;
  assign waddr_o = addr_u_q;
  assign wdata_o = result_q;
endmodule

`resetall
