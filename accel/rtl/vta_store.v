// STORE unit: walks the bursts of its instructions, sends the beats of OUT, and counts responses.
// Contract: at most WRITE_OUTSTANDING bursts from the AW register to their response.  The data of a burst follow the
// handshake of its address, in order, without a pause between bursts.  Tokens are given after an instruction's last
// response, in order; the next instruction may be under way by then.
// Latency: AW handshake at an edge, first data beat on the bus after the second edge from there.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_store #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS     = 64,
    // Longest burst
    parameter BURST_BEATS       = 64,
    // Bursts in flight
    parameter WRITE_OUTSTANDING = 16,
    // Width of beat counts
    parameter BEATS_W           = 20
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    input  wire [             31:0] window_base_i,
    input  wire [             31:0] window_bytes_i,
    // head of the queue; start_i pops it
    input  wire                     head_valid_i,
    input  wire [            255:0] insn_i,
    input  wire [             31:0] index_i,
    input  wire [      BEATS_W-1:0] row_beats_i,
    input  wire [      BEATS_W-1:0] all_beats_i,
    input  wire [      BEATS_W-1:0] first_beat_i,
    output wire                     want_o,
    input  wire                     start_i,
    // OUT scratchpad read, one cycle
    output wire                     re_o,
    output wire [      BEATS_W-1:0] raddr_o,
    input  wire [AXI_DATA_BITS-1:0] rdata_i,
    // tokens of a finished instruction
    output wire                     give_o,
    output wire [             15:0] set_o,
    output wire [             31:0] done_index_o,
    output wire                     idle_o,
    // no burst lacks its response
    output wire                     drained_o,
    // a data beat is taken by the bus
    output wire                     beat_o,
    // faults: a burst outside the window; an error response
    output wire                     range_fault_o,
    output wire [             31:0] range_index_o,
    output wire                     error_fault_o,
    // AXI
    output wire [             31:0] m_axi_awaddr,
    output wire [              7:0] m_axi_awlen,
    output wire                     m_axi_awvalid,
    input  wire                     m_axi_awready,
    output wire [AXI_DATA_BITS-1:0] m_axi_wdata,
    output wire                     m_axi_wlast,
    output wire                     m_axi_wvalid,
    input  wire                     m_axi_wready,
    input  wire                     m_axi_berror,
    input  wire                     m_axi_bvalid,
    output wire                     m_axi_bready
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  localparam INSNS = (WRITE_OUTSTANDING < 2) ? 2 : WRITE_OUTSTANDING;

  // issue
  wire        walk_ready;
  wire        walk_active;
  wire        req_valid;
  wire [31:0] req_offset;
  wire [ 6:0] req_beats;
  wire        req_last;
  wire        bursts_full;
  wire        insns_full;
  wire [17:0] run_beats = {2'b00, insn_i[`VTA_STORE_Z]} << GRANULE_LOG;
  reg  [31:0] index_q;

  reg         aw_valid_q;
  reg  [31:0] aw_addr_q;
  reg  [ 6:0] aw_beats_q;
  reg  [BEATS_W-1:0] aw_sram_q;
  reg  [BEATS_W-1:0] sram_q;

  wire        free = (!aw_valid_q || m_axi_awready) && !bursts_full && !stop_i;
  wire        take = req_valid && free;
  wire        aw_done = aw_valid_q && m_axi_awready;

  assign want_o        = head_valid_i && walk_ready && !insns_full && !stop_i;
  assign range_index_o = index_q;
  assign m_axi_awaddr  = aw_addr_q;
  assign m_axi_awlen   = {1'b0, aw_beats_q} - 8'd1;
  assign m_axi_awvalid = aw_valid_q;

  always @(posedge clk_i) if (start_i) index_q <= index_i;

  vta_dma_walk #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS),
      .BEATS_W      (BEATS_W)
  ) u_walk (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .stop_i        (stop_i),
      .window_bytes_i(window_bytes_i),
      .ready_o       (walk_ready),
      .start_i       (start_i),
      .dram_i        (insn_i[`VTA_STORE_DRAM]),
      .y_i           (insn_i[`VTA_STORE_Y]),
      .x_i           (insn_i[`VTA_STORE_X]),
      .y_stride_i    (insn_i[`VTA_STORE_Y_STRIDE]),
      .x_stride_i    (insn_i[`VTA_STORE_X_STRIDE]),
      .run_beats_i   ({{(BEATS_W - 17) {1'b0}}, run_beats[16:0]}),
      .row_beats_i   (row_beats_i),
      .all_beats_i   (all_beats_i),
      .active_o      (walk_active),
      .req_valid_o   (req_valid),
      .req_offset_o  (req_offset),
      .req_beats_o   (req_beats),
      .req_last_o    (req_last),
      .req_ready_i   (free),
      .fault_o       (range_fault_o)
  );

  always @(posedge clk_i)
    if (!rst_ni) aw_valid_q <= 1'b0;
    else if (take) aw_valid_q <= 1'b1;
    else if (m_axi_awready) aw_valid_q <= 1'b0;

  always @(posedge clk_i) begin
    if (take) begin
      aw_addr_q  <= window_base_i + req_offset;
      aw_beats_q <= req_beats;
      aw_sram_q  <= sram_q;
    end
    if (start_i) sram_q <= first_beat_i;
    else if (take) sram_q <= sram_q + {{(BEATS_W - 7) {1'b0}}, req_beats};
  end

  // data
  wire               data_full;
  wire               data_valid;
  wire [        6:0] data_beats;
  wire [BEATS_W-1:0] data_sram;
  wire               data_pop;
  reg                read_q;
  reg  [        6:0] left_q;
  reg  [BEATS_W-1:0] raddr_q;
  reg                w_valid_q;
  reg                w_last_q;
  wire               advance = !w_valid_q || m_axi_wready;
  wire               ends = left_q == 7'd1;

  vta_fifo #(
      .WIDTH(7 + BEATS_W),
      .DEPTH(WRITE_OUTSTANDING)
  ) u_data (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (aw_done),
      .data_i ({aw_sram_q, aw_beats_q}),
      .full_o (data_full),
      .valid_o(data_valid),
      .data_o ({data_sram, data_beats}),
      .pop_i  (data_pop)
  );

  assign data_pop     = data_valid && (!read_q || (advance && ends));
  assign re_o         = read_q && advance;
  assign raddr_o      = raddr_q;
  assign m_axi_wdata  = rdata_i;
  assign m_axi_wlast  = w_last_q;
  assign m_axi_wvalid = w_valid_q;
  assign beat_o       = m_axi_wvalid && m_axi_wready;

  always @(posedge clk_i)
    if (!rst_ni) begin
      read_q    <= 1'b0;
      w_valid_q <= 1'b0;
    end else begin
      if (data_pop) read_q <= 1'b1;
      else if (advance && ends) read_q <= 1'b0;
      if (advance) w_valid_q <= read_q;
    end

  always @(posedge clk_i) begin
    if (data_pop) begin
      left_q  <= data_beats;
      raddr_q <= data_sram;
    end else if (re_o) begin
      left_q  <= left_q - 7'd1;
      raddr_q <= raddr_q + 1'b1;
    end
    if (re_o) w_last_q <= ends;
  end

  // responses
  wire        bursts_any;
  wire        burst_last;
  wire        insns_any;
  wire [15:0] insn_set;
  wire [31:0] insn_index;
  reg         b_valid_q;
  reg         b_error_q;
  assign m_axi_bready = 1'b1;

  vta_fifo #(
      .WIDTH(1),
      .DEPTH(WRITE_OUTSTANDING)
  ) u_bursts (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (take),
      .data_i (req_last),
      .full_o (bursts_full),
      .valid_o(bursts_any),
      .data_o (burst_last),
      .pop_i  (b_valid_q && bursts_any)
  );

  vta_fifo #(
      .WIDTH(48),
      .DEPTH(INSNS)
  ) u_insns (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (start_i),
      .data_i ({index_i, insn_i[`VTA_INSN_SET]}),
      .full_o (insns_full),
      .valid_o(insns_any),
      .data_o ({insn_index, insn_set}),
      .pop_i  (give_o)
  );

  always @(posedge clk_i)
    if (!rst_ni) b_valid_q <= 1'b0;
    else b_valid_q <= m_axi_bvalid;

  always @(posedge clk_i) if (m_axi_bvalid) b_error_q <= m_axi_berror;

  assign give_o        = b_valid_q && bursts_any && burst_last && insns_any;
  assign set_o         = insn_set;
  assign done_index_o  = insn_index;
  assign error_fault_o = b_valid_q && b_error_q;
  assign drained_o     = !bursts_any;
  assign idle_o        = !walk_active && !bursts_any && !insns_any;

  wire unused = &{1'b0, data_full, insn_i, run_beats[17]};
endmodule

`resetall
