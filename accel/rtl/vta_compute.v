// COMPUTE unit: GEMM and ALU in one pipeline of seven stages, one slot a cycle, no bubble between instructions.
// Stages: 0 micro-op read, 1 index add and range check, 2 inp and wgt read, 3 operand register, 4 products and sums
// of four, 5 sum and acc read, 6 update; the entry is written at the edge that ends stage 6.
// Contract: an entry written at an edge is forwarded to a read at the same edge, so any order of entries is exact.
// Latency: a slot in stage 0 during a cycle has its entry written at the seventh edge from the start of that cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_compute #(
    // Sizes of the configuration
    parameter BLOCK_IN  = 4,
    parameter BLOCK_OUT = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS  = 8,
    parameter INP_DEPTH = 1024,
    parameter WGT_DEPTH = 1024,
    parameter ACC_DEPTH = 1024,
    parameter OUT_LANES = 2,
    // Bytes of a line of INP
    parameter LINE      = 16
) (
    input  wire                            clk_i,
    input  wire                            rst_ni,
    input  wire                            stop_i,
    // head of the queue; start_i pops it
    input  wire                            head_valid_i,
    input  wire [                   255:0] insn_i,
    input  wire [                    31:0] index_i,
    output wire                            want_o,
    input  wire                            start_i,
    // scratchpad reads
    output wire                            uop_re_o,
    output wire [                    15:0] uop_raddr_o,
    input  wire [                    63:0] uop_i,
    output wire                            operand_re_o,
    output wire                            inp_window_o,
    output wire [                    15:0] inp_raddr_o,
    input  wire [          BLOCK_IN*8-1:0] inp_i,
    input  wire [       4*BLOCK_OUT*8-1:0] taps_i,
    output wire [                    15:0] wgt_raddr_o,
    input  wire [BLOCK_IN*BLOCK_OUT*WGT_BITS-1:0] wgt_i,
    output wire                            acc_re_o,
    output wire [                    15:0] acc_raddr_o,
    input  wire [        BLOCK_OUT*32-1:0] acc_i,
    // accumulator write
    output wire                            acc_we_o,
    output wire [                    15:0] acc_waddr_o,
    output wire [        BLOCK_OUT*32-1:0] acc_wdata_o,
    // tokens of a finished instruction
    output wire                            give_o,
    output wire [                    15:0] set_o,
    output wire [                    31:0] done_index_o,
    output wire                            idle_o,
    // a micro-op leaves stage 0
    output wire                            gemm_uop_o,
    output wire                            alu_uop_o,
    // instruction that touches the accumulator, and faults
    output wire [                    31:0] read_index_o,
    output wire                            fault_o,
    output wire [                    31:0] fault_index_o
);
  localparam SUM_W = $clog2(BLOCK_IN) + 16;
  localparam MUL_SLOTS = BLOCK_OUT / OUT_LANES;
  // entries of a line of INP and of an output block; groups of four taps in an entry of WGT
  localparam INP_LANES = BLOCK_IN * WGT_BITS / 8;
  localparam LINE_LOG = $clog2(LINE / INP_LANES);
  localparam PART = (BLOCK_OUT > INP_LANES) ? BLOCK_OUT / INP_LANES : 1;
  localparam [15:0] PART_MASK = PART[15:0] - 16'd1;
  localparam GROUPS_LOG = $clog2(BLOCK_IN / `VTA_TAPS);
  localparam [31:0] LINES = INP_DEPTH / (LINE / INP_LANES);
  // what a slot carries to stage 6: last slot of micro-op and instruction, operation, rounding, group, imm, set
  localparam TAIL_W = 2 + 4 + 1 + 2 + 6 + 32 + 16;

  // stage 0
  wire        active;
  wire        slot_valid;
  wire        walk_ready;
  wire        exec_0;
  wire        uop_last;
  wire        insn_last;
  wire        is_alu_0;
  wire        overwrite_0;
  wire [ 1:0] mode_0;
  wire [ 1:0] nibble_0;
  wire        use_imm_0;
  wire [ 3:0] alu_op_0;
  wire [ 1:0] rounding_0;
  wire [ 5:0] group_0;
  wire [31:0] imm_0;
  wire [15:0] set_0;
  wire [31:0] index_0;
  wire [15:0] dst_0;
  wire [15:0] src_0;
  wire [15:0] wgt_0;

  vta_uop_walk #(
      .MUL_SLOTS(MUL_SLOTS)
  ) u_walk (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .stop_i      (stop_i),
      .ready_o     (walk_ready),
      .start_i     (start_i),
      .insn_i      (insn_i),
      .index_i     (index_i),
      .active_o    (active),
      .slot_valid_o(slot_valid),
      .uop_o       (uop_raddr_o),
      .dst_offset_o(dst_0),
      .src_offset_o(src_0),
      .wgt_offset_o(wgt_0),
      .slot_exec_o (exec_0),
      .slot_group_o(group_0),
      .uop_last_o  (uop_last),
      .insn_last_o (insn_last),
      .is_alu_o    (is_alu_0),
      .overwrite_o (overwrite_0),
      .mode_o      (mode_0),
      .nibble_o    (nibble_0),
      .alu_op_o    (alu_op_0),
      .use_imm_o   (use_imm_0),
      .rounding_o  (rounding_0),
      .imm_o       (imm_0),
      .set_o       (set_0),
      .index_o     (index_0)
  );

  assign want_o     = head_valid_i && walk_ready && !stop_i;
  assign uop_re_o   = slot_valid;
  assign gemm_uop_o = slot_valid && uop_last && !is_alu_0;
  assign alu_uop_o  = slot_valid && uop_last && is_alu_0;

  reg valid_1_q, valid_2_q, valid_3_q, valid_4_q, valid_5_q, valid_6_q;
  reg alu_1_q, alu_2_q, alu_3_q, alu_4_q, alu_5_q, alu_6_q;
  reg exec_1_q, exec_2_q, exec_3_q, exec_4_q, exec_5_q, exec_6_q;
  reg keep_2_q, keep_3_q, keep_4_q, keep_5_q, keep_6_q;
  reg [TAIL_W-1:0] tail_1_q, tail_2_q, tail_3_q, tail_4_q, tail_5_q, tail_6_q;
  reg [31:0] index_1_q, index_2_q, index_3_q, index_4_q, index_5_q, index_6_q;
  reg [15:0] dst_1_q, dst_2_q, dst_3_q, dst_4_q, dst_5_q, dst_6_q;
  reg [15:0] src_1_q, src_2_q, src_3_q, src_4_q, src_5_q;
  reg [15:0] wgt_1_q, wgt_2_q;
  reg overwrite_1_q;
  // GEMM's mode; group of weights or mask of taps; memory that holds the first line
  reg [1:0] mode_1_q, mode_2_q, mode_3_q, mode_4_q, mode_5_q;
  // 4-bit weights: without sign, sum times 16
  reg [1:0] nibble_1_q, nibble_2_q, nibble_3_q, nibble_4_q, nibble_5_q;
  reg max_6_q;
  reg [3:0] tap_2_q, tap_3_q, mask_4_q;
  reg [1:0] ram_3_q;
  reg use_imm_1_q;

  // stage 1: dst_1_q and so on hold the loops' part of the index
  wire [15:0] dst_1 = uop_i[`VTA_UOP_DST] + dst_1_q;
  wire [15:0] src_1 = uop_i[`VTA_UOP_SRC] + src_1_q;
  wire [15:0] wgt_1 = uop_i[`VTA_UOP_WGT] + wgt_1_q;
  wire [31:0] src_depth = alu_1_q ? ACC_DEPTH : INP_DEPTH;
  wire        src_used = !alu_1_q || !use_imm_1_q;
  wire        is_taps_1 = mode_1_q == `VTA_GEMMMODE_TAPS;
  wire        is_max_1 = mode_1_q == `VTA_GEMMMODE_MAX;
  wire        window_1 = is_taps_1 || is_max_1;
  // the second entry of an operand
  wire        second_1 = WGT_BITS == 4 && mode_1_q == `VTA_GEMMMODE_MATMUL && !alu_1_q;
  wire [15:0] entry_1 = is_taps_1 ? wgt_1 >> GROUPS_LOG : wgt_1;
  wire [ 1:0] last_tap_1 = (is_taps_1 || wgt_1[3]) ? 2'd3 : wgt_1[2] ? 2'd2 : {1'b0, wgt_1[1]};
  wire [31:0] last_line_1 = {16'd0, src_1 >> LINE_LOG} + {30'd0, last_tap_1};
  wire        window_bad_1 = window_1 && (last_line_1 >= LINES || |(src_1 & PART_MASK));
  wire        wgt_bad_1 = is_max_1 ? |wgt_1[15:4] || ~|wgt_1[3:0] : {16'd0, entry_1} >= WGT_DEPTH;
  wire        bad_1 = {16'd0, dst_1} >= ACC_DEPTH || (src_used && {16'd0, src_1} + {31'd0, second_1} >= src_depth)
      || (!alu_1_q && wgt_bad_1) || window_bad_1;

  assign fault_o       = valid_1_q && bad_1 && !stop_i;
  assign fault_index_o = index_1_q;
  assign operand_re_o  = valid_2_q && !alu_2_q;
  assign inp_window_o  = mode_2_q == `VTA_GEMMMODE_TAPS || mode_2_q == `VTA_GEMMMODE_MAX;
  assign inp_raddr_o   = src_2_q;
  assign wgt_raddr_o   = wgt_2_q;
  assign acc_re_o      = valid_5_q;
  assign acc_raddr_o   = exec_5_q ? dst_5_q : src_5_q;
  assign read_index_o  = index_5_q;

  wire [15:0] line_2 = src_2_q >> LINE_LOG;
  wire [ 7:0] turned_3 = {tap_3_q, tap_3_q} << ram_3_q;
  wire        is_max_5 = mode_5_q == `VTA_GEMMMODE_MAX;

  always @(posedge clk_i)
    if (!rst_ni) begin
      {valid_1_q, valid_2_q, valid_3_q, valid_4_q, valid_5_q, valid_6_q} <= 6'd0;
    end else begin
      valid_1_q <= slot_valid;
      valid_2_q <= valid_1_q && !bad_1;
      valid_3_q <= valid_2_q;
      valid_4_q <= valid_3_q;
      valid_5_q <= valid_4_q;
      valid_6_q <= valid_5_q;
    end

  always @(posedge clk_i) begin
    if (slot_valid) begin
      tail_1_q      <= {uop_last, insn_last, alu_op_0, use_imm_0, rounding_0, group_0, imm_0, set_0};
      alu_1_q       <= is_alu_0;
      exec_1_q      <= exec_0;
      index_1_q     <= index_0;
      dst_1_q       <= dst_0;
      src_1_q       <= src_0;
      wgt_1_q       <= wgt_0;
      overwrite_1_q <= overwrite_0;
      mode_1_q      <= mode_0;
      nibble_1_q    <= nibble_0;
      use_imm_1_q   <= use_imm_0;
    end
    if (valid_1_q) begin
      {tail_2_q, alu_2_q, exec_2_q, index_2_q} <= {tail_1_q, alu_1_q, exec_1_q, index_1_q};
      {dst_2_q, src_2_q, wgt_2_q} <= {dst_1, src_1, entry_1};
      {mode_2_q, nibble_2_q, tap_2_q} <= {mode_1_q, nibble_1_q, wgt_1[3:0]};
      keep_2_q <= !(overwrite_1_q && uop_i[`VTA_UOP_FIRST]);
    end
    if (valid_2_q) begin
      {tail_3_q, alu_3_q, exec_3_q, index_3_q} <= {tail_2_q, alu_2_q, exec_2_q, index_2_q};
      {dst_3_q, src_3_q, keep_3_q} <= {dst_2_q, src_2_q, keep_2_q};
      {mode_3_q, nibble_3_q, tap_3_q, ram_3_q} <= {mode_2_q, nibble_2_q, tap_2_q, line_2[1:0]};
    end
    if (valid_3_q) begin
      {tail_4_q, alu_4_q, exec_4_q, index_4_q} <= {tail_3_q, alu_3_q, exec_3_q, index_3_q};
      {dst_4_q, src_4_q, keep_4_q} <= {dst_3_q, src_3_q, keep_3_q};
      {mode_4_q, nibble_4_q, mask_4_q} <= {mode_3_q, nibble_3_q, turned_3[7:4]};
    end
    if (valid_4_q) begin
      {tail_5_q, alu_5_q, exec_5_q, index_5_q} <= {tail_4_q, alu_4_q, exec_4_q, index_4_q};
      {dst_5_q, src_5_q, keep_5_q} <= {dst_4_q, src_4_q, keep_4_q};
      {mode_5_q, nibble_5_q} <= {mode_4_q, nibble_4_q};
    end
    if (valid_5_q) begin
      {tail_6_q, alu_6_q, exec_6_q, index_6_q} <= {tail_5_q, alu_5_q || is_max_5, exec_5_q, index_5_q};
      max_6_q <= is_max_5;
      {dst_6_q, keep_6_q} <= {dst_5_q, keep_5_q};
    end
  end

  // stages 3 to 5: dot products, one module a lane
  reg  [     BLOCK_IN*8-1:0] inp_q;
  wire [BLOCK_OUT*SUM_W-1:0] sums;
  wire [                2:0] dot_en = {valid_5_q && !alu_5_q, valid_4_q && !alu_4_q, valid_3_q && !alu_3_q};
  // mode entry: the second entry of an operand is left out
  wire [     BLOCK_IN*8-1:0] entry_3;
  generate
    if (WGT_BITS == 4) begin : g_first
      assign entry_3 = {{(INP_LANES * 8) {1'b0}}, inp_i[INP_LANES*8-1:0]};
    end else begin : g_all
      assign entry_3 = inp_i;
    end
  endgenerate
  // taps of a lane side by side, in the order of the memories that they come from
  reg  [ BLOCK_OUT*32-1:0] taps_q;
  wire [ BLOCK_OUT*32-1:0] taps;
  always @(posedge clk_i)
    if (dot_en[0]) begin
      if (mode_3_q == `VTA_GEMMMODE_MATMUL) inp_q <= inp_i;
      else if (mode_3_q == `VTA_GEMMMODE_ENTRY) inp_q <= entry_3;
      else taps_q <= taps;
    end

  genvar i, t;
  generate
    for (i = 0; i < BLOCK_OUT; i = i + 1) begin : g_dot
      for (t = 0; t < `VTA_TAPS; t = t + 1) begin : g_tap
        assign taps[i*32+t*8+:8] = taps_i[(t*BLOCK_OUT+i)*8+:8];
      end

      vta_dot #(
          .BLOCK_IN(BLOCK_IN),
          .WGT_BITS(WGT_BITS)
      ) u_dot (
          .clk_i   (clk_i),
          .en_i    (dot_en),
          .taps_i  (mode_3_q == `VTA_GEMMMODE_TAPS),
          .group_i (tap_3_q),
          .rotate_i(ram_3_q),
          .wgt_i   (wgt_i[i*BLOCK_IN*WGT_BITS+:BLOCK_IN*WGT_BITS]),
          .taps_1_i(mode_4_q == `VTA_GEMMMODE_TAPS),
          .max_1_i (mode_4_q == `VTA_GEMMMODE_MAX),
          .mask_i  (mask_4_q),
          .low_1_i (nibble_4_q == `VTA_NIBBLE_LOW),
          .inp_i   (inp_q),
          .tap_i   (taps_q[i*32+:32]),
          .max_2_i (is_max_5),
          .high_2_i(nibble_5_q == `VTA_NIBBLE_HIGH),
          .sum_o   (sums[i*SUM_W+:SUM_W])
      );
    end
  endgenerate

  // stage 6
  wire        uop_last_6;
  wire        insn_last_6;
  wire [ 3:0] op_6;
  wire        use_imm_6;
  wire [ 1:0] rounding_6;
  wire [ 5:0] group_6;
  wire [31:0] imm_6;
  assign {uop_last_6, insn_last_6, op_6, use_imm_6, rounding_6, group_6, imm_6, set_o} = tail_6_q;

  vta_update #(
      .BLOCK_OUT(BLOCK_OUT),
      .OUT_LANES(OUT_LANES),
      .SUM_W    (SUM_W)
  ) u_update (
      .clk_i        (clk_i),
      .read_i       (valid_5_q),
      .raddr_i      (acc_raddr_o),
      .acc_i        (acc_i),
      .source_i     (valid_6_q && !exec_6_q),
      .is_alu_i     (alu_6_q),
      .is_mul_i     (valid_6_q && exec_6_q && alu_6_q && op_6 == `VTA_ALUOP_MUL),
      .is_max_i     (max_6_q),
      .keep_i       (keep_6_q),
      .op_i         (op_6),
      .rounding_i   (rounding_6),
      .group_i      (group_6),
      .use_imm_i    (use_imm_6),
      .imm_i        (imm_6),
      .sums_i       (sums),
      .write_i      (acc_we_o),
      .waddr_i      (dst_6_q),
      .wdata_o      (acc_wdata_o)
  );

  assign acc_we_o     = valid_6_q && exec_6_q && uop_last_6;
  assign acc_waddr_o  = dst_6_q;
  assign give_o       = valid_6_q && insn_last_6 && !stop_i;
  assign done_index_o = index_6_q;
  assign idle_o       = !active && !(valid_1_q || valid_2_q || valid_3_q || valid_4_q || valid_5_q || valid_6_q);

  wire unused = &{1'b0, uop_i, line_2, turned_3};
endmodule

`resetall
