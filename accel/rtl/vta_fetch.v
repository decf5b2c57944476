// Instruction fetch: reads COUNT instructions ahead of the dispatcher into a buffer of 32.
// Contract: bursts of at most 8 instructions, aligned to their own size, issued when the buffer has room for them;
// a burst outside the window is not requested: fault_o stays high instead.  Reads never pass COUNT.  window_bytes_i,
// program_i and count_i hold from two cycles before the end of a reset, with which run_i rises; it falls with the next or,
// when the core stops, before.
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
  localparam CHUNK = (BURST_BEATS < AHEAD) ? BURST_BEATS : AHEAD;
  localparam CHUNK_LOG = $clog2(CHUNK);
  localparam [31:0] CHUNK_MASK = CHUNK - 1;
  localparam [31:0] CHUNK_BEATS = CHUNK;
  localparam [31:0] ROOM = DEPTH * INSN_BEATS;
  localparam [31:0] GIVEN = INSN_BEATS;
  localparam NUMBER_W = 32 - BUS_LOG - CHUNK_LOG;

  // of a launch, in beats: the end of the program, whether the window holds all of it, the number of the chunk that ends
  // it or is the first one outside the window
  wire [35:0] first = {4'd0, program_i} >> BUS_LOG;
  wire [35:0] last = first + ({4'd0, count_i} << INSN_LOG);
  wire [35:0] window = {4'd0, window_bytes_i} >> BUS_LOG;
  wire        whole = last <= window;
  wire [35:0] limit = (whole ? last : window) >> CHUNK_LOG;
  reg         whole_q;
  reg  [ 6:0] tail_q;
  reg  [NUMBER_W-1:0] final_q;

  always @(posedge clk_i) begin
    whole_q <= whole;
    tail_q  <= last[6:0] & CHUNK_MASK[6:0];
    final_q <= limit[NUMBER_W-1:0];
  end

  // the request: chunk, beats before it in the chunk, beats; whether it is in the window or would not be, and the room
  // in the buffer that it leaves.  `next_q` is the chunk behind it.
  reg  [NUMBER_W-1:0] chunk_q;
  reg  [NUMBER_W-1:0] next_q;
  reg  [ 6:0] skip_q;
  reg  [ 6:0] beats_q;
  reg         inside_q;
  reg         outside_q;
  reg         final_chunk_q;
  reg  [ 8:0] margin_q;
  reg  [27:0] received_q;

  // the request behind this one, in reset the first.  (Not while run_i is low, which is known later; after a stop no request
  // is taken.)
  wire [NUMBER_W-1:0] begins = first[CHUNK_LOG+NUMBER_W-1:CHUNK_LOG];
  wire [NUMBER_W-1:0] chunk = rst_ni ? next_q : begins;
  wire [ 6:0] skip = rst_ni ? 7'd0 : first[6:0] & CHUNK_MASK[6:0];
  wire        final_chunk = chunk >= final_q;
  wire [ 6:0] short = tail_q - skip;
  wire [ 6:0] long = CHUNK_BEATS[6:0] - skip;
  wire [ 6:0] beats = (final_chunk && whole_q) ? short : long;
  wire        some = !(rst_ni && final_chunk_q) && (!(final_chunk && whole_q) || |short);
  wire        fits = !margin_q[8];
  wire [ 8:0] rest = rst_ni ? margin_q : ROOM[8:0];
  wire [ 8:0] more = rest + GIVEN[8:0];
  wire [ 8:0] room = insn_pop_i ? more : rest;
  wire        ask = req_valid_o && req_ready_i;
  wire        load = !rst_ni || ask;

  assign req_valid_o   = inside_q && fits;  // while run_i is low the read side is in reset or stopped
  assign req_offset_o  = ({{(32 - NUMBER_W) {1'b0}}, chunk_q} << (CHUNK_LOG + BUS_LOG)) | ({25'd0, skip_q} << BUS_LOG);
  assign req_beats_o   = beats_q;
  assign range_fault_o = run_i && outside_q && fits;
  assign range_index_o = (req_offset_o - program_i) >> 5;
  assign error_fault_o = beat_i && error_i;
  assign error_index_o = {4'd0, received_q};

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

  always @(posedge clk_i)
    if (!rst_ni) received_q <= 28'd0;
    else if (push) received_q <= received_q + 28'd1;

  always @(posedge clk_i) begin
    if (load) begin
      chunk_q       <= chunk;
      next_q        <= chunk + 1'b1;
      skip_q      <= skip;
      beats_q       <= beats;
      inside_q      <= some && (whole_q || !final_chunk);
      outside_q     <= some && !whole_q && final_chunk;
      final_chunk_q <= final_chunk && whole_q;
    end
    margin_q <= room - (load ? {2'd0, beats} : 9'd0);
  end

  wire unused = &{1'b0, first, last, limit};
endmodule

`resetall
