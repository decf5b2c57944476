// The WGT scratchpad: written one bus beat at a time, read one entry at a time.
// Contract: with expand_i a beat holds weights of half the bits, those in its low bits first, and becomes two beats, as
// vta_widen does it; waddr_i counts such pairs then.  A beat is written at the second edge behind the one that samples
// it; a read at any of these edges returns the old row.  elem_o holds while re_i is low.
// Latency: elem_o is valid after the edge that samples re_i, and has a beat from the third edge behind its own on.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_wgt_mem #(
    // Width of a beat in bits, a power of two
    parameter BEAT_W      = 64,
    // Width of a weight in bits, 4 or 8
    parameter WGT_BITS    = 8,
    // Factors of a beat of weights that expand_i widens, a power of two
    parameter FACTORS     = 1,
    // Width of an entry in bits, a power of two
    parameter ELEM_W      = 128,
    // Entries, a power of two; at least one row
    parameter DEPTH       = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20
) (
    input  wire                   clk_i,
    // write port: beats
    input  wire                   we_i,
    input  wire                   expand_i,
    input  wire [BEAT_ADDR_W-1:0] waddr_i,
    input  wire [     BEAT_W-1:0] wdata_i,
    input  wire [  4*FACTORS-1:0] factor_i,
    // read port: entries
    input  wire                   re_i,
    input  wire [           15:0] raddr_i,
    output wire [     ELEM_W-1:0] elem_o
);
  localparam ROW_W = (ELEM_W > 2 * BEAT_W) ? ELEM_W : 2 * BEAT_W;
  localparam ROWS = DEPTH / (ROW_W / ELEM_W);
  localparam ADDR_W = (ROWS > 1) ? $clog2(ROWS) : 1;
  localparam BEATS = ROW_W / BEAT_W;
  localparam ELEMS = ROW_W / ELEM_W;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ELEMS_LOG = $clog2(ELEMS);
  localparam [BEAT_ADDR_W-1:0] BEAT_MASK = BEATS[BEAT_ADDR_W-1:0] - 1'b1;

  // the second beat of a pair is behind the first
  wire [   2*BEAT_W-1:0] wide;
  vta_widen #(
      .BEAT_W  (BEAT_W),
      .WGT_BITS(WGT_BITS),
      .FACTORS (FACTORS)
  ) u_widen (
      .beat_i  (wdata_i),
      .factor_i(factor_i),
      .wide_o  (wide)
  );

  // products wait for the way to the block RAMs
  reg                    arrived_q;
  reg                    expand_q;
  reg  [BEAT_ADDR_W-1:0] waddr_q;
  reg  [   2*BEAT_W-1:0] made_q;
  always @(posedge clk_i) begin
    arrived_q <= we_i;
    expand_q  <= expand_i;
    waddr_q   <= waddr_i;
    made_q    <= expand_i ? wide : {wdata_i, wdata_i};
  end

  // the first beat that is written; a pair of beats starts at an even one
  wire [BEAT_ADDR_W-1:0] beat = expand_q ? {waddr_q[BEAT_ADDR_W-2:0], 1'b0} : waddr_q;
  wire [BEAT_ADDR_W-1:0] write_row = beat >> BEATS_LOG;
  wire [BEAT_ADDR_W-1:0] write_col = beat & BEAT_MASK;
  wire [           15:0] read_row = raddr_i >> ELEMS_LOG;

  wire [ROW_W-1:0] row;
  genvar i, col;
  generate
    // The block RAMs of a row lie all over a chip: what a beat brings waits in registers of a pair of columns, and whether
    // and where it is written in those of each column.
    for (i = 0; i < BEATS; i = i + 2) begin : g_pair
      reg [2*BEAT_W-1:0] pair_q;
      (* keep *) always @(posedge clk_i) pair_q <= made_q;
      for (col = i; col < i + 2; col = col + 1) begin : g_col
        localparam [31:0] COL = col;
        localparam [BEAT_ADDR_W-1:0] ODD = col % 2;
        wire [BEAT_ADDR_W-1:0] ours = write_col | (expand_q ? ODD : {BEAT_ADDR_W{1'b0}});
        reg we_q;
        reg [ADDR_W-1:0] write_row_q;
        (* keep *)
        always @(posedge clk_i) begin
          we_q        <= arrived_q && ours == COL[BEAT_ADDR_W-1:0];
          write_row_q <= write_row[ADDR_W-1:0];
        end

        reg [BEAT_W-1:0] mem_q[0:ROWS-1];
        reg [BEAT_W-1:0] data_q;
        assign row[col*BEAT_W+:BEAT_W] = data_q;
        always @(posedge clk_i) if (we_q) mem_q[write_row_q] <= pair_q[(col%2)*BEAT_W+:BEAT_W];
        always @(posedge clk_i) if (re_i) data_q <= mem_q[read_row[ADDR_W-1:0]];
      end
    end
  endgenerate

  generate
    if (ELEMS > 1) begin : g_select
      reg [ELEMS_LOG-1:0] elem_q;
      always @(posedge clk_i) if (re_i) elem_q <= raddr_i[ELEMS_LOG-1:0];
      assign elem_o = row[elem_q*ELEM_W+:ELEM_W];
    end else begin : g_whole
      assign elem_o = row;
    end
  endgenerate

  wire unused = &{1'b0, write_row, read_row, waddr_q};
endmodule

`resetall
