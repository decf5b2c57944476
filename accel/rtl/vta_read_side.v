// LOAD and the read side of the bus, wired: LOAD's walk and data side behind the AR register that it shares with fetch.
// Contract: see vta_load and vta_read_arb.  Data of the bus go to fetch, which takes each beat with fetch_beat_o, and to
// LOAD.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_read_side #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS    = 64,
    // Longest burst
    parameter BURST_BEATS      = 64,
    // Bursts in flight
    parameter READ_OUTSTANDING = 16,
    // Bytes of an INP entry, of a line of INP
    parameter INP_LANES        = 4,
    parameter LINE             = 16,
    // Factors of a beat of weights; granules of weights behind each granule of factors, a power of two, 0: no factors
    parameter FACTORS          = 1,
    parameter FACTOR_GRANULES  = 0,
    // Width of beat counts and addresses of the scratchpads, at least 10; of the beats of a run in DRAM
    parameter BEATS_W          = 20,
    parameter LENGTH_W         = 20
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    input  wire                       stop_i,
    input  wire [               31:0] window_base_i,
    input  wire [               31:0] window_bytes_i,
    // requests of fetch
    input  wire                       fetch_valid_i,
    input  wire [               31:0] fetch_offset_i,
    input  wire [                6:0] fetch_beats_i,
    output wire                       fetch_ready_o,
    output wire                       fetch_beat_o,
    // head of LOAD's queue; start_i pops it
    input  wire                       head_valid_i,
    input  wire [              255:0] insn_i,
    input  wire [               31:0] index_i,
    input  wire [                1:0] one_i,
    input  wire [       LENGTH_W-1:0] length_i,
    input  wire [        BEATS_W-1:0] first_beat_i,
    output wire                       want_o,
    input  wire                       start_i,
    // OUTPUT will write INP two edges behind the one that ends this cycle (bit 0), three edges behind (bit 1)
    input  wire [                1:0] inp_soon_i,
    // scratchpad writes; we_o: a bit for each scratchpad number, be_o: one for each byte of the beat
    output wire [               15:0] we_o,
    output wire [AXI_DATA_BITS/8-1:0] be_o,
    output wire                       expand_o,
    output wire [        BEATS_W-1:0] waddr_o,
    output wire [  AXI_DATA_BITS-1:0] wdata_o,
    output wire [      4*FACTORS-1:0] factor_o,
    // tokens of a finished instruction; done_index_o also names the instruction that writes
    output wire                       give_o,
    output wire [               15:0] set_o,
    output wire [               31:0] done_index_o,
    output wire                       idle_o,
    // events for the counters: LOAD takes a beat; it would take one, and there is none
    output wire                       beat_o,
    output wire                       waits_o,
    // no burst is in flight
    output wire                       drained_o,
    // faults: a burst outside the window; an error response
    output wire                       range_fault_o,
    output wire [               31:0] range_index_o,
    output wire                       error_fault_o,
    output wire [               31:0] error_index_o,
    // AXI
    output wire [               31:0] m_axi_araddr,
    output wire [                7:0] m_axi_arlen,
    output wire                       m_axi_arvalid,
    input  wire                       m_axi_arready,
    input  wire [  AXI_DATA_BITS-1:0] m_axi_rdata,
    input  wire                       m_axi_rerror,
    input  wire                       m_axi_rlast,
    input  wire                       m_axi_rvalid,
    output wire                       m_axi_rready
);
  wire        req_valid, req_ready, want_beat, here;
  wire [31:0] req_offset;
  wire [ 5:0] req_len;

  assign waits_o = want_beat && !beat_o;

  vta_load #(
      .AXI_DATA_BITS   (AXI_DATA_BITS),
      .BURST_BEATS     (BURST_BEATS),
      .READ_OUTSTANDING(READ_OUTSTANDING),
      .INP_LANES       (INP_LANES),
      .LINE            (LINE),
      .FACTORS         (FACTORS),
      .FACTOR_GRANULES (FACTOR_GRANULES),
      .BEATS_W         (BEATS_W),
      .LENGTH_W        (LENGTH_W)
  ) u_load (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .stop_i        (stop_i),
      .window_bytes_i(window_bytes_i),
      .head_valid_i  (head_valid_i),
      .insn_i        (insn_i),
      .index_i       (index_i),
      .one_i         (one_i),
      .length_i      (length_i),
      .first_beat_i  (first_beat_i),
      .want_o        (want_o),
      .start_i       (start_i),
      .req_valid_o   (req_valid),
      .req_offset_o  (req_offset),
      .req_len_o     (req_len),
      .req_ready_i   (req_ready),
      .inp_soon_i    (inp_soon_i),
      .beat_want_o   (want_beat),
      .beat_i        (here),
      .data_i        (m_axi_rdata),
      .error_i       (m_axi_rerror),
      .we_o          (we_o),
      .be_o          (be_o),
      .expand_o      (expand_o),
      .waddr_o       (waddr_o),
      .wdata_o       (wdata_o),
      .factor_o      (factor_o),
      .give_o        (give_o),
      .set_o         (set_o),
      .done_index_o  (done_index_o),
      .idle_o        (idle_o),
      .range_fault_o (range_fault_o),
      .range_index_o (range_index_o),
      .error_fault_o (error_fault_o),
      .error_index_o (error_index_o)
  );

  vta_read_arb #(
      .AXI_DATA_BITS   (AXI_DATA_BITS),
      .READ_OUTSTANDING(READ_OUTSTANDING)
  ) u_read_arb (
      .clk_i         (clk_i),
      .rst_ni        (rst_ni),
      .stop_i        (stop_i),
      .window_base_i (window_base_i),
      .fetch_valid_i (fetch_valid_i),
      .fetch_offset_i(fetch_offset_i),
      .fetch_beats_i (fetch_beats_i),
      .fetch_ready_o (fetch_ready_o),
      .load_valid_i  (req_valid),
      .load_offset_i (req_offset),
      .load_len_i    (req_len),
      .load_ready_o  (req_ready),
      .fetch_beat_o  (fetch_beat_o),
      .load_want_i   (want_beat),
      .load_here_o   (here),
      .load_beat_o   (beat_o),
      .idle_o        (drained_o),
      .m_axi_araddr  (m_axi_araddr),
      .m_axi_arlen   (m_axi_arlen),
      .m_axi_arvalid (m_axi_arvalid),
      .m_axi_arready (m_axi_arready),
      .m_axi_rlast   (m_axi_rlast),
      .m_axi_rvalid  (m_axi_rvalid),
      .m_axi_rready  (m_axi_rready)
  );
endmodule

`resetall
