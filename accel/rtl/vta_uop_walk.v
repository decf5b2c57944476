// Loop walk of COMPUTE: turns a GEMM or ALU instruction into slots, one a cycle.
// Contract: a slot is one pass of a micro-op through the pipeline.  GEMM and immediate ALU: one slot a micro-op;
// tensor ALU, SHR and CLIP: a slot ahead, then one that executes; MUL executes in MUL_SLOTS.
// Latency: the first slot is out in the cycle after start_i; ready_o is high in the cycle of the last slot, if it is not
// stopped.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_uop_walk #(
    // Slots of a MUL: its lane groups and one more, 2 to 65
    parameter MUL_SLOTS = 2,
    // Bits of a micro-op's number, 1 to 16: the dispatcher lets none pass that has others
    parameter UOP_W     = 16
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         stop_i,
    // start
    output wire         ready_o,
    input  wire         start_i,
    input  wire [255:0] insn_i,
    input  wire [  3:0] once_i,  // see vta_once
    input  wire [ 31:0] index_i,
    // slot
    output wire         active_o,
    output wire         slot_valid_o,
    output wire [UOP_W-1:0] uop_o,
    output wire [ 15:0] dst_offset_o,
    output wire [ 15:0] src_offset_o,
    output wire [ 15:0] wgt_offset_o,
    output wire         slot_exec_o,
    output wire [  6:0] slot_group_o,
    output wire         uop_last_o,
    output wire         insn_last_o,
    // the instruction
    output wire         is_alu_o,
    output wire         overwrite_o,
    output wire [  1:0] mode_o,
    output wire [  1:0] nibble_o,
    output wire [  3:0] alu_op_o,
    output wire         use_imm_o,
    output wire [  1:0] rounding_o,
    output wire [ 31:0] imm_o,
    output wire [ 15:0] set_o,
    output wire [ 31:0] index_o
);
  localparam [31:0] LAST_GROUP = MUL_SLOTS - 1;
  localparam [16:0] TWO_WIDE = 17'd2;
  localparam [UOP_W-1:0] TWO = TWO_WIDE[UOP_W-1:0];

  reg          active_q;
  reg  [255:0] insn_q;
  reg  [ 31:0] index_q;
  reg  [UOP_W-1:0] uop_q;
  reg  [UOP_W-1:0] uop_before_q;  // the one ahead of the last
  reg  [ 15:0] in_left_q;
  reg  [ 15:0] out_left_q;
  reg  [ 15:0] dst_q, src_q, wgt_q;
  reg  [ 15:0] dst_row_q, src_row_q, wgt_row_q;
  reg          exec_q;
  reg  [  6:0] group_q;
  // of the slot at hand: last of its micro-op, of the micro-ops, of the row, of the rows; all of them; reloads of one
  // step only
  reg slot_last_q, uop_last_q, in_last_q, out_last_q, last_q;
  reg one_uop_q, one_in_q;
  // there is no slot, or it is the last one: as a register for the semaphores, which are far away
  reg free_q;

  assign active_o     = active_q;
  assign is_alu_o     = insn_q[`VTA_INSN_OPCODE] == `VTA_OP_ALU;
  assign overwrite_o  = insn_q[`VTA_GEMM_OVERWRITE];
  assign nibble_o     = insn_q[`VTA_GEMM_NIBBLE];
  assign mode_o       = is_alu_o ? `VTA_GEMMMODE_MATMUL : insn_q[`VTA_GEMM_MODE];
  assign alu_op_o     = is_alu_o ? insn_q[`VTA_ALU_ALU_OP] : `VTA_ALUOP_MAX;
  assign use_imm_o    = insn_q[`VTA_ALU_USE_IMM];
  assign rounding_o   = insn_q[`VTA_ALU_ROUNDING];
  assign imm_o        = insn_q[`VTA_ALU_IMM];
  assign set_o        = insn_q[`VTA_INSN_SET];
  assign index_o      = index_q;

  assign slot_valid_o = active_q && !stop_i;
  assign uop_o        = uop_q;
  assign dst_offset_o = dst_q;
  assign src_offset_o = src_q;
  assign wgt_offset_o = wgt_q;
  assign slot_exec_o  = exec_q;
  assign slot_group_o = group_q;

  localparam [15:0] PRODUCT = `VTA_ALUOPS_PRODUCT;
  localparam [15:0] AHEAD = `VTA_ALUOPS_AHEAD;
  wire         is_mul = is_alu_o && PRODUCT[alu_op_o];
  wire         two = is_alu_o && (!use_imm_o || AHEAD[alu_op_o]);  // a slot ahead
  wire [  6:0] next_group = exec_q ? group_q + 7'd1 : group_q;
  assign uop_last_o   = slot_last_q;
  wire         uops_end = slot_last_q && uop_last_q;
  wire         row_ends = uops_end && in_last_q;
  assign insn_last_o  = last_q;
  assign ready_o      = free_q;
  wire         at_end = !active_q || last_q;

  wire [ 15:0] dst_row = dst_row_q + insn_q[`VTA_GEMM_ACC_OUT];
  wire [ 15:0] src_row = src_row_q + insn_q[`VTA_GEMM_INP_OUT];
  wire [ 15:0] wgt_row = wgt_row_q + insn_q[`VTA_GEMM_WGT_OUT];
  wire         start_alu = insn_i[`VTA_INSN_OPCODE] == `VTA_OP_ALU;
  wire [  3:0] start_op = insn_i[`VTA_ALU_ALU_OP];
  wire         start_two = start_alu && (!insn_i[`VTA_ALU_USE_IMM] || AHEAD[start_op]);
  wire [ 15:0] begins = insn_i[`VTA_GEMM_UOP_BEGIN];
  wire [ 15:0] ends = insn_i[`VTA_GEMM_UOP_END];
  wire [ 15:0] again = insn_q[`VTA_GEMM_UOP_BEGIN];
  wire [UOP_W-1:0] uop_next = uop_q + 1'b1;

  // of the slot behind the one at hand
  wire slot_last = slot_last_q ? !two && !is_mul : !is_mul || next_group == LAST_GROUP[6:0];
  wire uop_last = !slot_last_q ? uop_last_q : uop_last_q ? one_uop_q : uop_q == uop_before_q;
  wire in_last = row_ends ? one_in_q : uops_end ? in_left_q == 16'd2 : in_last_q;
  wire out_last = row_ends ? out_left_q == 16'd2 : out_last_q;
  wire last = slot_last && uop_last && in_last && out_last;

  always @(posedge clk_i)
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= 1'b1;
    else if (slot_valid_o && insn_last_o) active_q <= 1'b0;

  always @(posedge clk_i)
    if (!rst_ni) free_q <= 1'b1;
    else if (at_end) free_q <= !start_i || &once_i;
    else if (slot_valid_o) free_q <= last;

  always @(posedge clk_i)
    // loaded whenever nothing is left here to be kept, started or not: start_i is known late and would go far
    if (at_end) begin
      insn_q      <= insn_i;
      index_q     <= index_i;
      uop_q       <= begins[UOP_W-1:0];
      uop_before_q <= ends[UOP_W-1:0] - TWO;
      in_left_q   <= insn_i[`VTA_GEMM_ITER_IN];
      out_left_q  <= insn_i[`VTA_GEMM_ITER_OUT];
      dst_q       <= insn_i[`VTA_GEMM_ACC_BASE];
      dst_row_q   <= insn_i[`VTA_GEMM_ACC_BASE];
      src_q       <= insn_i[`VTA_GEMM_INP_BASE];
      src_row_q   <= insn_i[`VTA_GEMM_INP_BASE];
      wgt_q       <= insn_i[`VTA_GEMM_WGT_BASE];
      wgt_row_q   <= insn_i[`VTA_GEMM_WGT_BASE];
      exec_q      <= !start_two;
      group_q     <= 7'd0;
      slot_last_q <= once_i[0];
      uop_last_q  <= once_i[1];
      in_last_q   <= once_i[2];
      out_last_q  <= once_i[3];
      last_q      <= &once_i;
      one_uop_q   <= once_i[1];
      one_in_q    <= once_i[2];
    end else if (slot_valid_o) begin
      slot_last_q <= slot_last;
      uop_last_q  <= uop_last;
      in_last_q   <= in_last;
      out_last_q  <= out_last;
      last_q      <= last;
      if (slot_last_q) begin
        exec_q  <= !two;
        group_q <= 7'd0;
        uop_q   <= uop_last_q ? again[UOP_W-1:0] : uop_next;
      end else begin
        exec_q  <= 1'b1;
        group_q <= next_group;
      end
      if (row_ends) begin
        in_left_q  <= insn_q[`VTA_GEMM_ITER_IN];
        out_left_q <= out_left_q - 16'd1;
        dst_q      <= dst_row;
        dst_row_q  <= dst_row;
        src_q      <= src_row;
        src_row_q  <= src_row;
        wgt_q      <= wgt_row;
        wgt_row_q  <= wgt_row;
      end else if (uops_end) begin
        in_left_q <= in_left_q - 16'd1;
        dst_q     <= dst_q + insn_q[`VTA_GEMM_ACC_IN];
        src_q     <= src_q + insn_q[`VTA_GEMM_INP_IN];
        wgt_q     <= wgt_q + insn_q[`VTA_GEMM_WGT_IN];
      end
    end

  wire unused = &{1'b0, insn_q, begins, ends, again};
endmodule

`resetall
