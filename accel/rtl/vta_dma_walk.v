// Address walk of LOAD and STORE: cuts y rows of x runs into bursts, one burst a cycle.
// Contract: runs that follow one another in DRAM are merged into one; bursts are aligned to the bus, at most
// BURST_BEATS long, and never cross 4 KiB.  A burst outside the window is not requested: fault_o stays high instead.
// Latency: the first request is up in the cycle after start_i; ready_o is high in the cycle of the last request.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dma_walk #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Longest burst, 1 to 64
    parameter BURST_BEATS   = 64,
    // Width of beat counts
    parameter BEATS_W       = 20
) (
    input  wire               clk_i,
    input  wire               rst_ni,
    input  wire               stop_i,
    input  wire [       31:0] window_bytes_i,
    // start of a walk
    output wire               ready_o,
    input  wire               start_i,
    input  wire [       31:0] dram_i,
    input  wire [       15:0] y_i,
    input  wire [       15:0] x_i,
    input  wire [       31:0] y_stride_i,
    input  wire [       31:0] x_stride_i,
    // beats of a run, of a row (x runs), and of all rows
    input  wire [BEATS_W-1:0] run_beats_i,
    input  wire [BEATS_W-1:0] row_beats_i,
    input  wire [BEATS_W-1:0] all_beats_i,
    // bursts
    output wire               active_o,
    output wire               req_valid_o,
    output wire [       31:0] req_offset_o,
    output wire [        6:0] req_beats_o,
    output wire               req_last_o,
    input  wire               req_ready_i,
    output wire               fault_o
);
  localparam BUS_LOG = $clog2(AXI_DATA_BITS / 8);
  localparam [31:0] BURST = BURST_BEATS;
  localparam [12:0] PAGE_BEATS = 13'd4096 >> BUS_LOG;

  reg               active_q;
  reg [       32:0] addr_q;  // bit 32: past the end of every window
  reg [       32:0] run_q;
  reg [       32:0] row_q;
  reg [BEATS_W-1:0] left_q;
  reg [BEATS_W-1:0] length_q;
  reg [       15:0] x_q;
  reg [       15:0] x_left_q;
  reg [       15:0] y_left_q;
  reg [       31:0] x_stride_q;
  reg [       31:0] y_stride_q;

  // start: merge what is contiguous
  wire [       31:0] run_bytes = {{(32 - BEATS_W) {1'b0}}, run_beats_i} << BUS_LOG;
  wire [       31:0] row_bytes = {{(32 - BEATS_W) {1'b0}}, row_beats_i} << BUS_LOG;
  wire               merge_x = x_i == 16'd1 || x_stride_i == run_bytes;
  wire               merge_y = merge_x && (y_i == 16'd1 || y_stride_i == row_bytes);
  wire [BEATS_W-1:0] length = merge_y ? all_beats_i : merge_x ? row_beats_i : run_beats_i;

  // the burst at addr_q
  wire [       12:0] page_left = PAGE_BEATS - ({1'b0, addr_q[11:0]} >> BUS_LOG);
  wire [       12:0] limit = (page_left < BURST[12:0]) ? page_left : BURST[12:0];
  wire               run_ends = left_q <= {{(BEATS_W - 13) {1'b0}}, limit};
  wire [        6:0] beats = run_ends ? left_q[6:0] : limit[6:0];
  wire [       32:0] burst_end = addr_q + ({26'd0, beats} << BUS_LOG);
  wire               in_window = burst_end <= {1'b0, window_bytes_i} && !addr_q[32];
  wire               row_ends = run_ends && x_left_q == 16'd1;
  wire               step = req_valid_o && req_ready_i;

  assign active_o     = active_q;
  assign req_valid_o  = active_q && in_window && !stop_i;
  assign req_offset_o = addr_q[31:0];
  assign req_beats_o  = beats;
  assign req_last_o   = row_ends && y_left_q == 16'd1;
  assign fault_o      = active_q && !in_window && !stop_i;
  assign ready_o      = !active_q || (step && req_last_o);

  wire [32:0] next_run = run_q + {1'b0, x_stride_q};
  wire [32:0] next_row = row_q + {1'b0, y_stride_q};

  always @(posedge clk_i)
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= 1'b1;
    else if (step && req_last_o) active_q <= 1'b0;

  always @(posedge clk_i)
    if (start_i) begin
      addr_q     <= {1'b0, dram_i};
      run_q      <= {1'b0, dram_i};
      row_q      <= {1'b0, dram_i};
      left_q     <= length;
      length_q   <= length;
      x_q        <= merge_x ? 16'd1 : x_i;
      x_left_q   <= merge_x ? 16'd1 : x_i;
      y_left_q   <= merge_y ? 16'd1 : y_i;
      x_stride_q <= x_stride_i;
      y_stride_q <= y_stride_i;
    end else if (step) begin
      if (row_ends) begin
        addr_q   <= next_row;
        run_q    <= next_row;
        row_q    <= next_row;
        left_q   <= length_q;
        x_left_q <= x_q;
        y_left_q <= y_left_q - 16'd1;
      end else if (run_ends) begin
        addr_q   <= next_run;
        run_q    <= next_run;
        left_q   <= length_q;
        x_left_q <= x_left_q - 16'd1;
      end else begin
        addr_q <= burst_end;
        left_q <= left_q - {{(BEATS_W - 7) {1'b0}}, beats};
      end
    end
endmodule

`resetall
