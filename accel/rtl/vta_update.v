// Last three stages of COMPUTE: the new value of an accumulator entry from the old one and the GEMM sums or the ALU's
// operand.  Stages: R (the slot comes with its entry, read before), O (sums_i are its), U (the new value), W.
// Contract: an entry written by one of the four slots in front, which its read came too early to see, is forwarded, so
// any order of entries is exact.  A preparing slot (ahead_i) does not write; its operation follows in the next cycle.
// For a tensor operation it reads the source and fills the second operand.  SHR always has one, because its slow path must
// not start from the new value of the slot in front; CLIP's applies the lower bound.  MUL takes consecutive slots with
// group_i from 0 up, one for each lane group and one for the product of the last group, which writes (write_i).  sums_i is
// 0 for the ALU.
// Latency: a slot's entry number is on the write port two cycles after the slot, its new value three cycles after.
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

  reg valid_o_q, write_o_q, source_o_q, zero_o_q, add_o_q, compare_o_q, greater_o_q, shr_o_q, mul_o_q;
  reg valid_u_q, write_u_q;
  reg write_w_q;
  reg [1:0] rounding_o_q;
  reg [15:0] addr_o_q, addr_u_q, addr_w_q;
  reg [6:0] group_o_q;
  reg [4:0] amount_o_q;
  reg [31:0] imm_o_q;

  // the three slots in front write the entry; the nearest counts.  The fourth in front: late_q of a lane
  wire hit_o = write_o_q && addr_o_q == addr_i;
  wire hit_u = write_u_q && addr_u_q == addr_i;
  wire hit_w = write_w_q && addr_w_q == addr_i;
  // one cycle later: the new value (of MUL: that of the last group's lanes), the one that is written, the one written
  // before, else the entry read
  reg new_q, new_last_q;
  wire write = hit_o || hit_u;
  wire read = !hit_o && !hit_u && !hit_w && !turn;

  always @(posedge clk_i)
    if (!rst_ni) {valid_o_q, valid_u_q, write_o_q, write_u_q, write_w_q, source_o_q} <= 6'd0;
    else begin
      {valid_o_q, valid_u_q} <= {valid_i, valid_o_q};
      {write_o_q, write_u_q, write_w_q} <= {valid_i && write_i, write_o_q, write_u_q};
      source_o_q <= valid_i && is_source;
    end

  always @(posedge clk_i) begin
    if (valid_i) begin
      new_q       <= (hit_o && !mul_o_q && !turn) || (is_clip && !ahead_i);
      new_last_q  <= (hit_o && !turn) || (is_clip && !ahead_i);
      addr_o_q    <= addr_i;
      zero_o_q    <= is_mov && !ahead_i;
      add_o_q     <= !is_min && !is_max && !is_mul;
      compare_o_q <= is_min || is_max;
      greater_o_q <= is_max;
      shr_o_q     <= is_shr;
      mul_o_q     <= is_mul;
      group_o_q   <= group_i;
      rounding_o_q <= rounding_i;
      amount_o_q  <= (is_shr && use_imm_i) ? imm_i[4:0] : 5'd0;
      imm_o_q     <= (!by_imm || is_shr) ? 32'd0 : is_clip ? {{16{bound[15]}}, bound} : imm_i;
    end
    if (valid_o_q) addr_u_q <= addr_o_q;
    if (valid_u_q) addr_w_q <= addr_u_q;
  end

  // the second operand comes from the slot in front, or from the lanes of the next group
  wire turn_b = turn && !use_imm_i;
  wire second_en = (source_o_q && !shr_o_q) || turn_b;
  wire amount_en = source_o_q && shr_o_q;

  reg  [BLOCK_OUT*32-1:0] entry_q;
  wire [BLOCK_OUT*32-1:0] old;
  wire [BLOCK_OUT*32-1:0] second;
  reg  [BLOCK_OUT*32-1:0] result_q;
  reg  [BLOCK_OUT*32-1:0] written_q;
  wire [BLOCK_OUT*32-1:0] updated;
  // MUL: the products of the slot in front, 0 behind others, so that they can be joined with sums
  wire [OUT_LANES*32-1:0] product;

  assign we_o    = write_u_q;
  assign waddr_o = addr_u_q;
  assign wdata_o = result_q;

  genvar i;
  generate
    for (i = 0; i < BLOCK_OUT; i = i + 1) begin : g_lane
      localparam GROUP = i / OUT_LANES;
      // MUL: the slot that brings this lane's product
      localparam [31:0] BRINGS = GROUP + 1;
      wire [31:0] sum = {{(32 - SUM_W) {sums_i[i*SUM_W+SUM_W-1]}}, sums_i[i*SUM_W+:SUM_W]};
      wire [31:0] result = result_q[i*32+:32];
      wire [31:0] earlier;
      wire [31:0] other;

      // one register of these for all lanes would be far from most of them
      reg write_q, read_q, turn_q, turn_b_q, second_en_q, amount_en_q;
      (* keep *)
      always @(posedge clk_i)
        if (valid_i) begin
          {write_q, read_q, turn_q, turn_b_q} <= {write, read, turn, turn_b};
          {second_en_q, amount_en_q} <= {second_en, amount_en};
        end

      // what does not come late: the two registers behind, MUL's next group; of a MUL in front the groups before the last
      if (GROUP == GROUPS - 1) begin : g_last
        assign earlier = write_q ? result : written_q[i*32+:32];
        assign other = old[i*32+:32];
        wire unused_turn = &{1'b0, turn_q, turn_b_q};
      end else begin : g_turn
        assign earlier = turn_q ? old[(i+OUT_LANES)*32+:32] : write_q ? result : written_q[i*32+:32];
        assign other = turn_b_q ? second[(i+OUT_LANES)*32+:32] : old[i*32+:32];
      end

      vta_alu_lane u_lane (
          .clk_i     (clk_i),
          .en_i      (valid_o_q),
          .zero_i    (zero_o_q),
          .new_i     (GROUP == GROUPS - 1 ? new_last_q : new_q),
          .add_i     (add_o_q),
          .compare_i (compare_o_q),
          .greater_i (greater_o_q),
          .rounding_i(rounding_o_q),
          .amount_i  (amount_o_q | (old[i*32+:5] & {5{amount_en_q}})),
          .known_i   (read_q ? entry_q[i*32+:32] : earlier),
          .b_i       (sum | imm_o_q | (other & {32{second_en_q}})),
          .live_i    (valid_u_q),
          .times_i   (product[(i%OUT_LANES)*32+:32]),
          .old_o     (old[i*32+:32]),
          .second_o  (second[i*32+:32]),
          .result_o  (updated[i*32+:32])
      );

      // so would those that say what changes here, of the stage in front: MUL leaves group after group, the last one
      // writes; the fourth slot in front wrote the entry that is read
      reg takes_q, writes_q, late_q;
      (* keep *)
      always @(posedge clk_i) begin
        takes_q  <= valid_o_q && (!mul_o_q || group_o_q == BRINGS[6:0]);
        writes_q <= write_u_q;
        late_q   <= write_w_q && addr_w_q == next_i;
      end

      always @(posedge clk_i) begin
        if (valid_i) entry_q[i*32+:32] <= late_q ? written_q[i*32+:32] : acc_i[i*32+:32];
        if (takes_q) result_q[i*32+:32] <= updated[i*32+:32];
        if (writes_q) written_q[i*32+:32] <= result;
      end
    end

    for (i = 0; i < OUT_LANES; i = i + 1) begin : g_mul
      reg multiplies_q;
      (* keep *) always @(posedge clk_i) multiplies_q <= valid_o_q && mul_o_q && group_o_q != GROUPS[6:0];
      vta_alu_mul u_mul (
          .clk_i    (clk_i),
          .en_i     (multiplies_q),
          .a_i      (old[i*32+:32]),
          .b_i      (second[i*32+:32]),
          .product_o(product[i*32+:32])
      );
    end
  endgenerate
endmodule

`resetall
