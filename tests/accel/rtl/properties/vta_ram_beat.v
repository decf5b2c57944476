// induction 1 BEAT_W=4 ELEM_W=2 DEPTH=8 BEAT_ADDR_W=3
// induction 1 BEAT_W=4 ELEM_W=4 DEPTH=4 BEAT_ADDR_W=3
// induction 1 BEAT_W=2 ELEM_W=8 DEPTH=2 BEAT_ADDR_W=4
// cover 8 BEAT_W=2 ELEM_W=8 DEPTH=2 BEAT_ADDR_W=4

  // A bit of the memory of the solver's choice, by its place among all: what was written last to it.
  localparam F_BITS = DEPTH * ELEM_W;
  (* anyconst *) reg [$clog2(F_BITS)-1:0] f_at;
  wire [31:0] f_place = {{(32 - $clog2(F_BITS)) {1'b0}}, f_at};
  wire f_written = we_i && waddr_i == f_place / BEAT_W;
  // Assumed: addresses of the memory's own.
  always @* assume (waddr_i < F_BITS / BEAT_W && raddr_i < DEPTH);
  reg f_known = 1'b0, f_read = 1'b0, f_bit, f_out;
  always @(posedge clk_i) begin
    if (f_written) {f_known, f_bit} <= {1'b1, wdata_i[f_place%BEAT_W]};
    if (re_i) begin
      f_read <= f_known && raddr_i == f_place / ELEM_W;
      f_out  <= f_bit;
    end
  end
  wire [ROW_W-1:0] f_row = mem_q[f_place/ROW_W];
  always @* begin
    // P1 Each bit that is read is the one that was written last to its place, before the cycle of the read.
    p1: assert (!f_read || elem_o[f_place%ELEM_W] == f_out);
    // P2 A beat that is written changes no bit of another one.
    p2: assert (!f_known || f_row[f_place%ROW_W] == f_bit);
  end
  generate
    if (ELEMS > 1) begin : g_f_elem
      always @* if (f_read) p1_elem: assert (g_select.elem_q == f_place / ELEM_W % ELEMS);
    end
  endgenerate
  // P3 What was read stays until the next read.
  reg f_holds = 1'b0;
  reg [ELEM_W-1:0] f_was;
  always @(posedge clk_i) {f_holds, f_was} <= {!re_i, elem_o};
  always @* if (f_started && f_holds) p3: assert (elem_o == f_was);
  always @* if (f_started) c1: cover (f_read && f_at == F_BITS - 3 && f_out && !f_bit);
