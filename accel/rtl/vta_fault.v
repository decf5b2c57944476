// Fault register: the first fault of a launch stops the core; of several in one cycle, that with the smallest index.
// Contract: sources come in GROUPS groups of EACH.  Within a group the first that is valid has the smallest index
// (instructions pass the stages of a unit in order), of the last group no index is smaller than those of the others.
// Source k is bit k of valid_i, byte k of code_i and word k of index_i; run_i gates new faults.
// Latency: stop_o rises after the edge that ends the cycle with a fault, fault_o with code and index GROUPS edges later.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_fault #(
    // Groups of sources, at least 2
    parameter GROUPS = 2,
    // Sources of a group, at least 1
    parameter EACH   = 2
) (
    input  wire                      clk_i,
    input  wire                      rst_ni,
    input  wire                      run_i,
    input  wire [   GROUPS*EACH-1:0] valid_i,
    input  wire [ GROUPS*EACH*8-1:0] code_i,
    input  wire [GROUPS*EACH*32-1:0] index_i,
    // some fault was seen
    output wire                      stop_o,
    // code_o and index_o are those of the fault
    output wire                      fault_o,
    output wire [               7:0] code_o,
    output wire [              31:0] index_o
);
  generate
    if (GROUPS < 2 || EACH < 1) begin : g_param_check
      ERROR_fault_GROUPS_must_be_at_least_2_and_EACH_at_least_1 u_param_error ();
    end
  endgenerate

  localparam STEP_W = $clog2(GROUPS);
  localparam [31:0] LAST = GROUPS - 1;

  reg                stop_q;
  reg                fault_q;
  reg  [ STEP_W-1:0] step_q;

  // what each group brought in the cycle of the fault
  reg  [ GROUPS-1:0] valid_q;
  reg  [        7:0] codes_q  [0:GROUPS-1];
  reg  [       31:0] indices_q[0:GROUPS-1];

  // the smallest of the groups before step_q
  reg                found_q;
  reg  [        7:0] code_q;
  reg  [       31:0] index_q;

  assign stop_o  = stop_q;
  assign fault_o = fault_q;
  assign code_o  = code_q;
  assign index_o = index_q;

  genvar g;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      reg [ 7:0] code;
      reg [31:0] index;
      integer k;
      always @* begin
        code  = code_i[(g*EACH+EACH-1)*8+:8];
        index = index_i[(g*EACH+EACH-1)*32+:32];
        k     = 0;
        for (k = EACH - 2; k >= 0; k = k - 1)
          if (valid_i[g*EACH+k]) begin
            code  = code_i[(g*EACH+k)*8+:8];
            index = index_i[(g*EACH+k)*32+:32];
          end
      end
      always @(posedge clk_i)
        if (!stop_q) begin
          valid_q[g]   <= |valid_i[g*EACH+:EACH];
          codes_q[g]   <= code;
          indices_q[g] <= index;
        end
    end
  endgenerate

  wire smaller = valid_q[step_q] && (!found_q || indices_q[step_q] < index_q);

  always @(posedge clk_i)
    if (!rst_ni) begin
      stop_q  <= 1'b0;
      fault_q <= 1'b0;
      step_q  <= {STEP_W{1'b0}};
      found_q <= 1'b0;
      code_q  <= 8'd0;
      index_q <= 32'd0;
    end else begin
      if (run_i && |valid_i) stop_q <= 1'b1;
      if (stop_q && !fault_q) begin
        step_q  <= step_q + 1'b1;
        fault_q <= step_q == LAST[STEP_W-1:0];
        if (smaller) begin
          found_q <= 1'b1;
          code_q  <= codes_q[step_q];
          index_q <= indices_q[step_q];
        end
      end
    end
endmodule

`resetall
