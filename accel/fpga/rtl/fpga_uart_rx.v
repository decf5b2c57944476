// Receiver of an asynchronous serial line: 8 data bits, least significant first, no parity, one stop bit.
// Contract: valid_o for one cycle a byte, in the middle of its stop bit; a byte whose stop bit is low is dropped.
// Latency: three edges of synchronisation.  Throughput: the line's.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_uart_rx #(
    // Cycles of a bit, at least 4
    parameter DIVISOR = 4
) (
    input  wire       clk_i,
    input  wire       rst_ni,
    // the line, idle high; not synchronous to the clock
    input  wire       rx_i,
    // received bytes
    output wire       valid_o,
    output wire [7:0] data_o
);
  generate
    if (DIVISOR < 4) begin : g_param_check
      ERROR_uart_DIVISOR_must_be_at_least_4 u_param_error ();
    end
  endgenerate

  localparam COUNT_W = $clog2(DIVISOR);
  localparam [31:0] WHOLE = DIVISOR - 1;
  localparam [31:0] HALF = DIVISOR / 2 - 1;

  reg [        2:0] sync_q;
  reg               busy_q;
  reg [COUNT_W-1:0] count_q;
  // bits still to sample: start, eight data bits, stop
  reg [        3:0] left_q;
  reg [        7:0] data_q;
  reg               valid_q;

  wire              line = sync_q[2];
  wire              sample = busy_q && count_q == {COUNT_W{1'b0}};
  wire              false_start = left_q == 4'd9 && line;

  assign valid_o = valid_q;
  assign data_o  = data_q;

  always @(posedge clk_i) sync_q <= rst_ni ? {sync_q[1:0], rx_i} : 3'b111;

  always @(posedge clk_i)
    if (!rst_ni) begin
      busy_q  <= 1'b0;
      valid_q <= 1'b0;
    end else begin
      valid_q <= sample && left_q == 4'd0 && line;
      if (!busy_q) busy_q <= !line;
      else if (sample) busy_q <= left_q != 4'd0 && !false_start;
    end

  always @(posedge clk_i)
    if (!busy_q) begin
      count_q <= HALF[COUNT_W-1:0];
      left_q  <= 4'd9;
    end else if (sample) begin
      count_q <= WHOLE[COUNT_W-1:0];
      left_q  <= left_q - 4'd1;
      if (left_q != 4'd9 && left_q != 4'd0) data_q <= {line, data_q[7:1]};
    end else count_q <= count_q - 1'b1;
endmodule

`resetall
