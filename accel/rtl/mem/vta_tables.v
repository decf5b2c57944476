// Tables of the output stage: for each lane the result of its own number, out of the table that all of them take.
// Two lanes share a memory, so that its ports are enough, and LOAD writes through the port of the first one.
// Contract: nothing is looked up in the cycle of a write; result_o holds while re_i is low.  value_i are int8 numbers.
// Latency: result_o is valid after the edge that samples re_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_tables #(
    // Lanes, a power of two
    parameter LANES       = 2,
    // Tables of 256 results, a power of two from 2 to 16
    parameter TABLES      = 2,
    // Width of a beat in bits: whole records
    parameter BEAT_W      = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20
) (
    input  wire                   clk_i,
    // LOAD: beats of records
    input  wire                   we_i,
    input  wire [BEAT_ADDR_W-1:0] waddr_i,
    input  wire [     BEAT_W-1:0] wdata_i,
    // look-up
    input  wire                   re_i,
    input  wire [            3:0] number_i,
    input  wire [    LANES*8-1:0] value_i,
    output wire [    LANES*8-1:0] result_o
);
  localparam RECORD_W = `VTA_TABLE_RECORD_BYTES * 8;
  // a row: the results of a beat
  localparam RECORDS = BEAT_W / RECORD_W;
  localparam BYTES = 2 * RECORDS;
  localparam BYTES_LOG = $clog2(BYTES);
  localparam ROW_W = 8 * BYTES;
  localparam ROWS = TABLES * `VTA_TABLE_RECORDS / RECORDS;
  localparam ADDR_W = $clog2(ROWS);

  genvar i;
  wire [ROW_W-1:0] row;
  generate
    for (i = 0; i < RECORDS; i = i + 1) begin : g_record
      assign row[i*16+:16] = wdata_i[i*RECORD_W+:16];
    end
  endgenerate

  generate
    for (i = 0; i < LANES; i = i + 2) begin : g_pair
      reg [ROW_W-1:0] mem_q[0:ROWS-1];
      // the number as it counts in a table
      wire [11:0] first = {number_i, value_i[i*8+:8] ^ 8'h80};
      wire [11:0] first_row = first >> BYTES_LOG;
      wire [ADDR_W-1:0] port = we_i ? waddr_i[ADDR_W-1:0] : first_row[ADDR_W-1:0];
      reg [ROW_W-1:0] first_q;
      reg [BYTES_LOG-1:0] first_byte_q;
      assign result_o[i*8+:8] = first_q[first_byte_q*8+:8];
      always @(posedge clk_i)
        if (we_i) mem_q[port] <= row;
        else if (re_i) first_q <= mem_q[port];
      always @(posedge clk_i) if (re_i) first_byte_q <= first[BYTES_LOG-1:0];
      if (i + 1 < LANES) begin : g_second
        wire [11:0] second = {number_i, value_i[i*8+8+:8] ^ 8'h80};
        wire [11:0] second_row = second >> BYTES_LOG;
        reg [ROW_W-1:0] second_q;
        reg [BYTES_LOG-1:0] second_byte_q;
        assign result_o[i*8+8+:8] = second_q[second_byte_q*8+:8];
        always @(posedge clk_i) if (re_i) second_q <= mem_q[second_row[ADDR_W-1:0]];
        always @(posedge clk_i) if (re_i) second_byte_q <= second[BYTES_LOG-1:0];
        wire unused_second = &{1'b0, second_row};
      end
      wire unused = &{1'b0, first_row};
    end
  endgenerate

  wire unused = &{1'b0, wdata_i, waddr_i};
endmodule

`resetall
