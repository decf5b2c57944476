// Fault register: the first fault of a launch stops the core; of several in one cycle, that with the smallest index.
// Contract: source k is bit k of valid_i, byte k of code_i and word k of index_i; run_i gates new faults.
// Latency: a fault seen in a cycle is in the register after the edge that ends it.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_fault #(
    // Sources, at least 1
    parameter SOURCES = 4
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  run_i,
    input  wire [   SOURCES-1:0] valid_i,
    input  wire [ SOURCES*8-1:0] code_i,
    input  wire [SOURCES*32-1:0] index_i,
    output wire                  fault_o,
    output wire [           7:0] code_o,
    output wire [          31:0] index_o
);
  reg         fault_q;
  reg  [ 7:0] code_q;
  reg  [31:0] index_q;
  reg  [ 7:0] code_d;
  reg  [31:0] index_d;
  reg         found;

  assign fault_o = fault_q;
  assign code_o  = code_q;
  assign index_o = index_q;

  integer k;
  always @* begin
    code_d  = 8'd0;
    index_d = 32'd0;
    found   = 1'b0;
    k       = 0;
    if (|valid_i)
      for (k = 0; k < SOURCES; k = k + 1)
        if (valid_i[k] && (!found || index_i[k*32+:32] < index_d)) begin
          found   = 1'b1;
          code_d  = code_i[k*8+:8];
          index_d = index_i[k*32+:32];
        end
  end

  always @(posedge clk_i)
    if (!rst_ni) fault_q <= 1'b0;
    else if (run_i && found) fault_q <= 1'b1;

  always @(posedge clk_i)
    if (!rst_ni) begin
      code_q  <= 8'd0;
      index_q <= 32'd0;
    end else if (run_i && found) begin
      code_q  <= code_d;
      index_q <= index_d;
    end
endmodule

`resetall
