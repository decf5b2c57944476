// The front: fetch, dispatcher, and the queues of the units.
// Contract: see vta_fetch and vta_dispatch; records also hold what vta_dma_merge and vta_once say, and a transfer's first beat.
// Latency: last beat of an instruction to the head of its queue 4 edges.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_front #(
    // Sizes of the configuration
    parameter BLOCK_IN      = 4,
    parameter BLOCK_OUT     = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS      = 8,
    parameter INP_DEPTH     = 1024,
    parameter WGT_DEPTH     = 1024,
    parameter ACC_DEPTH     = 1024,
    parameter OUT_DEPTH     = 1024,
    parameter UOP_DEPTH     = 512,
    parameter PRM_DEPTH     = 64,
    parameter TABLES        = 0,
    // Entries of coefficients, 0: no row unit
    parameter COF_DEPTH     = 0,
    parameter AXI_DATA_BITS = 64,
    // Bytes of a line of INP
    parameter LINE          = 16,
    parameter BURST_BEATS   = 64,
    parameter QUEUE_DEPTH   = 8,
    // Width of beat counts, of all beats of a transfer
    parameter BEATS_W       = 20,
    parameter LENGTH_W      = 20,
    // 1: OUTPUT does not start in the cycle behind a start, nor looks at what is next
    parameter OUTPUT_RESTS  = 0
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    // the index of the last instruction outlasts a reset, not this
    input  wire                     clear_i,
    // control
    input  wire                     run_i,
    input  wire              [31:0] window_bytes_i,
    input  wire              [31:0] program_i,
    input  wire              [31:0] count_i,
    // reads
    output wire                     fetch_valid_o,
    output wire              [31:0] fetch_offset_o,
    output wire               [6:0] fetch_beats_o,
    input  wire                     fetch_ready_i,
    input  wire                     fetch_beat_i,
    input  wire [AXI_DATA_BITS-1:0] rdata_i,
    input  wire                     rerror_i,
    // heads of the queues (bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE, 4 ROW); start_i pops them; one: a run a row, a
    // row
    output wire               [4:0] head_o,
    input  wire               [4:0] start_i,
    output wire             [255:0] load_insn_o,
    output wire              [31:0] load_index_o,
    output wire               [1:0] load_one_o,
    output wire      [LENGTH_W-1:0] load_length_o,
    output wire       [BEATS_W-1:0] load_first_o,
    output wire             [255:0] compute_insn_o,
    output wire               [3:0] compute_once_o,
    output wire              [31:0] compute_index_o,
    output wire             [255:0] output_insn_o,
    output wire               [1:0] output_once_o,
    output wire              [31:0] output_index_o,
    output wire             [255:0] store_insn_o,
    output wire              [31:0] store_index_o,
    output wire               [1:0] store_one_o,
    output wire      [LENGTH_W-1:0] store_length_o,
    output wire       [BEATS_W-1:0] store_first_o,
    output wire             [255:0] row_insn_o,
    output wire              [31:0] row_index_o,
    // end of the program
    input  wire               [4:0] idle_i,
    output wire                     done_o,
    // faults
    output wire                     dispatch_fault_o,
    output wire               [7:0] dispatch_code_o,
    output wire              [31:0] dispatch_index_o,
    output wire                     fetch_range_o,
    output wire              [31:0] fetch_range_index_o,
    output wire                     fetch_error_o,
    output wire              [31:0] fetch_error_index_o
);
  // a record: what tells two opcodes of a unit apart, index, the instruction without its opcode, wait last: the
  // semaphores need that early in a cycle
  localparam WAIT_W = 16;
  localparam INDEX_W = 28;  // a window holds no more instructions
  localparam PLAIN_W = INDEX_W + 256 - 8;
  localparam KIND_W = PLAIN_W + 1;
  localparam PIECES_W = BEATS_W + LENGTH_W + 2;

  wire insn_valid;
  wire insn_pop;
  wire [255:0] insn;
  wire [4:0] push;
  wire [4:0] full;
  wire [255:0] dispatch_insn;
  wire [1:0] dispatch_one;
  wire [3:0] dispatch_once;
  wire [LENGTH_W-1:0] dispatch_length;
  wire [BEATS_W-1:0] dispatch_first;

  vta_fetch #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS)
  ) u_fetch (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .run_i         (run_i),
      .window_bytes_i(window_bytes_i),
      .program_i     (program_i),
      .count_i       (count_i),
      .req_valid_o   (fetch_valid_o),
      .req_offset_o  (fetch_offset_o),
      .req_beats_o   (fetch_beats_o),
      .req_ready_i   (fetch_ready_i),
      .beat_i        (fetch_beat_i),
      .data_i        (rdata_i),
      .error_i       (rerror_i),
      .insn_valid_o  (insn_valid),
      .insn_o        (insn),
      .insn_pop_i    (insn_pop),
      .range_fault_o (fetch_range_o),
      .range_index_o (fetch_range_index_o),
      .error_fault_o (fetch_error_o),
      .error_index_o (fetch_error_index_o)
  );

  wire quiet = &idle_i && ~|head_o;

  vta_dispatch #(
      .BLOCK_IN     (BLOCK_IN),
      .BLOCK_OUT    (BLOCK_OUT),
      .WGT_BITS     (WGT_BITS),
      .INP_DEPTH    (INP_DEPTH),
      .WGT_DEPTH    (WGT_DEPTH),
      .ACC_DEPTH    (ACC_DEPTH),
      .OUT_DEPTH    (OUT_DEPTH),
      .UOP_DEPTH    (UOP_DEPTH),
      .PRM_DEPTH    (PRM_DEPTH),
      .TABLES       (TABLES),
      .COF_DEPTH    (COF_DEPTH),
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .LINE         (LINE),
      .BEATS_W      (BEATS_W),
      .LENGTH_W     (LENGTH_W)
  ) u_dispatch (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .clear_i     (clear_i),
      .run_i       (run_i),
      .count_i     (count_i),
      .insn_valid_i(insn_valid),
      .insn_i      (insn),
      .insn_pop_o  (insn_pop),
      .push_o      (push),
      .full_i      (full),
      .insn_o      (dispatch_insn),
      .index_o     (dispatch_index_o),
      .one_o       (dispatch_one),
      .once_o      (dispatch_once),
      .length_o    (dispatch_length),
      .first_beat_o(dispatch_first),
      .quiet_i     (quiet),
      .done_o      (done_o),
      .fault_o     (dispatch_fault_o),
      .code_o      (dispatch_code_o)
  );

  // opcodes come back as constants, but for the bit that tells GEMM from ALU and LOAD from GATHER
  wire [PLAIN_W-1:0] plain = {
    dispatch_index_o[INDEX_W-1:0], dispatch_insn[255:48], dispatch_insn[31:8], dispatch_insn[`VTA_INSN_WAIT]
  };
  wire dispatch_kind = dispatch_insn[2];
  wire load_kind, compute_kind;
  wire [231:0] load_rest, compute_rest, output_rest, store_rest, row_rest;
  wire [WAIT_W-1:0] load_wait, compute_wait, output_wait, store_wait, row_wait;
  wire [7:0] load_opcode = load_kind ? `VTA_OP_GATHER : `VTA_OP_LOAD;
  wire [7:0] compute_opcode = compute_kind ? `VTA_OP_ALU : `VTA_OP_GEMM;
  assign load_insn_o    = {load_rest[231:24], load_wait, load_rest[23:0], load_opcode};
  assign compute_insn_o = {compute_rest[231:24], compute_wait, compute_rest[23:0], compute_opcode};
  assign output_insn_o  = {output_rest[231:24], output_wait, output_rest[23:0], `VTA_OP_REQUANT};
  assign store_insn_o   = {store_rest[231:24], store_wait, store_rest[23:0], `VTA_OP_STORE};
  assign row_insn_o     = {row_rest[231:24], row_wait, row_rest[23:0], `VTA_OP_ROW};

  assign load_index_o[31:INDEX_W]    = 4'd0;
  assign compute_index_o[31:INDEX_W] = 4'd0;
  assign output_index_o[31:INDEX_W]  = 4'd0;
  assign store_index_o[31:INDEX_W]   = 4'd0;
  assign row_index_o[31:INDEX_W]     = 4'd0;

  vta_fifo #(
      .WIDTH(KIND_W + PIECES_W),
      .DEPTH(QUEUE_DEPTH),
      .EARLY(WAIT_W)
  ) u_load_queue (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (push[0]),
      .data_i ({dispatch_first, dispatch_length, dispatch_one, dispatch_kind, plain}),
      .full_o (full[0]),
      .valid_o(head_o[0]),
      .data_o ({load_first_o, load_length_o, load_one_o, load_kind, load_index_o[INDEX_W-1:0], load_rest, load_wait}),
      .pop_i  (start_i[0])
  );

  vta_fifo #(
      .WIDTH(KIND_W + 4),
      .DEPTH(QUEUE_DEPTH),
      .EARLY(WAIT_W + 4)
  ) u_compute_queue (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (push[1]),
      .data_i ({dispatch_kind, plain, dispatch_once}),
      .full_o (full[1]),
      .valid_o(head_o[1]),
      .data_o ({compute_kind, compute_index_o[INDEX_W-1:0], compute_rest, compute_wait, compute_once_o}),
      .pop_i  (start_i[1])
  );

  vta_fifo #(
      .WIDTH(PLAIN_W + 2),
      .DEPTH(QUEUE_DEPTH),
      // OUTPUT compares what it begins with at once
      .EARLY(PLAIN_W + 2),
      .RESTS(OUTPUT_RESTS)
  ) u_output_queue (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (push[2]),
      .data_i ({plain, dispatch_once[3:2]}),
      .full_o (full[2]),
      .valid_o(head_o[2]),
      .data_o ({output_index_o[INDEX_W-1:0], output_rest, output_wait, output_once_o}),
      .pop_i  (start_i[2])
  );

  vta_fifo #(
      .WIDTH(PLAIN_W + PIECES_W),
      .DEPTH(QUEUE_DEPTH),
      .EARLY(WAIT_W)
  ) u_store_queue (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (push[3]),
      .data_i ({dispatch_first, dispatch_length, dispatch_one, plain}),
      .full_o (full[3]),
      .valid_o(head_o[3]),
      .data_o ({store_first_o, store_length_o, store_one_o, store_index_o[INDEX_W-1:0], store_rest, store_wait}),
      .pop_i  (start_i[3])
  );

  generate
    if (COF_DEPTH != 0) begin : g_row
      vta_fifo #(
          .WIDTH(PLAIN_W),
          .DEPTH(QUEUE_DEPTH),
          .EARLY(WAIT_W)
      ) u_row_queue (
          .clk_i  (clk_i),
          .rst_ni (rst_ni),
          .push_i (push[4]),
          .data_i (plain),
          .full_o (full[4]),
          .valid_o(head_o[4]),
          .data_o ({row_index_o[INDEX_W-1:0], row_rest, row_wait}),
          .pop_i  (start_i[4])
      );
    end else begin : g_no_row
      assign full[4] = 1'b0;
      assign head_o[4] = 1'b0;
      assign {row_index_o[INDEX_W-1:0], row_rest, row_wait} = {PLAIN_W{1'b0}};
      wire unused_row = &{1'b0, push[4], start_i[4]};
    end
  endgenerate

  wire unused = &{1'b0, dispatch_insn, dispatch_index_o};
endmodule

`resetall
