// Fault register: the first fault of a launch stops the core; among simultaneous faults the smallest index wins.
// Contract: source k is bit k of valid_i, byte k of code_i and word k of index_i; run_i gates new faults.  Of equal
// indices the first source counts.
// Latency: stop_soon_o is high from the cycle with a fault on, stop_o after the edge that ends it, fault_o with code and
// index SOURCES + 1 edges later.
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
    // some fault was seen; it was or is, but for a reset
    output wire                  stop_o,
    output wire                  stop_soon_o,
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
  // the one that was looked at, and whether it is the last
  reg                   picked_q;
  reg                   last_q;
  reg  [           7:0] pick_code_q;
  reg  [          31:0] pick_index_q;
  // the smallest so far
  reg                   found_q;
  reg  [           7:0] code_q;
  reg  [          31:0] index_q;

  reg  [           7:0] code;
  reg  [          31:0] index;
  wire                  smaller = picked_q && (!found_q || pick_index_q < index_q);

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

  assign stop_o      = stop_q;
  assign stop_soon_o = stop_q || (run_i && |valid_i);
  assign fault_o     = fault_q;
  assign code_o      = code_q;
  assign index_o     = index_q;

  always @(posedge clk_i) {pick_code_q, pick_index_q} <= {code, index};

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
      {picked_q, last_q} <= 2'd0;
      code_q  <= 8'd0;
      index_q <= 32'd0;
    end else begin
      stop_q <= stop_soon_o;
      open_q <= !stop_soon_o;
      if (stop_q && !fault_q) begin
        turn_q   <= turn_q << 1;
        picked_q <= |(valids_q & turn_q);
        last_q   <= turn_q[SOURCES-1];
        fault_q  <= last_q;
        if (smaller) begin
          found_q <= 1'b1;
          code_q  <= pick_code_q;
          index_q <= pick_index_q;
        end
      end
    end
endmodule

`resetall
