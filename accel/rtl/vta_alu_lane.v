// One int32 lane of the accumulator's update: the GEMM sum, or one ALU operation except MUL.
// Contract: purely combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_alu_lane (
    input  wire        is_alu_i,
    input  wire        keep_i,      // GEMM: add to the old value
    input  wire [ 3:0] op_i,
    input  wire [ 1:0] rounding_i,
    input  wire [31:0] a_i,         // old value
    input  wire [31:0] sum_i,       // GEMM sum
    input  wire [31:0] b_i,         // source lane or immediate
    output reg  [31:0] result_o
);
  // rounding shift: floor, plus one where the dropped bits ask for it
  function [31:0] shift_right;
    input [31:0] value;
    input [4:0] amount;
    input [1:0] rounding;
    reg [32:0] doubled;
    reg [31:0] mask;
    reg sticky;
    reg up;
    begin
      doubled = $signed({value, 1'b0}) >>> amount;  // bit 0: the highest dropped bit
      mask    = (32'd1 << amount) - 32'd1;
      sticky  = |(value & (mask >> 1));
      case (rounding)
        `VTA_ROUNDING_HALF_UP: up = doubled[0];
        `VTA_ROUNDING_HALF_EVEN: up = doubled[0] && (sticky || doubled[1]);
        `VTA_ROUNDING_HALF_AWAY: up = doubled[0] && (sticky || !value[31]);
        default: up = 1'b0;
      endcase
      shift_right = doubled[32:1] + {31'd0, up};
    end
  endfunction

  // MIN, MAX and CLIP share a comparison, with the upper bound or the second operand
  reg signed [31:0] bound, lower, lesser;
  reg less;

  always @* begin
    result_o = (keep_i ? a_i : 32'd0) + sum_i;
    {bound, lower, lesser, less} = 97'd0;
    if (is_alu_i) begin
      bound  = (op_i == `VTA_ALUOP_CLIP) ? {{16{b_i[15]}}, b_i[15:0]} : b_i;
      lower  = {{16{b_i[31]}}, b_i[31:16]};
      less   = $signed(a_i) < bound;
      lesser = less ? a_i : bound;
      case (op_i)
        `VTA_ALUOP_ADD: result_o = a_i + b_i;
        `VTA_ALUOP_MIN: result_o = lesser;
        `VTA_ALUOP_MAX: result_o = less ? bound : a_i;
        `VTA_ALUOP_SHR: result_o = shift_right(a_i, b_i[4:0], rounding_i);
        `VTA_ALUOP_CLIP: result_o = (lesser > lower) ? lesser : lower;
        default: result_o = b_i;
      endcase
    end
  end
endmodule

`resetall
