// induction 1 WIDTH=3 DEPTH=2 ADDR_W=1
// induction 1 WIDTH=3 DEPTH=5 ADDR_W=3
// induction 1 WIDTH=3 DEPTH=20 ADDR_W=5
// cover 6 WIDTH=3 DEPTH=5 ADDR_W=3

  // A word of the solver's choice: what was written last to it.
  (* anyconst *) reg [ADDR_W-1:0] f_at;
  // Assumed: addresses of the memory's own.
  always @* assume (f_at < DEPTH && waddr_i < DEPTH && raddr_i < DEPTH);
  reg f_known = 1'b0;
  reg [WIDTH-1:0] f_word;
  always @(posedge clk_i) if (we_i && waddr_i == f_at) {f_known, f_word} <= {1'b1, wdata_i};
  wire [WIDTH-1:0] f_kept = mem_q[{{(WIDE_W - ADDR_W) {f_at[ADDR_W-1]}}, f_at}];
  always @* begin
    // P1 A word that is read is the one that was written last to its address, in the cycle behind the write, too.
    p1: assert (!f_known || raddr_i != f_at || rdata_o == f_word);
    p1_kept: assert (!f_known || f_kept == f_word);
  end
  always @* if (f_started) c1: cover (f_known && raddr_i == f_at && f_at == DEPTH - 1 && f_word == 5);
