// Sender of an asynchronous serial line: 8 data bits, least significant first, no parity, one stop bit.
// Contract: a byte is taken where valid_i and ready_o meet; ready_o while no byte is on the line.
// Latency: the start bit begins at the edge that takes the byte.  Throughput: ten bits a byte.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_uart_tx #(
    // Cycles of a bit, at least 4
    parameter DIVISOR = 4
) (
    input  wire       clk_i,
    input  wire       rst_ni,
    // bytes to send
    input  wire       valid_i,
    output wire       ready_o,
    input  wire [7:0] data_i,
    // the line, idle high
    output wire       tx_o
);
  generate
    if (DIVISOR < 4) begin : g_param_check
      ERROR_uart_DIVISOR_must_be_at_least_4 u_param_error ();
    end
  endgenerate

  localparam COUNT_W = $clog2(DIVISOR);
  localparam [31:0] WHOLE = DIVISOR - 1;

  // start, data and stop bits, the next one first; ones fill up
  reg [        9:0] bits_q;
  reg [        3:0] left_q;
  reg [COUNT_W-1:0] count_q;

  assign ready_o = left_q == 4'd0;
  assign tx_o    = bits_q[0];

  always @(posedge clk_i)
    if (!rst_ni) begin
      bits_q <= 10'h3ff;
      left_q <= 4'd0;
    end else if (ready_o) begin
      if (valid_i) begin
        bits_q <= {1'b1, data_i, 1'b0};
        left_q <= 4'd10;
      end
    end else if (count_q == {COUNT_W{1'b0}}) begin
      bits_q <= {1'b1, bits_q[9:1]};
      left_q <= left_q - 4'd1;
    end

  always @(posedge clk_i)
    if (ready_o || count_q == {COUNT_W{1'b0}}) count_q <= WHOLE[COUNT_W-1:0];
    else count_q <= count_q - 1'b1;
endmodule

`resetall
