// induction 3 WIDTH=2 DEPTH=1
// induction 3 WIDTH=2 DEPTH=3
// induction 3 WIDTH=2 DEPTH=4 EARLY=1
// induction 3 WIDTH=2 DEPTH=3 EARLY=2
// induction 4 WIDTH=2 DEPTH=3 EARLY=1 RESTS=1
// cover 12 WIDTH=2 DEPTH=3 EARLY=1

  // Assumed: its contract.
  reg f_popped = 1'b0;
  always @(posedge clk_i) f_popped <= rst_ni && pop_i;
  always @* if (rst_ni) begin
    assume (!(push_i && full_o));
    assume (!(pop_i && !valid_o));
    if (RESTS != 0) assume (!(pop_i && f_popped));
  end

  // An entry of the solver's choice is followed: f_ahead is the number of those in front of it.
  localparam F_W = 8;
  (* anyconst *) reg [WIDTH-1:0] f_value;
  (* anyseq *) wire f_choose;
  reg f_in = 1'b0, f_done = 1'b0;
  reg [F_W-1:0] f_ahead = 0, f_count = 0;
  reg [ADDR_W-1:0] f_place = 0;
  wire f_starts = push_i && !f_in && !f_done && f_choose && data_i == f_value;
  wire f_leaves = f_in && pop_i && f_ahead == 0;
  always @(posedge clk_i)
    if (!rst_ni) begin
      {f_in, f_done} <= 2'd0;
      f_ahead <= 0;
      f_count <= 0;
    end else begin
      f_count <= f_count + {{(F_W - 1) {1'b0}}, push_i} - {{(F_W - 1) {1'b0}}, pop_i};
      if (f_starts) begin
        f_in    <= 1'b1;
        f_ahead <= f_count - {{(F_W - 1) {1'b0}}, pop_i};
        f_place <= write_q;
      end else if (f_in && pop_i) f_ahead <= f_ahead - 1'b1;
      if (f_leaves) {f_in, f_done} <= 2'b01;
    end

  // The words that a queue of at most four entries uses (see vta_ram_async), and the followed one's.
  localparam LATE_W = (WIDTH > EARLY) ? WIDTH - EARLY : 1, EARLY_W = (EARLY > 0) ? EARLY : 1;
  (* hierconn *) wire [LATE_W-1:0] \g_late.u_ram.mem_q[0] , \g_late.u_ram.mem_q[1] , \g_late.u_ram.mem_q[14] , \g_late.u_ram.mem_q[15] ;
  (* hierconn *) wire [EARLY_W-1:0] \g_early.u_ram.mem_q[0] , \g_early.u_ram.mem_q[1] , \g_early.u_ram.mem_q[14] , \g_early.u_ram.mem_q[15] ;
  reg [LATE_W-1:0] f_late;
  reg [EARLY_W-1:0] f_early;
  always @* case ({ADDR_W == 1, f_place})
    0: {f_late, f_early} = {\g_late.u_ram.mem_q[0] , \g_early.u_ram.mem_q[0] };
    1: {f_late, f_early} = {\g_late.u_ram.mem_q[1] , \g_early.u_ram.mem_q[1] };
    2: {f_late, f_early} = ADDR_W == 1 ? {\g_late.u_ram.mem_q[0] , \g_early.u_ram.mem_q[0] }
                                       : {\g_late.u_ram.mem_q[14] , \g_early.u_ram.mem_q[14] };
    default: {f_late, f_early} = {\g_late.u_ram.mem_q[15] , \g_early.u_ram.mem_q[15] };
  endcase
  wire f_late_holds = EARLY >= WIDTH || f_late == f_value[WIDTH-1:WIDTH-LATE_W];
  wire f_early_holds = EARLY == 0 || f_early == f_value[EARLY_W-1:0];

  // Where the pointers stand to each other.
  wire [F_W-1:0] f_span = {{(F_W - ADDR_W) {1'b0}}, write_q} + ((write_q < read_q || (write_q == read_q && f_count != 0)) ? DEPTH : 0)
      - {{(F_W - ADDR_W) {1'b0}}, read_q};
  wire [F_W-1:0] f_at = {{(F_W - ADDR_W) {1'b0}}, read_q} + f_ahead;
  localparam F_COUNT_W = $clog2(DEPTH + 1);
  (* hierconn *) wire [F_COUNT_W-1:0] \u_count.count_q ;
  (* hierconn *) wire \u_count.any_q , \u_count.full_q ;
  always @* if (f_started) begin
    // P1 Occupancy: valid_o and full_o say whether entries are there, and whether there is room.
    p1: assert (valid_o == (f_count != 0) && full_o == (f_count == DEPTH) && f_count <= DEPTH);
    p1_count: assert (\u_count.count_q == f_count && \u_count.any_q == valid_o && \u_count.full_q == full_o);
    // P2 Pointers stay inside and apart by the number of entries.
    p2: assert (read_q < DEPTH && write_q < DEPTH && f_span == f_count);
    // P3 An entry stays where it was written, with those in front of it between it and the reader.
    p3: assert (!f_in || (f_ahead < f_count && f_at - (f_at >= DEPTH ? DEPTH : 0) == {{(F_W - ADDR_W) {1'b0}}, f_place}));
    // P4 An entry in the memory is not overwritten.
    p4: assert (!f_in || (f_late_holds && f_early_holds));
    // P5 Order and data: an entry leaves when those in front of it have left, with the bits that it came with.
    p5: assert (!(f_in && f_ahead == 0) || data_o == f_value || (RESTS != 0 && f_popped));
  end
  reg f_was_full = 1'b0;
  always @(posedge clk_i) f_was_full <= rst_ni && (f_was_full || full_o);
  always @* if (f_started) begin
    c1: cover (f_was_full && !valid_o && f_done);
    c2: cover (f_in && f_ahead == DEPTH - 1 && f_value == 1);
  end
