// induction 3 BEAT_W=8 WGT_BITS=4 FACTORS=1 ELEM_W=8 DEPTH=4 BEAT_ADDR_W=3
// induction 3 BEAT_W=8 WGT_BITS=8 FACTORS=1 ELEM_W=16 DEPTH=2 BEAT_ADDR_W=3
// induction 3 BEAT_W=8 WGT_BITS=4 FACTORS=2 ELEM_W=32 DEPTH=2 BEAT_ADDR_W=4
// cover 10 BEAT_W=8 WGT_BITS=4 FACTORS=1 ELEM_W=8 DEPTH=4 BEAT_ADDR_W=3

  // A bit of the memory of the solver's choice, by its place among all, and what is written to it two edges later.
  localparam F_BITS = DEPTH * ELEM_W;
  (* anyconst *) reg [$clog2(F_BITS)-1:0] f_at;
  wire [31:0] f_place = {{(32 - $clog2(F_BITS)) {1'b0}}, f_at};
  // Assumed: addresses of the memory's own.
  always @* assume (raddr_i < DEPTH && waddr_i < (expand_i ? F_BITS / BEAT_W / 2 : F_BITS / BEAT_W));
  wire f_hits = we_i && waddr_i == (expand_i ? f_place / BEAT_W / 2 : f_place / BEAT_W);
  wire f_new = expand_i ? wide[f_place%(2*BEAT_W)] : wdata_i[f_place%BEAT_W];
  reg f_hits_1 = 1'b0, f_hits_2 = 1'b0, f_known = 1'b0, f_read = 1'b0, f_new_1, f_new_2, f_bit, f_out;
  reg [1:0] f_age = 2'd0;
  always @(posedge clk_i) begin
    {f_hits_1, f_hits_2, f_new_1, f_new_2} <= {f_hits, f_hits_1, f_new, f_new_1};
    if (f_age != 2'd3) f_age <= f_age + 2'd1;
    // What is in the pipeline when the run begins is anything.
    if (f_age < 2'd2) f_known <= 1'b0;
    else if (f_hits_2) {f_known, f_bit} <= {1'b1, f_new_2};
    if (re_i) begin
      f_read <= f_known && raddr_i == f_place / ELEM_W;
      f_out  <= f_bit;
    end
  end
  wire [ROW_W-1:0] f_row, f_we, f_data;
  generate
    for (i = 0; i < BEATS; i = i + 2) begin : g_f_pair
      for (col = i; col < i + 2; col = col + 1) begin : g_f_col
        assign f_row[col*BEAT_W+:BEAT_W] = g_pair[i].g_col[col].mem_q[f_place/ROW_W];
        assign f_we[col*BEAT_W+:BEAT_W] = {BEAT_W{g_pair[i].g_col[col].we_q && g_pair[i].g_col[col].write_row_q == f_place / ROW_W}};
        assign f_data[col*BEAT_W+:BEAT_W] = g_pair[i].pair_q[(col%2)*BEAT_W+:BEAT_W];
      end
    end
  endgenerate
  wire [31:0] f_in_row = f_place % ROW_W;
  always @* begin
    // P1 What is read is what was written last to each place, by beats three edges ahead of the read or more.
    p1: assert (!f_read || elem_o[f_place%ELEM_W] == f_out);
    // P2 A beat changes its own bits alone, two edges behind its own; with expand_i those of the two beats that vta_widen makes.
    p2: assert (!f_known || f_row[f_in_row] == f_bit);
    p2_write: assert (f_age < 2 || (f_we[f_in_row] == f_hits_2 && (!f_hits_2 || f_data[f_in_row] == f_new_2)));
  end
  generate
    if (ELEMS > 1) begin : g_f_elem
      always @* if (f_read) p1_elem: assert (g_select.elem_q == f_place / ELEM_W % ELEMS);
    end
  endgenerate
  always @* if (f_age < 2) p1_begin: assert (!f_known && !f_read);
  // P3 What was read stays until the next read.
  reg f_holds = 1'b0;
  reg [ELEM_W-1:0] f_was;
  always @(posedge clk_i) {f_holds, f_was} <= {!re_i, elem_o};
  always @* if (f_started && f_holds) p3: assert (elem_o == f_was);
  always @* if (f_started) c1: cover (f_read && f_at == F_BITS - 3 && f_out && !f_bit);
