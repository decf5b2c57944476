// induction 1 COL_W=3 COLS=2 DEPTH=4 ADDR_W=2
// induction 1 COL_W=4 COLS=1 DEPTH=2 ADDR_W=1
// induction 1 COL_W=2 COLS=3 DEPTH=1 ADDR_W=1
// cover 6 COL_W=3 COLS=2 DEPTH=4 ADDR_W=2

  // A row of the solver's choice: what was written last to each of its columns, and whether anything was.
  (* anyconst *) reg [ADDR_W-1:0] f_row;
  always @* assume (f_row < DEPTH && waddr_i < DEPTH && raddr_i < DEPTH);
  reg [COLS-1:0] f_known = 0, f_read = 0;
  reg [COLS*COL_W-1:0] f_word, f_out;
  // What the last read returned, column by column, if it was of that row and known.
  integer f_c;
  always @(posedge clk_i)
    for (f_c = 0; f_c < COLS; f_c = f_c + 1) begin
      if (we_i[f_c] && waddr_i == f_row) begin
        f_known[f_c] <= 1'b1;
        f_word[f_c*COL_W+:COL_W] <= wdata_i[f_c*COL_W+:COL_W];
      end
      if (re_i) begin
        f_read[f_c] <= raddr_i == f_row && f_known[f_c];
        f_out[f_c*COL_W+:COL_W] <= f_word[f_c*COL_W+:COL_W];
      end
    end

  wire [COLS*COL_W-1:0] f_stored, f_is_known, f_is_read;
  generate
    for (col = 0; col < COLS; col = col + 1) begin : g_f_col
      assign f_stored[col*COL_W+:COL_W] = g_col[col].mem_q[f_row];
      assign f_is_known[col*COL_W+:COL_W] = {COL_W{f_known[col]}};
      assign f_is_read[col*COL_W+:COL_W] = {COL_W{f_read[col]}};
    end
  endgenerate
  always @* begin
    // P1 What is read of a column is what was written last to it in that row, before the cycle of the read.
    p1: assert (((rdata_o ^ f_out) & f_is_read) == 0);
    // P2 A column that is not enabled keeps its word.
    p2: assert (((f_stored ^ f_word) & f_is_known) == 0);
  end
  // P3 What was read stays until the next read.
  reg f_holds = 1'b0;
  reg [COLS*COL_W-1:0] f_was;
  always @(posedge clk_i) {f_holds, f_was} <= {!re_i, rdata_o};
  always @* if (f_started && f_holds) p3: assert (rdata_o == f_was);
  always @* if (f_started) c1: cover (f_read[0] && f_known == {COLS{1'b1}} && f_out[0] && !f_word[0]);
