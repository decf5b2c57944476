// One int32 lane of the accumulator's update: the GEMM sum, or one ALU operation except MUL.
// All of them are one addition: old value, shifted and masked, plus second operand, masked, plus a rounding increment.
// Contract: purely combinational.  GEMM, ADD and MOV: a_i and b_i (a_i = 0 for what overwrites).  SHR: amount_i, b_i = 0,
// and in asking_i the bits of 2 a_i >> (amount_i & 24) that ask for rounding up: HALF_EVEN and HALF_AWAY those below bit
// k = amount_i % 8, HALF_EVEN bit k + 1 as well.  MIN, MAX (greater_i) and CLIP (bounds low_i and b_i, which is not below
// low_i): compare_i.  MUL: greater_i alone, the result is 0.  Otherwise low_i is the lowest number, amount_i 0.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_alu_lane (
    input  wire        compare_i,
    input  wire        greater_i,
    input  wire [ 1:0] rounding_i,
    input  wire [ 4:0] amount_i,
    input  wire [ 8:0] asking_i,
    input  wire [31:0] low_i,
    input  wire [31:0] a_i,         // old value
    input  wire [31:0] b_i,         // GEMM sum, source lane or immediate
    output wire [31:0] result_o
);
  // which operand it is: a_i less than b_i; a_i less than low_i
  wire [32:0] less = {a_i[31], a_i} - {b_i[31], b_i};
  wire [32:0] below = {a_i[31], a_i} - {low_i[31], low_i};
  wire        take_a = compare_i ? less[32] != greater_i && !below[32] : !greater_i;
  wire        take_b = compare_i ? less[32] == greater_i : !greater_i;

  // the old value shifted, with the highest dropped bit below
  wire        neg = a_i[31];
  wire [32:0] by_16 = amount_i[4] ? {{16{neg}}, a_i[31:15]} : {a_i, 1'b0};
  wire [32:0] by_8 = amount_i[3] ? {{8{neg}}, by_16[32:8]} : by_16;
  wire [32:0] by_4 = amount_i[2] ? {{4{neg}}, by_8[32:4]} : by_8;
  wire [32:0] by_2 = amount_i[1] ? {{2{neg}}, by_4[32:2]} : by_4;
  wire [32:0] by_1 = amount_i[0] ? {neg, by_2[32:1]} : by_2;

  // floor, plus one where the dropped bits ask for it: the highest of them with one of these, each joined by a place of the
  // carry chain, which is faster than gates.  more: one of the bits that the upper steps drop.
  wire        more = (|amount_i[4:3] && |a_i[6:0]) || (amount_i[4] && |a_i[14:7]) || (&amount_i[4:3] && |a_i[22:15]);
  wire        half_up = rounding_i == `VTA_ROUNDING_HALF_UP;
  wire        even = rounding_i == `VTA_ROUNDING_HALF_EVEN;
  wire        away = rounding_i == `VTA_ROUNDING_HALF_AWAY;
  wire [ 4:0] up;
  assign up[3:0] = (by_8[3:0] & asking_i[3:0]) | (by_8[7:4] & asking_i[7:4]);
  assign up[4]   = half_up || (away && !neg) || ((even || away) && more) || (by_8[8] && asking_i[8]);

  wire [36:0] first = {by_1[32:1] & {32{take_a}}, {5{by_1[0]}}};
  wire [31:0] second = (b_i & {32{take_b}}) | (low_i & {32{below[32]}});
  wire [36:0] sum = first + {second, up};
  assign result_o = sum[36:5];

  wire unused = &{1'b0, less, below, sum[4:0]};
endmodule

`resetall
