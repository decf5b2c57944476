// A frame to Ethernet, out of a memory of words: preamble, bytes, check, and a gap behind it.
// Contract: words are written while busy_o is low; send_i sends words_i of them, or 16 where that is more, from the third
// byte of word 0 on, upper bytes first.  busy_o is high behind the edge that samples send_i until the gap is over.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_eth_tx (
    // the SoC's clock
    input  wire        clk_i,
    input  wire        rst_ni,
    input  wire        we_i,
    input  wire [ 7:0] waddr_i,
    input  wire [31:0] wdata_i,
    input  wire        send_i,
    input  wire [ 7:0] words_i,
    output wire        busy_o,
    // Ethernet's
    input  wire        eth_clk_i,
    input  wire        eth_rst_ni,
    output wire        valid_o,
    output wire [ 7:0] data_o
);
  // 62 bytes and the check: a frame has 64 or more.  Bytes of preamble, check and gap, less one.
  localparam [7:0] LEAST = 8'd16;
  localparam [3:0] PREAMBLE = 4'd7, CHECK = 4'd3, GAP = 4'd15;
  localparam [2:0] ST_IDLE = 3'd0, ST_PREAMBLE = 3'd1, ST_DATA = 3'd2, ST_CHECK = 3'd3, ST_GAP = 3'd4;

  // changed by each frame, and by its end
  reg send_q, sent_q;
  reg send_1_q, send_2_q, sent_1_q, sent_2_q;
  reg [7:0] words_q;

  assign busy_o = send_q != sent_2_q;

  always @(posedge clk_i)
    if (!rst_ni) {send_q, sent_2_q, sent_1_q} <= 3'd0;
    else {send_q, sent_2_q, sent_1_q} <= {send_q ^ send_i, sent_1_q, sent_q};
  always @(posedge clk_i) if (send_i) words_q <= (words_i < LEAST) ? LEAST : words_i;

  reg [31:0] mem_q[0:255];
  reg [31:0] read_q;
  reg [ 7:0] raddr_q;
  always @(posedge clk_i) if (we_i) mem_q[waddr_i] <= wdata_i;
  always @(posedge eth_clk_i) read_q <= mem_q[raddr_q];

  // a block RAM takes most of a cycle
  reg [31:0] next_q;
  always @(posedge eth_clk_i) next_q <= read_q;

  // Ethernet's side
  reg  [ 2:0] state_q;
  reg  [ 3:0] left_q;
  reg  [ 1:0] byte_q;
  reg  [31:0] word_q;
  reg  [31:0] crc_q;
  reg         valid_q;
  reg  [ 7:0] data_q;
  wire [31:0] crc;

  wire        over = left_q == 4'd0;
  wire        whole = byte_q == 2'd3;
  wire        last = whole && raddr_q == words_q;

  assign valid_o = valid_q;
  assign data_o  = data_q;

  fpga_crc32 u_crc (
      .crc_i (crc_q),
      .data_i(word_q[31:24]),
      .crc_o (crc)
  );

  always @(posedge eth_clk_i)
    if (!eth_rst_ni) begin
      state_q <= ST_IDLE;
      sent_q  <= 1'b0;
      {send_2_q, send_1_q} <= 2'd0;
    end else begin
      {send_2_q, send_1_q} <= {send_1_q, send_q};
      case (state_q)
        ST_IDLE: if (send_2_q != sent_q) state_q <= ST_PREAMBLE;
        ST_PREAMBLE: if (over) state_q <= ST_DATA;
        ST_DATA: if (last) state_q <= ST_CHECK;
        ST_CHECK: if (over) state_q <= ST_GAP;
        default:
        if (over) begin
          state_q <= ST_IDLE;
          sent_q  <= send_2_q;
        end
      endcase
    end

  always @(posedge eth_clk_i) begin
    valid_q <= state_q == ST_PREAMBLE || state_q == ST_DATA || state_q == ST_CHECK;
    data_q  <= (state_q == ST_PREAMBLE) ? (over ? 8'hD5 : 8'h55) : (state_q == ST_DATA) ? word_q[31:24] : ~crc_q[7:0];
    case (state_q)
      ST_IDLE: begin
        left_q  <= PREAMBLE;
        raddr_q <= 8'd0;
        crc_q   <= 32'hFFFFFFFF;
      end
      ST_DATA: begin
        left_q <= CHECK;
        byte_q <= byte_q + 2'd1;
        word_q <= whole ? next_q : {word_q[23:0], 8'd0};
        crc_q  <= crc;
        if (whole) raddr_q <= raddr_q + 8'd1;
      end
      default: begin
        left_q <= (state_q == ST_CHECK && over) ? GAP : left_q - 4'd1;
        byte_q <= 2'd2;
        word_q <= {next_q[15:0], 16'd0};
        crc_q  <= (state_q == ST_CHECK) ? {8'd0, crc_q[31:8]} : crc_q;
        // two edges before word 1 is asked for, one behind the last look at word 0
        if (state_q == ST_PREAMBLE && left_q == 4'd1) raddr_q <= 8'd1;
      end
    endcase
  end
endmodule

`resetall
