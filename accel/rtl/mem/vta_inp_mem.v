// The INP scratchpad: lines of LINE bytes in four memories in turn (line l in memory l % 4), so that any four
// neighbouring lines can be read at once.  Written in bus beats by LOAD and in output blocks by OUTPUT.
// Contract: LOAD and OUTPUT do not write at one edge (OUTPUT would go first).  A read in the cycle of a write to the
// same line returns the old line.  Addresses outside the memory are the user's error.
// Latency: entry_o, or taps_o with window_i, is valid for one cycle after the edge that samples re_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_inp_mem #(
    // Bytes of an entry, a power of two
    parameter INP_LANES   = 4,
    // Neighbouring entries that entry_o holds: 1, or 2 where an entry is a line
    parameter OPERAND     = 1,
    // Bytes of an output block, a power of two
    parameter BLOCK_OUT   = 4,
    // Entries, a power of two; at least four lines
    parameter DEPTH       = 1024,
    // Width of a beat in bits, a power of two
    parameter BEAT_W      = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20,
    // Bytes of a line: the largest of 16, a beat, an entry and an output block
    parameter LINE        = 16
) (
    input  wire                     clk_i,
    // LOAD: beats
    input  wire                     l_we_i,
    input  wire [  BEAT_ADDR_W-1:0] l_waddr_i,
    input  wire [     BEAT_W/8-1:0] l_be_i,
    input  wire [       BEAT_W-1:0] l_wdata_i,
    // OUTPUT: an output block from a part on
    input  wire                     o_we_i,
    input  wire [             15:0] o_waddr_i,
    input  wire [  BLOCK_OUT*8-1:0] o_wdata_i,
    // COMPUTE: an entry, or two neighbouring ones; with window_i raddr_i counts parts, and is for the output block at that
    // part and those on the three lines behind it
    input  wire                     re_i,
    input  wire                     window_i,
    input  wire [             15:0] raddr_i,
    output wire [OPERAND*INP_LANES*8-1:0] entry_o,
    // output blocks in the order of the memories: the line of raddr_i lies in memory line % 4
    output wire [4*BLOCK_OUT*8-1:0] taps_o
);
  // Bytes of a part, the smaller of an entry and an output block; of the larger one.
  localparam PART = (BLOCK_OUT > INP_LANES) ? INP_LANES : BLOCK_OUT;
  localparam STEP = (BLOCK_OUT > INP_LANES) ? BLOCK_OUT : INP_LANES;
  // Bytes of a row of a memory: what is written or read of it at once.  A row has a column for each part, a memory of
  // its own; several rows make a line.
  localparam ROW = (STEP > BEAT_W / 8) ? STEP : BEAT_W / 8;
  localparam COL_W = PART * 8;
  localparam ENTRY_W = INP_LANES * 8;
  localparam STEP_W = STEP * 8;
  localparam PARTS = LINE / ROW;
  localparam PARTS_LOG = $clog2(PARTS);
  localparam COLS = ROW / PART;
  localparam COLS_LOG = $clog2(COLS);
  localparam LINE_LOG = $clog2(LINE / PART);
  localparam BEATS = ROW * 8 / BEAT_W;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ROWS = DEPTH * INP_LANES / ROW / 4;
  localparam ADDR_W = (ROWS > 1) ? $clog2(ROWS) : 1;
  // columns of an output block and of an entry: one of the two is 1
  localparam BLOCK_COLS = BLOCK_OUT / PART;
  localparam BLOCK_LOG = $clog2(BLOCK_COLS);
  localparam ENTRY_COLS = INP_LANES / PART;
  localparam ENTRY_LOG = $clog2(ENTRY_COLS);
  localparam [31:0] OPERAND_V = OPERAND;
  localparam [15:0] COL_MASK = COLS[15:0] - 16'd1;
  localparam [15:0] PART_MASK = PARTS[15:0] - 16'd1;
  localparam [BEAT_ADDR_W-1:0] BEAT_MASK = BEATS[BEAT_ADDR_W-1:0] - 1'b1;

  // writes: one row of one memory
  wire [BEAT_ADDR_W-1:0] l_rows = l_waddr_i >> BEATS_LOG;
  wire [BEAT_ADDR_W-1:0] l_line = l_rows >> PARTS_LOG;
  wire [BEAT_ADDR_W-1:0] l_beat = l_waddr_i & BEAT_MASK;
  wire [           15:0] l_row = (l_line[17:2] << PARTS_LOG) | (l_rows[15:0] & PART_MASK);
  wire [           15:0] o_rows = o_waddr_i >> COLS_LOG;
  wire [           15:0] o_line = o_rows >> PARTS_LOG;
  wire [           15:0] o_place = (o_waddr_i & COL_MASK) >> BLOCK_LOG;
  wire [           15:0] o_row = ((o_line >> 2) << PARTS_LOG) | (o_rows & PART_MASK);
  wire                   we = l_we_i || o_we_i;
  wire [            1:0] w_ram = o_we_i ? o_line[1:0] : l_line[1:0];
  wire [           15:0] w_row = o_we_i ? o_row : l_row;
  wire [      ROW*8-1:0] w_data = o_we_i ? {(ROW / BLOCK_OUT) {o_wdata_i}} : {BEATS{l_wdata_i}};
  wire [        ROW-1:0] w_be;

  // reads: memory r holds the line of raddr_i or one of the three behind it
  wire [           15:0] r_addr = (window_i || ENTRY_COLS == 1) ? raddr_i : raddr_i << ENTRY_LOG;
  wire [           15:0] r_line = r_addr >> LINE_LOG;
  wire [           15:0] r_part = (r_addr >> COLS_LOG) & PART_MASK;
  wire [           15:0] r_col = r_addr & COL_MASK;
  wire [           15:0] r_place = r_col >> BLOCK_LOG;
  wire [           15:0] r_entry = r_col >> ENTRY_LOG;
  wire [           15:0] r_row = r_line >> 2;
  wire [            3:0] wrapped = ~(4'b1111 << r_line[1:0]);
  // what is read of each memory, an entry or an output block; columns that are not read are 0, so that all can be joined
  wire [   4*STEP_W-1:0] blocks;

  genvar i, r;
  generate
    for (i = 0; i < ROW; i = i + 1) begin : g_byte
      localparam [31:0] BEAT_OF = i / (BEAT_W / 8);
      localparam [31:0] PLACE_OF = i / BLOCK_OUT;
      wire o_here = o_place == PLACE_OF[15:0];
      wire l_here = l_be_i[i%(BEAT_W/8)] && l_beat == BEAT_OF[BEAT_ADDR_W-1:0];
      assign w_be[i] = o_we_i ? o_here : l_here;
    end

    for (r = 0; r < 4; r = r + 1) begin : g_ram
      localparam [31:0] RAM = r;
      wire [15:0] row = ((window_i || OPERAND == 2) && wrapped[r]) ? r_row + 16'd1 : r_row;
      wire [15:0] addr = (row << PARTS_LOG) | r_part;
      wire [ 1:0] behind = RAM[1:0] - r_line[1:0];
      wire        reads = re_i && behind < OPERAND_V[1:0];
      wire        write = we && w_ram == RAM[1:0];
      wire [ROW*8-1:0] cols;

      for (i = 0; i < COLS; i = i + 1) begin : g_col
        localparam [31:0] ENTRY = i / ENTRY_COLS;
        localparam [31:0] PLACE = i / BLOCK_COLS;
        wire here = window_i ? re_i && r_place == PLACE[15:0] : reads && r_entry == ENTRY[15:0];

        reg [COL_W-1:0] mem_q[0:ROWS-1];
        reg [COL_W-1:0] data_q;
        assign cols[i*COL_W+:COL_W] = data_q;

        integer b;
        always @(posedge clk_i)
          if (write) begin
            /*verilator unroll_disable*/
            for (b = 0; b < PART; b = b + 1)
              if (w_be[i*PART+b]) mem_q[w_row[ADDR_W-1:0]][b*8+:8] <= w_data[i*COL_W+b*8+:8];
          end

        always @(posedge clk_i)
          if (here) data_q <= mem_q[addr[ADDR_W-1:0]];
          else data_q <= {COL_W{1'b0}};
      end

      // a register for each memory: blocks that each write a part of one register and read it would wake one another
      reg [STEP_W-1:0] block;
      integer n;
      always @* begin
        block = cols[STEP_W-1:0];
        for (n = STEP_W; n < ROW * 8; n = n + STEP_W) block = block | cols[n+:STEP_W];
      end
      assign blocks[r*STEP_W+:STEP_W] = block;

      if (ENTRY_COLS > 1) begin : g_part
        reg [BLOCK_OUT*8-1:0] tap;
        integer m;
        always @* begin
          tap = block[BLOCK_OUT*8-1:0];
          for (m = BLOCK_OUT * 8; m < STEP_W; m = m + BLOCK_OUT * 8) tap = tap | block[m+:BLOCK_OUT*8];
        end
        assign taps_o[r*BLOCK_OUT*8+:BLOCK_OUT*8] = tap;
      end else begin : g_block
        assign taps_o[r*BLOCK_OUT*8+:BLOCK_OUT*8] = block[BLOCK_OUT*8-1:0];
      end

      wire unused_ram = &{1'b0, row, addr};
    end

    if (OPERAND == 2) begin : g_two
      // neighbours: one in the memories 0 and 2, the other in 1 and 3
      wire [ENTRY_W-1:0] even = blocks[0+:ENTRY_W] | blocks[2*ENTRY_W+:ENTRY_W];
      wire [ENTRY_W-1:0] odd = blocks[ENTRY_W+:ENTRY_W] | blocks[3*ENTRY_W+:ENTRY_W];
      reg turned_q;
      always @(posedge clk_i) if (re_i) turned_q <= r_line[0];
      assign entry_o = turned_q ? {even, odd} : {odd, even};
    end else begin : g_one
      reg [ENTRY_W-1:0] entry;
      integer k;
      always @* begin
        entry = blocks[ENTRY_W-1:0];
        for (k = ENTRY_W; k < 4 * STEP_W; k = k + ENTRY_W) entry = entry | blocks[k+:ENTRY_W];
      end
      assign entry_o = entry;
    end
  endgenerate

  wire unused = &{1'b0, l_rows, l_line, o_rows, o_place, w_row, r_place, blocks};
endmodule

`resetall
