// The INP scratchpad: lines of LINE bytes in four memories in turn (line l in memory l % 4), so that any four
// neighbouring lines can be read at once.  Written in bus beats by LOAD and in output blocks by OUTPUT.
// Contract: LOAD and OUTPUT do not write at one edge (OUTPUT would go first).  A read in the cycle of a write to the
// same line returns the old line.  Addresses outside the memory are the user's error.
// Latency: entry_o, or taps_o with window_i, is valid after the edge that samples re_i, and holds while re_i is low.
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
    // OUTPUT: an output block from an entry on
    input  wire                     o_we_i,
    input  wire [             15:0] o_waddr_i,
    input  wire [  BLOCK_OUT*8-1:0] o_wdata_i,
    // COMPUTE: an entry, or two neighbouring ones; with window_i the output block at that entry and those on the three lines behind it
    input  wire                     re_i,
    input  wire                     window_i,
    input  wire [             15:0] raddr_i,
    output wire [OPERAND*INP_LANES*8-1:0] entry_o,
    // output blocks in the order of the memories: the line of raddr_i lies in memory line % 4
    output wire [4*BLOCK_OUT*8-1:0] taps_o
);
  localparam LINE_W = LINE * 8;
  localparam ENTRIES = LINE / INP_LANES;
  localparam ENTRIES_LOG = $clog2(ENTRIES);
  localparam BEATS = LINE_W / BEAT_W;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ROWS = DEPTH / ENTRIES / 4;
  localparam ADDR_W = (ROWS > 1) ? $clog2(ROWS) : 1;
  // step of the places where an output block may begin, in bytes, and entries in it
  localparam STEP = (BLOCK_OUT > INP_LANES) ? BLOCK_OUT : INP_LANES;
  localparam STEP_W = STEP * 8;
  localparam PLACES = LINE / STEP;
  localparam STEP_LOG = $clog2(STEP / INP_LANES);
  localparam [31:0] OPERAND_V = OPERAND;
  localparam [15:0] ENTRY_MASK = ENTRIES[15:0] - 16'd1;
  localparam [BEAT_ADDR_W-1:0] BEAT_MASK = BEATS[BEAT_ADDR_W-1:0] - 1'b1;

  // writes: one line of one memory
  wire [BEAT_ADDR_W-1:0] l_line = l_waddr_i >> BEATS_LOG;
  wire [BEAT_ADDR_W-1:0] l_beat = l_waddr_i & BEAT_MASK;
  wire [           15:0] o_line = o_waddr_i >> ENTRIES_LOG;
  wire [           15:0] o_place = (o_waddr_i & ENTRY_MASK) >> STEP_LOG;
  wire                   we = l_we_i || o_we_i;
  wire [            1:0] w_ram = o_we_i ? o_line[1:0] : l_line[1:0];
  wire [           15:0] w_row = o_we_i ? o_line >> 2 : l_line[17:2];
  wire [     LINE_W-1:0] w_data = o_we_i ? {(LINE / BLOCK_OUT) {o_wdata_i}} : {BEATS{l_wdata_i}};
  wire [       LINE-1:0] w_be;

  // reads: memory r holds the line of raddr_i or one of the three behind it
  wire [           15:0] r_line = raddr_i >> ENTRIES_LOG;
  wire [           15:0] r_row = r_line >> 2;
  wire [            3:0] wrapped = ~(4'b1111 << r_line[1:0]);
  wire [     4*LINE_W-1:0] lines;
  reg  [            1:0] ram_q;

  genvar i, r;
  generate
    for (i = 0; i < LINE; i = i + 1) begin : g_byte
      localparam [31:0] BEAT_OF = i / (BEAT_W / 8);
      localparam [31:0] PLACE_OF = i / STEP;
      localparam IN_BLOCK = i % STEP < BLOCK_OUT;
      wire o_here = IN_BLOCK != 0 && o_place == PLACE_OF[15:0];
      wire l_here = l_be_i[i%(BEAT_W/8)] && l_beat == BEAT_OF[BEAT_ADDR_W-1:0];
      assign w_be[i] = o_we_i ? o_here : l_here;
    end

    for (r = 0; r < 4; r = r + 1) begin : g_ram
      localparam [31:0] RAM = r;
      wire [15:0] row = ((window_i || OPERAND == 2) && wrapped[r]) ? r_row + 16'd1 : r_row;
      wire [ 1:0] behind = RAM[1:0] - r_line[1:0];
      wire        here = re_i && (window_i || behind < OPERAND_V[1:0]);
      wire        write = we && w_ram == RAM[1:0];

      reg [LINE_W-1:0] mem_q[0:ROWS-1];
      reg [LINE_W-1:0] row_q;
      assign lines[r*LINE_W+:LINE_W] = row_q;

      integer b;
      always @(posedge clk_i)
        if (write) begin
          /*verilator unroll_disable*/
          for (b = 0; b < LINE; b = b + 1) if (w_be[b]) mem_q[w_row[ADDR_W-1:0]][b*8+:8] <= w_data[b*8+:8];
        end

      always @(posedge clk_i) if (here) row_q <= mem_q[row[ADDR_W-1:0]];

      wire unused_row = &{1'b0, row};
    end
  endgenerate

  always @(posedge clk_i) if (re_i) ram_q <= r_line[1:0];

  // the block at the place of raddr_i in each memory, then that of its line, then the entry in it
  wire [4*STEP_W-1:0] blocks;
  wire [  STEP_W-1:0] low = ram_q[0] ? blocks[STEP_W+:STEP_W] : blocks[0+:STEP_W];
  wire [  STEP_W-1:0] high = ram_q[0] ? blocks[3*STEP_W+:STEP_W] : blocks[2*STEP_W+:STEP_W];
  wire [  STEP_W-1:0] block = ram_q[1] ? high : low;

  generate
    if (PLACES > 1) begin : g_place
      localparam PLACE_W = $clog2(PLACES);
      reg [PLACE_W-1:0] place_q;
      always @(posedge clk_i) if (re_i) place_q <= raddr_i[STEP_LOG+:PLACE_W];
      for (r = 0; r < 4; r = r + 1) begin : g_block
        wire [LINE_W-1:0] one = lines[r*LINE_W+:LINE_W];
        assign blocks[r*STEP_W+:STEP_W] = one[place_q*STEP_W+:STEP_W];
      end
    end else begin : g_start
      assign blocks = lines;
    end

    for (r = 0; r < 4; r = r + 1) begin : g_tap
      assign taps_o[r*BLOCK_OUT*8+:BLOCK_OUT*8] = blocks[r*STEP_W+:BLOCK_OUT*8];
    end

    if (STEP > INP_LANES) begin : g_entry
      reg [STEP_LOG-1:0] entry_q;
      always @(posedge clk_i) if (re_i) entry_q <= raddr_i[STEP_LOG-1:0];
      assign entry_o = block[entry_q*INP_LANES*8+:INP_LANES*8];
    end else if (OPERAND == 2) begin : g_two
      wire [LINE_W-1:0] low_next = ram_q[0] ? lines[2*LINE_W+:LINE_W] : lines[LINE_W+:LINE_W];
      wire [LINE_W-1:0] high_next = ram_q[0] ? lines[0+:LINE_W] : lines[3*LINE_W+:LINE_W];
      assign entry_o = {ram_q[1] ? high_next : low_next, block};
    end else begin : g_whole
      assign entry_o = block;
    end
  endgenerate

  wire unused = &{1'b0, l_line, o_place, w_row, lines, blocks};
endmodule

`resetall
