// The accumulator scratchpad for simulation: the module of the same name, which says what it does, as one memory of rows.
// Contract: as the synthesised form.  Write data wait once, not in every column.  Users that clash in a bank, which is
// reported, leave a value there that is as unspecified, but a different one.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_acc_mem #(
    // Lanes of an entry
    parameter BLOCK_OUT   = 4,
    // Entries
    parameter ACC_DEPTH   = 1024,
    // Banks, a power of two
    parameter ACC_BANKS   = 4,
    // Lanes that the output stage reads at once
    parameter OUT_LANES   = 2,
    // Bus width in bits
    parameter BEAT_W      = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20,
    // 1: there is a row unit; else its inputs are ignored
    parameter ROW         = 0
) (
    input  wire                    clk_i,
    input  wire                    c_re_i,
    input  wire [            15:0] c_raddr_i,
    output wire [BLOCK_OUT*32-1:0] c_rdata_o,
    input  wire                    c_we_i,
    input  wire [            15:0] c_waddr_i,
    input  wire [BLOCK_OUT*32-1:0] c_wdata_i,
    input  wire                    o_re_i,
    input  wire [            15:0] o_raddr_i,
    input  wire [             5:0] o_rgroup_i,
    output wire [OUT_LANES*32-1:0] o_rdata_o,
    input  wire                    o_we_i,
    input  wire [            15:0] o_waddr_i,
    input  wire [ BLOCK_OUT*8-1:0] o_wdata_i,
    input  wire                    l_we_i,
    input  wire                    l_expand_i,
    input  wire [ BEAT_ADDR_W-1:0] l_waddr_i,
    input  wire [      BEAT_W-1:0] l_wdata_i,
    input  wire                    r_re_i,
    input  wire [            15:0] r_raddr_i,
    output wire [ BLOCK_OUT*8-1:0] r_rdata_o,
    input  wire                    r_we_i,
    input  wire [            15:0] r_waddr_i,
    input  wire [ BLOCK_OUT*8-1:0] r_wdata_i,
    output wire [             2:0] clash_read_o,
    output wire [             3:0] clash_write_o
);
  localparam ENTRY_W = BLOCK_OUT * 32;
  localparam WIDE_W = 4 * BEAT_W;
  localparam ROW_W = (ENTRY_W > WIDE_W) ? ENTRY_W : WIDE_W;
  localparam GROUP_W = OUT_LANES * 32;
  localparam ENTRIES = ROW_W / ENTRY_W;
  localparam ROWS = ACC_DEPTH / ENTRIES;
  localparam ROWS_LOG = (ROWS > 1) ? $clog2(ROWS) : 1;
  localparam ENTRY_LOG = $clog2(ENTRIES);
  localparam PLAIN_LOG = $clog2(ROW_W / BEAT_W);
  localparam WIDE_LOG = $clog2(ROW_W / WIDE_W);
  localparam GROUPS_LOG = $clog2(BLOCK_OUT / OUT_LANES);
  localparam BANK_AT = $clog2(ACC_DEPTH) - $clog2(ACC_BANKS);
  localparam [15:0] ENTRY_MASK = ENTRIES[15:0] - 16'd1;
  localparam [15:0] ROW_MASK = ROWS[15:0] - 16'd1;
  localparam [15:0] BANK_MASK = ACC_BANKS[15:0] - 16'd1;
  localparam [BEAT_ADDR_W-1:0] ONE = 1;
  localparam [BEAT_ADDR_W-1:0] PLAIN_MASK = (ONE << PLAIN_LOG) - ONE;
  localparam [BEAT_ADDR_W-1:0] WIDE_MASK = (ONE << WIDE_LOG) - ONE;

  function automatic [ENTRY_W-1:0] widened_entry;
    input [BLOCK_OUT*8-1:0] bytes;
    integer k;
    for (k = 0; k < BLOCK_OUT; k = k + 1) widened_entry[k*32+:32] = {{24{bytes[k*8+7]}}, bytes[k*8+:8]};
  endfunction

  function automatic [WIDE_W-1:0] widened_beat;
    input [BEAT_W-1:0] bytes;
    integer k;
    for (k = 0; k < BEAT_W / 8; k = k + 1) widened_beat[k*32+:32] = {{24{bytes[k*8+7]}}, bytes[k*8+:8]};
  endfunction

  function automatic [BLOCK_OUT*8-1:0] low_bytes;
    input [ENTRY_W-1:0] entry;
    integer k;
    for (k = 0; k < BLOCK_OUT; k = k + 1) low_bytes[k*8+:8] = entry[k*32+:8];
  endfunction

  // what is written in this cycle
  wire r_re = ROW != 0 && r_re_i;
  reg c_we_q, o_we_q, r_we_q, l_we_q, l_expand_q;
  reg [15:0] c_waddr_q, o_waddr_q, r_waddr_q, l_row_q, l_sub_q;
  reg [BEAT_W-1:0] l_wdata_q;
  wire [BEAT_ADDR_W-1:0] l_row = l_expand_i ? l_waddr_i >> WIDE_LOG : l_waddr_i >> PLAIN_LOG;
  wire [BEAT_ADDR_W-1:0] l_sub = l_expand_i ? l_waddr_i & WIDE_MASK : l_waddr_i & PLAIN_MASK;
  always @(posedge clk_i) begin
    {c_we_q, o_we_q, r_we_q, l_we_q} <= {c_we_i, o_we_i, ROW != 0 && r_we_i, l_we_i};
    if (c_we_i) c_waddr_q <= c_waddr_i;
    if (o_we_i) o_waddr_q <= o_waddr_i;
    if (ROW != 0 && r_we_i) r_waddr_q <= r_waddr_i;
    if (l_we_i) {l_expand_q, l_row_q, l_sub_q, l_wdata_q} <= {l_expand_i, l_row[15:0] & ROW_MASK, l_sub[15:0], l_wdata_i};
  end

  wire [15:0] c_wrow = (c_waddr_q >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] o_wrow = (o_waddr_q >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] r_wrow = (r_waddr_q >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] r_rrow = (r_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] c_rrow = (c_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] o_rrow = (o_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] o_rsub = ((o_raddr_i & ENTRY_MASK) << GROUPS_LOG) | {10'd0, o_rgroup_i};

  reg [ROW_W-1:0] mem_q[0:ROWS-1];
  reg [ENTRY_W-1:0] c_rdata_q;
  reg [GROUP_W-1:0] o_read_q, o_rdata_q;
  reg o_re_q, r_re_q;
  reg [BLOCK_OUT*8-1:0] r_read_q, r_rdata_q;
  assign r_rdata_o = r_rdata_q;
  assign c_rdata_o = c_rdata_q;
  assign o_rdata_o = o_rdata_q;

  generate
    if (ENTRIES > 1) begin : g_entries
      wire [15:0] c_wsub = c_waddr_q & ENTRY_MASK;
      wire [15:0] o_wsub = o_waddr_q & ENTRY_MASK;
      wire [15:0] c_rsub = c_raddr_i & ENTRY_MASK;
      wire [15:0] r_rsub = r_raddr_i & ENTRY_MASK;
      wire [15:0] r_wsub = r_waddr_q & ENTRY_MASK;
      always @(posedge clk_i) begin
        if (c_re_i) c_rdata_q <= mem_q[c_rrow[ROWS_LOG-1:0]][c_rsub[ENTRY_LOG-1:0]*ENTRY_W+:ENTRY_W];
        if (c_we_q) mem_q[c_wrow[ROWS_LOG-1:0]][c_wsub[ENTRY_LOG-1:0]*ENTRY_W+:ENTRY_W] <= c_wdata_i;
        if (o_we_q) mem_q[o_wrow[ROWS_LOG-1:0]][o_wsub[ENTRY_LOG-1:0]*ENTRY_W+:ENTRY_W] <= widened_entry(o_wdata_i);
        if (r_re) r_read_q <= low_bytes(mem_q[r_rrow[ROWS_LOG-1:0]][r_rsub[ENTRY_LOG-1:0]*ENTRY_W+:ENTRY_W]);
        if (r_we_q) mem_q[r_wrow[ROWS_LOG-1:0]][r_wsub[ENTRY_LOG-1:0]*ENTRY_W+:ENTRY_W] <= widened_entry(r_wdata_i);
      end
      wire unused_sub = &{1'b0, c_wsub, o_wsub, r_wsub, c_rsub, r_rsub};
    end else begin : g_entry
      always @(posedge clk_i) begin
        if (c_re_i) c_rdata_q <= mem_q[c_rrow[ROWS_LOG-1:0]];
        if (c_we_q) mem_q[c_wrow[ROWS_LOG-1:0]] <= c_wdata_i;
        if (o_we_q) mem_q[o_wrow[ROWS_LOG-1:0]] <= widened_entry(o_wdata_i);
        if (r_re) r_read_q <= low_bytes(mem_q[r_rrow[ROWS_LOG-1:0]]);
        if (r_we_q) mem_q[r_wrow[ROWS_LOG-1:0]] <= widened_entry(r_wdata_i);
      end
    end
    if (ROW_W > GROUP_W) begin : g_groups
      always @(posedge clk_i)
        if (o_re_i) o_read_q <= mem_q[o_rrow[ROWS_LOG-1:0]][o_rsub[ENTRY_LOG+GROUPS_LOG-1:0]*GROUP_W+:GROUP_W];
    end else begin : g_group
      always @(posedge clk_i) if (o_re_i) o_read_q <= mem_q[o_rrow[ROWS_LOG-1:0]];
    end
    if (ROW_W > WIDE_W) begin : g_wides
      always @(posedge clk_i)
        if (l_we_q && l_expand_q)
          mem_q[l_row_q[ROWS_LOG-1:0]][l_sub_q[WIDE_LOG-1:0]*WIDE_W+:WIDE_W] <= widened_beat(l_wdata_q);
    end else begin : g_wide
      always @(posedge clk_i) if (l_we_q && l_expand_q) mem_q[l_row_q[ROWS_LOG-1:0]] <= widened_beat(l_wdata_q);
    end
  endgenerate

  always @(posedge clk_i) begin
    if (l_we_q && !l_expand_q) mem_q[l_row_q[ROWS_LOG-1:0]][l_sub_q[PLAIN_LOG-1:0]*BEAT_W+:BEAT_W] <= l_wdata_q;
    {o_re_q, r_re_q} <= {o_re_i, r_re};
    if (o_re_q) o_rdata_q <= o_read_q;
    if (r_re_q) r_rdata_q <= r_read_q;
  end

  // users that meet in a bank
  function automatic [15:0] bank;
    input [15:0] entry;
    bank = (entry >> BANK_AT) & BANK_MASK;
  endfunction

  wire [15:0] c_bank = bank(c_waddr_q);
  wire [15:0] o_bank = bank(o_waddr_q);
  wire [15:0] l_bank = bank(l_row_q << ENTRY_LOG);
  wire [15:0] r_bank = bank(r_waddr_q);
  wire co = c_we_q && o_we_q && c_bank == o_bank;
  wire cl = c_we_q && l_we_q && c_bank == l_bank;
  wire ol = o_we_q && l_we_q && o_bank == l_bank;
  wire cr = c_we_q && r_we_q && c_bank == r_bank;
  wire ro = r_we_q && o_we_q && r_bank == o_bank;
  wire rl = r_we_q && l_we_q && r_bank == l_bank;
  assign clash_write_o = {cr || ro || rl, cl || ol || rl, co || ol || ro, co || cl || cr};

  wire read_co = c_re_i && o_re_i && bank(c_raddr_i) == bank(o_raddr_i);
  wire read_cr = c_re_i && r_re && bank(c_raddr_i) == bank(r_raddr_i);
  wire read_ro = r_re && o_re_i && bank(r_raddr_i) == bank(o_raddr_i);
  assign clash_read_o = {read_cr || read_ro, read_co || read_ro, read_co || read_cr};

  wire unused = &{1'b0, l_row, l_sub, l_sub_q, c_wrow, o_wrow, r_wrow, c_rrow, o_rrow, r_rrow, o_rsub, l_row_q};
endmodule

`resetall
