// A host on Ethernet as accesses of 32-bit words: Etherbone over UDP, and answers to ARP; everything else is left alone.
// A packet has one record: words to write from an address on, and addresses to read.  It is carried out once all of its
// words have arrived, and answered if it reads; a record that only writes gets no answer.
// Contract: req_o holds with its address and data until ack_i; rdata_i counts in the cycle of ack_i.  A frame that comes
// while another is carried out waits; of further ones all are lost.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_etherbone #(
    // Address of the board on Ethernet
    parameter [47:0] MAC     = 48'h020000000001,
    // Its address on the network
    parameter [31:0] ADDRESS = 32'hC0A80132,
    // Its number of UDP's
    parameter [15:0] PORT    = 16'd1234
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    // bytes from and to Ethernet, with its clock
    input  wire        eth_clk_i,
    input  wire        rx_valid_i,
    input  wire [ 7:0] rx_data_i,
    output wire        tx_valid_o,
    output wire [ 7:0] tx_data_o,
    // accesses
    output wire        req_o,
    output wire        we_o,
    output wire [31:0] addr_o,
    output wire [31:0] wdata_o,
    input  wire        ack_i,
    input  wire [31:0] rdata_i
);
  localparam [15:0] ETHERTYPE_IP = 16'h0800, ETHERTYPE_ARP = 16'h0806;
  // version and size of IP's header; no fragment; hops and UDP
  localparam [15:0] IP_BEGIN = 16'h4500, IP_WHOLE = 16'h4000, IP_UDP = 16'h4011;
  localparam [31:0] ARP_ADDRESSES = 32'h00010800;
  localparam [15:0] ARP_SIZES = 16'h0604, ARP_ASKS = 16'd1, ARP_TELLS = 16'd2;
  // magic word, version 1, addresses and data of four bytes; of a record: no flags, all bytes
  localparam [31:0] ETHERBONE = 32'h4E6F1044;
  localparam [15:0] RECORD = 16'h000F;
  // words in front of a record's, bytes of an answer without words: of its packet, and of that in UDP
  localparam [7:0] HEADS = 8'd14;
  localparam [15:0] IP_BYTES = 16'd44, UDP_BYTES = 16'd24;
  // the sum of IP's header but for the host's address and the words of the answer, by ones' complement
  localparam [31:0] SUM = {16'd0, IP_BEGIN} + {16'd0, IP_WHOLE} + {16'd0, IP_UDP} + {16'd0, IP_BYTES}
      + {16'd0, ADDRESS[31:16]} + {16'd0, ADDRESS[15:0]};
  localparam [31:0] FOLDED = {16'd0, SUM[31:16]} + {16'd0, SUM[15:0]};
  localparam [15:0] BEGUN = FOLDED[31:16] + FOLDED[15:0];
  localparam [4:0] LAST_ARP = 5'd12, LAST_UDP = 5'd16;
  localparam [1:0] ST_IDLE = 2'd0, ST_HEADS = 2'd1, ST_FETCH = 2'd2, ST_USE = 2'd3;
  // what the word at hand is
  localparam [1:0] BASE = 2'd0, DATA = 2'd1, RETURN = 2'd2, PLACE = 2'd3;

  // Ethernet's side is in reset with the SoC
  reg eth_rst_1_q, eth_rst_2_q;
  always @(posedge eth_clk_i) {eth_rst_2_q, eth_rst_1_q} <= {eth_rst_1_q, rst_ni};

  reg  [ 1:0] state_q;
  reg  [ 4:0] step_q;
  reg         arp_q;
  reg  [15:0] past_q;
  reg  [15:0] sum_q;
  reg         carry_q;
  reg  [ 7:0] writes_q;
  reg  [ 7:0] reads_q;
  reg  [ 9:0] needs_q;
  reg  [ 1:0] kind_q;
  reg  [ 7:0] at_q;
  reg  [ 7:0] put_q;
  reg  [31:0] address_q;

  wire frame, busy;
  wire [7:0] words;
  wire [31:0] word;

  // what a step asks for, says, and refuses; its word is that which the step before asked for
  reg  [7:0] ask;
  reg        tell;
  reg  [7:0] place;
  reg [31:0] told;
  reg        wrong;
  reg [15:0] more;
  wire [15:0] answer_bytes = {6'd0, reads_q, 2'd0};

  always @* begin
    ask   = 8'd0;
    tell  = 1'b1;
    place = {3'd0, step_q} - 8'd1;
    told  = 32'd0;
    wrong = 1'b0;
    more  = 16'd0;
    case ({arp_q && step_q > 5'd4, step_q})
      6'd0: begin
        ask  = 8'd2;
        tell = 1'b0;
      end
      6'd1: begin
        ask  = 8'd3;
        told = {16'd0, word[31:16]};
      end
      6'd2: begin
        ask   = 8'd4;
        told  = {past_q, word[31:16]};
        wrong = word[15:0] != ETHERTYPE_IP && word[15:0] != ETHERTYPE_ARP;
      end
      6'd3: begin
        ask   = 8'd5;
        told  = MAC[47:16];
        wrong = arp_q ? word != ARP_ADDRESSES : word[31:24] != IP_BEGIN[15:8];
      end
      6'd4: begin
        ask   = 8'd6;
        told  = {MAC[15:0], arp_q ? ETHERTYPE_ARP : ETHERTYPE_IP};
        wrong = arp_q ? word != {ARP_SIZES, ARP_ASKS} : |word[13:0];
      end
      // UDP: the host's address and number, ours
      6'd5: begin
        ask   = 8'd7;
        place = 8'd5;
        told  = {16'd0, IP_WHOLE};
        wrong = word[23:16] != IP_UDP[7:0];
      end
      6'd6: begin
        ask   = 8'd8;
        place = 8'd8;
        told  = word;
        more  = word[31:16];
      end
      6'd7: begin
        ask   = 8'd9;
        place = 8'd7;
        told  = ADDRESS;
        more  = past_q;
        wrong = word != ADDRESS;
      end
      6'd8: begin
        ask   = 8'd11;
        place = 8'd9;
        told  = {PORT, word[31:16]};
        wrong = word[15:0] != PORT;
      end
      // Etherbone: its head, the record's
      6'd9: begin
        ask   = 8'd13;
        place = 8'd11;
        told  = ETHERBONE;
        wrong = word != ETHERBONE;
      end
      6'd10: begin
        place = 8'd13;
        told  = {RECORD, word[7:0], 8'd0};
        wrong = word[31:16] != RECORD;
      end
      6'd11: place = 8'd12;
      // how much the answer has
      6'd12: begin
        place = 8'd4;
        told  = {IP_BEGIN, answer_bytes + IP_BYTES};
        more  = answer_bytes;
        wrong = needs_q >= {2'd0, words};  // the check is a word too
      end
      6'd13: begin
        place = 8'd10;
        told  = {answer_bytes + UDP_BYTES, 16'd0};
      end
      6'd14, 6'd15: tell = 1'b0;
      6'd16: begin
        place = 8'd6;
        told  = {IP_UDP, ~sum_q};
        wrong = writes_q == 8'd0 && reads_q == 8'd0;
      end
      // ARP: who asks, who we are
      6'd37: told = ARP_ADDRESSES;
      6'd38: told = {ARP_SIZES, ARP_TELLS};
      6'd39: told = MAC[47:16];
      6'd40: begin
        ask  = 8'd6;
        told = {MAC[15:0], ADDRESS[31:16]};
      end
      6'd41: begin
        ask  = 8'd7;
        told = {ADDRESS[15:0], word[31:16]};
      end
      6'd42: begin
        ask  = 8'd8;
        told = {past_q, word[31:16]};
      end
      6'd43: begin
        ask  = 8'd10;
        told = {past_q, word[31:16]};
      end
      default: begin
        tell  = 1'b0;
        wrong = word != ADDRESS;
      end
    endcase
  end

  wire heads = state_q == ST_HEADS;
  wire uses = state_q == ST_USE;
  wire drops = heads && wrong;
  wire last_arp = heads && arp_q && step_q == LAST_ARP;
  wire last_udp = heads && !arp_q && step_q == LAST_UDP;
  wire write_done = req_o && we_o && ack_i;
  wire read_done = req_o && !we_o && ack_i;
  wire last_write = write_done && writes_q == 8'd1;
  wire last_read = read_done && reads_q == 8'd1;
  wire next = (uses && !req_o) || write_done || read_done;
  wire sends = (last_arp && !wrong) || last_read;
  wire ends = drops || sends || (last_write && reads_q == 8'd0);

  assign req_o   = uses && (kind_q == DATA || kind_q == PLACE);
  assign we_o    = kind_q == DATA;
  assign addr_o  = (kind_q == DATA) ? address_q : word;
  assign wdata_o = word;

  wire tx_we = (heads && tell) || (uses && kind_q == RETURN) || read_done;
  wire [31:0] tx_word = heads ? told : (kind_q == RETURN) ? word : rdata_i;

  always @(posedge clk_i)
    if (!rst_ni) state_q <= ST_IDLE;
    else if (ends) state_q <= ST_IDLE;
    else
      case (state_q)
        ST_IDLE: if (frame && !busy) state_q <= ST_HEADS;
        ST_HEADS: if (last_udp) state_q <= ST_FETCH;
        ST_FETCH: state_q <= ST_USE;
        default: if (next) state_q <= ST_FETCH;
      endcase

  always @(posedge clk_i) begin
    step_q <= heads ? step_q + 5'd1 : 5'd0;
    past_q <= word[15:0];
    if (heads && step_q == 5'd2) arp_q <= word[15:0] == ETHERTYPE_ARP;
    else if (state_q == ST_IDLE) arp_q <= 1'b0;
    if (state_q == ST_IDLE) {carry_q, sum_q} <= {1'b0, BEGUN};
    else if (heads && step_q != LAST_UDP) {carry_q, sum_q} <= {1'b0, sum_q} + {1'b0, more} + {16'd0, carry_q};
    if (heads && step_q == 5'd10) {writes_q, reads_q} <= word[15:0];
    else {writes_q, reads_q} <= {writes_q - {7'd0, write_done}, reads_q - {7'd0, read_done}};
    needs_q <= {2'd0, HEADS} + {2'd0, writes_q} + {9'd0, |writes_q} + {2'd0, reads_q} + {9'd0, |reads_q};
    if (heads) kind_q <= (writes_q != 8'd0) ? BASE : RETURN;
    else if (next) kind_q <= (kind_q == BASE) ? DATA : (kind_q == DATA && !last_write) ? DATA : last_write ? RETURN : PLACE;
    if (heads) at_q <= HEADS;
    else if (next) at_q <= at_q + 8'd1;
    if (heads) put_q <= HEADS;
    else if (tx_we) put_q <= put_q + 8'd1;
    if (uses && kind_q == BASE) address_q <= word;
    else if (write_done) address_q <= address_q + 32'd4;
  end

  fpga_eth_rx u_rx (
      .eth_clk_i (eth_clk_i),
      .eth_rst_ni(eth_rst_2_q),
      .valid_i   (rx_valid_i),
      .data_i    (rx_data_i),
      .clk_i     (clk_i),
      .rst_ni    (rst_ni),
      .frame_o   (frame),
      .words_o   (words),
      .done_i    (ends),
      .raddr_i   (heads ? ask : at_q),
      .rdata_o   (word)
  );

  fpga_eth_tx u_tx (
      .clk_i     (clk_i),
      .rst_ni    (rst_ni),
      .we_i      (tx_we),
      .waddr_i   (heads ? place : put_q),
      .wdata_i   (tx_word),
      .send_i    (sends),
      .words_i   (heads ? 8'd11 : put_q + 8'd1),
      .busy_o    (busy),
      .eth_clk_i (eth_clk_i),
      .eth_rst_ni(eth_rst_2_q),
      .valid_o   (tx_valid_o),
      .data_o    (tx_data_o)
  );
endmodule

`resetall
