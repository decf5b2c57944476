// induction 1 BEAT_W=4 ELEM_W=2 DEPTH=8 BEAT_ADDR_W=3
// induction 1 BEAT_W=4 ELEM_W=4 DEPTH=4 BEAT_ADDR_W=3
// induction 1 BEAT_W=2 ELEM_W=8 DEPTH=2 BEAT_ADDR_W=4
// cover 8 BEAT_W=4 ELEM_W=2 DEPTH=8 BEAT_ADDR_W=3

  // A bit of the memory of the solver's choice, by its place among all: what was written last to it.
  localparam F_BITS = DEPTH * ELEM_W;
  (* anyconst *) reg [$clog2(F_BITS)-1:0] f_at;
  wire [31:0] f_place = {{(32 - $clog2(F_BITS)) {1'b0}}, f_at};
  wire f_written = we_i && waddr_i == f_place / ELEM_W;
  // Assumed: addresses of the memory's own.
  always @* assume (waddr_i < DEPTH && raddr_i < F_BITS / BEAT_W);
  reg f_known = 1'b0, f_read = 1'b0, f_bit, f_out;
  always @(posedge clk_i) begin
    if (f_written) {f_known, f_bit} <= {1'b1, wdata_i[f_place%ELEM_W]};
    if (re_i) begin
      f_read <= f_known && raddr_i == f_place / BEAT_W;
      f_out  <= f_bit;
    end
  end
  // Words of the columns; a shape has those of its rows and columns alone.
  (* hierconn *) wire [ELEM_W-1:0] \u_ram.g_col[0].mem_q[0] , \u_ram.g_col[0].mem_q[1] , \u_ram.g_col[0].mem_q[2] , \u_ram.g_col[0].mem_q[3] ;
  (* hierconn *) wire [ELEM_W-1:0] \u_ram.g_col[1].mem_q[0] , \u_ram.g_col[1].mem_q[1] , \u_ram.g_col[1].mem_q[2] , \u_ram.g_col[1].mem_q[3] ;
  wire [4*ELEM_W-1:0] f_even = { \u_ram.g_col[0].mem_q[3] , \u_ram.g_col[0].mem_q[2] , \u_ram.g_col[0].mem_q[1] , \u_ram.g_col[0].mem_q[0] };
  wire [4*ELEM_W-1:0] f_odd = { \u_ram.g_col[1].mem_q[3] , \u_ram.g_col[1].mem_q[2] , \u_ram.g_col[1].mem_q[1] , \u_ram.g_col[1].mem_q[0] };
  wire [4*ELEM_W-1:0] f_col = f_place / ELEM_W % ELEMS != 0 ? f_odd : f_even;
  wire [31:0] f_in_col = f_place / ROW_W * ELEM_W + f_place % ELEM_W;
  always @* begin
    // P1 Each bit that is read is the one that was written last to its place, before the cycle of the read.
    p1: assert (!f_read || beat_o[f_place%BEAT_W] == f_out);
    // P2 An element that is written changes no bit of another one.
    p2: assert (!f_known || f_col[f_in_col] == f_bit);
  end
  generate
    if (BEATS > 1) begin : g_f_beat
      always @* if (f_read) p1_beat: assert (g_select.beat_q == f_place / BEAT_W % BEATS);
    end
  endgenerate
  // P3 What was read stays until the next read.
  reg f_holds = 1'b0;
  reg [BEAT_W-1:0] f_was;
  always @(posedge clk_i) {f_holds, f_was} <= {!re_i, beat_o};
  always @* if (f_started && f_holds) p3: assert (beat_o == f_was);
  always @* if (f_started) c1: cover (f_read && f_at == F_BITS - 3 && f_out && !f_bit);
