// Model of Gowin's block RAM with two ports for simulation: 1024 words of 18 bits, with an enable for each nine of them in
// the place of low address bits.
// A port that reads a word which the other one writes at that edge gets garbage: the chip promises nothing there.
// Contract: both ports have one clock and 18 bits, no output registers and no block selects.
`timescale 1ns / 1ps
`default_nettype none

module DPX9B #(
    parameter READ_MODE0 = 1'b0,
    parameter READ_MODE1 = 1'b0,
    // 0: keeps its output as it writes, 1: shows what it writes, 2: shows what was there
    parameter [1:0] WRITE_MODE0 = 2'd0,
    parameter [1:0] WRITE_MODE1 = 2'd0,
    parameter BIT_WIDTH_0 = 18,
    parameter BIT_WIDTH_1 = 18,
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
    input  wire        WREA,
    input  wire        RESETA,
    input  wire        OCEA,
    input  wire [13:0] ADA,
    input  wire [17:0] DIA,
    input  wire [ 2:0] BLKSELA,
    output wire [17:0] DOA,
    input  wire        CLKB,
    input  wire        CEB,
    input  wire        WREB,
    input  wire        RESETB,
    input  wire        OCEB,
    input  wire [13:0] ADB,
    input  wire [17:0] DIB,
    input  wire [ 2:0] BLKSELB,
    output wire [17:0] DOB
);
  // One copy of its code for all instances.
  /* verilator no_inline_module */
  generate
    if (READ_MODE0 != 1'b0 || READ_MODE1 != 1'b0) begin : g_registers
      ERROR_READ_MODE_must_be_0 u_param_error ();
    end
    if (BIT_WIDTH_0 != 18 || BIT_WIDTH_1 != 18) begin : g_width
      ERROR_BIT_WIDTH_must_be_18 u_param_error ();
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
  reg [17:0] words_q[0:1023];
  reg [17:0] read_a_q, read_b_q;
  integer n;
  initial begin
    for (n = 0; n < 1024; n = n + 1) words_q[n] = INIT[n*18+:18];
    {read_a_q, read_b_q} = 36'd0;
  end

  wire [9:0] at_a = ADA[13:4];
  wire [9:0] at_b = ADB[13:4];
  wire write_a = CEA && WREA;
  wire write_b = CEB && WREB;
  wire [17:0] set_a = write_a ? {{9{ADA[1]}}, {9{ADA[0]}}} : 18'd0;
  wire [17:0] set_b = write_b ? {{9{ADB[1]}}, {9{ADB[0]}}} : 18'd0;
  wire [17:0] here_a = words_q[at_a] & ~set_a | DIA & set_a;
  wire [17:0] here_b = words_q[at_b] & ~set_b | DIB & set_b;
  wire [17:0] shown_a = (WRITE_MODE0 == 2'd1) ? here_a : words_q[at_a];
  wire [17:0] shown_b = (WRITE_MODE1 == 2'd1) ? here_b : words_q[at_b];
  wire meet = at_a == at_b;

  always @(posedge CLKA) begin
    if (write_a) words_q[at_a] <= here_a;
    if (write_b) words_q[at_b] <= here_b;
    if (RESETA) read_a_q <= 18'd0;
    else if (CEA && !(WREA && WRITE_MODE0 == 2'd0)) read_a_q <= shown_a ^ (meet ? set_b : 18'd0);
    if (RESETB) read_b_q <= 18'd0;
    else if (CEB && !(WREB && WRITE_MODE1 == 2'd0)) read_b_q <= shown_b ^ (meet ? set_a : 18'd0);
  end

  assign DOA = (RESET_MODE == "ASYNC" && RESETA) ? 18'd0 : read_a_q;
  assign DOB = (RESET_MODE == "ASYNC" && RESETB) ? 18'd0 : read_b_q;
  wire unused = &{1'b0, CLKB, OCEA, OCEB, BLKSELA, BLKSELB, ADA[3:2], ADB[3:2]};
endmodule

`default_nettype wire
