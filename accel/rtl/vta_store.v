// STORE unit: walks the bursts of its instructions, sends the beats of OUT, and counts responses.
// Contract: at most WRITE_OUTSTANDING bursts from the AW register to their response.  The data of a burst follow its
// address into its register, not the handshake: a subordinate may wait for data before it takes an address.  Bursts are
// in order, without a pause between them.  Tokens are given after an instruction's last response, in order; the next
// instruction may be under way by then.
// Latency: address on the bus after an edge, its first data beat after the second edge from there.
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
    // Width of beat counts and addresses of the scratchpads, at least 10; of the beats of a run in DRAM
    parameter BEATS_W           = 20,
    parameter LENGTH_W          = 20
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
    input  wire [              1:0] one_i,
    input  wire [     LENGTH_W-1:0] length_i,
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
  localparam INSNS = (WRITE_OUTSTANDING < 2) ? 2 : WRITE_OUTSTANDING;

  // issue
  wire        walk_active;
  wire        req_valid;
  wire [31:0] req_offset;
  wire [ 5:0] req_len;
  wire        req_last;
  wire        bursts_full;
  wire        insns_full;
  reg  [31:0] index_q;
  reg  [31:0] range_index_q;

  reg         aw_valid_q;
  reg  [31:0] aw_addr_q;
  reg  [ 5:0] aw_len_q;
  reg  [BEATS_W-1:0] sram_q;

  wire        free = (!aw_valid_q || m_axi_awready) && !bursts_full && !stop_i;
  wire        take = req_valid && free;

  assign want_o        = head_valid_i && !walk_active && !insns_full;
  assign range_index_o = range_index_q;
  assign m_axi_awaddr  = aw_addr_q;
  assign m_axi_awlen   = {2'd0, aw_len_q};
  assign m_axi_awvalid = aw_valid_q;

  // of the walk at hand, and of the one whose burst was outside the window
  always @(posedge clk_i) begin
    if (start_i) index_q <= index_i;
    if (!range_fault_o) range_index_q <= index_q;
  end

  vta_dma_walk #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .BURST_BEATS  (BURST_BEATS),
      .COUNT_W      ((BEATS_W < 16) ? BEATS_W : 16),
      .LENGTH_W     (LENGTH_W)
  ) u_walk (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .window_bytes_i(window_bytes_i),
      .start_i       (start_i),
      .dram_i        (insn_i[`VTA_STORE_DRAM]),
      .y_i           (insn_i[`VTA_STORE_Y]),
      .x_i           (insn_i[`VTA_STORE_X]),
      .y_stride_i    (insn_i[`VTA_STORE_Y_STRIDE]),
      .x_stride_i    (insn_i[`VTA_STORE_X_STRIDE]),
      .x_one_i       (one_i[0]),
      .y_one_i       (one_i[1]),
      .length_i      (length_i),
      .active_o      (walk_active),
      .req_valid_o   (req_valid),
      .req_offset_o  (req_offset),
      .req_len_o     (req_len),
      .req_last_o    (req_last),
      .req_ready_i   (free),
      .fault_o       (range_fault_o)
  );

  always @(posedge clk_i)
    if (!rst_ni) aw_valid_q <= 1'b0;
    else if (take) aw_valid_q <= 1'b1;
    else if (m_axi_awready) aw_valid_q <= 1'b0;

  // loaded whenever the register is free, with a burst or not; sram_q follows the registers of the walk
  always @(posedge clk_i) begin
    if (!aw_valid_q || m_axi_awready) begin
      aw_addr_q <= window_base_i + req_offset;
      aw_len_q  <= req_len;
    end
    if (!walk_active || free)
      sram_q <= !walk_active ? first_beat_i : sram_q + {{(BEATS_W - 6) {1'b0}}, req_len} + 1'b1;
  end

  // data
  wire               data_full;
  wire               data_valid;
  wire [        5:0] data_len;
  wire [BEATS_W-1:0] data_sram;
  reg                read_q;
  reg                ends_q;  // the beat to be read is the last of its burst
  reg  [        5:0] left_q;
  reg  [BEATS_W-1:0] raddr_q;
  reg                w_valid_q;
  reg                w_last_q;
  wire               advance = !w_valid_q || m_axi_wready;
  wire               data_load = !read_q || ends_q;
  wire               data_move = !read_q || advance;
  wire               data_pop = data_valid && data_load && data_move;

  vta_fifo #(
      .WIDTH(6 + BEATS_W),
      .DEPTH(WRITE_OUTSTANDING)
  ) u_data (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (take),
      .data_i ({sram_q, req_len}),
      .full_o (data_full),
      .valid_o(data_valid),
      .data_o ({data_sram, data_len}),
      .pop_i  (data_pop)
  );

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
      if (data_load && data_move) read_q <= data_valid;
      if (advance) w_valid_q <= read_q;
    end

  always @(posedge clk_i) begin
    if (data_move) begin
      left_q  <= data_load ? data_len : left_q - 6'd1;
      ends_q  <= data_load ? data_len == 6'd0 : left_q == 6'd1;
      raddr_q <= data_load ? data_sram : raddr_q + 1'b1;
    end
    if (advance) w_last_q <= ends_q;
  end

  // responses: bursts, and whether one is the last of its instruction; instructions.  What a response ends is read
  // when it is sampled, and counts at the next edge.
  wire        bursts_any;
  wire        bursts_one;
  wire        insns_any;
  wire        insns_one;
  wire        burst_last;
  wire [15:0] insn_set;
  wire [31:0] insn_index;  // of 28 bits
  reg         answered_q;
  reg         error_q;
  reg         give_q;
  reg  [15:0] set_q;
  reg  [31:0] done_index_q;
  wire        answer = m_axi_bvalid && bursts_any;
  assign m_axi_bready = 1'b1;

  vta_count #(
      .MAX(WRITE_OUTSTANDING)
  ) u_bursts (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .add_i (take),
      .sub_i (answered_q),
      .any_o (bursts_any),
      .one_o (bursts_one),
      .full_o(bursts_full)
  );

  vta_count #(
      .MAX(INSNS)
  ) u_insns (
      .clk_i (clk_i),
      .rst_ni(rst_ni),
      .add_i (start_i),
      .sub_i (give_q),
      .any_o (insns_any),
      .one_o (insns_one),
      .full_o(insns_full)
  );

  localparam BURSTS_W = (WRITE_OUTSTANDING > 1) ? $clog2(WRITE_OUTSTANDING) : 1;
  localparam INSNS_W = $clog2(INSNS);
  reg [BURSTS_W-1:0] burst_write_q;
  reg [BURSTS_W-1:0] burst_read_q;
  reg [ INSNS_W-1:0] insn_write_q;
  reg [ INSNS_W-1:0] insn_read_q;

  vta_ram_async #(
      .WIDTH (1),
      .DEPTH (1 << BURSTS_W),
      .ADDR_W(BURSTS_W)
  ) u_lasts (
      .clk_i  (clk_i),
      .we_i   (!bursts_full),
      .waddr_i(burst_write_q),
      .wdata_i(req_last),
      .raddr_i(burst_read_q),
      .rdata_o(burst_last)
  );

  vta_ram_async #(
      .WIDTH (44),
      .DEPTH (1 << INSNS_W),
      .ADDR_W(INSNS_W)
  ) u_records (
      .clk_i  (clk_i),
      .we_i   (!insns_full),
      .waddr_i(insn_write_q),
      .wdata_i({index_i[27:0], insn_i[`VTA_INSN_SET]}),
      .raddr_i(insn_read_q),
      .rdata_o({insn_index[27:0], insn_set})
  );

  always @(posedge clk_i)
    if (!rst_ni) begin
      burst_write_q <= {BURSTS_W{1'b0}};
      burst_read_q  <= {BURSTS_W{1'b0}};
      insn_write_q  <= {INSNS_W{1'b0}};
      insn_read_q   <= {INSNS_W{1'b0}};
      answered_q    <= 1'b0;
      error_q       <= 1'b0;
      give_q        <= 1'b0;
    end else begin
      if (take) burst_write_q <= burst_write_q + 1'b1;
      if (answer) burst_read_q <= burst_read_q + 1'b1;
      if (start_i) insn_write_q <= insn_write_q + 1'b1;
      if (answer && burst_last) insn_read_q <= insn_read_q + 1'b1;
      answered_q <= answer;
      error_q    <= m_axi_bvalid && m_axi_berror;
      give_q     <= answer && burst_last;
    end

  assign insn_index[31:28] = 4'd0;

  always @(posedge clk_i) begin
    set_q        <= insn_set;
    done_index_q <= insn_index;
  end

  assign give_o        = give_q;
  assign set_o         = set_q;
  assign done_index_o  = done_index_q;
  assign error_fault_o = error_q;
  assign drained_o     = !bursts_any;
  assign idle_o        = !walk_active && !bursts_any && !insns_any;

  wire unused = &{1'b0, data_full, bursts_one, insns_one, insn_i};
endmodule

`resetall
