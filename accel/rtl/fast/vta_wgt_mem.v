// The WGT scratchpad for simulation: the module of the same name, which says what it does, as one memory of whole rows.
// Contract: as the synthesised form.  A beat's data wait once, not in every column.
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
    input  wire                   we_i,
    input  wire                   expand_i,
    input  wire [BEAT_ADDR_W-1:0] waddr_i,
    input  wire [     BEAT_W-1:0] wdata_i,
    input  wire [  4*FACTORS-1:0] factor_i,
    input  wire                   re_i,
    input  wire [           15:0] raddr_i,
    output wire [     ELEM_W-1:0] elem_o
);
  localparam ROW_W = (ELEM_W > 2 * BEAT_W) ? ELEM_W : 2 * BEAT_W;
  localparam HALF = WGT_BITS / 2;
  localparam SHARE = BEAT_W / HALF / FACTORS;
  localparam ROWS = DEPTH / (ROW_W / ELEM_W);
  localparam ADDR_W = (ROWS > 1) ? $clog2(ROWS) : 1;
  localparam BEATS = ROW_W / BEAT_W;
  localparam ELEMS = ROW_W / ELEM_W;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ELEMS_LOG = $clog2(ELEMS);
  localparam [BEAT_ADDR_W-1:0] BEAT_MASK = BEATS[BEAT_ADDR_W-1:0] - 1'b1;

  // a beat as it came
  reg arrived_q, expand_q;
  reg [BEAT_ADDR_W-1:0] waddr_q;
  reg [BEAT_W-1:0] wdata_q;
  reg [4*FACTORS-1:0] factor_q;
  always @(posedge clk_i) begin
    arrived_q <= we_i;
    if (we_i) begin
      expand_q <= expand_i;
      waddr_q  <= waddr_i;
      wdata_q  <= wdata_i;
      factor_q <= factor_i;
    end
  end

  wire [BEAT_ADDR_W-1:0] beat = expand_q ? {waddr_q[BEAT_ADDR_W-2:0], 1'b0} : waddr_q;
  wire [BEAT_ADDR_W-1:0] write_row = beat >> BEATS_LOG;
  wire [BEAT_ADDR_W-1:0] write_col = beat & BEAT_MASK;
  wire [           15:0] read_row = raddr_i >> ELEMS_LOG;

  reg  [   2*BEAT_W-1:0] wide;
  reg  [   WGT_BITS-1:0] weight;
  reg  [   WGT_BITS-1:0] times;
  integer i;
  always @* begin
    weight = {WGT_BITS{1'b0}};
    times  = {WGT_BITS{1'b0}};
    for (i = 0; i < BEAT_W / HALF; i = i + 1) begin
      weight = {{HALF{wdata_q[(i+1)*HALF-1]}}, wdata_q[i*HALF+:HALF]};
      times  = {{(WGT_BITS - 4) {1'b0}}, factor_q[i/SHARE*4+:4]} + 1'b1;
      wide[i*WGT_BITS+:WGT_BITS] = weight * times;
    end
  end

  // a beat, or a pair of them, on its way
  reg we_q, pair_we_q;
  reg [ADDR_W-1:0] write_row_q;
  reg [BEATS_LOG-1:0] write_col_q;
  reg [2*BEAT_W-1:0] pair_q;
  always @(posedge clk_i) begin
    we_q <= arrived_q;
    if (arrived_q) begin
      pair_we_q   <= expand_q;
      write_row_q <= write_row[ADDR_W-1:0];
      write_col_q <= write_col[BEATS_LOG-1:0];
      if (expand_q) pair_q <= wide;
      else pair_q[BEAT_W-1:0] <= wdata_q;
    end
  end

  reg [ROW_W-1:0] mem_q[0:ROWS-1];
  reg [ROW_W-1:0] row_q;
  always @(posedge clk_i) begin
    if (re_i) row_q <= mem_q[read_row[ADDR_W-1:0]];
    if (we_q) begin
      if (pair_we_q) mem_q[write_row_q][write_col_q*BEAT_W+:2*BEAT_W] <= pair_q;
      else mem_q[write_row_q][write_col_q*BEAT_W+:BEAT_W] <= pair_q[BEAT_W-1:0];
    end
  end

  generate
    if (ELEMS > 1) begin : g_select
      reg [ELEMS_LOG-1:0] elem_q;
      always @(posedge clk_i) if (re_i) elem_q <= raddr_i[ELEMS_LOG-1:0];
      assign elem_o = row_q[elem_q*ELEM_W+:ELEM_W];
    end else begin : g_whole
      assign elem_o = row_q;
    end
  endgenerate

  wire unused = &{1'b0, write_row, write_col, read_row, waddr_q};
endmodule

`resetall
