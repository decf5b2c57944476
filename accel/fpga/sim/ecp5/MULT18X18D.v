// Model of the ECP5's multiplier of 18 by 18 bits with its registers for simulation.
// Contract: no cascades (SOURCEA, SOURCEB, shift and rotate outputs), resets are synchronous, SIGNEDA and SIGNEDB are
// constant.
`timescale 1ns / 1ps
`default_nettype none

module MULT18X18D #(
    parameter REG_INPUTA_CLK = "NONE",
    parameter REG_INPUTA_CE = "CE0",
    parameter REG_INPUTA_RST = "RST0",
    parameter REG_INPUTB_CLK = "NONE",
    parameter REG_INPUTB_CE = "CE0",
    parameter REG_INPUTB_RST = "RST0",
    parameter REG_INPUTC_CLK = "NONE",
    parameter REG_INPUTC_CE = "CE0",
    parameter REG_INPUTC_RST = "RST0",
    parameter REG_PIPELINE_CLK = "NONE",
    parameter REG_PIPELINE_CE = "CE0",
    parameter REG_PIPELINE_RST = "RST0",
    parameter REG_OUTPUT_CLK = "NONE",
    parameter REG_OUTPUT_CE = "CE0",
    parameter REG_OUTPUT_RST = "RST0",
    parameter CLK0_DIV = "ENABLED",
    parameter CLK1_DIV = "ENABLED",
    parameter CLK2_DIV = "ENABLED",
    parameter CLK3_DIV = "ENABLED",
    parameter HIGHSPEED_CLK = "NONE",
    parameter GSR = "ENABLED",
    parameter CAS_MATCH_REG = "FALSE",
    parameter SOURCEB_MODE = "B_SHIFT",
    parameter MULT_BYPASS = "DISABLED",
    parameter RESETMODE = "SYNC"
) (
    input wire
        A0, A1, A2, A3, A4, A5, A6, A7, A8, A9, A10, A11, A12, A13, A14, A15, A16, A17, B0, B1, B2, B3, B4, B5, B6,
        B7, B8, B9, B10, B11, B12, B13, B14, B15, B16, B17, C0, C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12,
        C13, C14, C15, C16, C17,
    input wire
        SIGNEDA, SIGNEDB, SOURCEA, SOURCEB, CLK0, CLK1, CLK2, CLK3, CE0, CE1, CE2, CE3, RST0, RST1, RST2, RST3,
    input wire
        SRIA0, SRIA1, SRIA2, SRIA3, SRIA4, SRIA5, SRIA6, SRIA7, SRIA8, SRIA9, SRIA10, SRIA11, SRIA12, SRIA13, SRIA14,
        SRIA15, SRIA16, SRIA17, SRIB0, SRIB1, SRIB2, SRIB3, SRIB4, SRIB5, SRIB6, SRIB7, SRIB8, SRIB9, SRIB10, SRIB11,
        SRIB12, SRIB13, SRIB14, SRIB15, SRIB16, SRIB17,
    output wire
        SROA0, SROA1, SROA2, SROA3, SROA4, SROA5, SROA6, SROA7, SROA8, SROA9, SROA10, SROA11, SROA12, SROA13, SROA14,
        SROA15, SROA16, SROA17, SROB0, SROB1, SROB2, SROB3, SROB4, SROB5, SROB6, SROB7, SROB8, SROB9, SROB10, SROB11,
        SROB12, SROB13, SROB14, SROB15, SROB16, SROB17, ROA0, ROA1, ROA2, ROA3, ROA4, ROA5, ROA6, ROA7, ROA8, ROA9,
        ROA10, ROA11, ROA12, ROA13, ROA14, ROA15, ROA16, ROA17, ROB0, ROB1, ROB2, ROB3, ROB4, ROB5, ROB6, ROB7, ROB8,
        ROB9, ROB10, ROB11, ROB12, ROB13, ROB14, ROB15, ROB16, ROB17, ROC0, ROC1, ROC2, ROC3, ROC4, ROC5, ROC6, ROC7,
        ROC8, ROC9, ROC10, ROC11, ROC12, ROC13, ROC14, ROC15, ROC16, ROC17,
    output wire
        P0, P1, P2, P3, P4, P5, P6, P7, P8, P9, P10, P11, P12, P13, P14, P15, P16, P17, P18, P19, P20, P21, P22, P23,
        P24, P25, P26, P27, P28, P29, P30, P31, P32, P33, P34, P35, SIGNEDP
);
  // One copy of its code for all instances.
  /* verilator no_inline_module */
  generate
    if (RESETMODE != "SYNC" || MULT_BYPASS != "DISABLED") begin : g_mode
      ERROR_RESETMODE_must_be_SYNC_and_MULT_BYPASS_DISABLED u_param_error ();
    end
  endgenerate

  wire [3:0] clk = {CLK3, CLK2, CLK1, CLK0};
  wire [3:0] ce = {CE3, CE2, CE1, CE0};
  wire [3:0] rst = {RST3, RST2, RST1, RST0};
  wire [17:0] a, b;
  wire [35:0] piped, result;

  wire [17:0] a_pins = {
    A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0
  };
  wire [17:0] b_pins = {
    B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0
  };
  ecp5_stage #(
      .WIDTH(18), .CLK(REG_INPUTA_CLK), .CE(REG_INPUTA_CE), .RST(REG_INPUTA_RST)
  ) u_a (
      .clk_i(clk), .ce_i(ce), .rst_i(rst), .data_i(a_pins), .data_o(a)
  );
  ecp5_stage #(
      .WIDTH(18), .CLK(REG_INPUTB_CLK), .CE(REG_INPUTB_CE), .RST(REG_INPUTB_RST)
  ) u_b (
      .clk_i(clk), .ce_i(ce), .rst_i(rst), .data_i(b_pins), .data_o(b)
  );

  wire signed [36:0] left = {{19{SIGNEDA & a[17]}}, a};
  wire signed [36:0] right = {{19{SIGNEDB & b[17]}}, b};
  wire signed [36:0] product = left * right;
  ecp5_stage #(
      .WIDTH(36), .CLK(REG_PIPELINE_CLK), .CE(REG_PIPELINE_CE), .RST(REG_PIPELINE_RST)
  ) u_pipeline (
      .clk_i(clk), .ce_i(ce), .rst_i(rst), .data_i(product[35:0]), .data_o(piped)
  );
  ecp5_stage #(
      .WIDTH(36), .CLK(REG_OUTPUT_CLK), .CE(REG_OUTPUT_CE), .RST(REG_OUTPUT_RST)
  ) u_output (
      .clk_i(clk), .ce_i(ce), .rst_i(rst), .data_i(piped), .data_o(result)
  );

  assign {
    P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14,
    P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
  } = result;
  assign SIGNEDP = SIGNEDA | SIGNEDB;
  assign {
      SROA0, SROA1, SROA2, SROA3, SROA4, SROA5, SROA6, SROA7, SROA8, SROA9, SROA10, SROA11, SROA12, SROA13, SROA14,
      SROA15, SROA16, SROA17, SROB0, SROB1, SROB2, SROB3, SROB4, SROB5, SROB6, SROB7, SROB8, SROB9, SROB10, SROB11,
      SROB12, SROB13, SROB14, SROB15, SROB16, SROB17, ROA0, ROA1, ROA2, ROA3, ROA4, ROA5, ROA6, ROA7, ROA8, ROA9,
      ROA10, ROA11, ROA12, ROA13, ROA14, ROA15, ROA16, ROA17, ROB0, ROB1, ROB2, ROB3, ROB4, ROB5, ROB6, ROB7, ROB8,
      ROB9, ROB10, ROB11, ROB12, ROB13, ROB14, ROB15, ROB16, ROB17, ROC0, ROC1, ROC2, ROC3, ROC4, ROC5, ROC6, ROC7,
      ROC8, ROC9, ROC10, ROC11, ROC12, ROC13, ROC14, ROC15, ROC16, ROC17
  } = 90'd0;
endmodule

`default_nettype wire
