// Loop walk of the output stage: turns a REQUANT instruction into slots, one a cycle.
// Contract: a vector takes BLOCK_OUT / OUT_LANES slots, forms add and mul twice as many (per lane group first y,
// then r).
// An index outside its scratchpad raises fault_o instead of a slot.  hold_i keeps the slot for a later cycle.
// If this cycle's slot leaves, or an instruction starts, the slot of the next cycle reads entry next_in_o, or with
// at_end_o the first one of insn_i.
// Latency: the first slot is out in the cycle after start_i; ready_o is high in the cycle of the last slot.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_output_walk #(
    // Sizes of the configuration
    parameter ACC_DEPTH = 1024,
    parameter OUT_DEPTH = 1024,
    parameter INP_PARTS = 1024,
    parameter PRM_DEPTH = 64,
    // Lane groups of a vector: BLOCK_OUT / OUT_LANES
    parameter GROUPS    = 2,
    // Parts of INP that a vector takes, a power of two
    parameter PART      = 1
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         stop_i,
    // start
    output wire         ready_o,
    input  wire         start_i,
    input  wire [255:0] insn_i,
    input  wire [  1:0] once_i,  // bits 3 and 2 of vta_once
    input  wire [ 31:0] index_i,
    // slot
    input  wire         hold_i,
    // the same from another register, for ready_o
    input  wire         hold_start_i,
    output wire         active_o,
    output wire         slot_valid_o,
    output wire [ 15:0] read_o,
    output wire [ 15:0] next_in_o,
    output wire         at_end_o,
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
    output wire [  7:0] table_o,
    output wire [ 15:0] set_o,
    output wire [ 31:0] index_o,
    output wire         fault_o
);
  localparam [31:0] LAST_GROUP = GROUPS - 1;
  localparam [15:0] PART_MASK = PART[15:0] - 16'd1;

  // the slot and its vector
  reg         active_q;
  reg [255:0] insn_q;
  reg [ 31:0] index_q;
  reg [ 15:0] read_q, acc_q, res_q, dst_q, prm_q;
  reg [  5:0] group_q;
  reg         second_q;
  reg         bad_q;
  // there is no slot, or it is the last of the instruction: not active_q, or insn_last_q
  reg         at_end_q;
  // what the semaphores need of that, in registers of their own: they are far away
  reg active_start_q, bad_start_q, at_end_start_q;
  // the slot is the last of its vector, of the instruction; the vector is the last of its row, its row the last one
  reg         vector_last_q, insn_last_q;
  reg         row_last_q, out_last_q;
  // vectors left in the row and rows left, with this one; rows of one vector; starts of the row
  reg [ 15:0] in_left_q, out_left_q;
  reg         one_in_q;
  // two of them are left
  reg         in_two_q, out_two_q;
  reg [ 15:0] acc_row_q, dst_row_q;
  // accumulator entry of the vector behind this one; from acc_base to res_base
  reg [ 15:0] acc_next_q, apart_q;

  assign active_o      = active_q;
  assign at_end_o      = at_end_q;
  assign slot_valid_o  = active_q && !bad_q && !hold_i && !stop_i;
  assign fault_o       = active_q && bad_q && !stop_i;
  assign read_o        = read_q;
  assign prm_o         = prm_q;
  assign dst_o         = dst_q;
  assign group_o       = group_q;
  assign second_o      = second_q;
  assign vector_last_o = vector_last_q;
  assign insn_last_o   = insn_last_q;
  assign ready_o       = at_end_start_q && !(active_start_q && (bad_start_q || hold_start_i));
  assign form_o        = insn_q[`VTA_REQUANT_FORM];
  assign to_acc_o      = insn_q[`VTA_REQUANT_DST] == `VTA_DST_ACC;
  assign to_inp_o      = insn_q[`VTA_REQUANT_DST] == `VTA_DST_INP;
  assign rounding_o    = insn_q[`VTA_REQUANT_ROUNDING];
  assign zero_point_o  = insn_q[`VTA_REQUANT_ZERO_POINT];
  assign clip_lo_o     = insn_q[`VTA_REQUANT_CLIP_LO];
  assign clip_hi_o     = insn_q[`VTA_REQUANT_CLIP_HI];
  assign table_o       = insn_q[`VTA_REQUANT_TABLE];
  assign set_o         = insn_q[`VTA_INSN_SET];
  assign index_o       = index_q;

  // What the next cycle has, in registers then.  Where nothing is left of this instruction, everything follows insn_i,
  // started or not, so that only active_q and at_end_q wait for start_i.  at_end_q is there late and far from the rest:
  // both cases are worked out, and it chooses at the end.
  wire        move = !active_q || slot_valid_o;
  wire        next_vector = at_end_q || vector_last_q;
  // the forms with two operands are odd
  wire        is_two = form_o[0];

  // inside of a vector: the next slot
  wire        second_in = is_two && !second_q;
  wire [ 5:0] group_in = (!is_two || second_q) ? group_q + 6'd1 : group_q;
  wire        vector_last_in = (!is_two || second_in) && group_in == LAST_GROUP[5:0];
  wire        second_d = !next_vector && second_in;
  wire [ 5:0] group_d = next_vector ? 6'd0 : group_in;

  // the first slot of a vector: whether it is the last one too, in this instruction and in the one that comes
  wire        single = GROUPS == 1 && !is_two;
  wire [ 1:0] form_i = insn_i[`VTA_REQUANT_FORM];
  wire        single_i = GROUPS == 1 && !form_i[0];
  wire        vector_last_d = at_end_q ? single_i : vector_last_q ? single : vector_last_in;

  // the next vector
  wire        row_last_n = row_last_q ? one_in_q : in_two_q;
  wire        out_last_n = row_last_q ? out_two_q : out_last_q;
  wire        row_last_d = at_end_q ? once_i[0] : row_last_n;
  wire        out_last_d = at_end_q ? once_i[1] : out_last_n;
  wire [15:0] acc_row_n = row_last_q ? acc_next_q : acc_row_q;
  wire [15:0] res_still = res_q + {15'd0, row_last_q};
  wire [15:0] res_n = insn_q[`VTA_REQUANT_STILL] ? res_still : acc_next_q + apart_q;
  wire [15:0] dst_from = row_last_q ? dst_row_q : dst_q;
  wire [15:0] dst_step = row_last_q ? insn_q[`VTA_REQUANT_DST_OUT] : insn_q[`VTA_REQUANT_DST_IN];
  wire [15:0] dst_n = dst_from + dst_step;
  wire [15:0] prm_n = prm_q + (row_last_q ? {8'd0, insn_q[`VTA_REQUANT_PRM_OUT]} : 16'd0);
  wire [15:0] acc_d = at_end_q ? insn_i[`VTA_REQUANT_ACC_BASE] : acc_next_q;
  wire [15:0] res_d = at_end_q ? insn_i[`VTA_REQUANT_RES_BASE] : res_n;
  wire [15:0] dst_d = at_end_q ? insn_i[`VTA_REQUANT_DST_BASE] : dst_n;
  wire [15:0] prm_d = at_end_q ? insn_i[`VTA_REQUANT_PRM_BASE] : prm_n;
  // the one behind it
  wire [15:0] behind_from = at_end_q ? insn_i[`VTA_REQUANT_ACC_BASE] : row_last_n ? acc_row_n : acc_next_q;
  wire [15:0] behind_in = at_end_q ? insn_i[`VTA_REQUANT_ACC_IN] : insn_q[`VTA_REQUANT_ACC_IN];
  wire [15:0] behind_out = at_end_q ? insn_i[`VTA_REQUANT_ACC_OUT] : insn_q[`VTA_REQUANT_ACC_OUT];

  assign next_in_o = vector_last_q ? acc_next_q : second_in ? res_q : acc_q;
  wire [15:0] read_d = at_end_q ? insn_i[`VTA_REQUANT_ACC_BASE] : next_in_o;

  // an index outside
  function outside;
    input [1:0] form;
    input [1:0] where;
    input [15:0] acc, res, dst, prm;
    reg dst_bad, acc_bad, prm_bad;
    begin
      case (where)
        `VTA_DST_ACC: dst_bad = {16'd0, dst} >= ACC_DEPTH;
        `VTA_DST_INP: dst_bad = {16'd0, dst} >= INP_PARTS || |(dst & PART_MASK);
        default: dst_bad = {16'd0, dst} >= OUT_DEPTH;
      endcase
      acc_bad = {16'd0, acc} >= ACC_DEPTH || (form[0] && {16'd0, res} >= ACC_DEPTH);
      prm_bad = form != `VTA_FORM_PASS && {16'd0, prm} >= PRM_DEPTH;
      outside = acc_bad || prm_bad || dst_bad;
    end
  endfunction

  wire        bad_i = outside(insn_i[`VTA_REQUANT_FORM], insn_i[`VTA_REQUANT_DST], insn_i[`VTA_REQUANT_ACC_BASE],
                              insn_i[`VTA_REQUANT_RES_BASE], insn_i[`VTA_REQUANT_DST_BASE], insn_i[`VTA_REQUANT_PRM_BASE]);
  wire        bad_n = outside(form_o, insn_q[`VTA_REQUANT_DST], acc_next_q, res_n, dst_n, prm_n);
  wire        bad_d = at_end_q ? bad_i : bad_n;

  wire        insn_last_i = single_i && &once_i;
  wire        insn_last_n = vector_last_q ? single && row_last_n && out_last_n
      : vector_last_in && row_last_q && out_last_q;
  wire        insn_last_d = at_end_q ? insn_last_i : insn_last_n;
  wire        stays = active_q && !(slot_valid_o && insn_last_q);

  wire        active_d = rst_ni && (stays || start_i);
  wire        at_end_d = !active_d || (move ? insn_last_d : insn_last_q);

  (* keep *)
  always @(posedge clk_i) begin
    {active_q, active_start_q} <= {2{active_d}};
    {at_end_q, at_end_start_q} <= {2{at_end_d}};
    if (move && next_vector) {bad_q, bad_start_q} <= {2{bad_d}};
  end

  always @(posedge clk_i)
    if (move) begin
      read_q        <= read_d;
      group_q       <= group_d;
      second_q      <= second_d;
      vector_last_q <= vector_last_d;
      insn_last_q   <= insn_last_d;
      if (next_vector) begin
        {acc_q, res_q, dst_q, prm_q} <= {acc_d, res_d, dst_d, prm_d};
        {row_last_q, out_last_q} <= {row_last_d, out_last_d};
        acc_next_q <= behind_from + (row_last_d ? behind_out : behind_in);
        if (at_end_q) begin
          insn_q     <= insn_i;
          index_q    <= index_i;
          one_in_q   <= once_i[0];
          apart_q    <= insn_i[`VTA_REQUANT_RES_BASE] - insn_i[`VTA_REQUANT_ACC_BASE];
          in_left_q  <= insn_i[`VTA_REQUANT_ITER_IN];
          out_left_q <= insn_i[`VTA_REQUANT_ITER_OUT];
          in_two_q   <= insn_i[`VTA_REQUANT_ITER_IN] == 16'd2;
          out_two_q  <= insn_i[`VTA_REQUANT_ITER_OUT] == 16'd2;
          acc_row_q  <= insn_i[`VTA_REQUANT_ACC_BASE];
          dst_row_q  <= insn_i[`VTA_REQUANT_DST_BASE];
        end else if (row_last_q) begin
          in_left_q  <= insn_q[`VTA_REQUANT_ITER_IN];
          out_left_q <= out_left_q - 16'd1;
          in_two_q   <= insn_q[`VTA_REQUANT_ITER_IN] == 16'd2;
          out_two_q  <= out_left_q == 16'd3;
          acc_row_q  <= acc_next_q;
          dst_row_q  <= dst_d;
        end else begin
          in_left_q <= in_left_q - 16'd1;
          in_two_q  <= in_left_q == 16'd3;
        end
      end
    end

  wire unused = &{1'b0, insn_q, form_i};
endmodule

`resetall
