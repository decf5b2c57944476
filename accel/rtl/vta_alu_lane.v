// One int32 lane of the accumulator's update: the GEMM sum, or one ALU operation except MUL.
// Most of them are one addition: old value, shifted, plus second operand, plus a rounding increment.  What compares chooses
// one of its operands, or the sum, which is low_i alone then: no carry chain waits for another.
// Contract: purely combinational; without en_i the result is any, so that a simulator need not find it.  GEMM, ADD and
// MOV: a_i and b_i (a_i = 0 for what overwrites).  SHR: amount_i, b_i = 0, and in asking_i the bits of
// 2 a_i >> (amount_i & 24) that ask for rounding up: HALF_EVEN and HALF_AWAY those below bit k = amount_i % 8, HALF_EVEN
// bit k + 1 as well.  MIN, MAX (greater_i) and CLIP (bounds low_i and b_i, which is not below low_i): compare_i.  MUL:
// greater_i alone, the result is 0.  Otherwise low_i is the lowest number, amount_i 0.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_alu_lane (
    input  wire        en_i,
    input  wire        compare_i,
    input  wire        greater_i,
    input  wire [ 1:0] rounding_i,
    input  wire [ 4:0] amount_i,
    input  wire [ 8:0] asking_i,
    input  wire [31:0] low_i,
    input  wire [31:0] a_i,         // old value
    input  wire [31:0] b_i,         // GEMM sum, source lane or immediate
    output reg  [31:0] result_o
);
  function [31:0] updated;
    input compare, greater;
    input [1:0] rounding;
    input [4:0] amount;
    input [8:0] asking;
    input [31:0] low, a, b;
    reg [32:0] less, below, by_16, by_8, by_4, by_2, by_1;
    reg add, take_sum, take_a, take_b, neg, more, half_up, even, away;
    reg [ 4:0] up;
    reg [36:0] first, sum;
    reg unused;
    begin
      // which operand it is: a less than b; a less than low
      less = {a[31], a} - {b[31], b};
      below = {a[31], a} - {low[31], low};
      take_a = compare && less[32] != greater && !below[32];
      take_b = compare && less[32] == greater;
      take_sum = !compare || below[32];
      add = !compare && !greater;

      // the old value shifted, with the highest dropped bit below
      neg = a[31];
      by_16 = amount[4] ? {{16{neg}}, a[31:15]} : {a, 1'b0};
      by_8 = amount[3] ? {{8{neg}}, by_16[32:8]} : by_16;
      by_4 = amount[2] ? {{4{neg}}, by_8[32:4]} : by_8;
      by_2 = amount[1] ? {{2{neg}}, by_4[32:2]} : by_4;
      by_1 = amount[0] ? {neg, by_2[32:1]} : by_2;

      // floor, plus one where the dropped bits ask for it: the highest of them with one of these, each joined by a place
      // of the carry chain, which is faster than gates.  more: one of the bits that the upper steps drop.
      more = (|amount[4:3] && |a[6:0]) || (amount[4] && |a[14:7]) || (&amount[4:3] && |a[22:15]);
      half_up = rounding == `VTA_ROUNDING_HALF_UP;
      even = rounding == `VTA_ROUNDING_HALF_EVEN;
      away = rounding == `VTA_ROUNDING_HALF_AWAY;
      up[3:0] = (by_8[3:0] & asking[3:0]) | (by_8[7:4] & asking[7:4]);
      up[4] = half_up || (away && !neg) || ((even || away) && more) || (by_8[8] && asking[8]);

      first = {by_1[32:1] & {32{add}}, {5{by_1[0]}}};
      sum = first + {(b & {32{add}}) | (low & {32{compare}}), up};
      updated = (sum[36:5] & {32{take_sum}}) | (a & {32{take_a}}) | (b & {32{take_b}});
      unused = &{1'b0, less, below, sum[4:0]};
    end
  endfunction

  always @*
    if (en_i) result_o = updated(compare_i, greater_i, rounding_i, amount_i, asking_i, low_i, a_i, b_i);
    else result_o = {32{1'bx}};
endmodule

`resetall
