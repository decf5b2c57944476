// Frames from Ethernet, as words in a memory of two: one is read while the next one comes.
// Contract: valid_i is high from a frame's preamble to its last byte, and low for some cycles behind it.  A frame whose
// check is wrong, that is longer than 1,020 bytes, or that comes while both are in use is as if it had not been there.
// Its first byte is the third of word 0, so that what is behind the addresses begins with a word; bytes that come first
// are the upper ones.  While frame_o is high rdata_o is word raddr_i of the oldest frame, whose whole words words_o counts,
// check and padding among them; done_i gives its place back.
// Latency: rdata_o an edge behind raddr_i.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_eth_rx (
    // Ethernet's clock
    input  wire        eth_clk_i,
    input  wire        eth_rst_ni,
    input  wire        valid_i,
    input  wire [ 7:0] data_i,
    // the SoC's
    input  wire        clk_i,
    input  wire        rst_ni,
    output wire        frame_o,
    output wire [ 7:0] words_o,
    input  wire        done_i,
    input  wire [ 7:0] raddr_i,
    output wire [31:0] rdata_o
);
  localparam [7:0] BEGINS = 8'hD5;
  localparam [31:0] RIGHT = 32'hDEBB20E3;

  // a bit for each place: changed by the side that fills it and by the one that gives it back, free while both agree
  reg [1:0] filled_q, freed_q;
  reg [1:0] freed_1_q, freed_2_q, filled_1_q, filled_2_q;

  // Ethernet's side
  reg         place_q;
  reg         begun_q;
  reg         inside_q;
  reg         over_q;
  reg  [ 1:0] byte_q;
  reg  [ 7:0] index_q;
  reg  [31:0] word_q;
  reg  [31:0] crc_q;
  reg  [ 7:0] words_0_q;
  reg  [ 7:0] words_1_q;
  reg         we_q;
  reg  [ 8:0] waddr_q;
  wire [31:0] crc;

  wire        free = filled_q[place_q] == freed_2_q[place_q];
  wire        begins = valid_i && !begun_q && data_i == BEGINS;
  wire        takes = valid_i && inside_q;
  wire        whole = takes && byte_q == 2'd3;
  wire        good = inside_q && !valid_i && !over_q && crc_q == RIGHT;

  fpga_crc32 u_crc (
      .crc_i (crc_q),
      .data_i(data_i),
      .crc_o (crc)
  );

  always @(posedge eth_clk_i)
    if (!eth_rst_ni) begin
      begun_q  <= 1'b1;
      inside_q <= 1'b0;
      place_q  <= 1'b0;
      filled_q <= 2'd0;
      we_q     <= 1'b0;
      {freed_2_q, freed_1_q} <= 4'd0;
    end else begin
      begun_q  <= valid_i && (begun_q || begins);
      inside_q <= valid_i && (begins ? free : inside_q);
      place_q  <= place_q ^ good;
      filled_q <= filled_q ^ {good && place_q, good && !place_q};
      we_q     <= whole;
      {freed_2_q, freed_1_q} <= {freed_1_q, freed_q};
    end

  always @(posedge eth_clk_i) begin
    if (begins) begin
      byte_q  <= 2'd2;
      index_q <= 8'd0;
      over_q  <= 1'b0;
    end else if (takes) begin
      byte_q <= byte_q + 2'd1;
      if (whole) index_q <= index_q + 8'd1;
      if (whole && &index_q) over_q <= 1'b1;
    end
    crc_q <= begins ? 32'hFFFFFFFF : crc;
    if (takes) word_q <= {word_q[23:0], data_i};
    waddr_q <= {place_q, index_q};
    if (good && !place_q) words_0_q <= index_q;
    if (good && place_q) words_1_q <= index_q;
  end

  // the SoC's side
  reg         turn_q;
  reg  [31:0] mem_q   [0:511];
  reg  [31:0] rdata_q;

  assign frame_o = filled_2_q[turn_q] != freed_q[turn_q];
  assign words_o = turn_q ? words_1_q : words_0_q;
  assign rdata_o = rdata_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      turn_q  <= 1'b0;
      freed_q <= 2'd0;
      {filled_2_q, filled_1_q} <= 4'd0;
    end else begin
      turn_q  <= turn_q ^ done_i;
      freed_q <= freed_q ^ {done_i && turn_q, done_i && !turn_q};
      {filled_2_q, filled_1_q} <= {filled_1_q, filled_q};
    end

  always @(posedge eth_clk_i) if (we_q) mem_q[waddr_q] <= word_q;
  always @(posedge clk_i) rdata_q <= mem_q[{turn_q, raddr_i}];
endmodule

`resetall
