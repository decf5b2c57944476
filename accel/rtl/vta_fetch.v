// Instruction fetch: reads COUNT instructions ahead of the dispatcher into a buffer of 32.
// Contract: bursts of at most 8 instructions, aligned to their own size, issued when the buffer has room for them;
// a burst outside the window is not requested: fault_o stays high instead.  Reads never pass COUNT.
// Latency: an instruction is visible after the edge that samples its last beat.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_fetch #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Longest burst, a power of two
    parameter BURST_BEATS   = 64
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     run_i,
    input  wire [             31:0] window_bytes_i,
    input  wire [             31:0] program_i,
    input  wire [             31:0] count_i,
    // read requests
    output wire                     req_valid_o,
    output wire [             31:0] req_offset_o,
    output wire [              6:0] req_beats_o,
    input  wire                     req_ready_i,
    // data
    input  wire                     beat_i,
    input  wire [AXI_DATA_BITS-1:0] data_i,
    input  wire                     error_i,
    // instructions
    output wire                     insn_valid_o,
    output wire [            255:0] insn_o,
    input  wire                     insn_pop_i,
    // faults with the index of the instruction that is not there
    output wire                     range_fault_o,
    output wire [             31:0] range_index_o,
    output wire                     error_fault_o,
    output wire [             31:0] error_index_o
);
  localparam BUS_LOG = $clog2(AXI_DATA_BITS / 8);
  localparam INSN_BEATS = 256 / AXI_DATA_BITS;
  localparam INSN_LOG = $clog2(INSN_BEATS);
  localparam DEPTH = 32;
  localparam AHEAD = 8 * INSN_BEATS;
  localparam [31:0] CHUNK = (BURST_BEATS < AHEAD) ? BURST_BEATS : AHEAD;
  localparam [31:0] CHUNK_MASK = CHUNK - 32'd1;
  localparam [31:0] ROOM = DEPTH * INSN_BEATS;

  // beats requested so far, beats that may be requested (room in the buffer), instructions received so far
  reg  [34:0] asked_q;
  reg  [ 7:0] room_q;
  reg  [31:0] received_q;

  wire [34:0] total = {3'd0, count_i} << INSN_LOG;
  wire [34:0] left = total - asked_q;
  wire [37:0] offset = {6'd0, program_i} + ({3'd0, asked_q} << BUS_LOG);
  wire [31:0] chunk_left = CHUNK - ((offset[31:0] >> BUS_LOG) & CHUNK_MASK);
  wire [34:0] asked_index = asked_q >> INSN_LOG;
  wire [ 6:0] beats = (left < {28'd0, chunk_left[6:0]}) ? left[6:0] : chunk_left[6:0];
  wire [37:0] burst_end = offset + ({31'd0, beats} << BUS_LOG);
  wire        in_window = burst_end <= {6'd0, window_bytes_i};
  wire        wanted = run_i && left != 35'd0 && room_q >= {1'b0, beats};
  wire        ask = req_valid_o && req_ready_i;

  assign req_valid_o   = wanted && in_window;
  assign req_offset_o  = offset[31:0];
  assign req_beats_o   = beats;
  assign range_fault_o = wanted && !in_window;
  assign range_index_o = asked_index[31:0];
  assign error_fault_o = beat_i && error_i;
  assign error_index_o = received_q;

  wire push;
  wire [255:0] assembled;
  wire full;

  generate
    if (INSN_BEATS > 1) begin : g_assemble
      reg [         INSN_LOG-1:0] beat_q;
      reg [256-AXI_DATA_BITS-1:0] part_q;
      assign push = beat_i && (&beat_q);
      assign assembled = {data_i, part_q};
      always @(posedge clk_i)
        if (!rst_ni) beat_q <= {INSN_LOG{1'b0}};
        else if (beat_i) beat_q <= beat_q + 1'b1;
      if (INSN_BEATS > 2) begin : g_shift
        always @(posedge clk_i) if (beat_i) part_q <= {data_i, part_q[256-AXI_DATA_BITS-1:AXI_DATA_BITS]};
      end else begin : g_hold
        always @(posedge clk_i) if (beat_i) part_q <= data_i;
      end
    end else begin : g_whole
      assign push = beat_i;
      assign assembled = data_i;
    end
  endgenerate

  vta_fifo #(
      .WIDTH(256),
      .DEPTH(DEPTH)
  ) u_buffer (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (push && !full),
      .data_i (assembled),
      .full_o (full),
      .valid_o(insn_valid_o),
      .data_o (insn_o),
      .pop_i  (insn_pop_i)
  );

  wire [7:0] given = insn_pop_i ? INSN_BEATS[7:0] : 8'd0;
  wire [7:0] taken = ask ? {1'b0, beats} : 8'd0;

  always @(posedge clk_i)
    if (!rst_ni) begin
      asked_q    <= 35'd0;
      room_q     <= ROOM[7:0];
      received_q <= 32'd0;
    end else begin
      if (ask) asked_q <= asked_q + {28'd0, beats};
      if (ask || insn_pop_i) room_q <= room_q + given - taken;
      if (push) received_q <= received_q + 32'd1;
    end

  wire unused = &{1'b0, chunk_left, asked_index, left};
endmodule

`resetall
