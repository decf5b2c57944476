// induction 2 SOURCES=2
// induction 2 SOURCES=4
// cover 12 SOURCES=3

  // Sources, codes and indices in the cycle of the first fault, and the edges since then.
  reg f_seen = 1'b0;
  reg [SOURCES-1:0] f_valid;
  reg [SOURCES*8-1:0] f_code;
  reg [SOURCES*32-1:0] f_index;
  reg [7:0] f_edges = 8'd0;
  wire f_first = run_i && |valid_i && !f_seen;
  always @(posedge clk_i)
    if (!rst_ni) {f_seen, f_edges} <= 9'd0;
    else begin
      if (f_first) {f_seen, f_valid, f_code, f_index} <= {1'b1, valid_i, code_i, index_i};
      if (f_seen && f_edges <= SOURCES) f_edges <= f_edges + 8'd1;
    end

  // Of the first sources, one less than the edges, the smallest index, and the code of the first source that has it.
  reg f_found;
  reg [31:0] f_best_index;
  reg [7:0] f_best_code;
  integer f_k;
  always @* begin
    {f_found, f_best_index, f_best_code} = 41'd0;
    for (f_k = 0; f_k < SOURCES; f_k = f_k + 1)
      if (f_k + 1 < f_edges && f_valid[f_k] && (!f_found || f_index[f_k*32+:32] < f_best_index))
        {f_found, f_best_index, f_best_code} = {1'b1, f_index[f_k*32+:32], f_code[f_k*8+:8]};
  end
  wire [7:0] f_at = f_edges - 8'd1;

  always @* if (f_started && rst_ni) begin
    // P1 stop_o is high from the edge on that ends the cycle of the first fault, stop_soon_o in that cycle too.
    p1: assert (stop_o == f_seen && stop_soon_o == (f_seen || f_first) && open_q == !f_seen);
    // P2 Sources count as they were in that cycle, whatever comes later.
    p2: assert (!f_seen || (valids_q == f_valid && codes_q == f_code && indices_q == f_index));
    p2_turn: assert (!f_seen || f_edges > SOURCES || turn_q == (f_edges == SOURCES ? 0 : 1 << f_edges));
    p2_begin: assert (f_seen || (f_edges == 0 && turn_q == 1 && !picked_q && !last_q && !found_q));
    p2_pick: assert (!(f_seen && f_edges >= 1 && f_edges <= SOURCES) || (picked_q == f_valid[f_at]
        && (!picked_q || (pick_code_q == f_code[f_at*8+:8] && pick_index_q == f_index[f_at*32+:32]))));
    p2_first: assert (!(f_seen && f_edges == 0) || (!picked_q && !last_q && !found_q));
    // P3 fault_o is high SOURCES + 1 edges behind stop_o, not before, and stays.
    p3: assert (fault_o == (f_edges == SOURCES + 1) && f_edges <= SOURCES + 1);
    p3_last: assert (!f_seen || f_edges == 0 || f_edges > SOURCES || last_q == (f_edges == SOURCES));
    // P4 Code and index are those of the smallest index; of equal ones the first source's.
    p4: assert (!f_seen || (found_q == f_found && (!f_found || (index_q == f_best_index && code_q == f_best_code))));
    p4_out: assert (!fault_o || (code_o == f_best_code && index_o == f_best_index));
    // P5 A fault is reported only if there was one.
    p5: assert (!f_seen || f_valid != 0);
  end
  // P6 Nothing is reported while run_i is low.
  always @* if (f_started && rst_ni && !f_seen && !run_i) p6: assert (!stop_soon_o && !fault_o);
  always @* if (f_started && rst_ni) c1: cover (fault_o && f_valid == {SOURCES{1'b1}} && code_o == f_code[8+:8]);
