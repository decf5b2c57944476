// AXI4-Lite slave of the register block: one write and one read at a time, as plain register accesses.
// Contract: a write takes place in the cycle of write_o; a partial write (strobes not all ones) is refused with
// SLVERR and does not take place, as is any access that the block does not know (write_known_i, read_known_i low).
// Latency: address and data are accepted in the cycle after both are valid, so that an access starts from registers.  The
// write response follows a cycle later, read data two cycles after the address was accepted, or later while the block
// holds read_ready_i low.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_axil (
    input  wire        clk_i,
    input  wire        rst_ni,
    // AXI4-Lite
    input  wire [11:0] s_axil_awaddr,
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_wdata,
    input  wire [ 3:0] s_axil_wstrb,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    output wire [ 1:0] s_axil_bresp,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    input  wire [11:0] s_axil_araddr,
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    output wire [31:0] s_axil_rdata,
    output wire [ 1:0] s_axil_rresp,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,
    // register accesses
    output wire        write_o,
    output wire        write_control_o,  // the address is that of CONTROL
    output wire [11:0] write_addr_o,
    output wire [31:0] write_data_o,
    input  wire        write_known_i,
    output wire [11:0] read_addr_o,
    input  wire [31:0] read_data_i,
    input  wire        read_known_i,
    input  wire        read_ready_i
);
  localparam [1:0] OKAY = 2'b00, SLVERR = 2'b10;

  // a write in the cycle in which it is taken, a read in the cycles after
  reg        write_q;
  reg        control_q;
  reg [ 9:0] write_word_q;
  reg [31:0] write_data_q;
  reg        whole_q;
  reg        read_q;
  reg [ 9:0] read_word_q;
  reg        b_valid_q;
  reg [ 1:0] b_resp_q;
  reg        r_valid_q;
  reg [ 1:0] r_resp_q;
  reg [31:0] r_data_q;

  wire       write = s_axil_awvalid && s_axil_wvalid && !write_q && !b_valid_q;
  wire       read = s_axil_arvalid && s_axil_arready;

  assign s_axil_awready  = write_q;
  assign s_axil_wready   = write_q;
  assign s_axil_bvalid   = b_valid_q;
  assign s_axil_bresp    = b_resp_q;
  assign s_axil_arready  = !read_q && !r_valid_q;
  assign s_axil_rvalid   = r_valid_q;
  assign s_axil_rresp    = r_resp_q;
  assign s_axil_rdata    = r_data_q;

  assign write_o         = write_q && whole_q;
  assign write_control_o = control_q;
  assign write_addr_o    = {write_word_q, 2'b00};
  assign write_data_o    = write_data_q;
  assign read_addr_o     = {read_word_q, 2'b00};

  always @(posedge clk_i)
    if (!rst_ni) begin
      write_q   <= 1'b0;
      read_q    <= 1'b0;
      b_valid_q <= 1'b0;
      r_valid_q <= 1'b0;
    end else begin
      write_q <= write;
      read_q  <= read || (read_q && !read_ready_i);
      if (write_q) b_valid_q <= 1'b1;
      else if (s_axil_bready) b_valid_q <= 1'b0;
      if (read_q && read_ready_i) r_valid_q <= 1'b1;
      else if (s_axil_rready) r_valid_q <= 1'b0;
    end

  always @(posedge clk_i) begin
    control_q    <= {s_axil_awaddr[11:2], 2'b00} == `VTA_REG_CONTROL;
    write_word_q <= s_axil_awaddr[11:2];
    write_data_q <= s_axil_wdata;
    whole_q      <= &s_axil_wstrb;
    if (read) read_word_q <= s_axil_araddr[11:2];
    if (write_q) b_resp_q <= (whole_q && write_known_i) ? OKAY : SLVERR;
    if (read_q) begin
      r_resp_q <= read_known_i ? OKAY : SLVERR;
      r_data_q <= read_data_i;
    end
  end

  wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0]};
endmodule

`resetall
