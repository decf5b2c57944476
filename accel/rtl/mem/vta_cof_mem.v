// Coefficients of the row unit: for each of its lanes a memory of records, which LOAD writes in bus beats.
// Contract: two looks a cycle, each lane at an entry of its own: one for sums, which gives the low 16 bits of a record,
// and one for results, which gives all 48 that are kept: {bias, gain}.  Nothing is looked up in the cycle of a write.
// Latency: s_word_o and r_word_o are valid after the edge that samples s_re_i and r_re_i, until the next one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_cof_mem #(
    // Lanes of the row unit, a power of two
    parameter LANES       = 1,
    // Entries, a power of two
    parameter COF_DEPTH   = 256,
    // Bus width in bits: at most the records of an entry
    parameter BEAT_W      = 64,
    // Width of the beat address in bits
    parameter BEAT_ADDR_W = 20
) (
    input  wire                   clk_i,
    // LOAD: beats of records
    input  wire                   we_i,
    input  wire [BEAT_ADDR_W-1:0] waddr_i,
    input  wire [     BEAT_W-1:0] wdata_i,
    // sums: an entry for each lane
    input  wire                   s_re_i,
    input  wire [   LANES*16-1:0] s_raddr_i,
    output wire [   LANES*16-1:0] s_word_o,
    // results
    input  wire                   r_re_i,
    input  wire [   LANES*16-1:0] r_raddr_i,
    output wire [   LANES*48-1:0] r_word_o
);
  localparam RECORD_W = `VTA_COF_RECORD_BYTES * 8;
  localparam RECORDS = BEAT_W / RECORD_W;
  // beats of an entry
  localparam BEATS = LANES / RECORDS;
  localparam BEATS_LOG = $clog2(BEATS);
  localparam ADDR_W = $clog2(COF_DEPTH);
  localparam [31:0] BEAT_MASK = BEATS - 1;
  wire [BEAT_ADDR_W-1:0] entry = waddr_i >> BEATS_LOG;
  wire [BEAT_ADDR_W-1:0] beat = waddr_i & BEAT_MASK[BEAT_ADDR_W-1:0];

  genvar i;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      localparam [31:0] OWN = i / RECORDS;
      localparam AT = i % RECORDS * RECORD_W;
      reg [15:0] gain_q[0:COF_DEPTH-1];
      reg [31:0] bias_q[0:COF_DEPTH-1];
      reg [15:0] s_q;
      reg [15:0] r_gain_q;
      reg [31:0] r_bias_q;
      wire we = we_i && beat == OWN[BEAT_ADDR_W-1:0];
      wire [15:0] s_at = s_raddr_i[i*16+:16];
      wire [15:0] r_at = r_raddr_i[i*16+:16];
      // one memory of gains for both looks, as LOAD writes through the port of the first
      wire [ADDR_W-1:0] port = we_i ? entry[ADDR_W-1:0] : s_at[ADDR_W-1:0];
      always @(posedge clk_i)
        if (we) gain_q[port] <= wdata_i[AT+:16];
        else if (s_re_i) s_q <= gain_q[port];
      always @(posedge clk_i) if (r_re_i) r_gain_q <= gain_q[r_at[ADDR_W-1:0]];
      always @(posedge clk_i) if (we) bias_q[entry[ADDR_W-1:0]] <= wdata_i[AT+32+:32];
      always @(posedge clk_i) if (r_re_i) r_bias_q <= bias_q[r_at[ADDR_W-1:0]];
      assign s_word_o[i*16+:16] = s_q;
      assign r_word_o[i*48+:48] = {r_bias_q, r_gain_q};
      wire unused = &{1'b0, s_at, r_at};
    end
  endgenerate

  wire unused = &{1'b0, entry, wdata_i};
endmodule

`resetall
