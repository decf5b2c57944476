// Model of Gowin's block RAM with a port that writes (A) and one that reads (B) for simulation: 512 words of 36 bits, with
// an enable for each nine of them in the place of low address bits.
// A read of a word that is written at that edge gets garbage: the chip promises nothing there.
// Contract: both ports have one clock and 36 bits, no output registers and no block selects. On Arora V (GOWIN_5A) both
// have one reset.
`timescale 1ns / 1ps
`default_nettype none

module SDPX9B #(
    parameter READ_MODE = 1'b0,
    parameter BIT_WIDTH_0 = 36,
    parameter BIT_WIDTH_1 = 36,
    parameter [2:0] BLK_SEL_0 = 3'b000,
    parameter [2:0] BLK_SEL_1 = 3'b000,
    parameter RESET_MODE = "SYNC",
    parameter [287:0] INIT_RAM_00 = 288'd0,
    parameter [287:0] INIT_RAM_01 = 288'd0,
    parameter [287:0] INIT_RAM_02 = 288'd0,
    parameter [287:0] INIT_RAM_03 = 288'd0,
    parameter [287:0] INIT_RAM_04 = 288'd0,
    parameter [287:0] INIT_RAM_05 = 288'd0,
    parameter [287:0] INIT_RAM_06 = 288'd0,
    parameter [287:0] INIT_RAM_07 = 288'd0,
    parameter [287:0] INIT_RAM_08 = 288'd0,
    parameter [287:0] INIT_RAM_09 = 288'd0,
    parameter [287:0] INIT_RAM_0A = 288'd0,
    parameter [287:0] INIT_RAM_0B = 288'd0,
    parameter [287:0] INIT_RAM_0C = 288'd0,
    parameter [287:0] INIT_RAM_0D = 288'd0,
    parameter [287:0] INIT_RAM_0E = 288'd0,
    parameter [287:0] INIT_RAM_0F = 288'd0,
    parameter [287:0] INIT_RAM_10 = 288'd0,
    parameter [287:0] INIT_RAM_11 = 288'd0,
    parameter [287:0] INIT_RAM_12 = 288'd0,
    parameter [287:0] INIT_RAM_13 = 288'd0,
    parameter [287:0] INIT_RAM_14 = 288'd0,
    parameter [287:0] INIT_RAM_15 = 288'd0,
    parameter [287:0] INIT_RAM_16 = 288'd0,
    parameter [287:0] INIT_RAM_17 = 288'd0,
    parameter [287:0] INIT_RAM_18 = 288'd0,
    parameter [287:0] INIT_RAM_19 = 288'd0,
    parameter [287:0] INIT_RAM_1A = 288'd0,
    parameter [287:0] INIT_RAM_1B = 288'd0,
    parameter [287:0] INIT_RAM_1C = 288'd0,
    parameter [287:0] INIT_RAM_1D = 288'd0,
    parameter [287:0] INIT_RAM_1E = 288'd0,
    parameter [287:0] INIT_RAM_1F = 288'd0,
    parameter [287:0] INIT_RAM_20 = 288'd0,
    parameter [287:0] INIT_RAM_21 = 288'd0,
    parameter [287:0] INIT_RAM_22 = 288'd0,
    parameter [287:0] INIT_RAM_23 = 288'd0,
    parameter [287:0] INIT_RAM_24 = 288'd0,
    parameter [287:0] INIT_RAM_25 = 288'd0,
    parameter [287:0] INIT_RAM_26 = 288'd0,
    parameter [287:0] INIT_RAM_27 = 288'd0,
    parameter [287:0] INIT_RAM_28 = 288'd0,
    parameter [287:0] INIT_RAM_29 = 288'd0,
    parameter [287:0] INIT_RAM_2A = 288'd0,
    parameter [287:0] INIT_RAM_2B = 288'd0,
    parameter [287:0] INIT_RAM_2C = 288'd0,
    parameter [287:0] INIT_RAM_2D = 288'd0,
    parameter [287:0] INIT_RAM_2E = 288'd0,
    parameter [287:0] INIT_RAM_2F = 288'd0,
    parameter [287:0] INIT_RAM_30 = 288'd0,
    parameter [287:0] INIT_RAM_31 = 288'd0,
    parameter [287:0] INIT_RAM_32 = 288'd0,
    parameter [287:0] INIT_RAM_33 = 288'd0,
    parameter [287:0] INIT_RAM_34 = 288'd0,
    parameter [287:0] INIT_RAM_35 = 288'd0,
    parameter [287:0] INIT_RAM_36 = 288'd0,
    parameter [287:0] INIT_RAM_37 = 288'd0,
    parameter [287:0] INIT_RAM_38 = 288'd0,
    parameter [287:0] INIT_RAM_39 = 288'd0,
    parameter [287:0] INIT_RAM_3A = 288'd0,
    parameter [287:0] INIT_RAM_3B = 288'd0,
    parameter [287:0] INIT_RAM_3C = 288'd0,
    parameter [287:0] INIT_RAM_3D = 288'd0,
    parameter [287:0] INIT_RAM_3E = 288'd0,
    parameter [287:0] INIT_RAM_3F = 288'd0
) (
    input  wire        CLKA,
    input  wire        CEA,
`ifdef GOWIN_5A
    input  wire        RESET,
`else
    input  wire        RESETA,
    input  wire        RESETB,
`endif
    input  wire [13:0] ADA,
    input  wire [35:0] DI,
    input  wire [ 2:0] BLKSELA,
    input  wire        CLKB,
    input  wire        CEB,
    input  wire        OCE,
    input  wire [13:0] ADB,
    input  wire [ 2:0] BLKSELB,
    output wire [35:0] DO
);
  // One copy of its code for all instances.
  /* verilator no_inline_module */
  generate
    if (READ_MODE != 1'b0) begin : g_registers
      ERROR_READ_MODE_must_be_0 u_param_error ();
    end
    if (BIT_WIDTH_0 != 36 || BIT_WIDTH_1 != 36) begin : g_width
      ERROR_BIT_WIDTH_must_be_36 u_param_error ();
    end
  endgenerate

  localparam [18431:0] INIT = {
    INIT_RAM_3F, INIT_RAM_3E, INIT_RAM_3D, INIT_RAM_3C, INIT_RAM_3B, INIT_RAM_3A, INIT_RAM_39, INIT_RAM_38,
    INIT_RAM_37, INIT_RAM_36, INIT_RAM_35, INIT_RAM_34, INIT_RAM_33, INIT_RAM_32, INIT_RAM_31, INIT_RAM_30,
    INIT_RAM_2F, INIT_RAM_2E, INIT_RAM_2D, INIT_RAM_2C, INIT_RAM_2B, INIT_RAM_2A, INIT_RAM_29, INIT_RAM_28,
    INIT_RAM_27, INIT_RAM_26, INIT_RAM_25, INIT_RAM_24, INIT_RAM_23, INIT_RAM_22, INIT_RAM_21, INIT_RAM_20,
    INIT_RAM_1F, INIT_RAM_1E, INIT_RAM_1D, INIT_RAM_1C, INIT_RAM_1B, INIT_RAM_1A, INIT_RAM_19, INIT_RAM_18,
    INIT_RAM_17, INIT_RAM_16, INIT_RAM_15, INIT_RAM_14, INIT_RAM_13, INIT_RAM_12, INIT_RAM_11, INIT_RAM_10,
    INIT_RAM_0F, INIT_RAM_0E, INIT_RAM_0D, INIT_RAM_0C, INIT_RAM_0B, INIT_RAM_0A, INIT_RAM_09, INIT_RAM_08,
    INIT_RAM_07, INIT_RAM_06, INIT_RAM_05, INIT_RAM_04, INIT_RAM_03, INIT_RAM_02, INIT_RAM_01, INIT_RAM_00
  };
  reg [35:0] words_q[0:511];
  reg [35:0] read_q;
  integer n;
  initial begin
    for (n = 0; n < 512; n = n + 1) words_q[n] = INIT[n*36+:36];
    read_q = 36'd0;
  end

`ifdef GOWIN_5A
  wire reset = RESET;
`else
  wire reset = RESETB;
  wire unused_a = RESETA;
`endif
  wire [8:0] write_at = ADA[13:5];
  wire [8:0] read_at = ADB[13:5];
  wire [35:0] set = {{9{ADA[3]}}, {9{ADA[2]}}, {9{ADA[1]}}, {9{ADA[0]}}};
  wire [35:0] met = (CEA && write_at == read_at) ? set : 36'd0;

  always @(posedge CLKA) begin
    if (CEA) words_q[write_at] <= words_q[write_at] & ~set | DI & set;
    if (reset) read_q <= 36'd0;
    else if (CEB) read_q <= words_q[read_at] ^ met;
  end

  assign DO = (RESET_MODE == "ASYNC" && reset) ? 36'd0 : read_q;
  wire unused = &{1'b0, CLKB, BLKSELA, BLKSELB, OCE, ADA[4], ADB[4:0]};
endmodule

`default_nettype wire
