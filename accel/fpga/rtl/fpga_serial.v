// A host on a serial line as accesses of 32-bit words: receiver, bytes that wait, commands, sender.
// Contract: accesses as fpga_bridge makes them; room for 16 bytes of commands while one is under way.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_serial #(
    // Cycles of a bit, at least 4
    parameter DIVISOR = 4,
    // Cycles without a byte after which a command is given up: 16 to 2^31 - 1
    parameter TIMEOUT = 8000000
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    // the line
    input  wire        rx_i,
    output wire        tx_o,
    // accesses
    output wire        req_o,
    output wire        we_o,
    output wire [31:0] addr_o,
    output wire [31:0] wdata_o,
    input  wire        ack_i,
    input  wire [31:0] rdata_i
);
  wire byte_valid, full, rx_valid, rx_ready, tx_valid, tx_ready;
  wire [7:0] byte_data, rx_data, tx_data;

  fpga_uart_rx #(
      .DIVISOR(DIVISOR)
  ) u_rx (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .rx_i   (rx_i),
      .valid_o(byte_valid),
      .data_o (byte_data)
  );

  vta_fifo #(
      .WIDTH(8),
      .DEPTH(16)
  ) u_bytes (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (byte_valid && !full),
      .data_i (byte_data),
      .full_o (full),
      .valid_o(rx_valid),
      .data_o (rx_data),
      .pop_i  (rx_valid && rx_ready)
  );

  fpga_uart_tx #(
      .DIVISOR(DIVISOR)
  ) u_tx (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .valid_i(tx_valid),
      .ready_o(tx_ready),
      .data_i (tx_data),
      .tx_o   (tx_o)
  );

  fpga_bridge #(
      .TIMEOUT(TIMEOUT)
  ) u_bridge (
      .clk_i     (clk_i),
      .rst_ni    (rst_ni),
      .rx_valid_i(rx_valid),
      .rx_ready_o(rx_ready),
      .rx_data_i (rx_data),
      .tx_valid_o(tx_valid),
      .tx_ready_i(tx_ready),
      .tx_data_o (tx_data),
      .req_o     (req_o),
      .we_o      (we_o),
      .addr_o    (addr_o),
      .wdata_o   (wdata_o),
      .ack_i     (ack_i),
      .rdata_i   (rdata_i)
  );
endmodule

`resetall
