// Loop walk of the output stage: turns a REQUANT instruction into slots, one a cycle.
// Contract: a vector takes BLOCK_OUT / OUT_LANES slots, form add twice as many (per lane group first y, then r).
// An index outside its scratchpad raises fault_o instead of a slot.  hold_i keeps the slot for a later cycle.
// Latency: the first slot is out in the cycle after start_i; ready_o is high in the cycle of the last slot.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_output_walk #(
    // Sizes of the configuration
    parameter ACC_DEPTH = 1024,
    parameter OUT_DEPTH = 1024,
    parameter INP_DEPTH = 1024,
    parameter PRM_DEPTH = 64,
    // Lane groups of a vector: BLOCK_OUT / OUT_LANES
    parameter GROUPS    = 2,
    // Entries of INP that a vector takes, a power of two
    parameter PART      = 1
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         stop_i,
    // start
    output wire         ready_o,
    input  wire         start_i,
    input  wire [255:0] insn_i,
    input  wire [ 31:0] index_i,
    // slot
    input  wire         hold_i,
    output wire         active_o,
    output wire         slot_valid_o,
    output wire [ 15:0] read_o,
    output wire [ 15:0] prm_o,
    output wire [ 15:0] dst_o,
    output wire [  5:0] group_o,
    output wire         second_o,
    output wire         vector_last_o,
    output wire         insn_last_o,
    // the instruction
    output wire [  1:0] form_o,
    output wire         to_acc_o,
    output wire         to_inp_o,
    output wire [  1:0] rounding_o,
    output wire [  7:0] zero_point_o,
    output wire [  7:0] clip_lo_o,
    output wire [  7:0] clip_hi_o,
    output wire [ 15:0] set_o,
    output wire [ 31:0] index_o,
    output wire         fault_o
);
  localparam [31:0] LAST_GROUP = GROUPS - 1;
  localparam [15:0] PART_MASK = PART[15:0] - 16'd1;

  reg         active_q;
  reg [255:0] insn_q;
  reg [ 31:0] index_q;
  reg [ 15:0] in_left_q;
  reg [ 15:0] out_left_q;
  reg [ 15:0] step_q, step_row_q, dst_q, dst_row_q, prm_q;
  reg [  5:0] group_q;
  reg         second_q;

  wire [15:0] acc = insn_q[`VTA_REQUANT_ACC_BASE] + step_q;
  wire [15:0] res = insn_q[`VTA_REQUANT_RES_BASE] + step_q;
  wire        is_add = form_o == `VTA_FORM_ADD;
  wire        is_pass = form_o == `VTA_FORM_PASS;
  wire [31:0] dst_depth = to_acc_o ? ACC_DEPTH : to_inp_o ? INP_DEPTH : OUT_DEPTH;
  wire        misplaced = to_inp_o && |(dst_q & PART_MASK);
  wire        bad = {16'd0, acc} >= ACC_DEPTH || (is_add && {16'd0, res} >= ACC_DEPTH)
      || (!is_pass && {16'd0, prm_q} >= PRM_DEPTH) || {16'd0, dst_q} >= dst_depth || misplaced;

  assign active_o      = active_q;
  assign slot_valid_o  = active_q && !bad && !hold_i && !stop_i;
  assign fault_o       = active_q && bad && !stop_i;
  assign read_o        = second_q ? res : acc;
  assign prm_o         = prm_q;
  assign dst_o         = dst_q;
  assign group_o       = group_q;
  assign second_o      = second_q;
  assign form_o        = insn_q[`VTA_REQUANT_FORM];
  assign to_acc_o      = insn_q[`VTA_REQUANT_DST] == `VTA_DST_ACC;
  assign to_inp_o      = insn_q[`VTA_REQUANT_DST] == `VTA_DST_INP;
  assign rounding_o    = insn_q[`VTA_REQUANT_ROUNDING];
  assign zero_point_o  = insn_q[`VTA_REQUANT_ZERO_POINT];
  assign clip_lo_o     = insn_q[`VTA_REQUANT_CLIP_LO];
  assign clip_hi_o     = insn_q[`VTA_REQUANT_CLIP_HI];
  assign set_o         = insn_q[`VTA_INSN_SET];
  assign index_o       = index_q;

  wire        group_ends = !is_add || second_q;
  assign vector_last_o = group_ends && group_q == LAST_GROUP[5:0];
  wire        row_ends = vector_last_o && in_left_q == 16'd1;
  assign insn_last_o   = row_ends && out_left_q == 16'd1;
  assign ready_o       = !active_q || (slot_valid_o && insn_last_o);

  wire [15:0] step_row = step_row_q + insn_q[`VTA_REQUANT_ACC_OUT];
  wire [15:0] dst_row = dst_row_q + insn_q[`VTA_REQUANT_DST_OUT];

  always @(posedge clk_i)
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= 1'b1;
    else if (slot_valid_o && insn_last_o) active_q <= 1'b0;

  always @(posedge clk_i)
    if (start_i) begin
      insn_q     <= insn_i;
      index_q    <= index_i;
      in_left_q  <= insn_i[`VTA_REQUANT_ITER_IN];
      out_left_q <= insn_i[`VTA_REQUANT_ITER_OUT];
      step_q     <= 16'd0;
      step_row_q <= 16'd0;
      dst_q      <= insn_i[`VTA_REQUANT_DST_BASE];
      dst_row_q  <= insn_i[`VTA_REQUANT_DST_BASE];
      prm_q      <= insn_i[`VTA_REQUANT_PRM_BASE];
      group_q    <= 6'd0;
      second_q   <= 1'b0;
    end else if (slot_valid_o) begin
      second_q <= is_add && !second_q;
      if (group_ends) group_q <= vector_last_o ? 6'd0 : group_q + 6'd1;
      if (row_ends) begin
        in_left_q  <= insn_q[`VTA_REQUANT_ITER_IN];
        out_left_q <= out_left_q - 16'd1;
        step_q     <= step_row;
        step_row_q <= step_row;
        dst_q      <= dst_row;
        dst_row_q  <= dst_row;
        prm_q      <= prm_q + {8'd0, insn_q[`VTA_REQUANT_PRM_OUT]};
      end else if (vector_last_o) begin
        in_left_q <= in_left_q - 16'd1;
        step_q    <= step_q + insn_q[`VTA_REQUANT_ACC_IN];
        dst_q     <= dst_q + insn_q[`VTA_REQUANT_DST_IN];
      end
    end

  wire unused = &{1'b0, insn_q};
endmodule

`resetall
