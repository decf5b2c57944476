// Commands of a host, byte by byte, as accesses of 32-bit words: the protocol of LiteX's UARTBone.
// A command is its code (1 write, 2 read), the number of words (0 is 256), the address of the first word, divided by
// 4, in four bytes, and for a write the words; a read answers with the words.  Every word has its high byte first.
// Contract: req_o holds with its address and data until ack_i; rdata_i counts in the cycle of ack_i.  A command that
// stops half-way is forgotten after TIMEOUT cycles, so that the next one is understood.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_bridge #(
    // Cycles without a byte after which a command is given up: 16 to 2^31 - 1
    parameter TIMEOUT = 8000000
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    // bytes from the host
    input  wire        rx_valid_i,
    output wire        rx_ready_o,
    input  wire [ 7:0] rx_data_i,
    // bytes to the host
    output wire        tx_valid_o,
    input  wire        tx_ready_i,
    output wire [ 7:0] tx_data_o,
    // accesses
    output wire        req_o,
    output wire        we_o,
    output wire [31:0] addr_o,
    output wire [31:0] wdata_o,
    input  wire        ack_i,
    input  wire [31:0] rdata_i
);
  localparam [7:0] WRITE = 8'd1, READ = 8'd2;
  localparam [2:0] CODE = 3'd0, LENGTH = 3'd1, ADDRESS = 3'd2, DATA = 3'd3, ACCESS = 3'd4, SEND = 3'd5;
  localparam COUNT_W = $clog2(TIMEOUT + 1);
  localparam [31:0] PATIENCE = TIMEOUT;

  reg  [        2:0] state_q;
  reg                write_q;
  reg                known_q;
  reg  [        7:0] words_q;
  reg  [        1:0] byte_q;
  reg  [       29:0] address_q;
  reg  [       31:0] data_q;
  reg  [COUNT_W-1:0] patience_q;

  wire               receiving = state_q == CODE || state_q == LENGTH || state_q == ADDRESS || state_q == DATA;
  wire               take = rx_valid_i && receiving;
  wire               last_byte = byte_q == 2'd3;
  wire               sent = tx_valid_o && tx_ready_i;
  wire               last_word = words_q == 8'd1;
  wire               tired = patience_q == {COUNT_W{1'b0}};

  assign rx_ready_o = receiving;
  assign tx_valid_o = state_q == SEND;
  assign tx_data_o  = data_q[31:24];
  assign req_o      = state_q == ACCESS;
  assign we_o       = write_q;
  assign addr_o     = {address_q, 2'b00};
  assign wdata_o    = data_q;

  always @(posedge clk_i)
    if (!rst_ni || (tired && receiving && !take)) state_q <= CODE;
    else
      case (state_q)
        CODE: if (take) state_q <= LENGTH;
        LENGTH: if (take) state_q <= ADDRESS;
        ADDRESS: if (take && last_byte) state_q <= !known_q ? CODE : write_q ? DATA : ACCESS;
        DATA: if (take && last_byte) state_q <= ACCESS;
        ACCESS: if (ack_i) state_q <= !write_q ? SEND : last_word ? CODE : DATA;
        default: if (sent && last_byte) state_q <= last_word ? CODE : ACCESS;
      endcase

  // bytes of addresses and words come and go by shifting
  always @(posedge clk_i) begin
    if (state_q == CODE && take) begin
      write_q <= rx_data_i == WRITE;
      known_q <= rx_data_i == WRITE || rx_data_i == READ;
    end
    if (state_q == CODE) byte_q <= 2'd0;
    else if ((take && state_q != LENGTH) || sent) byte_q <= byte_q + 2'd1;
    if (state_q == LENGTH && take) words_q <= rx_data_i;
    else if ((state_q == ACCESS && ack_i && write_q) || (sent && last_byte)) words_q <= words_q - 8'd1;
    if (state_q == ADDRESS && take) address_q <= {address_q[21:0], rx_data_i};
    else if ((state_q == ACCESS && ack_i && write_q) || (sent && last_byte)) address_q <= address_q + 30'd1;
    if (state_q == ACCESS && ack_i && !write_q) data_q <= rdata_i;
    else if (take || sent) data_q <= {data_q[23:0], rx_data_i};
    if (!receiving || take || state_q == CODE) patience_q <= PATIENCE[COUNT_W-1:0];
    else if (!tired) patience_q <= patience_q - 1'b1;
  end
endmodule

`resetall
