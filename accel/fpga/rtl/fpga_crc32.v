// One step of Ethernet's frame check (CRC-32): the CRC after one more byte, least significant bit first.
// Contract: crc_i is all ones before a frame.  Behind its last byte the complement of crc_o is its check, whose bytes go
// out with the lowest first; behind the check crc_o is 32'hDEBB20E3.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fpga_crc32 (
    input  wire [31:0] crc_i,
    input  wire [ 7:0] data_i,
    output reg  [31:0] crc_o
);
  integer k;
  always @* begin
    crc_o = crc_i ^ {24'd0, data_i};
    for (k = 0; k < 8; k = k + 1) crc_o = {1'b0, crc_o[31:1]} ^ (crc_o[0] ? 32'hEDB88320 : 32'd0);
  end
endmodule

`resetall
