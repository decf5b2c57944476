// Merges runs, or whole rows, of LOAD and STORE that are contiguous in DRAM into one run.
// Contract: purely combinational.  x_one_o: a row is one run; y_one_o: there is one row.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dma_merge #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Width of the beats of a run
    parameter LENGTH_W      = 20
) (
    input  wire [        15:0] y_i,
    input  wire [        15:0] x_i,
    input  wire [        31:0] y_stride_i,
    input  wire [        31:0] x_stride_i,
    // beats of a run, of a row (x runs), and of all rows
    input  wire [LENGTH_W-1:0] run_beats_i,
    input  wire [LENGTH_W-1:0] row_beats_i,
    input  wire [LENGTH_W-1:0] all_beats_i,
    output wire                x_one_o,
    output wire                y_one_o,
    // beats of what is now a run
    output wire [LENGTH_W-1:0] length_o
);
  localparam BUS_LOG = $clog2(AXI_DATA_BITS / 8);

  wire [31:0] run_bytes = {{(32 - LENGTH_W) {1'b0}}, run_beats_i} << BUS_LOG;
  wire [31:0] row_bytes = {{(32 - LENGTH_W) {1'b0}}, row_beats_i} << BUS_LOG;
  wire        merge = x_one_o && (y_i == 16'd1 || y_stride_i == row_bytes);

  assign x_one_o  = x_i == 16'd1 || x_stride_i == run_bytes;
  assign y_one_o  = y_i == 16'd1 || merge;
  assign length_o = (merge ? all_beats_i : x_one_o ? row_beats_i : run_beats_i);
endmodule

`resetall
