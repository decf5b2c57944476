// Memory with one write and one read port; a row consists of columns with a write enable each, memories of their own.
// Contract: a read in the cycle of a write to the same row returns the old row; rdata_o holds while re_i is low.
// Latency: rdata_o is valid after the edge that samples re_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_ram_cols #(
    // Width of a column in bits, at least 1
    parameter COL_W  = 8,
    // Columns in a row, at least 1
    parameter COLS   = 1,
    // Rows, at least 1
    parameter DEPTH  = 2,
    // Row address width in bits, enough for DEPTH rows and at least 1
    parameter ADDR_W = 1
) (
    input  wire                  clk_i,
    // write port
    input  wire [      COLS-1:0] we_i,
    input  wire [    ADDR_W-1:0] waddr_i,
    input  wire [COLS*COL_W-1:0] wdata_i,
    // read port
    input  wire                  re_i,
    input  wire [    ADDR_W-1:0] raddr_i,
    output wire [COLS*COL_W-1:0] rdata_o
);
  genvar col;
  generate
    for (col = 0; col < COLS; col = col + 1) begin : g_col
      reg [COL_W-1:0] mem_q[0:DEPTH-1];
      reg [COL_W-1:0] data_q;
      assign rdata_o[col*COL_W+:COL_W] = data_q;
      always @(posedge clk_i) if (we_i[col]) mem_q[waddr_i] <= wdata_i[col*COL_W+:COL_W];
      always @(posedge clk_i) if (re_i) data_q <= mem_q[raddr_i];
    end
  endgenerate
endmodule

`resetall
