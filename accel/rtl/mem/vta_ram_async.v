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
  reg [WIDTH-1:0] mem_q[0:DEPTH-1];

  assign rdata_o = mem_q[raddr_i];

  always @(posedge clk_i) if (we_i) mem_q[waddr_i] <= wdata_i;
endmodule

`resetall
