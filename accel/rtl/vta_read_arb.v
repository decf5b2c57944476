// Read side of the AXI master: one AR register shared by fetch (first) and LOAD, and the order of the burst owners.
// Contract: at most READ_OUTSTANDING bursts from the AR register to their last beat; data come in order.  Fetch always
// has room for its beats; LOAD takes a beat only while load_want_i.  stop_i: no new burst, all data are taken.
// Latency: a granted request is on the bus after the next edge.  Throughput: one burst a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_read_arb #(
    // Bus width in bits
    parameter AXI_DATA_BITS    = 64,
    // Bursts in flight, at least 1
    parameter READ_OUTSTANDING = 16
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    input  wire [             31:0] window_base_i,
    // requests
    input  wire                     fetch_valid_i,
    input  wire [             31:0] fetch_offset_i,
    input  wire [              6:0] fetch_beats_i,
    output wire                     fetch_ready_o,
    input  wire                     load_valid_i,
    input  wire [             31:0] load_offset_i,
    // beats less one
    input  wire [              5:0] load_len_i,
    output wire                     load_ready_o,
    // beats for their owners; data are the bus's
    output wire                     fetch_beat_o,
    input  wire                     load_want_i,
    // a beat of LOAD's is there; it is taken
    output wire                     load_here_o,
    output wire                     load_beat_o,
    output wire                     idle_o,
    // AXI
    output wire [             31:0] m_axi_araddr,
    output wire [              7:0] m_axi_arlen,
    output wire                     m_axi_arvalid,
    input  wire                     m_axi_arready,
    input  wire                     m_axi_rlast,
    input  wire                     m_axi_rvalid,
    output wire                     m_axi_rready
);
  reg         valid_q;
  reg  [31:0] addr_q;
  reg  [ 7:0] len_q;

  // owners of the bursts in flight
  wire any;
  wire full;
  wire load_owns;

  wire free = (!valid_q || m_axi_arready) && !full && !stop_i;
  assign fetch_ready_o = free;
  assign load_ready_o  = free && !fetch_valid_i;
  wire take = free && (fetch_valid_i || load_valid_i);
  wire beat = m_axi_rvalid && m_axi_rready;
  wire pop = beat && m_axi_rlast;

  vta_fifo #(
      .WIDTH(1),
      .DEPTH(READ_OUTSTANDING),
      .EARLY(1)
  ) u_owners (
      .clk_i  (clk_i),
      .rst_ni (rst_ni),
      .push_i (take),
      .data_i (!fetch_valid_i),
      .full_o (full),
      .valid_o(any),
      .data_o (load_owns),
      .pop_i  (pop)
  );

  assign m_axi_araddr  = addr_q;
  assign m_axi_arlen   = len_q;
  assign m_axi_arvalid = valid_q;
  assign m_axi_rready  = any && (!load_owns || load_want_i || stop_i);
  assign fetch_beat_o  = m_axi_rvalid && any && !load_owns;
  assign load_here_o   = m_axi_rvalid && any && load_owns;
  assign load_beat_o   = load_here_o && (load_want_i || stop_i);
  assign idle_o        = !any && !valid_q;

  always @(posedge clk_i)
    if (!rst_ni) valid_q <= 1'b0;
    else if (take) valid_q <= 1'b1;
    else if (m_axi_arready) valid_q <= 1'b0;

  // loaded whenever the register is free, with a burst or not
  always @(posedge clk_i)
    if (!valid_q || m_axi_arready) begin
      addr_q <= window_base_i + (fetch_valid_i ? fetch_offset_i : load_offset_i);
      len_q  <= fetch_valid_i ? {1'b0, fetch_beats_i} - 8'd1 : {2'd0, load_len_i};
    end

  generate
    if (AXI_DATA_BITS < 64 || AXI_DATA_BITS > 256) begin : g_param_check
      ERROR_AXI_DATA_BITS_must_be_from_64_to_256 u_param_error ();
    end
  endgenerate
endmodule

`resetall
