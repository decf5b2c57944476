// The accumulator scratchpad: ACC_BANKS banks, each with one read and one write port, and three users.
// Contract: users keep apart per bank and cycle; the outputs clash_* name the users that did not (no arbitration:
// what is read or written then is unspecified).  A read in the cycle of a write to the same entry returns the old
// entry.  Bank = entry / (ACC_DEPTH / ACC_BANKS).
// Latency: c_rdata_o is valid for one cycle after the edge that samples the read; o_rdata_o is valid after the edge behind
// that one, until the next read of OUTPUT's is.
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
    parameter BEAT_ADDR_W = 20
) (
    input  wire                    clk_i,
    // COMPUTE: entry read and entry write
    input  wire                    c_re_i,
    input  wire [            15:0] c_raddr_i,
    output wire [BLOCK_OUT*32-1:0] c_rdata_o,
    input  wire                    c_we_i,
    input  wire [            15:0] c_waddr_i,
    input  wire [BLOCK_OUT*32-1:0] c_wdata_i,
    // OUTPUT: read of one lane group of an entry, entry write
    input  wire                    o_re_i,
    input  wire [            15:0] o_raddr_i,
    input  wire [             5:0] o_rgroup_i,
    output wire [OUT_LANES*32-1:0] o_rdata_o,
    input  wire                    o_we_i,
    input  wire [            15:0] o_waddr_i,
    // a byte for each lane, widened
    input  wire [ BLOCK_OUT*8-1:0] o_wdata_i,
    // LOAD: beat write, plain or with each byte widened to a lane
    input  wire                    l_we_i,
    input  wire                    l_expand_i,
    input  wire [ BEAT_ADDR_W-1:0] l_waddr_i,
    input  wire [      BEAT_W-1:0] l_wdata_i,
    // COMPUTE and OUTPUT read one bank; users that write a bank together (bit 0 COMPUTE, 1 OUTPUT, 2 LOAD)
    output wire                    clash_read_o,
    output wire [             2:0] clash_write_o
);
  localparam ENTRY_W = BLOCK_OUT * 32;
  localparam WIDE_W = 4 * BEAT_W;
  localparam ROW_W = (ENTRY_W > WIDE_W) ? ENTRY_W : WIDE_W;
  localparam COL_W = (ENTRY_W < BEAT_W) ? ENTRY_W : BEAT_W;
  localparam COLS = ROW_W / COL_W;
  localparam ENTRIES = ROW_W / ENTRY_W;
  localparam BANK_ROWS = ACC_DEPTH / ACC_BANKS / ENTRIES;
  localparam ROW_ADDR_W = (BANK_ROWS > 1) ? $clog2(BANK_ROWS) : 1;
  localparam ENTRY_LOG = $clog2(ENTRIES);
  localparam BANK_LOG = $clog2(BANK_ROWS);
  localparam PLAIN_LOG = $clog2(ROW_W / BEAT_W);
  localparam WIDE_LOG = $clog2(ROW_W / WIDE_W);
  localparam GROUPS_LOG = $clog2(BLOCK_OUT / OUT_LANES);
  localparam LANE_GROUP_W = OUT_LANES * 32;
  localparam [31:0] SLOTS = ACC_BANKS * ENTRIES;
  // index of one entry among the rows that all banks deliver at once; and of one lane group
  localparam SLOT_W = (SLOTS > 1) ? $clog2(SLOTS) : 1;
  localparam GROUP_W = SLOT_W + GROUPS_LOG;
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
  wire [COLS-1:0] c_cols, o_cols, l_cols;

  genvar i;
  generate
    for (i = 0; i < COLS; i = i + 1) begin : g_cols
      localparam [31:0] ENTRY_OF = i * COL_W / ENTRY_W;
      localparam [31:0] PLAIN_OF = i * COL_W / BEAT_W;
      localparam [31:0] WIDE_OF = i * COL_W / WIDE_W;
      assign c_cols[i] = c_wsub == ENTRY_OF[15:0];
      assign o_cols[i] = o_wsub == ENTRY_OF[15:0];
      assign l_cols[i] = l_expand_i ? l_wsub == WIDE_OF[BEAT_ADDR_W-1:0] : l_psub == PLAIN_OF[BEAT_ADDR_W-1:0];
    end
  endgenerate

  wire [ACC_BANKS*ROW_W-1:0] rows;

  genvar lane;
  generate
    for (i = 0; i < ACC_BANKS; i = i + 1) begin : g_bank
      localparam [31:0] BANK = i;
      wire c_reads = c_re_i && c_rbank == BANK[15:0];
      wire o_reads = o_re_i && o_rbank == BANK[15:0];
      wire c_writes = c_we_i && c_wbank == BANK[15:0];
      wire o_writes = o_we_i && o_wbank == BANK[15:0];
      wire l_writes = l_we_i && l_wbank == BANK[15:0];

      wire [ROW_W-1:0] data;
      for (lane = 0; lane < ROW_W / 32; lane = lane + 1) begin : g_lane
        localparam C_AT = lane * 32 % ENTRY_W;
        localparam PLAIN_AT = lane * 32 % BEAT_W;
        localparam O_AT = lane * 8 % (BLOCK_OUT * 8);
        localparam WIDE_AT = lane * 8 % BEAT_W;
        wire [31:0] loaded = l_expand_i ? {{24{l_wdata_i[WIDE_AT+7]}}, l_wdata_i[WIDE_AT+:8]} : l_wdata_i[PLAIN_AT+:32];
        wire [31:0] put = {{24{o_wdata_i[O_AT+7]}}, o_wdata_i[O_AT+:8]};
        assign data[lane*32+:32] = c_writes ? c_wdata_i[C_AT+:32] : o_writes ? put : loaded;
      end

      vta_ram_cols #(
          .COL_W (COL_W),
          .COLS  (COLS),
          .DEPTH (BANK_ROWS),
          .ADDR_W(ROW_ADDR_W)
      ) u_ram (
          .clk_i  (clk_i),
          .we_i   (c_writes ? c_cols : o_writes ? o_cols : l_writes ? l_cols : {COLS{1'b0}}),
          .waddr_i(c_writes ? c_wrow[ROW_ADDR_W-1:0] : o_writes ? o_wrow[ROW_ADDR_W-1:0] : l_wrow[ROW_ADDR_W-1:0]),
          .wdata_i(data),
          .re_i   (c_reads || o_reads),
          .raddr_i(c_reads ? c_rrow[ROW_ADDR_W-1:0] : o_rrow[ROW_ADDR_W-1:0]),
          .rdata_o(rows[i*ROW_W+:ROW_W])
      );
    end
  endgenerate

  wire clash_co = c_we_i && o_we_i && c_wbank == o_wbank;
  wire clash_cl = c_we_i && l_we_i && c_wbank == l_wbank;
  wire clash_ol = o_we_i && l_we_i && o_wbank == l_wbank;
  assign clash_read_o  = c_re_i && o_re_i && c_rbank == o_rbank;
  assign clash_write_o = {clash_cl || clash_ol, clash_co || clash_ol, clash_co || clash_cl};

  // Selection of the entry or lane group among the rows of all banks, one cycle after the address.
  localparam [31:0] ENTRIES_V = ENTRIES;
  wire [31:0] c_slot = {16'd0, c_rbank} * ENTRIES_V + {16'd0, c_raddr_i & ENTRY_MASK};
  wire [31:0] o_slot = {16'd0, o_rbank} * ENTRIES_V + {16'd0, o_raddr_i & ENTRY_MASK};
  wire [31:0] o_group = (o_slot << GROUPS_LOG) + {26'd0, o_rgroup_i};
  reg  [SLOT_W-1:0] c_slot_q;
  reg  [GROUP_W-1:0] o_group_q;
  reg                o_read_q;
  reg  [LANE_GROUP_W-1:0] o_lanes_q;

  always @(posedge clk_i) begin
    o_read_q <= o_re_i;
    if (c_re_i) c_slot_q <= c_slot[SLOT_W-1:0];
    if (o_re_i) o_group_q <= o_group[GROUP_W-1:0];
    if (o_read_q) o_lanes_q <= rows[o_group_q*LANE_GROUP_W+:LANE_GROUP_W];
  end

  assign c_rdata_o = rows[c_slot_q*ENTRY_W+:ENTRY_W];
  assign o_rdata_o = o_lanes_q;

  wire unused = &{1'b0, c_rrow, o_rrow, c_wrow, o_wrow, l_wrow, l_all_row, l_all_bank, c_slot, o_slot, o_group};
endmodule

`resetall
