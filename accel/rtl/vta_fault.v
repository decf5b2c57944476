// Fault register: the first fault of a launch stops the core; of several in one cycle, that with the smallest index.
// Contract: source k is bit k of valid_i, byte k of code_i and word k of index_i; run_i gates new faults.  Of equal
// indices the first source counts.
// Latency: stop_o rises after the edge that ends the cycle with a fault, fault_o with code and index SOURCES edges later.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_fault #(
    // Sources, at least 2
    parameter SOURCES = 4
) (
    input  wire                  clk_i,
    input  wire                  rst_ni,
    input  wire                  run_i,
    input  wire [   SOURCES-1:0] valid_i,
    input  wire [ SOURCES*8-1:0] code_i,
    input  wire [SOURCES*32-1:0] index_i,
    // some fault was seen
    output wire                  stop_o,
    // code_o and index_o are those of the fault
    output wire                  fault_o,
    output wire [           7:0] code_o,
    output wire [          31:0] index_o
);
  generate
    if (SOURCES < 2) begin : g_param_check
      ERROR_fault_SOURCES_must_be_at_least_2 u_param_error ();
    end
  endgenerate

  reg                   stop_q;
  // its complement, which keeps the many words below off the net that stops the core
  reg                   open_q;
  reg                   fault_q;
  // the sources in the cycle of the fault, which are looked at one by one
  reg  [   SOURCES-1:0] valids_q;
  reg  [ SOURCES*8-1:0] codes_q;
  reg  [SOURCES*32-1:0] indices_q;
  reg  [   SOURCES-1:0] turn_q;
  // the smallest so far
  reg                   found_q;
  reg  [           7:0] code_q;
  reg  [          31:0] index_q;

  reg  [           7:0] code;
  reg  [          31:0] index;
  wire                  smaller = |(valids_q & turn_q) && (!found_q || index < index_q);

  integer k;
  always @* begin
    code  = 8'd0;
    index = 32'd0;
    k     = 0;
    if (!open_q)
      for (k = 0; k < SOURCES; k = k + 1) begin
        code  = code | (codes_q[k*8+:8] & {8{turn_q[k]}});
        index = index | (indices_q[k*32+:32] & {32{turn_q[k]}});
      end
  end

  assign stop_o  = stop_q;
  assign fault_o = fault_q;
  assign code_o  = code_q;
  assign index_o = index_q;

  always @(posedge clk_i)
    if (open_q) begin
      valids_q  <= valid_i;
      codes_q   <= code_i;
      indices_q <= index_i;
    end

  always @(posedge clk_i)
    if (!rst_ni) begin
      stop_q  <= 1'b0;
      open_q  <= 1'b1;
      fault_q <= 1'b0;
      turn_q  <= {{(SOURCES - 1) {1'b0}}, 1'b1};
      found_q <= 1'b0;
      code_q  <= 8'd0;
      index_q <= 32'd0;
    end else begin
      if (run_i && |valid_i) begin
        stop_q <= 1'b1;
        open_q <= 1'b0;
      end
      if (stop_q && !fault_q) begin
        turn_q  <= turn_q << 1;
        fault_q <= turn_q[SOURCES-1];
        if (smaller) begin
          found_q <= 1'b1;
          code_q  <= code;
          index_q <= index;
        end
      end
    end
endmodule

`resetall
