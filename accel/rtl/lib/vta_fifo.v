// First-in first-out queue with registered occupancy.
// Contract: push_i only while !full_o, pop_i only while valid_o; data_o is the oldest entry while valid_o.  Its lowest
// EARLY bits come from registers, the others from the memory.  data_i is written whenever there is room; push_i, a late
// signal with long wires, only decides whether the entry counts.
// With RESTS, the EARLY bits are undefined in the cycle after a pop, and no pop may occur then: pop_i can be local.
// Latency: an entry pushed at an edge is visible after that edge.  Throughput: one push and one pop a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_fifo #(
    // Payload width in bits, at least 1
    parameter WIDTH = 8,
    // Entries, at least 1
    parameter DEPTH = 2,
    // Bits of the oldest entry that are kept in registers, up to WIDTH
    parameter EARLY = 0,
    // 1: data_o rests for a cycle behind a pop
    parameter RESTS = 0
) (
    input  wire             clk_i,
    input  wire             rst_ni,
    // write side
    input  wire             push_i,
    input  wire [WIDTH-1:0] data_i,
    output wire             full_o,
    // read side
    output wire             valid_o,
    output wire [WIDTH-1:0] data_o,
    input  wire             pop_i
);
  generate
    if (WIDTH < 1 || DEPTH < 1) begin : g_param_check
      ERROR_fifo_WIDTH_and_DEPTH_must_be_at_least_1 u_param_error ();
    end
    if (EARLY < 0 || EARLY > WIDTH) begin : g_early_check
      ERROR_fifo_EARLY_must_be_at_most_WIDTH u_param_error ();
    end
  endgenerate

  localparam ADDR_W = (DEPTH > 1) ? $clog2(DEPTH) : 1;
  localparam [31:0] LAST = DEPTH - 1;

  reg  [ADDR_W-1:0] read_q;
  reg  [ADDR_W-1:0] write_q;
  wire              one;

  wire [ADDR_W-1:0] next = (read_q == LAST[ADDR_W-1:0]) ? {ADDR_W{1'b0}} : read_q + 1'b1;

  vta_count #(
      .MAX(DEPTH)
  ) u_count (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .add_i (push_i),
      .sub_i (pop_i),
      .any_o (valid_o),
      .one_o (one),
      .full_o(full_o)
  );

  always @(posedge clk_i)
    if (!rst_ni) begin
      read_q  <= {ADDR_W{1'b0}};
      write_q <= {ADDR_W{1'b0}};
    end else begin
      if (push_i) write_q <= (write_q == LAST[ADDR_W-1:0]) ? {ADDR_W{1'b0}} : write_q + 1'b1;
      if (pop_i) read_q <= next;
    end

  generate
    if (WIDTH > EARLY) begin : g_late
      vta_ram_async #(
          .WIDTH (WIDTH - EARLY),
          .DEPTH (DEPTH),
          .ADDR_W(ADDR_W)
      ) u_ram (
          .clk_i  (clk_i),
          .we_i   (!full_o),
          .waddr_i(write_q),
          .wdata_i(data_i[WIDTH-1:EARLY]),
          .raddr_i(read_q),
          .rdata_o(data_o[WIDTH-1:EARLY])
      );
    end

    if (EARLY > 0) begin : g_early
      reg  [EARLY-1:0] early_q;
      wire [EARLY-1:0] kept;
      assign data_o[EARLY-1:0] = early_q;

      // what comes next: the entry behind the oldest one as that leaves, or a cycle later the oldest one
      reg popped_q;
      always @(posedge clk_i) popped_q <= pop_i;
      wire               take = (RESTS != 0) ? popped_q : pop_i;
      wire               is_kept = (RESTS != 0) ? valid_o : valid_o && !one;
      wire [ADDR_W-1:0] place = (RESTS != 0) ? read_q : next;

      vta_ram_async #(
          .WIDTH (EARLY),
          .DEPTH (DEPTH),
          .ADDR_W(ADDR_W)
      ) u_ram (
          .clk_i  (clk_i),
          .we_i   (!full_o),
          .waddr_i(write_q),
          .wdata_i(data_i[EARLY-1:0]),
          .raddr_i(place),
          .rdata_o(kept)
      );

      // pop_i comes late: it only enables
      wire [EARLY-1:0] early_d = is_kept ? kept : data_i[EARLY-1:0];
      always @(posedge clk_i) if (take || !valid_o) early_q <= early_d;
      wire unused_popped = &{1'b0, popped_q};
    end
  endgenerate

  wire unused = &{1'b0, one, next};
endmodule

`resetall
