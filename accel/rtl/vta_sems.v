// The counting semaphores: takes of waiting units and gives of finished instructions.
// Contract: a unit is granted when every semaphore of its mask is above zero and no unit before it takes one of them
// in this cycle (order: LOAD, COMPUTE, OUTPUT, STORE); then it takes one token from each.  Gives are counted at the
// edge that ends the cycle.  A count that would pass 255 raises overflow_o with the smallest giver's index.
// Latency: a token given at an edge can be taken at the next one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_sems (
    input  wire         clk_i,
    input  wire         rst_ni,
    input  wire         run_i,
    // takes: one bit and one mask a unit (bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE)
    input  wire [  3:0] want_i,
    input  wire [ 63:0] wait_i,
    output wire [  3:0] grant_o,
    // gives
    input  wire [  3:0] give_i,
    input  wire [ 63:0] set_i,
    input  wire [127:0] index_i,
    // fault
    output wire         overflow_o,
    output reg  [ 31:0] overflow_index_o
);
  localparam N = `VTA_SEMAPHORES;
  localparam [9:0] MAXIMUM = `VTA_SEMAPHORE_MAX;

  // gives less a take, -1 to 4
  function [3:0] change;
    input take;
    input [3:0] gives;
    case (gives)
      4'b0000: change = take ? 4'hF : 4'd0;
      4'b0001, 4'b0010, 4'b0100, 4'b1000: change = take ? 4'd0 : 4'd1;
      4'b0111, 4'b1011, 4'b1101, 4'b1110: change = take ? 4'd2 : 4'd3;
      4'b1111: change = take ? 4'd3 : 4'd4;
      default: change = take ? 4'd1 : 4'd2;
    endcase
  endfunction

  wire [N-1:0] some;
  wire [N-1:0] wait_0 = wait_i[0*N+:N];
  wire [N-1:0] wait_1 = wait_i[1*N+:N];
  wire [N-1:0] wait_2 = wait_i[2*N+:N];
  wire [N-1:0] wait_3 = wait_i[3*N+:N];

  wire grant_0 = run_i && want_i[0] && ~|(wait_0 & ~some);
  wire [N-1:0] used_1 = grant_0 ? wait_0 : {N{1'b0}};
  wire grant_1 = run_i && want_i[1] && ~|(wait_1 & (~some | used_1));
  wire [N-1:0] used_2 = used_1 | (grant_1 ? wait_1 : {N{1'b0}});
  wire grant_2 = run_i && want_i[2] && ~|(wait_2 & (~some | used_2));
  wire [N-1:0] used_3 = used_2 | (grant_2 ? wait_2 : {N{1'b0}});
  wire grant_3 = run_i && want_i[3] && ~|(wait_3 & (~some | used_3));
  wire [N-1:0] used = used_3 | (grant_3 ? wait_3 : {N{1'b0}});
  assign grant_o = {grant_3, grant_2, grant_1, grant_0};

  wire [N-1:0] set_0 = give_i[0] ? set_i[0*N+:N] : {N{1'b0}};
  wire [N-1:0] set_1 = give_i[1] ? set_i[1*N+:N] : {N{1'b0}};
  wire [N-1:0] set_2 = give_i[2] ? set_i[2*N+:N] : {N{1'b0}};
  wire [N-1:0] set_3 = give_i[3] ? set_i[3*N+:N] : {N{1'b0}};

  // counts change only where a token moves
  reg  [8*N-1:0] count_q;
  reg  [  N-1:0] some_q;
  reg  [8*N-1:0] next;
  reg  [  N-1:0] over;
  reg  [    9:0] sum;
  reg  [    3:0] by;
  wire [  N-1:0] moved = used | set_0 | set_1 | set_2 | set_3;
  integer s;
  assign some = some_q;

  always @* begin
    next = count_q;
    over = {N{1'b0}};
    sum  = 10'd0;
    by   = 4'd0;
    s    = 0;
    if (|moved)
      for (s = 0; s < N; s = s + 1) begin
        by  = change(used[s], {set_3[s], set_2[s], set_1[s], set_0[s]});
        sum = {2'd0, count_q[s*8+:8]} + {{6{by[3]}}, by};
        next[s*8+:8] = sum[7:0];
        over[s] = sum > MAXIMUM;
      end
  end

  integer n;
  always @(posedge clk_i)
    if (!rst_ni) begin
      count_q <= {(8 * N) {1'b0}};
      some_q  <= {N{1'b0}};
    end else if (|moved) begin
      count_q <= next;
      for (n = 0; n < N; n = n + 1) some_q[n] <= |next[n*8+:8];
    end

  // the smallest index among the units that gave to an overflowing semaphore
  wire [3:0] guilty = {|(set_3 & over), |(set_2 & over), |(set_1 & over), |(set_0 & over)};
  assign overflow_o = run_i && |guilty;
  always @* begin
    overflow_index_o = 32'hffffffff;
    if (guilty[0] && index_i[0*32+:32] < overflow_index_o) overflow_index_o = index_i[0*32+:32];
    if (guilty[1] && index_i[1*32+:32] < overflow_index_o) overflow_index_o = index_i[1*32+:32];
    if (guilty[2] && index_i[2*32+:32] < overflow_index_o) overflow_index_o = index_i[2*32+:32];
    if (guilty[3] && index_i[3*32+:32] < overflow_index_o) overflow_index_o = index_i[3*32+:32];
  end
endmodule

`resetall
