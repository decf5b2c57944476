// COMPUTE unit: GEMM and ALU in one pipeline of eleven stages, one slot a cycle, no bubble between instructions.
// Stages: 0 micro-op read, 1 index add, 2 range check, inp and wgt read, 3 their registers, 4 the lanes' operands, 5
// products, 6 sums of two and acc read, 7 the lanes' sums, 8 old values, 9 update, 10 write; the entry is written at the
// edge that ends stage 10.  What is read has a stage for its way to the lanes, and sums have one for theirs to ACC.
// Contract: an entry that a slot in stages 7 to 10 will write is forwarded, so any order of entries is exact.  An index
// outside is reported from stage 3, and its slot goes no further; slots behind it may still write until stop_i.
// Latency: a slot in stage 0 during a cycle has its entry written at the eleventh edge from the start of that cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_compute #(
    // Sizes of the configuration
    parameter BLOCK_IN     = 4,
    parameter BLOCK_OUT    = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS     = 8,
    parameter INP_DEPTH    = 1024,
    parameter WGT_DEPTH    = 1024,
    parameter ACC_DEPTH    = 1024,
    parameter UOP_DEPTH    = 65536,
    parameter OUT_LANES    = 2,
    // Bytes of a line of INP
    parameter LINE         = 16,
    // Products of a lane that multiplier blocks make, LUTs the others: at least 4; BLOCK_IN or more are all of them
    parameter DSP_PRODUCTS = 64
) (
    input  wire                            clk_i,
    input  wire                            rst_ni,
    input  wire                            stop_i,
    // head of the queue; start_i pops it
    input  wire                            head_valid_i,
    input  wire [                   255:0] insn_i,
    input  wire [                     3:0] once_i,  // see vta_once
    input  wire [                    31:0] index_i,
    output wire                            want_o,
    input  wire                            start_i,
    // scratchpad reads
    output wire                            uop_re_o,
    output wire [                    15:0] uop_raddr_o,
    input  wire [                    63:0] uop_i,
    output wire                            inp_re_o,
    output wire                            inp_window_o,
    output wire [                    15:0] inp_raddr_o,
    input  wire [          BLOCK_IN*8-1:0] inp_i,
    input  wire [       4*BLOCK_OUT*8-1:0] taps_i,
    output wire                            wgt_re_o,
    output wire [                    15:0] wgt_raddr_o,
    input  wire [BLOCK_IN*BLOCK_OUT*WGT_BITS-1:0] wgt_i,
    output wire                            acc_re_o,
    output wire [                    15:0] acc_raddr_o,
    input  wire [        BLOCK_OUT*32-1:0] acc_i,
    // accumulator write, from registers, its data a cycle later
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
  localparam MUL_SLOTS = BLOCK_OUT / OUT_LANES + 1;
  // parts of a line of INP, of an entry, of an output block; groups of four taps in an entry of WGT
  localparam INP_LANES = BLOCK_IN * WGT_BITS / 8;
  localparam PART_B = (INP_LANES > BLOCK_OUT) ? BLOCK_OUT : INP_LANES;
  localparam LINE_LOG = $clog2(LINE / PART_B);
  localparam PART = BLOCK_OUT / PART_B;
  localparam [0:0] SPLIT = INP_LANES > PART_B;
  localparam [15:0] PART_MASK = PART[15:0] - 16'd1;
  localparam GROUPS_LOG = $clog2(BLOCK_IN / `VTA_TAPS);
  localparam [31:0] LINES = INP_DEPTH / (LINE / INP_LANES);
  // what a slot carries to stage 7: operation, rounding, group, imm; and to stage 10: last slot of the instruction, set, index
  localparam TAIL_W = 4 + 1 + 2 + 7 + 32;
  localparam DONE_W = 1 + 16 + 32;

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
  wire [ 6:0] group_0;
  wire [31:0] imm_0;
  wire [15:0] set_0;
  wire [31:0] index_0;
  wire [15:0] dst_0;
  wire [15:0] src_0;
  wire [15:0] wgt_0;

  localparam UOP_W = $clog2(UOP_DEPTH);
  wire [UOP_W-1:0] uop_0;
  wire [16:0] uop_wide = {{(17 - UOP_W) {1'b0}}, uop_0};
  assign uop_raddr_o = uop_wide[15:0];

  vta_uop_walk #(
      .MUL_SLOTS(MUL_SLOTS),
      .UOP_W    (UOP_W)
  ) u_walk (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .stop_i      (stop_i),
      .ready_o     (walk_ready),
      .start_i     (start_i),
      .insn_i      (insn_i),
      .once_i      (once_i),
      .index_i     (index_i),
      .active_o    (active),
      .slot_valid_o(slot_valid),
      .uop_o       (uop_0),
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

  assign want_o     = head_valid_i && walk_ready;
  assign uop_re_o   = slot_valid;
  assign gemm_uop_o = slot_valid && uop_last && !is_alu_0;
  assign alu_uop_o  = slot_valid && uop_last && is_alu_0;

  reg valid_1_q, valid_2_q, valid_3_q, valid_4_q, valid_5_q, valid_6_q, valid_7_q, valid_8_q, valid_9_q;
  reg alu_1_q, alu_2_q, alu_3_q, alu_4_q, alu_5_q, alu_6_q, alu_7_q;
  reg exec_1_q, exec_2_q, exec_3_q, exec_4_q, exec_5_q, exec_6_q, exec_7_q;
  reg write_1_q, write_2_q, write_3_q, write_4_q, write_5_q, write_6_q, write_7_q;
  reg keep_2_q, keep_3_q, keep_4_q, keep_5_q, keep_6_q, keep_7_q;
  reg [TAIL_W-1:0] tail_1_q, tail_2_q, tail_3_q, tail_4_q, tail_5_q, tail_6_q, tail_7_q;
  reg [DONE_W-1:0] done_1_q, done_2_q, done_3_q, done_4_q, done_5_q, done_6_q, done_7_q, done_8_q, done_9_q, done_10_q;
  reg give_q, busy_q, fault_q;
  reg [15:0] dst_1_q, dst_2_q;
  reg [15:0] src_1_q, src_2_q;
  reg [15:0] wgt_1_q, wgt_2_q;
  // accumulator entry: that of the source, or the one that is updated
  reg [15:0] addr_3_q, addr_4_q, addr_5_q, addr_6_q, addr_7_q;
  reg overwrite_1_q;
  reg use_imm_1_q, src_used_2_q;
  // GEMM's mode; group of weights or mask of taps; memory that holds the first line
  reg [1:0] mode_1_q, mode_2_q;
  reg window_2_q, taps_2_q, taps_3_q, taps_4_q, entry_2_q, entry_3_q;
  reg max_2_q, max_3_q, max_4_q, max_5_q, max_6_q, max_7_q;
  // 4-bit weights: without sign, sum times 16
  reg [1:0] nibble_1_q;
  reg low_2_q, low_3_q, low_4_q, low_5_q, high_2_q, high_3_q, high_4_q, high_5_q, high_6_q, high_7_q;
  reg [3:0] tap_2_q, group_3_q, mask_3_q;
  reg [1:0] rotate_3_q;
  reg zero_3_q, zero_4_q;

  // stage 1: dst_1_q and so on hold the loops' part of the index
  wire [15:0] dst_1 = uop_i[`VTA_UOP_DST] + dst_1_q;
  wire [15:0] src_1 = uop_i[`VTA_UOP_SRC] + src_1_q;
  wire [15:0] wgt_1 = uop_i[`VTA_UOP_WGT] + wgt_1_q;
  wire        is_taps_1 = mode_1_q == `VTA_GEMMMODE_TAPS;
  wire        is_max_1 = mode_1_q == `VTA_GEMMMODE_MAX;

  // stage 2: reads; the checks beside them, so that a slot with an index outside reads, but does not write
  wire [15:0] line_2 = src_2_q >> LINE_LOG;
  wire [ 7:0] turned_2 = {tap_2_q, tap_2_q} << line_2[1:0];
  wire        second_2 = WGT_BITS == 4 && mode_2_q == `VTA_GEMMMODE_MATMUL;  // the second entry of an operand
  wire [ 1:0] last_tap_2 = (taps_2_q || tap_2_q[3]) ? 2'd3 : tap_2_q[2] ? 2'd2 : {1'b0, tap_2_q[1]};
  wire [31:0] last_line_2 = {16'd0, line_2} + {30'd0, last_tap_2};
  wire        window_bad_2 = window_2_q && (last_line_2 >= LINES || |(src_2_q & PART_MASK));
  wire        behind_2 = {16'd0, src_2_q} + {31'd0, second_2} >= INP_DEPTH;
  wire        inp_bad_2 = (behind_2 && !(SPLIT && window_2_q)) || window_bad_2;
  wire        wgt_bad_2 = max_2_q ? |wgt_2_q[15:4] || ~|wgt_2_q[3:0] : {16'd0, wgt_2_q} >= WGT_DEPTH;
  wire        acc_bad_2 = {16'd0, dst_2_q} >= ACC_DEPTH;
  wire        src_bad_2 = src_used_2_q && {16'd0, src_2_q} >= ACC_DEPTH;
  wire        bad_2 = acc_bad_2 || (alu_2_q ? src_bad_2 : inp_bad_2 || wgt_bad_2);

  assign fault_o       = fault_q && !stop_i;
  assign fault_index_o = done_3_q[31:0];
  assign inp_re_o      = valid_2_q && !alu_2_q;
  assign inp_window_o  = window_2_q;
  assign inp_raddr_o   = src_2_q;
  assign wgt_re_o      = valid_2_q && !alu_2_q;
  assign wgt_raddr_o   = wgt_2_q;
  assign acc_re_o      = valid_6_q;
  assign acc_raddr_o   = addr_6_q;
  assign read_index_o  = done_6_q[31:0];

  always @(posedge clk_i)
    if (!rst_ni) begin
      {valid_1_q, valid_2_q, valid_3_q, valid_4_q, valid_5_q, valid_6_q, valid_7_q, valid_8_q, valid_9_q} <= 9'd0;
      {give_q, busy_q, fault_q} <= 3'd0;
    end else begin
      valid_1_q <= slot_valid;
      valid_2_q <= valid_1_q;
      valid_3_q <= valid_2_q && !bad_2;
      valid_4_q <= valid_3_q;
      valid_5_q <= valid_4_q;
      valid_6_q <= valid_5_q;
      valid_7_q <= valid_6_q;
      valid_8_q <= valid_7_q;
      valid_9_q <= valid_8_q;
      fault_q   <= valid_2_q && bad_2;
      give_q    <= valid_9_q && done_9_q[DONE_W-1];
      busy_q    <= start_i || active || valid_1_q || valid_2_q || valid_3_q || valid_4_q || valid_5_q || valid_6_q
          || valid_7_q || valid_8_q || valid_9_q;
    end

  always @(posedge clk_i) begin
    if (slot_valid) begin
      tail_1_q      <= {alu_op_0, use_imm_0, rounding_0, group_0, imm_0};
      done_1_q      <= {insn_last, set_0, index_0};
      alu_1_q       <= is_alu_0;
      exec_1_q      <= exec_0;
      write_1_q     <= uop_last;
      dst_1_q       <= dst_0;
      src_1_q       <= src_0;
      wgt_1_q       <= wgt_0;
      overwrite_1_q <= overwrite_0;
      mode_1_q      <= mode_0;
      nibble_1_q    <= nibble_0;
      use_imm_1_q   <= use_imm_0;
    end
    if (valid_1_q) begin
      {tail_2_q, done_2_q, alu_2_q, exec_2_q, write_2_q} <= {tail_1_q, done_1_q, alu_1_q, exec_1_q, write_1_q};
      {dst_2_q, src_2_q} <= {dst_1, src_1};
      wgt_2_q      <= is_taps_1 ? wgt_1 >> GROUPS_LOG : wgt_1;
      tap_2_q      <= wgt_1[3:0];
      mode_2_q     <= mode_1_q;
      src_used_2_q <= !use_imm_1_q;
      keep_2_q     <= !(overwrite_1_q && uop_i[`VTA_UOP_FIRST]);
      {taps_2_q, max_2_q, window_2_q} <= {is_taps_1, is_max_1, is_taps_1 || is_max_1};
      entry_2_q    <= mode_1_q == `VTA_GEMMMODE_ENTRY;
      low_2_q      <= nibble_1_q == `VTA_NIBBLE_LOW;
      high_2_q     <= nibble_1_q == `VTA_NIBBLE_HIGH && !is_max_1;
    end
    if (valid_2_q) begin
      {tail_3_q, done_3_q, alu_3_q, exec_3_q, write_3_q} <= {tail_2_q, done_2_q, alu_2_q, exec_2_q, write_2_q};
      {addr_3_q, keep_3_q} <= {(exec_2_q || !src_used_2_q) ? dst_2_q : src_2_q, keep_2_q};
      {taps_3_q, max_3_q, entry_3_q, low_3_q, high_3_q} <= {taps_2_q, max_2_q, entry_2_q, low_2_q, high_2_q};
      zero_3_q   <= alu_2_q || max_2_q;
      group_3_q  <= taps_2_q ? tap_2_q : 4'd0;
      rotate_3_q <= taps_2_q ? line_2[1:0] : 2'd0;
      mask_3_q   <= turned_2[7:4] | {4{taps_2_q}};
    end
    if (valid_3_q) begin
      {tail_4_q, done_4_q, alu_4_q, exec_4_q, write_4_q} <= {tail_3_q, done_3_q, alu_3_q, exec_3_q, write_3_q};
      {addr_4_q, keep_4_q} <= {addr_3_q, keep_3_q};
      {taps_4_q, max_4_q, low_4_q, high_4_q} <= {taps_3_q, max_3_q, low_3_q, high_3_q};
      zero_4_q <= zero_3_q;
    end
    if (valid_4_q) begin
      {tail_5_q, done_5_q, alu_5_q, exec_5_q, write_5_q} <= {tail_4_q, done_4_q, alu_4_q, exec_4_q, write_4_q};
      {addr_5_q, keep_5_q} <= {addr_4_q, keep_4_q};
      {max_5_q, low_5_q, high_5_q} <= {max_4_q, low_4_q, high_4_q};
    end
    if (valid_5_q) begin
      {tail_6_q, done_6_q, alu_6_q, exec_6_q, write_6_q} <= {tail_5_q, done_5_q, alu_5_q, exec_5_q, write_5_q};
      {addr_6_q, keep_6_q} <= {addr_5_q, keep_5_q};
      {max_6_q, high_6_q} <= {max_5_q, high_5_q};
    end
    if (valid_6_q) begin
      {tail_7_q, done_7_q, alu_7_q, exec_7_q, write_7_q} <= {tail_6_q, done_6_q, alu_6_q, exec_6_q, write_6_q};
      {addr_7_q, keep_7_q} <= {addr_6_q, keep_6_q};
      {max_7_q, high_7_q} <= {max_6_q, high_6_q};
    end
    if (valid_7_q) done_8_q <= done_7_q;
    if (valid_8_q) done_9_q <= done_8_q;
    if (valid_9_q) done_10_q <= done_9_q;
  end

  // stages 3 to 7: dot products, one module a lane; of the ALU they are 0
  reg  [     BLOCK_IN*8-1:0] inp_q;
  reg  [     BLOCK_IN*8-1:0] operand_q;
  wire [BLOCK_OUT*SUM_W-1:0] sums;
  // mode entry: the second entry of an operand is left out
  wire [     BLOCK_IN*8-1:0] entry_3;
  generate
    if (WGT_BITS == 4) begin : g_first
      assign entry_3 = {{(INP_LANES * 8) {!entry_3_q}} & inp_i[BLOCK_IN*8-1:INP_LANES*8], inp_i[INP_LANES*8-1:0]};
    end else begin : g_all
      assign entry_3 = inp_i;
      wire unused_entry = &{1'b0, entry_3_q};
    end
  endgenerate
  always @(posedge clk_i) if (valid_3_q && !alu_3_q) inp_q <= entry_3;
  // the same as in the lanes, which need their first four as taps as well
  always @(posedge clk_i)
    if (valid_4_q) begin
      if (zero_4_q || taps_4_q) operand_q <= {(BLOCK_IN * 8) {1'b0}};
      else operand_q <= inp_q;
    end

  // what products out of LUTs choose among, the same for all lanes
  wire [BLOCK_IN*30-1:0] multiples;
  genvar i, t;
  generate
    for (i = 0; i < BLOCK_IN; i = i + 1) begin : g_multiples
      if (i < DSP_PRODUCTS) begin : g_none
        assign multiples[i*30+:30] = 30'd0;
      end else begin : g_some
        vta_multiples u_multiples (
            .inp_i      (operand_q[i*8+:8]),
            .low_i      (WGT_BITS == 4 && low_5_q),
            .three_o    (multiples[i*30+:10]),
            .top_two_o  (multiples[i*30+10+:10]),
            .top_three_o(multiples[i*30+20+:10])
        );
      end
    end

    for (i = 0; i < BLOCK_OUT; i = i + 1) begin : g_dot
      // taps of a lane side by side, in the order of the memories that they come from; those left out at the lowest value
      reg [31:0] taps_q;
      for (t = 0; t < `VTA_TAPS; t = t + 1) begin : g_tap
        always @(posedge clk_i)
          if (valid_3_q && (taps_3_q || max_3_q)) begin
            if (!mask_3_q[t]) taps_q[t*8+:8] <= 8'h80;
            else taps_q[t*8+:8] <= taps_i[(t*BLOCK_OUT+i)*8+:8];
          end
      end

      vta_dot #(
          .BLOCK_IN    (BLOCK_IN),
          .WGT_BITS    (WGT_BITS),
          .DSP_PRODUCTS(DSP_PRODUCTS)
      ) u_dot (
          .clk_i      (clk_i),
          .en_i       (valid_4_q),
          .zero_i     (zero_4_q),
          .taps_i     (taps_4_q),
          .max_i      (max_4_q),
          .group_i    (group_3_q),
          .rotate_i   (rotate_3_q),
          .wgt_i      (wgt_i[i*BLOCK_IN*WGT_BITS+:BLOCK_IN*WGT_BITS]),
          .first_i    (inp_q[31:0]),
          .tap_i      (taps_q),
          .low_1_i    (low_5_q),
          .inp_i      (operand_q),
          .multiples_i(multiples),
          .high_3_i   (high_7_q),
          .sum_o      (sums[i*SUM_W+:SUM_W])
      );
    end
  endgenerate

  // stages 7 to 10
  wire [ 3:0] op_7;
  wire        use_imm_7;
  wire [ 1:0] rounding_7;
  wire [ 6:0] group_7;
  wire [31:0] imm_7;
  assign {op_7, use_imm_7, rounding_7, group_7, imm_7} = tail_7_q;

  vta_update #(
      .BLOCK_OUT(BLOCK_OUT),
      .OUT_LANES(OUT_LANES),
      .SUM_W    (SUM_W)
  ) u_update (
      .clk_i     (clk_i),
      .rst_ni    (rst_ni),
      .next_i    (addr_6_q),
      .valid_i   (valid_7_q),
      .addr_i    (addr_7_q),
      .write_i   (write_7_q),
      .ahead_i   (!exec_7_q),
      .is_alu_i  (alu_7_q),
      .is_max_i  (max_7_q),
      .keep_i    (keep_7_q),
      .op_i      (op_7),
      .rounding_i(rounding_7),
      .group_i   (group_7),
      .use_imm_i (use_imm_7),
      .imm_i     (imm_7),
      .acc_i     (acc_i),
      .sums_i    (sums),
      .we_o      (acc_we_o),
      .waddr_o   (acc_waddr_o),
      .wdata_o   (acc_wdata_o)
  );

  assign give_o = give_q && !stop_i;
  assign {set_o, done_index_o} = done_10_q[DONE_W-2:0];
  assign idle_o = !busy_q;

  wire unused = &{1'b0, uop_wide[16], uop_i, line_2, turned_2, done_10_q};
endmodule

`resetall
