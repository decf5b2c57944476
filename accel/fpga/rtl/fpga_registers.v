// Single accesses of words as AXI4-Lite transactions.
// Contract: req_i holds until ack_o; a refused access (SLVERR) is acknowledged like any other and reads as zero.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_registers (
    input  wire        clk_i,
    input  wire        rst_ni,
    // accesses
    input  wire        req_i,
    input  wire        we_i,
    output wire        ack_o,
    output wire [31:0] rdata_o,
    // AXI4-Lite master: what is not the address and the data of req_i
    output wire        awvalid_o,
    input  wire        awready_i,
    output wire        wvalid_o,
    input  wire        wready_i,
    input  wire        bvalid_i,
    output wire        arvalid_o,
    input  wire        arready_i,
    input  wire [31:0] rdata_i,
    input  wire [ 1:0] rresp_i,
    input  wire        rvalid_i
);
  // address and data that were taken
  reg address_q, data_q;

  assign awvalid_o = req_i && we_i && !address_q;
  assign wvalid_o  = req_i && we_i && !data_q;
  assign arvalid_o = req_i && !we_i && !address_q;
  assign ack_o     = req_i && (we_i ? bvalid_i : rvalid_i);
  assign rdata_o   = rresp_i[1] ? 32'd0 : rdata_i;

  always @(posedge clk_i)
    if (!rst_ni || ack_o) begin
      address_q <= 1'b0;
      data_q    <= 1'b0;
    end else begin
      if ((awvalid_o && awready_i) || (arvalid_o && arready_i)) address_q <= 1'b1;
      if (wvalid_o && wready_i) data_q <= 1'b1;
    end

  wire unused = &{1'b0, rresp_i};
endmodule

`resetall
