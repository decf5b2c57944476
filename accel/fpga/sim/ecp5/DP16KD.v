// Model of the ECP5's block RAM for simulation: 2048 units of nine bits, two ports of 1, 2, 4, 9 or 18 bits, or one of 36
// that writes (A) and one that reads (B).  Ports of fewer than nine bits leave the ninth alone.
// A port that reads a unit which the other port writes at that edge gets garbage: the chip promises nothing there.
// Contract: both ports have one clock, no output registers and no chip selects; an asynchronous reset lasts over an edge.
`timescale 1ns / 1ps
`default_nettype none

module DP16KD #(
    parameter DATA_WIDTH_A = 18,
    parameter DATA_WIDTH_B = 18,
    parameter REGMODE_A = "NOREG",
    parameter CSDECODE_A = "0b000",
    parameter WRITEMODE_A = "NORMAL",
    parameter CLKAMUX = "CLKA",
    parameter REGMODE_B = "NOREG",
    parameter CSDECODE_B = "0b000",
    parameter WRITEMODE_B = "NORMAL",
    parameter CLKBMUX = "CLKB",
    parameter RESETMODE = "SYNC",
    parameter ASYNC_RESET_RELEASE = "SYNC",
    parameter GSR = "ENABLED",
    parameter INIT_DATA = "STATIC",
    parameter WID = 0,
    parameter [319:0] INITVAL_00 = 320'd0,
    parameter [319:0] INITVAL_01 = 320'd0,
    parameter [319:0] INITVAL_02 = 320'd0,
    parameter [319:0] INITVAL_03 = 320'd0,
    parameter [319:0] INITVAL_04 = 320'd0,
    parameter [319:0] INITVAL_05 = 320'd0,
    parameter [319:0] INITVAL_06 = 320'd0,
    parameter [319:0] INITVAL_07 = 320'd0,
    parameter [319:0] INITVAL_08 = 320'd0,
    parameter [319:0] INITVAL_09 = 320'd0,
    parameter [319:0] INITVAL_0A = 320'd0,
    parameter [319:0] INITVAL_0B = 320'd0,
    parameter [319:0] INITVAL_0C = 320'd0,
    parameter [319:0] INITVAL_0D = 320'd0,
    parameter [319:0] INITVAL_0E = 320'd0,
    parameter [319:0] INITVAL_0F = 320'd0,
    parameter [319:0] INITVAL_10 = 320'd0,
    parameter [319:0] INITVAL_11 = 320'd0,
    parameter [319:0] INITVAL_12 = 320'd0,
    parameter [319:0] INITVAL_13 = 320'd0,
    parameter [319:0] INITVAL_14 = 320'd0,
    parameter [319:0] INITVAL_15 = 320'd0,
    parameter [319:0] INITVAL_16 = 320'd0,
    parameter [319:0] INITVAL_17 = 320'd0,
    parameter [319:0] INITVAL_18 = 320'd0,
    parameter [319:0] INITVAL_19 = 320'd0,
    parameter [319:0] INITVAL_1A = 320'd0,
    parameter [319:0] INITVAL_1B = 320'd0,
    parameter [319:0] INITVAL_1C = 320'd0,
    parameter [319:0] INITVAL_1D = 320'd0,
    parameter [319:0] INITVAL_1E = 320'd0,
    parameter [319:0] INITVAL_1F = 320'd0,
    parameter [319:0] INITVAL_20 = 320'd0,
    parameter [319:0] INITVAL_21 = 320'd0,
    parameter [319:0] INITVAL_22 = 320'd0,
    parameter [319:0] INITVAL_23 = 320'd0,
    parameter [319:0] INITVAL_24 = 320'd0,
    parameter [319:0] INITVAL_25 = 320'd0,
    parameter [319:0] INITVAL_26 = 320'd0,
    parameter [319:0] INITVAL_27 = 320'd0,
    parameter [319:0] INITVAL_28 = 320'd0,
    parameter [319:0] INITVAL_29 = 320'd0,
    parameter [319:0] INITVAL_2A = 320'd0,
    parameter [319:0] INITVAL_2B = 320'd0,
    parameter [319:0] INITVAL_2C = 320'd0,
    parameter [319:0] INITVAL_2D = 320'd0,
    parameter [319:0] INITVAL_2E = 320'd0,
    parameter [319:0] INITVAL_2F = 320'd0,
    parameter [319:0] INITVAL_30 = 320'd0,
    parameter [319:0] INITVAL_31 = 320'd0,
    parameter [319:0] INITVAL_32 = 320'd0,
    parameter [319:0] INITVAL_33 = 320'd0,
    parameter [319:0] INITVAL_34 = 320'd0,
    parameter [319:0] INITVAL_35 = 320'd0,
    parameter [319:0] INITVAL_36 = 320'd0,
    parameter [319:0] INITVAL_37 = 320'd0,
    parameter [319:0] INITVAL_38 = 320'd0,
    parameter [319:0] INITVAL_39 = 320'd0,
    parameter [319:0] INITVAL_3A = 320'd0,
    parameter [319:0] INITVAL_3B = 320'd0,
    parameter [319:0] INITVAL_3C = 320'd0,
    parameter [319:0] INITVAL_3D = 320'd0,
    parameter [319:0] INITVAL_3E = 320'd0,
    parameter [319:0] INITVAL_3F = 320'd0
) (
    input wire
        CLKA, WEA, CEA, OCEA, RSTA, CSA0, CSA1, CSA2, ADA0, ADA1, ADA2, ADA3, ADA4, ADA5, ADA6, ADA7, ADA8, ADA9,
        ADA10, ADA11, ADA12, ADA13, DIA0, DIA1, DIA2, DIA3, DIA4, DIA5, DIA6, DIA7, DIA8, DIA9, DIA10, DIA11, DIA12,
        DIA13, DIA14, DIA15, DIA16, DIA17,
    input wire
        CLKB, WEB, CEB, OCEB, RSTB, CSB0, CSB1, CSB2, ADB0, ADB1, ADB2, ADB3, ADB4, ADB5, ADB6, ADB7, ADB8, ADB9,
        ADB10, ADB11, ADB12, ADB13, DIB0, DIB1, DIB2, DIB3, DIB4, DIB5, DIB6, DIB7, DIB8, DIB9, DIB10, DIB11, DIB12,
        DIB13, DIB14, DIB15, DIB16, DIB17,
    output wire
        DOA0, DOA1, DOA2, DOA3, DOA4, DOA5, DOA6, DOA7, DOA8, DOA9, DOA10, DOA11, DOA12, DOA13, DOA14, DOA15, DOA16,
        DOA17, DOB0, DOB1, DOB2, DOB3, DOB4, DOB5, DOB6, DOB7, DOB8, DOB9, DOB10, DOB11, DOB12, DOB13, DOB14, DOB15,
        DOB16, DOB17
);
  // One copy of its code for all instances.
  /* verilator no_inline_module */
  generate
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG") begin : g_registers
      ERROR_REGMODE_must_be_NOREG u_param_error ();
    end
    if (CSDECODE_A != "0b000" || CSDECODE_B != "0b000") begin : g_select
      ERROR_CSDECODE_must_be_0b000 u_param_error ();
    end
    if (CLKAMUX != "CLKA" || CLKBMUX != "CLKB") begin : g_clock
      ERROR_CLKAMUX_and_CLKBMUX_must_not_be_INV u_param_error ();
    end
  endgenerate

  wire [13:0] address_a = {
    ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0
  };
  wire [13:0] address_b = {
    ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0
  };
  wire [35:0] data_a = {
    DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1,
    DIB0, DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2,
    DIA1, DIA0
  };
  wire [35:0] data_b = {18'd0, data_a[35:18]};

  reg [8:0] units_q[0:2047];
  reg [35:0] read_a_q, read_b_q;

  localparam [20479:0] INIT = {
    INITVAL_3F, INITVAL_3E, INITVAL_3D, INITVAL_3C, INITVAL_3B, INITVAL_3A, INITVAL_39, INITVAL_38, INITVAL_37,
    INITVAL_36, INITVAL_35, INITVAL_34, INITVAL_33, INITVAL_32, INITVAL_31, INITVAL_30, INITVAL_2F, INITVAL_2E,
    INITVAL_2D, INITVAL_2C, INITVAL_2B, INITVAL_2A, INITVAL_29, INITVAL_28, INITVAL_27, INITVAL_26, INITVAL_25,
    INITVAL_24, INITVAL_23, INITVAL_22, INITVAL_21, INITVAL_20, INITVAL_1F, INITVAL_1E, INITVAL_1D, INITVAL_1C,
    INITVAL_1B, INITVAL_1A, INITVAL_19, INITVAL_18, INITVAL_17, INITVAL_16, INITVAL_15, INITVAL_14, INITVAL_13,
    INITVAL_12, INITVAL_11, INITVAL_10, INITVAL_0F, INITVAL_0E, INITVAL_0D, INITVAL_0C, INITVAL_0B, INITVAL_0A,
    INITVAL_09, INITVAL_08, INITVAL_07, INITVAL_06, INITVAL_05, INITVAL_04, INITVAL_03, INITVAL_02, INITVAL_01,
    INITVAL_00
  };
  integer n;
  generate
    if (INIT == 20480'd0) begin : g_zeros
      initial for (n = 0; n < 2048; n = n + 1) units_q[n] = 9'd0;
    end else begin : g_init
      initial for (n = 0; n < 2048; n = n + 1) units_q[n] = INIT[(n / 2) * 20 + (n % 2) * 9+:9];
    end
  endgenerate
  initial begin
    read_a_q = 36'd0;
    read_b_q = 36'd0;
  end

  // Units that a port of WIDTH bits touches: the first, and how many.
  function [10:0] first(input [13:0] address, input integer width);
    first = width == 36 ? {address[13:5], 2'd0} : width == 18 ? {address[13:4], 1'b0} : address[13:3];
  endfunction
  function integer count(input integer width);
    count = width == 36 ? 4 : width == 18 ? 2 : 1;
  endfunction
  // Bits of a unit that a port writes; ports of 18 and 36 bits have an enable a unit in the place of low address bits.
  function [8:0] mask(input [13:0] address, input integer width, input integer unit);
    case (width)
      1: mask = 9'd1 << address[2:0];
      2: mask = 9'd3 << {address[2:1], 1'b0};
      4: mask = 9'd15 << {address[2], 2'b00};
      9: mask = 9'h1ff;
      default: mask = {9{address[unit]}};
    endcase
  endfunction
  // Data of one unit, in its place.
  function [8:0] placed(input [35:0] data, input [13:0] address, input integer width, input integer unit);
    case (width)
      1: placed = {9{data[0]}};
      2: placed = {1'b0, {4{data[1:0]}}};
      4: placed = {1'b0, {2{data[3:0]}}};
      default: placed = data[unit*9+:9];
    endcase
  endfunction
  function [35:0] taken(input [35:0] found, input [13:0] address, input integer width);
    case (width)
      1: taken = {35'd0, found[{3'd0, address[2:0]}]};
      2: taken = {34'd0, found[{3'd0, address[2:1], 1'b0}+:2]};
      4: taken = {32'd0, found[{3'd0, address[2], 2'b00}+:4]};
      9: taken = {27'd0, found[8:0]};
      18: taken = {18'd0, found[17:0]};
      default: taken = found;
    endcase
  endfunction

  wire write_a = CEA && WEA && !RSTA;
  wire write_b = CEB && WEB && !RSTB && DATA_WIDTH_B != 36;
  wire [10:0] first_a = first(address_a, DATA_WIDTH_A);
  wire [10:0] first_b = first(address_b, DATA_WIDTH_B);
  integer u, v;
  reg [35:0] found_a, found_b, after_a, after_b;
  reg [8:0] set;
  reg [10:0] here, there;

  always @(posedge CLKA) begin
    found_a = 36'd0;
    found_b = 36'd0;
    for (u = 0; u < count(DATA_WIDTH_A); u = u + 1) begin
      here = first_a + u[10:0];
      found_a[u*9+:9] = units_q[here];
      for (v = 0; v < count(DATA_WIDTH_B); v = v + 1) begin
        there = first_b + v[10:0];
        if (write_b && here == there && mask(address_b, DATA_WIDTH_B, v) != 9'd0) found_a[u*9+:9] = ~units_q[here];
      end
    end
    for (v = 0; v < count(DATA_WIDTH_B); v = v + 1) begin
      there = first_b + v[10:0];
      found_b[v*9+:9] = units_q[there];
      for (u = 0; u < count(DATA_WIDTH_A); u = u + 1) begin
        here = first_a + u[10:0];
        if (write_a && here == there && mask(address_a, DATA_WIDTH_A, u) != 9'd0) found_b[v*9+:9] = ~units_q[there];
      end
    end
    after_a = found_a;
    after_b = found_b;
    if (write_a)
      for (u = 0; u < count(DATA_WIDTH_A); u = u + 1) begin
        here = first_a + u[10:0];
        set = mask(address_a, DATA_WIDTH_A, u);
        after_a[u*9+:9] = found_a[u*9+:9] & ~set | placed(data_a, address_a, DATA_WIDTH_A, u) & set;
        units_q[here] = units_q[here] & ~set | placed(data_a, address_a, DATA_WIDTH_A, u) & set;
      end
    if (write_b)
      for (v = 0; v < count(DATA_WIDTH_B); v = v + 1) begin
        there = first_b + v[10:0];
        set = mask(address_b, DATA_WIDTH_B, v);
        after_b[v*9+:9] = found_b[v*9+:9] & ~set | placed(data_b, address_b, DATA_WIDTH_B, v) & set;
        units_q[there] = units_q[there] & ~set | placed(data_b, address_b, DATA_WIDTH_B, v) & set;
      end
    if (RSTA) read_a_q <= 36'd0;
    else if (CEA && !(WEA && WRITEMODE_A == "NORMAL"))
      read_a_q <= taken(WEA && WRITEMODE_A == "WRITETHROUGH" ? after_a : found_a, address_a, DATA_WIDTH_A);
    if (RSTB) read_b_q <= 36'd0;
    else if (CEB && !(WEB && WRITEMODE_B == "NORMAL"))
      read_b_q <= taken(WEB && WRITEMODE_B == "WRITETHROUGH" ? after_b : found_b, address_b, DATA_WIDTH_B);
  end

  wire clear_a = RESETMODE == "ASYNC" && (DATA_WIDTH_B == 36 ? RSTB : RSTA);
  wire clear_b = RESETMODE == "ASYNC" && RSTB;
  assign {
    DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1,
    DOA0
  } = clear_a ? 18'd0 : DATA_WIDTH_B == 36 ? read_b_q[17:0] : read_a_q[17:0];
  assign {
    DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1,
    DOB0
  } = clear_b ? 18'd0 : DATA_WIDTH_B == 36 ? read_b_q[35:18] : read_b_q[17:0];

  wire unused = &{1'b0, CLKB, OCEA, OCEB, CSA0, CSA1, CSA2, CSB0, CSB1, CSB2, read_a_q[35:18]};
endmodule

`default_nettype wire
