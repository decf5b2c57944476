// One int32 lane of the accumulator's update: the GEMM sum, or one ALU operation except MUL.  CLIP is MAX, then MIN.
// In stage O, SHR performs the two coarse shift steps on the old value and computes its rounding bit.  In stage U the
// result is a single addition (old value plus second operand) or one of the two operands.
// Contract, stage O: known_i is the old value unless zero_i (there is none) or new_i (it is result_o, never for SHR);
// amount_i is 0 but for SHR, which has b_i = 0.  MIN and MAX (greater_i): compare_i.  MUL: neither add_i nor compare_i, the
// result is times_i, 0 for all others.
// Latency: result_o belongs to the slot that was in stage O a cycle before; it is undefined while live_i is low, so that
// simulators can skip it.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_alu_lane (
    input  wire        clk_i,
    // stage O
    input  wire        en_i,
    input  wire        zero_i,
    input  wire        new_i,
    input  wire        add_i,
    input  wire        compare_i,
    input  wire        greater_i,
    input  wire [ 1:0] rounding_i,
    input  wire [ 4:0] amount_i,
    input  wire [31:0] known_i,     // old value
    input  wire [31:0] b_i,         // GEMM sum, source lane or immediate
    // stage U
    input  wire        live_i,
    input  wire [31:0] times_i,
    output wire [31:0] old_o,
    output wire [31:0] second_o,
    output wire [31:0] result_o
);
  // The old value and, below it, the highest bit that is dropped.
  function [32:0] prepared;
    input [1:0] amount;  // in eights
    input [31:0] known;
    reg [32:0] by_16;
    begin
      by_16 = amount[1] ? {{16{known[31]}}, known[31:15]} : {known, 1'b0};
      prepared = amount[0] ? {{8{known[31]}}, by_16[32:8]} : by_16;
    end
  endfunction

  // Floor, plus one where the dropped bits ask for it: the highest of them with one of these, each joined by a place of
  // the carry chain, which is faster than gates.  The highest dropped bit is bit k = amount % 8 of what is prepared:
  // HALF_EVEN and HALF_AWAY ask by those below it and by those dropped before, HALF_EVEN by the one above as well.
  function [5:0] ups;
    input [1:0] rounding;
    input [4:0] amount;
    input neg;
    input [22:0] dropped;
    input [8:0] lowest;
    reg even, away;
    reg [8:0] asking;
    reg more;
    begin
      even = rounding == `VTA_ROUNDING_HALF_EVEN;
      away = rounding == `VTA_ROUNDING_HALF_AWAY;
      asking = ({9{even || away}} & ~(9'h1FF << amount[2:0])) | ({9{even}} & (9'h002 << amount[2:0]));
      more = (|amount[4:3] && |dropped[6:0]) || (amount[4] && |dropped[14:7]) || (&amount[4:3] && |dropped[22:15]);
      ups[3:0] = (lowest[3:0] & asking[3:0]) | (lowest[7:4] & asking[7:4]);
      ups[4] = rounding == `VTA_ROUNDING_HALF_UP || (away && !neg) || (lowest[8] && asking[8]);
      ups[5] = (even || away) && more;
    end
  endfunction

  function [31:0] updated;
    input add, compare, greater;
    input [2:0] amount;
    input [5:0] up;
    input [32:0] a;
    input [31:0] b;
    reg [32:0] less, by_4, by_2, by_1;
    reg [37:0] sum;
    reg unused;
    begin
      less = {a[32], a[32:1]} - {b[31], b};
      by_4 = amount[2] ? {{4{a[32]}}, a[32:4]} : a;
      by_2 = amount[1] ? {{2{a[32]}}, by_4[32:2]} : by_4;
      by_1 = amount[0] ? {a[32], by_2[32:1]} : by_2;
      sum = {by_1[32:1], {6{by_1[0]}}} + {b, up};
      updated = (sum[37:6] & {32{add}}) | ((less[32] != greater ? a[32:1] : b) & {32{compare}});
      unused = &{1'b0, less, sum[5:0]};
    end
  endfunction

  reg  [32:0] old_q;
  reg  [31:0] second_q;
  reg  [ 2:0] amount_q;
  reg  [ 5:0] up_q;
  wire [32:0] old = prepared(amount_i[4:3], known_i);

  always @(posedge clk_i)
    if (en_i) begin
      if (zero_i) old_q <= 33'd0;
      else if (new_i) old_q <= {result_o, 1'b0};
      else old_q <= old;
      second_q <= b_i;
      amount_q <= amount_i[2:0];
      up_q     <= ups(rounding_i, amount_i, known_i[31], known_i[22:0], old[8:0]);
    end

  // one register of these for all lanes would be far from most of them
  reg add_q, compare_q, greater_q;
  (* keep *) always @(posedge clk_i) if (en_i) {add_q, compare_q, greater_q} <= {add_i, compare_i, greater_i};

  reg [31:0] result;
  always @*
    if (live_i) result = updated(add_q, compare_q, greater_q, amount_q, up_q, old_q, second_q);
    else result = `VTA_DONT_CARE(32);

  assign old_o    = old_q[32:1];
  assign second_o = second_q;
  assign result_o = result | times_i;
endmodule

`resetall
