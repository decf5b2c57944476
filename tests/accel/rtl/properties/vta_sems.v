// induction 3
// cover 8

  // One semaphore of the solver's choice is followed: its tokens as given and taken, in 16 bits.
  (* anyconst *) reg [3:0] f_sem;
  wire [4:0] f_wants = {wait_i[64 + f_sem], wait_i[48 + f_sem], wait_i[32 + f_sem], wait_i[16 + f_sem], wait_i[f_sem]};
  wire [4:0] f_gives = give_i & {set_i[64 + f_sem], set_i[48 + f_sem], set_i[32 + f_sem], set_i[16 + f_sem], set_i[f_sem]};
  wire [4:0] f_takes = grant_o & f_wants;
  wire [2:0] f_in = {2'd0, f_gives[0]} + {2'd0, f_gives[1]} + {2'd0, f_gives[2]} + {2'd0, f_gives[3]} + {2'd0, f_gives[4]};
  wire [2:0] f_out = {2'd0, f_takes[0]} + {2'd0, f_takes[1]} + {2'd0, f_takes[2]} + {2'd0, f_takes[3]} + {2'd0, f_takes[4]};
  reg [15:0] f_tokens = 16'd0;
  reg [15:0] f_before = 16'd0;
  reg [4:0] f_gave_1 = 5'd0;
  always @(posedge clk_i)
    if (!rst_ni) {f_tokens, f_before, f_gave_1} <= 37'd0;
    else begin
      f_tokens <= f_tokens + {13'd0, f_in} - {13'd0, f_out};
      f_before <= f_tokens;
      f_gave_1 <= f_gives;
    end
  // Assumed: whoever gets overflow_o stops, so that no count passes 255 by more than the gives of three cycles.
  always @* assume (f_tokens < 16'd261 && f_before < 16'd256);

  wire [7:0] f_count = count_q[f_sem*8+:8];
  wire [3:0] f_change = change(taken_q[f_sem], {given_4_q[f_sem], given_3_q[f_sem], given_2_q[f_sem], given_1_q[f_sem], given_0_q[f_sem]});
  reg f_took_1 = 1'b0;
  always @(posedge clk_i) f_took_1 <= rst_ni && f_out != 0;

  // Units that have their tokens and are not granted; units that wait for what a granted one before them takes.
  wire [4:0] f_able = {(wait_i[79:64] & ~some_q) == 0, (wait_i[63:48] & ~some_q) == 0, (wait_i[47:32] & ~some_q) == 0, (wait_i[31:16] & ~some_q) == 0, (wait_i[15:0] & ~some_q) == 0};
  wire [4:0] f_lost = want_i & f_able & ~grant_o;
  wire [15:0] f_took_0 = grant_o[0] ? wait_i[15:0] : 16'd0;
  wire [15:0] f_took_01 = f_took_0 | (grant_o[1] ? wait_i[31:16] : 16'd0);
  wire [15:0] f_took_012 = f_took_01 | (grant_o[2] ? wait_i[47:32] : 16'd0);
  wire [15:0] f_took_0123 = f_took_012 | (grant_o[3] ? wait_i[63:48] : 16'd0);
  wire [4:0] f_blocked = {(wait_i[79:64] & f_took_0123) != 0, (wait_i[63:48] & f_took_012) != 0, (wait_i[47:32] & f_took_01) != 0, (wait_i[31:16] & f_took_0) != 0, 1'b0};
  always @* if (f_started && rst_ni) begin
    // P1 Conservation: a count is what was given less what was taken.
    p1: assert (f_count == f_before[7:0]);
    p1_now: assert (after(f_count, f_change) == f_tokens[7:0] && {{12{f_change[3]}}, f_change} == f_tokens - f_before);
    p1_given: assert ({given_4_q[f_sem], given_3_q[f_sem], given_2_q[f_sem], given_1_q[f_sem], given_0_q[f_sem]} == f_gave_1);
    p1_taken: assert (taken_q[f_sem] == f_took_1);
    p1_moved: assert (moved_q || (f_tokens == f_before && f_gave_1 == 0 && !f_took_1));
    // P2 A semaphore is known to have tokens exactly while it has some.
    p2: assert (some_q[f_sem] == (f_tokens != 0));
    // P3 No token is taken twice: of the units that are granted in a cycle at most one waits for a semaphore.
    p3: assert (f_out <= 1);
    // P4 No unit is granted that lacks a token, and none that does not ask.
    p4: assert ((f_out == 0 || f_tokens != 0) && (grant_o & ~want_i) == 0);
    // P5 LOAD is granted whenever its tokens are there.
    p5: assert (grant_o[0] || !want_i[0] || (wait_i[15:0] & ~some_q) != 0);
    // P6 A unit that asks and has its tokens is refused only if a granted unit before it takes one of them.
    p6: assert ((f_lost & ~f_blocked) == 0);
  end

  // P7 soon_o is high in the cycle after any gives, and only then.
  reg f_any = 1'b0;
  always @(posedge clk_i) f_any <= rst_ni && ((give_i[0] && set_i[15:0] != 0) || (give_i[1] && set_i[31:16] != 0)
      || (give_i[2] && set_i[47:32] != 0) || (give_i[3] && set_i[63:48] != 0) || (give_i[4] && set_i[79:64] != 0));
  always @* if (f_started && rst_ni) p7: assert (soon_o == f_any);

  // P8 A count that passes 255 is reported, two cycles after the edge that counts, to every unit that gave.
  reg [4:0] f_due_0 = 5'd0;
  always @(posedge clk_i) f_due_0 <= (rst_ni && f_tokens > 16'd255) ? f_gave_1 : 5'd0;
  always @* if (f_started && rst_ni) p8: assert ((f_due_0 & ~overflow_o) == 0);

  always @* if (f_started && rst_ni) begin
    c1: cover (grant_o == 5'b11111);
    c2: cover (grant_o == 5'b10000 && want_i == 5'b11111 && some_q[f_sem]);
    c3: cover (f_tokens == 4 && f_out == 1);
  end
