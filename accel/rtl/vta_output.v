// OUTPUT unit: REQUANT through a pipeline of nine stages, one slot (lane group and operand) a cycle.
// Stages: 0 accumulator and parameter read, 1 parameters, 2 operand, 3 product, 4 sum, 5 coarse and 6 fine shift,
// 7 zero point and clip, 8 collect; the vector is written at the edge that ends stage 8 of its last slot.
// Contract: acc_i is valid in stage 2, prm_i in stage 1 of a slot.  A slot that would read an accumulator entry which a
// vector before it has yet to write waits in stage 0; there is no bubble otherwise, nor between instructions.
// Latency: a slot in stage 0 during a cycle has its vector written at the ninth edge from the start of that cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_output #(
    // Sizes of the configuration
    parameter INP_LANES       = 4,
    parameter BLOCK_OUT       = 4,
    parameter INP_DEPTH       = 1024,
    parameter ACC_DEPTH       = 1024,
    parameter OUT_DEPTH       = 1024,
    parameter PRM_DEPTH       = 64,
    parameter OUT_LANES       = 2,
    parameter MULTIPLIER_BITS = 31,
    // Tables of 256 results, 0: none
    parameter TABLES          = 0
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    // head of the queue; start_i pops it
    input  wire                     head_valid_i,
    input  wire [            255:0] insn_i,
    input  wire [              1:0] once_i,
    input  wire [             31:0] index_i,
    output wire                     want_o,
    input  wire                     start_i,
    // scratchpad reads: a lane group of an accumulator entry and of a parameter entry
    output wire                     acc_re_o,
    output wire [             15:0] acc_raddr_o,
    output wire [              5:0] acc_rgroup_o,
    input  wire [ OUT_LANES*32-1:0] acc_i,
    output wire                     prm_re_o,
    output wire [             15:0] prm_raddr_o,
    input  wire [OUT_LANES*128-1:0] prm_i,
    // tables: results are looked up while they are computed, and what the table has is there in the next cycle
    output wire                     tab_re_o,
    output wire [              3:0] tab_number_o,
    output wire [  OUT_LANES*8-1:0] tab_value_o,
    input  wire [  OUT_LANES*8-1:0] tab_i,
    // vector writes; the accumulator widens the bytes
    output wire [             15:0] waddr_o,
    output wire [  BLOCK_OUT*8-1:0] wdata_o,
    output wire                     out_we_o,
    output wire                     inp_we_o,
    // to the accumulator, a cycle before wdata_o
    output wire                     acc_we_o,
    output wire [             15:0] acc_waddr_o,
    // INP will be written two edges behind the one that ends this cycle (bit 0), three edges behind (bit 1)
    output wire [              1:0] inp_soon_o,
    // tokens of a finished instruction; done_index_o also names the instruction that writes
    output wire                     give_o,
    output wire [             15:0] set_o,
    output wire [             31:0] done_index_o,
    output wire                     idle_o,
    output wire                     vector_o,
    // instruction that reads the accumulator, and faults
    output wire [             31:0] read_index_o,
    output wire                     fault_o
);
  localparam GROUPS = BLOCK_OUT / OUT_LANES;
  localparam GROUPS_LOG = $clog2(GROUPS);
  localparam GROUP_BITS = OUT_LANES * 8;
  localparam ACC_W = $clog2(ACC_DEPTH);
  localparam PART = (BLOCK_OUT > INP_LANES) ? BLOCK_OUT / INP_LANES : 1;
  localparam INP_PARTS = (BLOCK_OUT > INP_LANES) ? INP_DEPTH : INP_DEPTH * (INP_LANES / BLOCK_OUT);

  // stage 0
  wire        active;
  wire        walk_ready;
  wire        slot;
  wire [15:0] dst_0;
  wire [ 5:0] group_0;
  wire        second_0;
  wire        vector_last_0;
  wire        insn_last_0;
  wire [ 1:0] form_0;
  wire        to_acc_0;
  wire        to_inp_0;
  wire [ 1:0] rounding_0;
  wire [ 7:0] zero_0;
  wire [ 7:0] lo_0;
  wire [ 7:0] hi_0;
  wire [ 7:0] table_0;
  wire [15:0] set_0;
  wire [31:0] index_0;
  wire [15:0] prm_0;
  wire [15:0] next_in;
  wire        at_end;
  // twice: the semaphores are far from the accumulators
  (* keep *) reg hold_q;
  (* keep *) reg hold_start_q;

  vta_output_walk #(
      .ACC_DEPTH(ACC_DEPTH),
      .OUT_DEPTH(OUT_DEPTH),
      .INP_PARTS(INP_PARTS),
      .PRM_DEPTH(PRM_DEPTH),
      .GROUPS   (GROUPS),
      .PART     (PART)
  ) u_walk (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .stop_i       (stop_i),
      .ready_o      (walk_ready),
      .start_i      (start_i),
      .insn_i       (insn_i),
      .once_i       (once_i),
      .index_i      (index_i),
      .hold_i       (hold_q),
      .hold_start_i (hold_start_q),
      .active_o     (active),
      .slot_valid_o (slot),
      .read_o       (acc_raddr_o),
      .next_in_o    (next_in),
      .at_end_o     (at_end),
      .prm_o        (prm_0),
      .dst_o        (dst_0),
      .group_o      (group_0),
      .second_o     (second_0),
      .vector_last_o(vector_last_0),
      .insn_last_o  (insn_last_0),
      .form_o       (form_0),
      .to_acc_o     (to_acc_0),
      .to_inp_o     (to_inp_0),
      .rounding_o   (rounding_0),
      .zero_point_o (zero_0),
      .clip_lo_o    (lo_0),
      .clip_hi_o    (hi_0),
      .table_o      (table_0),
      .set_o        (set_0),
      .index_o      (index_0),
      .fault_o      (fault_o)
  );

  assign want_o       = head_valid_i && walk_ready;
  assign acc_re_o     = slot;
  assign acc_rgroup_o = group_0;
  assign prm_re_o     = slot && form_0 != `VTA_FORM_PASS;
  assign prm_raddr_o  = (prm_0 << GROUPS_LOG) | {10'd0, group_0};
  assign read_index_o = index_0;

  // stages 1 to 8; ends: the slot brings its lane group to the end of stage 8; writes: so it does the vector
  reg [8:1] valid_q;
  reg [8:1] ends_q;
  reg [8:1] writes_q;
  reg [8:1] last_q;
  reg [7:1] to_acc_q;
  reg [7:1] to_inp_q;
  reg       second_1_q;
  reg [3:1] times_q;  // second slot of form mul
  reg [4:1] keeps_q;  // first slot of form add
  reg [1:0] form_1_q;
  reg [7:0] pass_zero_q;
  // rounding, zero point, bounds
  reg [25:0] tail_1_q, tail_2_q, tail_3_q, tail_4_q, tail_5_q, tail_6_q, tail_7_q;
  // one more than the table that the result goes through; in stage 8 whether it does
  reg [4:0] table_1_q, table_2_q, table_3_q, table_4_q, table_5_q, table_6_q, table_7_q;
  reg       looked_up_q;

  // What writes: destination, tokens, instruction.  Slots that write are GROUPS cycles apart or more, so that as many
  // stages share one register; the first takes over what comes into them.
  localparam SHARES = (GROUPS < 8) ? 8 / GROUPS : 1;
  localparam WRITER_W = 64;
  reg  [SHARES*WRITER_W-1:0] writer_q;
  wire [SHARES-1:0] same_share_i;
  wire [SHARES-1:0] same_share_n;
  // the entries that stage 0 may want in the next cycle: the first of an instruction that comes, the next of this one
  wire [15:0] base = insn_i[`VTA_REQUANT_ACC_BASE];
  wire [ACC_W-1:0] first = base[ACC_W-1:0];
  wire [ACC_W-1:0] next = next_in[ACC_W-1:0];

  genvar i;
  generate
    for (i = 0; i < SHARES; i = i + 1) begin : g_writer
      assign same_share_i[i] = first == writer_q[i*WRITER_W+48+:ACC_W];
      assign same_share_n[i] = next == writer_q[i*WRITER_W+48+:ACC_W];
      if (i == 0) begin : g_first
        always @(posedge clk_i) if (slot && vector_last_0) writer_q[0+:WRITER_W] <= {dst_0, set_0, index_0};
      end else begin : g_next
        always @(posedge clk_i)
          if (valid_q[i*GROUPS] && writes_q[i*GROUPS])
            writer_q[i*WRITER_W+:WRITER_W] <= writer_q[(i-1)*WRITER_W+:WRITER_W];
      end
    end
  endgenerate

  // Bit k: the vector that stage k has in the next cycle will write the entry that stage 0 wants to read then.  Behind a
  // slot that does not wait the entry is a new one and compared with all; one that does not leave then is a fault's, and
  // what follows of no interest.  For the same reason only the bits of an entry's number are compared.  Which of the two
  // entries is wanted is known late, and chosen when both have been compared.
  wire [8:1] same_i, same_n;
  assign same_i[1] = first == dst_0[ACC_W-1:0];
  assign same_n[1] = next == dst_0[ACC_W-1:0];
  generate
    for (i = 2; i <= 8; i = i + 1) begin : g_same
      assign same_i[i] = same_share_i[(i-2)/((GROUPS<8)?GROUPS : 8)];
      assign same_n[i] = same_share_n[(i-2)/((GROUPS<8)?GROUPS : 8)];
    end
  endgenerate
  wire [8:1] writes_d = {valid_q[7:1] & writes_q[7:1] & to_acc_q[7:1], active && vector_last_0 && to_acc_0};
  reg  [7:1] waits_q;
  wire       compares = !hold_q || !active;
  wire [8:1] waits_i = same_i & writes_d;
  wire [8:1] waits_n = same_n & writes_d;
  wire [7:1] waits_d = !compares ? {waits_q[6:1], 1'b0} : at_end ? waits_i[7:1] : waits_n[7:1];
  wire       hold_d = !compares ? |waits_q : at_end ? |waits_i : |waits_n;

  // the slot writes INP: early, as LOAD gives way to it
  reg [8:5] into_inp_q;
  always @(posedge clk_i)
    if (!rst_ni) into_inp_q <= 4'd0;
    else into_inp_q <= {into_inp_q[7:5], valid_q[4] && writes_q[4] && to_inp_q[4]};

  // the others from registers too: OUT, INP and ACC are far apart; ACC is told in stage 7
  wire writes_6 = valid_q[6] && writes_q[6];
  wire writes_7 = valid_q[7] && writes_q[7];
  reg  into_acc_q, into_out_q;
  always @(posedge clk_i)
    if (!rst_ni) {into_acc_q, into_out_q} <= 2'd0;
    else {into_acc_q, into_out_q} <= {writes_6 && to_acc_q[6], writes_7 && !to_acc_q[7] && !to_inp_q[7]};

  wire ends_0 = !form_0[0] || second_0;
  wire [4:0] number_0 = (TABLES == 0) ? 5'd0 : table_0[4:0];
  wire [7:0] zero_point_0 = (form_0 == `VTA_FORM_PASS) ? 8'd0 : zero_0;

  // busy_q: an instruction is here, or a slot in stages 1 to 8
  reg busy_q;
  always @(posedge clk_i)
    if (!rst_ni) {valid_q, busy_q} <= 9'd0;
    else begin
      valid_q <= {valid_q[7:1], slot};
      busy_q  <= start_i || active || valid_q[7:1] != 7'd0;
    end

  always @(posedge clk_i) begin
    hold_q       <= hold_d;
    hold_start_q <= hold_d;
    waits_q      <= waits_d;
  end

  always @(posedge clk_i) begin
    if (slot || valid_q != 8'd0) begin
      ends_q   <= {ends_q[7:1], ends_0};
      writes_q <= {writes_q[7:1], vector_last_0};
      last_q   <= {last_q[7:1], insn_last_0};
      times_q  <= {times_q[2:1], form_0 == `VTA_FORM_MUL && second_0};
      keeps_q  <= {keeps_q[3:1], form_0 == `VTA_FORM_ADD && !second_0};
      to_acc_q <= {to_acc_q[6:1], to_acc_0};
      to_inp_q <= {to_inp_q[6:1], to_inp_0};
    end
    if (slot) begin
      second_1_q <= second_0;
      form_1_q   <= form_0;
      tail_1_q   <= {rounding_0, zero_point_0, lo_0, hi_0};
      pass_zero_q <= zero_0;
      table_1_q  <= number_0;
    end
    if (valid_q[1]) {table_2_q, tail_2_q} <= {table_1_q, tail_1_q};
    if (valid_q[2]) {table_3_q, tail_3_q} <= {table_2_q, tail_2_q};
    if (valid_q[3]) {table_4_q, tail_4_q} <= {table_3_q, tail_3_q};
    if (valid_q[4]) {table_5_q, tail_5_q} <= {table_4_q, tail_4_q};
    if (valid_q[5]) {table_6_q, tail_6_q} <= {table_5_q, tail_5_q};
    if (valid_q[6]) {table_7_q, tail_7_q} <= {table_6_q, tail_6_q};
  end

  wire [7:1] enable = {valid_q[7:5] & ends_q[7:5], valid_q[4:1]};
  wire [GROUP_BITS-1:0] plain, plain_d;
  wire [GROUP_BITS-1:0] result = looked_up_q ? tab_i : plain;
  wire [4:0] number_7 = table_7_q - 5'd1;
  assign tab_re_o     = enable[7] && |table_7_q;
  assign tab_number_o = number_7[3:0];
  assign tab_value_o  = plain_d;
  always @(posedge clk_i) if (enable[7]) looked_up_q <= |table_7_q;

  generate
    for (i = 0; i < OUT_LANES; i = i + 1) begin : g_lane
      vta_requant_lane #(
          .MULTIPLIER_BITS(MULTIPLIER_BITS)
      ) u_lane (
          .clk_i       (clk_i),
          .rst_ni      (rst_ni),
          .en_i        (enable),
          .prm_i       (prm_i[i*128+:128]),
          .form_i      (form_1_q),
          .second_i    (second_1_q),
          .times_i     (times_q[3:2]),
          .pass_zero_i (pass_zero_q),
          .acc_i       (acc_i[i*32+:32]),
          .keep_i      (keeps_q[4]),
          .rounding_i  (tail_6_q[25:24]),
          .zero_point_i(tail_7_q[23:16]),
          .clip_lo_i   (tail_7_q[15:8]),
          .clip_hi_i   (tail_7_q[7:0]),
          .result_d_o  (plain_d[i*8+:8]),
          .result_o    (plain[i*8+:8])
      );
    end

    // stage 8: collect the lane groups of a vector
    if (GROUPS > 1) begin : g_collect
      reg [BLOCK_OUT*8-GROUP_BITS-1:0] held_q;
      assign wdata_o = {result, held_q};
      if (GROUPS > 2) begin : g_shift
        always @(posedge clk_i)
          if (valid_q[8] && ends_q[8]) held_q <= {result, held_q[BLOCK_OUT*8-GROUP_BITS-1:GROUP_BITS]};
      end else begin : g_one
        always @(posedge clk_i) if (valid_q[8] && ends_q[8]) held_q <= result;
      end
    end else begin : g_through
      assign wdata_o = result;
    end
  endgenerate

  assign vector_o     = valid_q[8] && writes_q[8];
  assign out_we_o     = into_out_q;
  assign inp_we_o     = into_inp_q[8];
  assign inp_soon_o   = {into_inp_q[5], into_inp_q[6]};
  assign acc_we_o     = into_acc_q;
  assign acc_waddr_o  = writer_q[(6/GROUPS)*WRITER_W+48+:16];
  assign give_o       = valid_q[8] && last_q[8] && !stop_i;
  assign {waddr_o, set_o, done_index_o} = writer_q[(SHARES-1)*WRITER_W+:WRITER_W];
  assign idle_o       = !busy_q;

  wire unused = &{1'b0, tail_7_q, ends_q, next_in, base, table_0, number_7};
endmodule

`resetall
