// induction 2 INP_LANES=1 OPERAND=1 BLOCK_OUT=1 DEPTH=16 BEAT_W=16 BEAT_ADDR_W=18 LINE=4
// induction 2 INP_LANES=1 OPERAND=1 BLOCK_OUT=2 DEPTH=16 BEAT_W=8 BEAT_ADDR_W=18 LINE=2
// induction 2 INP_LANES=2 OPERAND=2 BLOCK_OUT=1 DEPTH=8 BEAT_W=8 BEAT_ADDR_W=18 LINE=2
// cover 8 INP_LANES=2 OPERAND=2 BLOCK_OUT=1 DEPTH=8 BEAT_W=8 BEAT_ADDR_W=18 LINE=2

  // A bit of the memory of the solver's choice, by its place among all: what was written last to it.
  localparam F_BYTES = DEPTH * INP_LANES;
  localparam F_ENTRY = INP_LANES * 8;
  localparam F_BLOCK = BLOCK_OUT * 8;
  (* anyconst *) reg [15:0] f_at;
  wire [31:0] f_byte = {16'd0, f_at};
  (* anyconst *) reg [2:0] f_n;
  // Assumed: addresses of the memory's own, blocks at their multiples, and that LOAD and OUTPUT do not write together.
  wire [31:0] f_o_byte = {16'd0, o_waddr_i} * PART, f_r_byte = {16'd0, raddr_i} * (window_i ? PART : INP_LANES);
  always @* begin
    assume (f_byte < F_BYTES);
    assume (!(l_we_i && o_we_i));
    assume ({{(32 - BEAT_ADDR_W) {1'b0}}, l_waddr_i} < F_BYTES * 8 / BEAT_W && f_o_byte < F_BYTES && f_o_byte % BLOCK_OUT == 0);
    assume (f_r_byte % (window_i ? BLOCK_OUT : INP_LANES) == 0);
    assume (f_r_byte + (window_i ? 3 * LINE : (OPERAND - 1) * INP_LANES) < F_BYTES);
  end
  wire f_l_hits = l_we_i && l_waddr_i == f_byte * 8 / BEAT_W && l_be_i[f_byte%(BEAT_W/8)];
  wire f_o_hits = o_we_i && f_byte >= f_o_byte && f_byte < f_o_byte + BLOCK_OUT;
  wire f_new = f_o_hits ? o_wdata_i[(f_byte%BLOCK_OUT)*8+f_n] : l_wdata_i[(f_byte%(BEAT_W/8))*8+f_n];

  // The read a cycle ago: whether the byte is among those of the entries, or of the output blocks, and its place there.
  wire [31:0] f_off = f_byte - f_r_byte;
  wire f_in_entry = re_i && !window_i && f_byte >= f_r_byte && f_off < OPERAND * INP_LANES;
  // The output block of each line, at the same place in the four lines from raddr_i's on.
  wire f_in_taps = re_i && window_i && f_byte >= f_r_byte && f_off < 4 * LINE && f_off % LINE < BLOCK_OUT;
  wire [31:0] f_tap = f_byte / LINE % 4;
  reg f_known = 1'b0, f_entry = 1'b0, f_taps = 1'b0, f_bit, f_out;
  reg [31:0] f_where;
  always @(posedge clk_i) begin
    if (f_l_hits || f_o_hits) {f_known, f_bit} <= {1'b1, f_new};
    {f_entry, f_taps} <= {2{f_known}} & {f_in_entry, f_in_taps};
    f_out   <= f_bit;
    f_where <= window_i ? f_tap * F_BLOCK + f_off % LINE * 8 + f_n : f_off * 8 + f_n;
  end
  // The word of the byte's memory, row and column.
  wire [31:0] f_row = f_byte / LINE / 4 * PARTS + f_byte % LINE / ROW;
  wire [4*COLS*COL_W-1:0] f_words;
  generate
    for (r = 0; r < 4; r = r + 1) begin : g_f_ram
      for (i = 0; i < COLS; i = i + 1) begin : g_f_col
        assign f_words[(r*COLS+i)*COL_W+:COL_W] = g_ram[r].g_col[i].mem_q[f_row[ADDR_W-1:0]];
      end
    end
  endgenerate
  always @* if (f_started) begin
    // P1 An entry, or two neighbours, are the bytes that were written last to their places, before the cycle of the read.
    p1: assert (!f_entry || entry_o[f_where] == f_out);
    // P2 With window_i the output blocks are those of the four lines from the one that is read on, each at its memory's place.
    p2: assert (!f_taps || taps_o[f_where] == f_out);
    // P3 A write changes its own bytes alone: those of a beat that are enabled, or an output block.
    p3: assert (!f_known || f_words[(f_tap*COLS+f_byte%ROW/PART)*COL_W+f_byte%PART*8+f_n] == f_bit);
  end
  always @* if (f_started) begin
    c1: cover (f_entry && f_byte == 5 && f_out && !f_bit);
    c2: cover (f_taps && f_byte == F_BYTES - 4 && f_out);
  end
