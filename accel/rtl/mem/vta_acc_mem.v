// The accumulator scratchpad: ACC_BANKS banks, each with one read and one write port, and four users.
// Contract: users keep apart per bank and cycle; the outputs clash_* name the users that did not (no arbitration:
// what is read or written then is unspecified).  A read in the cycle of a write to the same entry returns the old
// entry.  Bank = entry / (ACC_DEPTH / ACC_BANKS).  COMPUTE, OUTPUT and ROW say in one cycle that they write and where, and
// bring what in the next one; that is the cycle of the write, and of its clash.  LOAD says both in the first of them.
// Latency: c_rdata_o is valid for one cycle after the edge that samples the read; o_rdata_o and r_rdata_o are valid after the
// edge behind that one, until the next read of the same user is.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

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
    // COMPUTE: entry read and entry write, its data a cycle later
    input  wire                    c_re_i,
    input  wire [            15:0] c_raddr_i,
    output wire [BLOCK_OUT*32-1:0] c_rdata_o,
    input  wire                    c_we_i,
    input  wire [            15:0] c_waddr_i,
    input  wire [BLOCK_OUT*32-1:0] c_wdata_i,
    // OUTPUT: read of one lane group of an entry, entry write, its data a cycle later
    input  wire                    o_re_i,
    input  wire [            15:0] o_raddr_i,
    input  wire [             5:0] o_rgroup_i,
    output wire [OUT_LANES*32-1:0] o_rdata_o,
    input  wire                    o_we_i,
    input  wire [            15:0] o_waddr_i,
    // a byte for each lane, widened
    input  wire [ BLOCK_OUT*8-1:0] o_wdata_i,
    // LOAD: beat write, plain or with each byte widened to a lane; written a cycle later
    input  wire                    l_we_i,
    input  wire                    l_expand_i,
    input  wire [ BEAT_ADDR_W-1:0] l_waddr_i,
    input  wire [      BEAT_W-1:0] l_wdata_i,
    // ROW: read of the low bytes of an entry's lanes, entry write, its data a cycle later: a byte for each lane, widened
    input  wire                    r_re_i,
    input  wire [            15:0] r_raddr_i,
    output wire [ BLOCK_OUT*8-1:0] r_rdata_o,
    input  wire                    r_we_i,
    input  wire [            15:0] r_waddr_i,
    input  wire [ BLOCK_OUT*8-1:0] r_wdata_i,
    // users that read a bank together (bit 0 COMPUTE, 1 OUTPUT, 2 ROW), that write one (bit 0 COMPUTE, 1 OUTPUT, 2 LOAD,
    // 3 ROW)
    output wire [             2:0] clash_read_o,
    output wire [             3:0] clash_write_o
);
  localparam ENTRY_W = BLOCK_OUT * 32;
  localparam WIDE_W = 4 * BEAT_W;
  localparam ROW_W = (ENTRY_W > WIDE_W) ? ENTRY_W : WIDE_W;
  localparam LANE_GROUP_W = OUT_LANES * 32;
  localparam SMALL_W = (ENTRY_W < BEAT_W) ? ENTRY_W : BEAT_W;
  localparam COL_W = (SMALL_W < LANE_GROUP_W) ? SMALL_W : LANE_GROUP_W;
  localparam ROW_LANES = ROW_W / 32;
  localparam GROUPS = ENTRY_W / LANE_GROUP_W;
  localparam COLS = ROW_W / COL_W;
  localparam ENTRIES = ROW_W / ENTRY_W;
  localparam BANK_ROWS = ACC_DEPTH / ACC_BANKS / ENTRIES;
  localparam ROW_ADDR_W = (BANK_ROWS > 1) ? $clog2(BANK_ROWS) : 1;
  localparam ENTRY_LOG = $clog2(ENTRIES);
  localparam BANK_LOG = $clog2(BANK_ROWS);
  localparam PLAIN_LOG = $clog2(ROW_W / BEAT_W);
  localparam WIDE_LOG = $clog2(ROW_W / WIDE_W);
  localparam GROUPS_LOG = $clog2(BLOCK_OUT / OUT_LANES);
  localparam BANK_W = (ACC_BANKS > 1) ? $clog2(ACC_BANKS) : 1;
  localparam [15:0] ENTRY_MASK = ENTRIES[15:0] - 16'd1;
  localparam [15:0] BANK_MASK = ACC_BANKS[15:0] - 16'd1;
  localparam [15:0] ROW_MASK = BANK_ROWS[15:0] - 16'd1;

  // one-word helpers: row in bank, bank, entry in row
  wire [15:0] c_rrow = (c_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] c_rbank = (c_raddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] o_rrow = (o_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] o_rbank = (o_raddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] c_wrow = (c_waddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] c_wbank = (c_waddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] o_wrow = (o_waddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] o_wbank = (o_waddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] c_wsub = c_waddr_i & ENTRY_MASK;
  wire [15:0] o_wsub = o_waddr_i & ENTRY_MASK;
  wire [15:0] c_rsub = c_raddr_i & ENTRY_MASK;
  wire [15:0] o_rsub = ((o_raddr_i & ENTRY_MASK) << GROUPS_LOG) | {10'd0, o_rgroup_i};

  wire r_re = ROW != 0 && r_re_i;
  wire r_we = ROW != 0 && r_we_i;
  wire [15:0] r_rrow = (r_raddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] r_rbank = (r_raddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] r_wrow = (r_waddr_i >> ENTRY_LOG) & ROW_MASK;
  wire [15:0] r_wbank = (r_waddr_i >> (ENTRY_LOG + BANK_LOG)) & BANK_MASK;
  wire [15:0] r_rsub = r_raddr_i & ENTRY_MASK;
  wire [15:0] r_wsub = r_waddr_i & ENTRY_MASK;

  localparam [BEAT_ADDR_W-1:0] ONE = 1;
  localparam [BEAT_ADDR_W-1:0] PLAIN_MASK = (ONE << PLAIN_LOG) - ONE;
  localparam [BEAT_ADDR_W-1:0] WIDE_MASK = (ONE << WIDE_LOG) - ONE;
  wire [BEAT_ADDR_W-1:0] l_all_row = l_expand_i ? l_waddr_i >> WIDE_LOG : l_waddr_i >> PLAIN_LOG;
  wire [BEAT_ADDR_W-1:0] l_psub = l_waddr_i & PLAIN_MASK;
  wire [BEAT_ADDR_W-1:0] l_wsub = l_waddr_i & WIDE_MASK;
  wire [BEAT_ADDR_W-1:0] l_all_bank = l_all_row >> BANK_LOG;
  wire [15:0] l_wrow = l_all_row[15:0] & ROW_MASK;
  wire [15:0] l_wbank = l_all_bank[15:0] & BANK_MASK;

  // columns of a row that each user writes
  wire [COLS-1:0] c_cols, o_cols, r_cols, l_cols;

  genvar i;
  generate
    for (i = 0; i < COLS; i = i + 1) begin : g_cols
      localparam [31:0] ENTRY_OF = i * COL_W / ENTRY_W;
      localparam [31:0] PLAIN_OF = i * COL_W / BEAT_W;
      localparam [31:0] WIDE_OF = i * COL_W / WIDE_W;
      assign c_cols[i] = c_wsub == ENTRY_OF[15:0];
      assign o_cols[i] = o_wsub == ENTRY_OF[15:0];
      assign r_cols[i] = r_wsub == ENTRY_OF[15:0];
      assign l_cols[i] = l_expand_i ? l_wsub == WIDE_OF[BEAT_ADDR_W-1:0] : l_psub == PLAIN_OF[BEAT_ADDR_W-1:0];
    end
  endgenerate

  // What LOAD brings to each lane of a row, for all banks, in registers of the lane's own, as a beat comes from afar: its
  // byte, the bits above it, and what fills them: the sign of a byte that is widened, else 1 for the beat's own bits.
  wire [ ROW_LANES*8-1:0] l_low;
  wire [ROW_LANES*24-1:0] l_high;
  wire [   ROW_LANES-1:0] l_fill;
  wire [   ROW_LANES-1:0] l_widen;
  genvar lane;
  generate
    for (lane = 0; lane < ROW_LANES; lane = lane + 1) begin : g_load
      localparam PLAIN_AT = lane * 32 % BEAT_W;
      localparam WIDE_AT = lane * 8 % BEAT_W;
      reg [ 7:0] low_q;
      reg [23:0] high_q;
      reg fill_q, widen_q;
      (* keep *)
      always @(posedge clk_i)
        if (l_we_i) begin
          low_q   <= l_expand_i ? l_wdata_i[WIDE_AT+:8] : l_wdata_i[PLAIN_AT+:8];
          high_q  <= l_wdata_i[PLAIN_AT+8+:24];
          fill_q  <= !l_expand_i || l_wdata_i[WIDE_AT+7];
          widen_q <= l_expand_i;
        end
      assign l_low[lane*8+:8] = low_q;
      assign l_high[lane*24+:24] = high_q;
      assign l_fill[lane] = fill_q;
      assign l_widen[lane] = widen_q;
    end
  endgenerate

  // what users may get of each bank; columns that none reads are 0, so that they can be joined
  wire [ACC_BANKS*ENTRY_W-1:0] rows;
  // for each bank: users that write it together
  wire [ACC_BANKS*4-1:0] meet;

  genvar col;
  generate
    for (i = 0; i < ACC_BANKS; i = i + 1) begin : g_bank
      localparam [31:0] BANK = i;
      wire c_reads = c_re_i && c_rbank == BANK[15:0];
      wire r_reads = !c_reads && r_re && r_rbank == BANK[15:0];
      // whether OUTPUT reads or not: it is known late, and nothing is taken if it does not
      wire o_reads = !c_reads && !r_reads && o_rbank == BANK[15:0];
      wire c_meant = c_we_i && c_wbank == BANK[15:0];
      wire o_meant = o_we_i && o_wbank == BANK[15:0];
      wire r_meant = r_we && r_wbank == BANK[15:0];
      wire l_meant = l_we_i && l_wbank == BANK[15:0];

      // who writes
      reg c_writes_q, o_writes_q, r_writes_q, l_writes_q;
      always @(posedge clk_i) {c_writes_q, o_writes_q, r_writes_q, l_writes_q} <= {c_meant, o_meant, r_meant, l_meant};
      wire writes = c_writes_q || o_writes_q || r_writes_q || l_writes_q;
      assign meet[i*4+:4] = {
        r_writes_q && (c_writes_q || o_writes_q || l_writes_q),
        l_writes_q && (c_writes_q || o_writes_q || r_writes_q),
        o_writes_q && (c_writes_q || l_writes_q || r_writes_q),
        c_writes_q && (o_writes_q || l_writes_q || r_writes_q)
      };

      wire [15:0] rrow = c_reads ? c_rrow : r_reads ? r_rrow : o_rrow;
      wire [ROW_W-1:0] row;
      for (col = 0; col < COLS; col = col + 1) begin : g_col
        localparam [31:0] ENTRY_OF = col * COL_W / ENTRY_W;
        localparam [31:0] GROUP_OF = col * COL_W / LANE_GROUP_W;
        localparam LANE = col * COL_W / 32;
        wire here = (c_reads && c_rsub == ENTRY_OF[15:0]) || (r_reads && r_rsub == ENTRY_OF[15:0])
            || (o_reads && o_rsub == GROUP_OF[15:0]);
        // who writes, and where, in registers of the column's own: all its data wait for them
        reg c_here_q, o_here_q, r_here_q, we_q;
        reg [ROW_ADDR_W-1:0] row_q;
        (* keep *)
        always @(posedge clk_i) begin
          {c_here_q, o_here_q, r_here_q} <= {c_meant, o_meant, r_meant};
          we_q <= c_meant ? c_cols[col] : o_meant ? o_cols[col] : r_meant ? r_cols[col] : l_meant && l_cols[col];
          row_q <= c_meant ? c_wrow[ROW_ADDR_W-1:0] : o_meant ? o_wrow[ROW_ADDR_W-1:0]
              : r_meant ? r_wrow[ROW_ADDR_W-1:0] : l_wrow[ROW_ADDR_W-1:0];
        end

        // The low bytes are chosen twice.  For the bits above two nets of a lane suffice: the beat's bits, the entry's, or
        // with both or none of them 1 or 0, the sign of what OUTPUT, ROW or LOAD widens.  (Nothing is computed for banks that
        // are not written: Verilator takes the if as it stands.)
        reg [COL_W-1:0] data;
        wire byte_here = o_here_q || r_here_q;
        reg [7:0] short, low;
        reg beat, entry;
        integer k;
        always @* begin
          data = `VTA_DONT_CARE(COL_W);
          short = `VTA_DONT_CARE(8);
          low = `VTA_DONT_CARE(8);
          beat = `VTA_DONT_CARE(1);
          entry = `VTA_DONT_CARE(1);
          k = 0;
          if (writes)
            for (k = 0; k < COL_W / 32; k = k + 1) begin
              short = r_here_q ? r_wdata_i[(LANE+k)%BLOCK_OUT*8+:8] : o_wdata_i[(LANE+k)%BLOCK_OUT*8+:8];
              low = c_here_q ? c_wdata_i[(LANE+k)%BLOCK_OUT*32+:8] : short;
              beat = !c_here_q && (byte_here ? short[7] : l_fill[LANE+k]);
              entry = c_here_q || (beat && (byte_here || l_widen[LANE+k]));
              data[k*32+:8] = (c_here_q || byte_here) ? low : l_low[(LANE+k)*8+:8];
              data[k*32+8+:24] = ({24{beat}} & (l_high[(LANE+k)*24+:24] | {24{entry}}))
                  | ({24{entry}} & c_wdata_i[(LANE+k)%BLOCK_OUT*32+8+:24]);
            end
        end

        reg [COL_W-1:0] mem_q[0:BANK_ROWS-1];
        reg [COL_W-1:0] data_q;
        assign row[col*COL_W+:COL_W] = data_q;
        always @(posedge clk_i) if (we_q) mem_q[row_q] <= data;
        always @(posedge clk_i)
          if (here) data_q <= mem_q[rrow[ROW_ADDR_W-1:0]];
          else data_q <= {COL_W{1'b0}};
      end

      reg [ENTRY_W-1:0] entry_row;
      integer n;
      always @* begin
        entry_row = row[ENTRY_W-1:0];
        for (n = 1; n < ENTRIES; n = n + 1) entry_row = entry_row | row[n*ENTRY_W+:ENTRY_W];
      end
      assign rows[i*ENTRY_W+:ENTRY_W] = entry_row;

      wire unused_rows = &{1'b0, rrow, c_wrow, o_wrow, r_wrow, l_wrow};
    end
  endgenerate

  wire co = c_re_i && o_re_i && c_rbank == o_rbank;
  wire cr = c_re_i && r_re && c_rbank == r_rbank;
  wire ro = r_re && o_re_i && r_rbank == o_rbank;
  assign clash_read_o = {cr || ro, co || ro, co || cr};

  reg [3:0] clash;
  integer b;
  always @* begin
    clash = 4'd0;
    for (b = 0; b < ACC_BANKS; b = b + 1) clash = clash | meet[b*4+:4];
  end
  assign clash_write_o = clash;

  wire [     ENTRY_W-1:0] o_entry;
  reg  [     ENTRY_W-1:0] o_entry_q;
  reg  [LANE_GROUP_W-1:0] o_lanes;
  reg                     o_read_q;

  vta_pick #(
      .WIDTH(ENTRY_W),
      .WAYS (ACC_BANKS),
      .WAY_W(BANK_W)
  ) u_c_pick (
      .clk_i  (clk_i),
      .en_i   (c_re_i),
      .way_i  (c_rbank[BANK_W-1:0]),
      .words_i(rows),
      .word_o (c_rdata_o)
  );

  vta_pick #(
      .WIDTH(ENTRY_W),
      .WAYS (ACC_BANKS),
      .WAY_W(BANK_W)
  ) u_o_pick (
      .clk_i  (clk_i),
      .en_i   (o_re_i),
      .way_i  (o_rbank[BANK_W-1:0]),
      .words_i(rows),
      .word_o (o_entry)
  );

  // Banks first, whose blocks lie beside one another for COMPUTE's sake, and then groups, which lie apart: the way to
  // OUTPUT's lanes begins in registers.  (Joined by ^, groups take yosys one LUT4 a bit.)
  always @(posedge clk_i) begin
    o_read_q <= o_re_i;
    if (o_read_q) o_entry_q <= o_entry;
  end

  integer n;
  always @* begin
    o_lanes = o_entry_q[LANE_GROUP_W-1:0];
    for (n = 1; n < GROUPS; n = n + 1) o_lanes = o_lanes ^ o_entry_q[n*LANE_GROUP_W+:LANE_GROUP_W];
  end

  assign o_rdata_o = o_lanes;

  generate
    if (ROW != 0) begin : g_row
      wire [ACC_BANKS*BLOCK_OUT*8-1:0] low_bytes;
      for (i = 0; i < ACC_BANKS * BLOCK_OUT; i = i + 1) begin : g_byte
        assign low_bytes[i*8+:8] = rows[i*32+:8];
      end
      wire [BLOCK_OUT*8-1:0] r_bytes;
      reg  [BLOCK_OUT*8-1:0] r_bytes_q;
      reg                    r_read_q;
      vta_pick #(
          .WIDTH(BLOCK_OUT * 8),
          .WAYS (ACC_BANKS),
          .WAY_W(BANK_W)
      ) u_r_pick (
          .clk_i  (clk_i),
          .en_i   (r_re),
          .way_i  (r_rbank[BANK_W-1:0]),
          .words_i(low_bytes),
          .word_o (r_bytes)
      );
      always @(posedge clk_i) begin
        r_read_q <= r_re;
        if (r_read_q) r_bytes_q <= r_bytes;
      end
      assign r_rdata_o = r_bytes_q;
    end else begin : g_no_row
      assign r_rdata_o = {BLOCK_OUT * 8{1'b0}};
      wire unused_row = &{1'b0, r_re_i, r_we_i};
    end
  endgenerate

  wire unused = &{1'b0, l_all_row, l_all_bank, r_wdata_i};
endmodule

`resetall
