// The OUT scratchpad: written one element at a time by the output stage, read one bus beat at a time by STORE.
// Contract: as vta_ram_beat with the sides exchanged; beat_o holds while re_i is low.
// Latency: beat_o is valid after the edge that samples re_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_ram_out #(
    // Width of a beat in bits, a power of two
    parameter BEAT_W      = 64,
    // Width of an element in bits, a power of two
    parameter ELEM_W      = 64,
    // Elements, a power of two; at least one row
    parameter DEPTH       = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20
) (
    input  wire                   clk_i,
    // write port: elements
    input  wire                   we_i,
    input  wire [           15:0] waddr_i,
    input  wire [     ELEM_W-1:0] wdata_i,
    // read port: beats
    input  wire                   re_i,
    input  wire [BEAT_ADDR_W-1:0] raddr_i,
    output wire [     BEAT_W-1:0] beat_o
);
  localparam ROW_W = (ELEM_W > BEAT_W) ? ELEM_W : BEAT_W;
  localparam ROWS = DEPTH / (ROW_W / ELEM_W);
  localparam ADDR_W = (ROWS > 1) ? $clog2(ROWS) : 1;
  localparam BEATS = ROW_W / BEAT_W;
  localparam ELEMS = ROW_W / ELEM_W;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ELEMS_LOG = $clog2(ELEMS);
  localparam [15:0] ELEM_MASK = ELEMS[15:0] - 16'd1;

  wire [      ELEMS-1:0] write_enable;
  wire [      ROW_W-1:0] row;
  wire [           15:0] write_row = waddr_i >> ELEMS_LOG;
  wire [BEAT_ADDR_W-1:0] read_row = raddr_i >> BEATS_LOG;

  genvar col;
  generate
    for (col = 0; col < ELEMS; col = col + 1) begin : g_col
      localparam [31:0] COL = col;
      assign write_enable[col] = we_i && (waddr_i & ELEM_MASK) == COL[15:0];
    end

    if (BEATS > 1) begin : g_select
      reg [BEATS_LOG-1:0] beat_q;
      always @(posedge clk_i) if (re_i) beat_q <= raddr_i[BEATS_LOG-1:0];
      assign beat_o = row[beat_q*BEAT_W+:BEAT_W];
    end else begin : g_whole
      assign beat_o = row;
    end
  endgenerate

  vta_ram_cols #(
      .COL_W (ELEM_W),
      .COLS  (ELEMS),
      .DEPTH (ROWS),
      .ADDR_W(ADDR_W)
  ) u_ram (
      .clk_i  (clk_i),
      .we_i   (write_enable),
      .waddr_i(write_row[ADDR_W-1:0]),
      .wdata_i({ELEMS{wdata_i}}),
      .re_i   (re_i),
      .raddr_i(read_row[ADDR_W-1:0]),
      .rdata_o(row)
  );

  wire unused = &{1'b0, write_row, read_row};
endmodule

`resetall
