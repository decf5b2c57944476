// Block RAM as the memory of the accelerator: an AXI4 slave for bursts, and single words for the host.
// Contract: INCR bursts of whole beats, one a direction at a time, in order; addresses wrap at the end of the memory.
// The host's accesses wait until no burst uses the port that they need.
// Latency: two edges from the address to the first beat.  Throughput: a beat a cycle, one cycle between bursts.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_axi_memory #(
    // Width of a beat in bits: 64 to 256
    parameter DATA_BITS = 64,
    // Beats that the memory holds: a power of two, at least 2
    parameter DEPTH     = 1024
) (
    input  wire                 clk_i,
    input  wire                 rst_ni,
    // write address, data, response
    input  wire [         31:0] awaddr_i,
    input  wire                 awvalid_i,
    output wire                 awready_o,
    input  wire [DATA_BITS-1:0] wdata_i,
    input  wire                 wlast_i,
    input  wire                 wvalid_i,
    output wire                 wready_o,
    output wire                 bvalid_o,
    input  wire                 bready_i,
    // read address and data
    input  wire [         31:0] araddr_i,
    input  wire [          7:0] arlen_i,
    input  wire                 arvalid_i,
    output wire                 arready_o,
    output wire [DATA_BITS-1:0] rdata_o,
    output wire                 rlast_o,
    output wire                 rvalid_o,
    input  wire                 rready_i,
    // words of the host
    input  wire                 req_i,
    input  wire                 we_i,
    input  wire [         31:0] addr_i,
    input  wire [         31:0] word_i,
    output wire                 ack_o,
    output wire [         31:0] word_o
);
  localparam WORDS = DATA_BITS / 32;
  localparam WORD_LOG = $clog2(WORDS);
  localparam ADDR_W = $clog2(DEPTH);
  localparam LOW = $clog2(DATA_BITS / 8);

  // bursts that write
  reg               writing_q;
  reg               answer_q;
  reg  [ADDR_W-1:0] waddr_q;
  wire              beat = writing_q && wvalid_i;

  assign awready_o = !writing_q && !answer_q;
  assign wready_o  = writing_q;
  assign bvalid_o  = answer_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      writing_q <= 1'b0;
      answer_q  <= 1'b0;
    end else begin
      if (awready_o) writing_q <= awvalid_i;
      else if (beat && wlast_i) writing_q <= 1'b0;
      if (beat && wlast_i) answer_q <= 1'b1;
      else if (bready_i) answer_q <= 1'b0;
    end

  always @(posedge clk_i)
    if (awready_o) waddr_q <= awaddr_i[LOW+:ADDR_W];
    else if (beat) waddr_q <= waddr_q + 1'b1;

  // bursts that read
  reg               reading_q;
  reg               valid_q;
  reg               last_q;
  reg  [       7:0] left_q;
  reg  [ADDR_W-1:0] raddr_q;
  wire              issue = reading_q && (!valid_q || rready_i);

  assign arready_o = !reading_q;
  assign rvalid_o  = valid_q;
  assign rlast_o   = last_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      reading_q <= 1'b0;
      valid_q   <= 1'b0;
    end else begin
      if (arready_o) reading_q <= arvalid_i;
      else if (issue && left_q == 8'd0) reading_q <= 1'b0;
      if (issue) valid_q <= 1'b1;
      else if (rready_i) valid_q <= 1'b0;
    end

  always @(posedge clk_i) begin
    if (arready_o) begin
      left_q  <= arlen_i;
      raddr_q <= araddr_i[LOW+:ADDR_W];
    end else if (issue) begin
      left_q  <= left_q - 8'd1;
      raddr_q <= raddr_q + 1'b1;
    end
    if (issue) last_q <= left_q == 8'd0;
  end

  // the host: a write in one cycle, a read in two
  reg                 looked_q;
  wire                host_write = req_i && we_i && !beat;
  wire                host_look = req_i && !we_i && !looked_q && !reading_q && !valid_q;
  wire [WORD_LOG-1:0] word = addr_i[2+:WORD_LOG];

  assign ack_o  = host_write || looked_q;
  assign word_o = rdata_o[word*32+:32];

  always @(posedge clk_i) looked_q <= rst_ni && host_look;

  wire [WORDS-1:0] one = {{(WORDS - 1) {1'b0}}, 1'b1};

  vta_ram_cols #(
      .COL_W (32),
      .COLS  (WORDS),
      .DEPTH (DEPTH),
      .ADDR_W(ADDR_W)
  ) u_ram (
      .clk_i  (clk_i),
      .we_i   (beat ? {WORDS{1'b1}} : host_write ? one << word : {WORDS{1'b0}}),
      .waddr_i(beat ? waddr_q : addr_i[LOW+:ADDR_W]),
      .wdata_i(beat ? wdata_i : {WORDS{word_i}}),
      .re_i   (issue || host_look),
      .raddr_i(issue ? raddr_q : addr_i[LOW+:ADDR_W]),
      .rdata_o(rdata_o)
  );

  wire unused = &{1'b0, awaddr_i, araddr_i, addr_i};
endmodule

`resetall
