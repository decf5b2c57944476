// induction 2 AXI_DATA_BITS=64 BURST_BEATS=64
// induction 2 AXI_DATA_BITS=128 BURST_BEATS=4
// induction 2 AXI_DATA_BITS=256 BURST_BEATS=8
// cover 16 AXI_DATA_BITS=256 BURST_BEATS=4

  // Assumed: registers of the host hold, and a reset lasts three cycles at least; a program lies at 32 bytes.
  reg [2:0] f_resets = 3'd0;
  reg [95:0] f_held;
  always @(posedge clk_i) begin
    f_resets <= {f_resets[1:0], !rst_ni};
    f_held <= {window_bytes_i, program_i, count_i};
  end
  always @* begin
    if (f_started) assume ({window_bytes_i, program_i, count_i} == f_held);
    if (f_resets[0] && f_resets != 3'b111) assume (!rst_ni);
    assume (program_i[4:0] == 0 && window_bytes_i[4:0] == 0);
    assume (!insn_pop_i || insn_valid_o);
  end

  // In beats: the program, what was asked for, and of that what was not taken out of the buffer yet, and is there.
  wire [36:0] f_begin = {5'd0, program_i} >> BUS_LOG, f_window = {5'd0, window_bytes_i} >> BUS_LOG;
  wire [36:0] f_end = f_begin + ({5'd0, count_i} << INSN_LOG);
  reg [36:0] f_next;
  reg [8:0] f_asked = 0, f_there = 0;
  wire [8:0] f_popped = insn_pop_i ? INSN_BEATS : 0;
  // Assumed of the bus: beats come that were asked for.
  always @* assume (!(rst_ni && beat_i && f_there == f_asked));
  always @(posedge clk_i)
    if (!rst_ni) begin
      f_next  <= f_begin;
      f_asked <= 0;
      f_there <= 0;
    end else begin
      if (ask) f_next <= f_next + {30'd0, req_beats_o};
      f_asked <= f_asked + (ask ? {2'd0, req_beats_o} : 9'd0) - f_popped;
      f_there <= f_there + {8'd0, beat_i} - f_popped;
    end

  wire f_runs = f_started && rst_ni;
  wire [36:0] f_chunk = {{(37 - NUMBER_W) {1'b0}}, chunk_q} << CHUNK_LOG;
  wire f_whole = f_end <= f_window;
  wire [36:0] f_limit = (f_whole ? f_end : f_window) >> CHUNK_LOG;
  (* hierconn *) wire [5:0] \u_buffer.u_count.count_q ;
  (* hierconn *) wire \u_buffer.u_count.any_q , \u_buffer.u_count.full_q ;
  wire [8:0] f_part = f_there & (INSN_BEATS - 1);
  always @* if (f_runs) begin
    // P1 Requests follow each other from the program's first beat on: none is passed over, none is asked for twice.
    p1: assert (!(inside_q || outside_q) || f_chunk + {30'd0, skip_q} == f_next);
    p1_launch: assert (whole_q == f_whole && final_q == f_limit[NUMBER_W-1:0] && tail_q == (f_end[6:0] & CHUNK_MASK[6:0]));
    p1_next: assert (next_q == chunk_q + 1'b1 && {25'd0, skip_q} < CHUNK && f_begin <= f_next);
    p1_final: assert (final_chunk_q == (chunk_q >= final_q && whole_q));
    // P2 Nothing behind the last of COUNT instructions is asked for.
    p2: assert (!req_valid_o || f_next + {30'd0, req_beats_o} <= f_end);
    p2_inside: assert (!inside_q || f_next + {30'd0, beats_q} <= f_end);
    // P3 Nothing outside of the window is asked for.
    p3: assert (!inside_q || f_next + {30'd0, beats_q} <= f_window);
    // P4 A burst lies in one chunk, which is eight instructions or BURST_BEATS long and aligned to its own size.
    p4: assert (!inside_q || (beats_q != 0 && {25'd0, skip_q} + {25'd0, beats_q} <= CHUNK));
    // P5 A burst ends with its chunk or with the program.
    p5: assert (!inside_q || {25'd0, skip_q} + {25'd0, beats_q} == CHUNK || f_next + {30'd0, beats_q} == f_end);
    // P6 If nothing more is asked for, all of COUNT was, or the window ends before it.
    p6: assert (inside_q || outside_q || f_next == f_end);
    p6_end: assert (f_next <= f_end);
    // P7 A fault of the range means that the program goes on outside of the window.
    p7: assert (!range_fault_o || (!f_whole && f_next <= f_end && (f_next >> CHUNK_LOG) >= (f_window >> CHUNK_LOG)));
    p7_outside: assert (!outside_q || (!whole_q && chunk_q >= final_q));
    // P8 The buffer has room for all that was asked for.
    p8: assert (f_asked <= ROOM && f_there <= f_asked);
    p8_margin: assert ($signed({margin_q[8], margin_q}) == $signed({1'b0, ROOM[8:0]}) - $signed({1'b0, f_asked}) - $signed({3'd0, beats_q}));
    p8_beats: assert ({25'd0, beats_q} <= CHUNK);
    p8_count: assert ({3'd0, \u_buffer.u_count.count_q } * INSN_BEATS + f_part == f_there && \u_buffer.u_count.count_q <= DEPTH);
    p8_flags: assert (\u_buffer.u_count.any_q == (\u_buffer.u_count.count_q != 0) && \u_buffer.u_count.full_q == (\u_buffer.u_count.count_q == DEPTH));
    // P9 No instruction that arrives finds the buffer full.
    p9: assert (!(push && full));
  end
  generate
    if (INSN_BEATS > 1) begin : g_f_part
      always @* if (f_runs) p8_part: assert (g_assemble.beat_q == f_part[INSN_LOG-1:0]);
    end
  endgenerate
  // P10 A request stays as it is until it is taken.
  reg f_waits = 1'b0;
  reg [38:0] f_request;
  always @(posedge clk_i) begin
    f_waits <= rst_ni && req_valid_o && !req_ready_i;
    f_request <= {req_offset_o, req_beats_o};
  end
  always @* if (f_runs && f_waits) p10: assert (req_valid_o && {req_offset_o, req_beats_o} == f_request);

  always @* if (f_runs) begin
    c1: cover (f_next == f_end && f_there == 0 && count_i > 3);
    c2: cover (range_fault_o && run_i && f_asked > 2);
  end
