// Sixteen counting semaphores: waiting units take tokens, finished instructions give them.
// Contract: a unit is granted when every semaphore of its mask is above zero and no unit before it takes one of them
// in this cycle (order: LOAD, COMPUTE, OUTPUT, STORE, ROW); then it takes one token from each.  Tokens given in a cycle are
// counted at the edge that ends it.  A count above 255 raises overflow_o of each unit that gave, two cycles after that
// edge.  soon_o pulses one cycle earlier whenever a token is given: an early, possibly false warning of overflow.
// Latency: a token given at an edge can be taken at the next one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_sems (
    input  wire        clk_i,
    input  wire        rst_ni,
    // takes: one bit and one mask a unit (bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE, 4 ROW)
    input  wire [ 4:0] want_i,
    input  wire [79:0] wait_i,
    output wire [ 4:0] grant_o,
    // gives
    input  wire [ 4:0] give_i,
    input  wire [79:0] set_i,
    // overflow: early warning, and the fault itself
    output wire        soon_o,
    output wire [ 4:0] overflow_o
);
  localparam N = `VTA_SEMAPHORES;

  // gives less the take, from -1 to 5: full adders, which map to fewer cells than a table of cases
  function [3:0] change;
    input take;
    input [4:0] gives;
    reg sum, one, twos, more, down;
    begin
      sum    = gives[0] ^ gives[1] ^ gives[2];
      twos   = (gives[0] && gives[1]) || (gives[0] && gives[2]) || (gives[1] && gives[2]);
      one    = sum ^ gives[3] ^ gives[4];
      more   = (sum && gives[3]) || (sum && gives[4]) || (gives[3] && gives[4]);
      down   = take && !one;
      change = {down && !twos && !more, down ? !twos && !more : twos && more, twos ^ more ^ down, one ^ take};
    end
  endfunction

  function [7:0] after;
    input [7:0] count;
    input [3:0] by;
    after = count + {{4{by[3]}}, by};
  endfunction

  // counts as they were a cycle ago, what has moved since then, and which of them are above zero now
  reg  [8*N-1:0] count_q;
  reg  [  N-1:0] taken_q;
  reg  [  N-1:0] given_0_q;
  reg  [  N-1:0] given_1_q;
  reg  [  N-1:0] given_2_q;
  reg  [  N-1:0] given_3_q;
  reg  [  N-1:0] given_4_q;
  reg            moved_q;
  reg  [  N-1:0] some_q;
  // tokens were given
  reg            gave_q;
  reg  [    4:0] overflow_q;

  wire [  N-1:0] wait_0 = wait_i[0*N+:N];
  wire [  N-1:0] wait_1 = wait_i[1*N+:N];
  wire [  N-1:0] wait_2 = wait_i[2*N+:N];
  wire [  N-1:0] wait_3 = wait_i[3*N+:N];
  wire [  N-1:0] wait_4 = wait_i[4*N+:N];

  // missing tokens and overlapping masks are computed in parallel
  wire           meet_01 = |(wait_0 & wait_1);
  wire           meet_02 = |(wait_0 & wait_2);
  wire           meet_12 = |(wait_1 & wait_2);
  wire           meet_03 = |(wait_0 & wait_3);
  wire           meet_13 = |(wait_1 & wait_3);
  wire           meet_23 = |(wait_2 & wait_3);
  wire           meet_04 = |(wait_0 & wait_4);
  wire           meet_14 = |(wait_1 & wait_4);
  wire           meet_24 = |(wait_2 & wait_4);
  wire           meet_34 = |(wait_3 & wait_4);
  wire           able_0 = want_i[0] && ~|(wait_0 & ~some_q);
  wire           able_1 = want_i[1] && ~|(wait_1 & ~some_q);
  wire           able_2 = want_i[2] && ~|(wait_2 & ~some_q);
  wire           able_3 = want_i[3] && ~|(wait_3 & ~some_q);
  wire           able_4 = want_i[4] && ~|(wait_4 & ~some_q);
  // grants are computed for both cases: LOAD does not start (alone), LOAD starts (behind)
  wire           alone_2 = able_2 && !(able_1 && meet_12);
  wire           alone_3 = able_3 && !(able_1 && meet_13) && !(alone_2 && meet_23);
  wire           alone_4 = able_4 && !(able_1 && meet_14) && !(alone_2 && meet_24) && !(alone_3 && meet_34);
  wire           behind_1 = able_1 && !meet_01;
  wire           behind_2 = able_2 && !meet_02 && !(behind_1 && meet_12);
  wire           behind_3 = able_3 && !meet_03 && !(behind_1 && meet_13) && !(behind_2 && meet_23);
  wire           behind_4 = able_4 && !meet_04 && !(behind_1 && meet_14) && !(behind_2 && meet_24)
      && !(behind_3 && meet_34);
  wire           grant_0 = able_0;
  wire           grant_1 = able_0 ? behind_1 : able_1;
  wire           grant_2 = able_0 ? behind_2 : alone_2;
  wire           grant_3 = able_0 ? behind_3 : alone_3;
  wire           grant_4 = able_0 ? behind_4 : alone_4;
  assign grant_o = {grant_4, grant_3, grant_2, grant_1, grant_0};

  wire [N-1:0] taken = (wait_0 & {N{grant_0}}) | (wait_1 & {N{grant_1}}) | (wait_2 & {N{grant_2}}) | (wait_3 & {N{grant_3}})
      | (wait_4 & {N{grant_4}});
  wire [N-1:0] given_0 = give_i[0] ? set_i[0*N+:N] : {N{1'b0}};
  wire [N-1:0] given_1 = give_i[1] ? set_i[1*N+:N] : {N{1'b0}};
  wire [N-1:0] given_2 = give_i[2] ? set_i[2*N+:N] : {N{1'b0}};
  wire [N-1:0] given_3 = give_i[3] ? set_i[3*N+:N] : {N{1'b0}};
  wire [N-1:0] given_4 = give_i[4] ? set_i[4*N+:N] : {N{1'b0}};
  wire [N-1:0] given = given_0 | given_1 | given_2 | given_3 | given_4;

  // current counts above one, and above 255: undefined where no token moves, so that simulators can skip them
  reg [N-1:0] many;
  reg [N-1:0] over;
  reg [  3:0] by;
  reg [  7:0] count;
  integer s;
  always @* begin
    many  = `VTA_DONT_CARE(N);
    over  = `VTA_DONT_CARE(N);
    by    = 4'd0;
    count = 8'd0;
    s     = 0;
    if (|grant_o)
      for (s = 0; s < N; s = s + 1) begin
        by      = change(taken_q[s], {given_4_q[s], given_3_q[s], given_2_q[s], given_1_q[s], given_0_q[s]});
        count   = after(count_q[s*8+:8], by);
        many[s] = |count[7:1];
      end
    if (moved_q)
      for (s = 0; s < N; s = s + 1) begin
        by      = change(taken_q[s], {given_4_q[s], given_3_q[s], given_2_q[s], given_1_q[s], given_0_q[s]});
        count   = after(count_q[s*8+:8], by);
        // overflow: the count did not decrease, yet its highest bit fell
        over[s] = count_q[s*8+7] && !count[7] && !by[3];
      end
  end

  integer n;
  always @(posedge clk_i)
    if (!rst_ni) begin
      count_q   <= {(8 * N) {1'b0}};
      taken_q   <= {N{1'b0}};
      given_0_q <= {N{1'b0}};
      given_1_q <= {N{1'b0}};
      given_2_q <= {N{1'b0}};
      given_3_q <= {N{1'b0}};
      given_4_q <= {N{1'b0}};
      moved_q   <= 1'b0;
      some_q    <= {N{1'b0}};
      {gave_q, overflow_q} <= 6'd0;
    end else begin
      moved_q <= |grant_o || |give_i;
      if (moved_q)
        for (n = 0; n < N; n = n + 1)
          count_q[n*8+:8] <=
              after(count_q[n*8+:8], change(taken_q[n], {given_4_q[n], given_3_q[n], given_2_q[n], given_1_q[n], given_0_q[n]}));
      taken_q   <= taken;
      given_0_q <= given_0;
      given_1_q <= given_1;
      given_2_q <= given_2;
      given_3_q <= given_3;
      given_4_q <= given_4;
      // taking the last token of a semaphore leaves none, unless one is given in the same cycle
      some_q <= given | (taken & many) | (~taken & some_q);
      gave_q     <= |given;
      overflow_q <= {
        |(given_4_q & over), |(given_3_q & over), |(given_2_q & over), |(given_1_q & over), |(given_0_q & over)
      };
    end

  assign soon_o     = gave_q;
  assign overflow_o = overflow_q;

  wire unused = &{1'b0, count};
endmodule

`resetall
