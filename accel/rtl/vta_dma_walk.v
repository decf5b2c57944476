// Address walk of LOAD and STORE: cuts y rows of x runs into bursts, one burst a cycle.
// Contract: lengths and addresses are whole granules; bursts are at most BURST_BEATS long and never cross 4 KiB.  A
// burst outside the window is passed over without a request, and so is all that follows: fault_o is high from then on.
// A walk starts while none is active.
// Latency: the first request is up in the cycle after start_i, active_o until the edge that takes the last one.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dma_walk #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Longest burst, a power of two from 1 to 64
    parameter BURST_BEATS   = 64,
    // Width of the number of rows and of runs in a row, 2 to 16
    parameter COUNT_W       = 16,
    // Width of the beats of a run, at least 8
    parameter LENGTH_W      = 20
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire [       31:0] window_bytes_i,
    // start of a walk; the operands count at its edge
    input  wire               start_i,
    input  wire [       31:0] dram_i,
    input  wire [       15:0] y_i,
    input  wire [       15:0] x_i,
    input  wire [       31:0] y_stride_i,
    input  wire [       31:0] x_stride_i,
    // one run a row, one row (see vta_dma_merge); beats of a run less one
    input  wire               x_one_i,
    input  wire               y_one_i,
    input  wire [LENGTH_W-1:0] length_i,
    // bursts: beats less one
    output wire               active_o,
    output wire               req_valid_o,
    output wire [       31:0] req_offset_o,
    output wire [        5:0] req_len_o,
    output wire               req_last_o,
    input  wire               req_ready_i,
    output wire               fault_o
);
  generate
    if (BURST_BEATS < 1 || BURST_BEATS > 64 || (BURST_BEATS & (BURST_BEATS - 1)) != 0) begin : g_param_check
      ERROR_BURST_BEATS_must_be_a_power_of_two_up_to_64 u_param_error ();
    end
  endgenerate

  // Everything counts in units: granules, or beats where a burst is smaller than a granule.
  localparam BUS = AXI_DATA_BITS / 8;
  localparam BUS_LOG = $clog2(BUS);
  localparam UNIT_LOG = (BUS >= 16 || BURST_BEATS == 1) ? BUS_LOG : 4;
  localparam BEATS_LOG = UNIT_LOG - BUS_LOG;  // beats of a unit
  localparam W = 32 - UNIT_LOG;
  localparam LEFT_W = LENGTH_W - BEATS_LOG;
  localparam PAGE_W = 12 - UNIT_LOG;
  localparam BURST_LOG = $clog2(BURST_BEATS >> BEATS_LOG);
  localparam [31:0] BURST_MASK = (32'd1 << BURST_LOG) - 32'd1;
  localparam [COUNT_W-1:0] TWO = 2;

  reg               active_q;
  reg               bad_q;
  // the burst at hand: begin, units it may have less one, units left in its run less one
  reg  [       W:0] addr_q;  // bit W: past the end of every window
  reg  [       5:0] limit_q;
  reg  [LEFT_W-1:0] left_q;
  // whether it is the last of its run, its run the last of its row, its row the last
  reg               ends_q;
  reg               x_last_q;
  reg               y_last_q;
  reg               final_q;  // x_last_q && y_last_q
  // begin of its run, of its row
  reg  [       W:0] run_q;
  reg  [       W:0] row_q;
  // two more than the runs and rows before it
  reg  [COUNT_W-1:0] x_count_q;
  reg  [COUNT_W-1:0] y_count_q;
  // operands
  reg  [LEFT_W-1:0] length_q;
  reg  [     W-1:0] x_stride_q;
  reg  [     W-1:0] y_stride_q;
  reg  [COUNT_W-1:0] x_q;
  reg  [COUNT_W-1:0] y_q;
  reg               x_one_q;

  wire              row_ends = ends_q && x_last_q;
  wire              last = ends_q && final_q;
  // the registers of the next walk are loaded whether it begins or not
  wire              load = !active_q;
  wire              move = !active_q || req_ready_i;

  // where the burst ends, less the window: three numbers made two, then one carry chain
  wire [       5:0] len = ends_q ? left_q[5:0] : limit_q;
  wire [     W+1:0] from = {1'b0, addr_q};
  wire [     W+1:0] more = {{(W - 4) {1'b0}}, len};
  wire [     W+1:0] less = {2'b11, ~window_bytes_i[31:UNIT_LOG]};
  wire [     W+1:0] sums = from ^ more ^ less;
  wire [       W:0] carries = (from[W:0] & more[W:0]) | (from[W:0] & less[W:0]) | (more[W:0] & less[W:0]);
  wire [     W+1:0] outside = sums + {carries, 1'b1};
  wire              in_window = outside[W+1];

  assign active_o     = active_q;
  assign req_valid_o  = active_q && in_window && !bad_q;
  assign req_offset_o = {addr_q[W-1:0], {UNIT_LOG{1'b0}}};
  assign req_last_o   = last;
  assign fault_o      = bad_q;

  generate
    if (BEATS_LOG > 0) begin : g_granules
      assign req_len_o = {len[5-BEATS_LOG:0], {BEATS_LOG{1'b1}}};
    end else begin : g_beats
      assign req_len_o = len;
    end
  endgenerate

  // the burst behind it: in the same run, at the next run or row, or the first of the next walk
  wire [       W:0] next_run = run_q + {1'b0, x_stride_q};
  wire [       W:0] next_row = row_q + {1'b0, y_stride_q};
  wire [       W:0] next_part = (addr_q >> BURST_LOG) + 1'b1;
  wire [       W:0] next_burst = (next_part << BURST_LOG) | {{(W - 5) {1'b0}}, addr_q[5:0] & limit_q};
  wire [       W:0] addr_d = load ? {1'b0, dram_i[31:UNIT_LOG]} : row_ends ? next_row : ends_q ? next_run : next_burst;
  wire [LEFT_W-1:0] left_d = load ? length_i[LENGTH_W-1:BEATS_LOG] : ends_q ? length_q
      : left_q + {{(LEFT_W - 6) {1'b1}}, ~limit_q};
  // up to BURST_BEATS, but in the last part of a page no more than what is left of it
  wire              page_ends = &(addr_d[PAGE_W-1:0] | BURST_MASK[PAGE_W-1:0]);
  wire [       5:0] limit_d = BURST_MASK[5:0] & ~(addr_d[5:0] & {6{page_ends}});
  wire              ends_d = ~|left_d[LEFT_W-1:6] && left_d[5:0] <= limit_d;

  wire              x_last_d = load ? x_one_i : row_ends ? x_one_q : x_count_q == x_q;
  wire              y_last_d = load ? y_one_i : y_count_q == y_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      active_q <= 1'b0;
      bad_q    <= 1'b0;
    end else begin
      if (start_i) active_q <= 1'b1;
      else if (req_ready_i && last) active_q <= 1'b0;
      if (active_q && !in_window) bad_q <= 1'b1;
    end

  always @(posedge clk_i)
    if (move) begin
      addr_q  <= addr_d;
      limit_q <= limit_d;
      left_q  <= left_d;
      ends_q  <= ends_d;
      if (load || ends_q) run_q <= addr_d;
      if (load || row_ends) row_q <= addr_d;
      if (load || ends_q) x_last_q <= x_last_d;
      if (load || row_ends) y_last_q <= y_last_d;
      if (load || ends_q) final_q <= x_last_d && ((load || row_ends) ? y_last_d : y_last_q);
      if (load || row_ends) x_count_q <= TWO;
      else if (ends_q) x_count_q <= x_count_q + 1'b1;
      if (load) y_count_q <= TWO;
      else if (row_ends) y_count_q <= y_count_q + 1'b1;
    end

  always @(posedge clk_i)
    if (!active_q) begin
      length_q   <= length_i[LENGTH_W-1:BEATS_LOG];
      x_stride_q <= x_stride_i[31:UNIT_LOG];
      y_stride_q <= y_stride_i[31:UNIT_LOG];
      x_q        <= x_i[COUNT_W-1:0];
      y_q        <= y_i[COUNT_W-1:0];
      x_one_q    <= x_one_i;
    end

  wire unused = &{1'b0, window_bytes_i, dram_i, x_i, y_i, x_stride_i, y_stride_i, length_i};
endmodule

`resetall
