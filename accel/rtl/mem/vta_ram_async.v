// Small memory with one synchronous write port and one asynchronous read port (distributed RAM on an FPGA).
// Contract: a written word is readable after the edge that writes it.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_ram_async #(
    // Word width in bits, at least 1
    parameter WIDTH  = 8,
    // Words, at least 1
    parameter DEPTH  = 2,
    // Address width in bits, enough for DEPTH words and at least 1
    parameter ADDR_W = 1
) (
    input  wire              clk_i,
    // write port
    input  wire              we_i,
    input  wire [ADDR_W-1:0] waddr_i,
    input  wire [ WIDTH-1:0] wdata_i,
    // read port
    input  wire [ADDR_W-1:0] raddr_i,
    output wire [ WIDTH-1:0] rdata_o
);
  // A LUT-RAM has sixteen words.  Those of a smaller memory lie among them as its top address bit, repeated, says: a
  // constant in its place would be a wire from the chip's one source of zeros to every four bits of every queue.
  localparam WIDE_W = (ADDR_W < 4) ? 4 : ADDR_W;
  localparam WORDS = (DEPTH < 16) ? 1 << WIDE_W : DEPTH;
  wire [WIDE_W-1:0] waddr = {{(WIDE_W - ADDR_W) {waddr_i[ADDR_W-1]}}, waddr_i};
  wire [WIDE_W-1:0] raddr = {{(WIDE_W - ADDR_W) {raddr_i[ADDR_W-1]}}, raddr_i};

  reg  [ WIDTH-1:0] mem_q[0:WORDS-1];

  assign rdata_o = mem_q[raddr];

  always @(posedge clk_i) if (we_i) mem_q[waddr] <= wdata_i;
endmodule

`resetall
