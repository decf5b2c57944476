// The scratchpads: micro-ops, inputs, weights, accumulators, parameters, tables, coefficients, outputs.
// Contract: each has the users that its ports name; LOAD writes all but OUT in bus beats.
// Latency: read data are valid after the edge that samples the read, for OUTPUT and ROW of the accumulator after the edge
// behind that one; all but those for COMPUTE of the accumulator hold until the next ones.  What LOAD writes is in a scratchpad
// after the edge behind the one that samples it, in that of weights an edge later: beats come from afar, and wait in
// registers here or in vta_wgt_mem and vta_acc_mem.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_scratchpads #(
    // Sizes of the configuration
    parameter BLOCK_IN      = 4,
    parameter BLOCK_OUT     = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS      = 8,
    parameter INP_DEPTH     = 1024,
    parameter WGT_DEPTH     = 1024,
    parameter ACC_DEPTH     = 1024,
    parameter ACC_BANKS     = 4,
    parameter OUT_DEPTH     = 1024,
    parameter UOP_DEPTH     = 512,
    parameter PRM_DEPTH     = 64,
    parameter TABLES        = 0,
    // Entries of coefficients, 0: no row unit
    parameter COF_DEPTH     = 0,
    parameter OUT_LANES     = 2,
    parameter AXI_DATA_BITS = 64,
    // Factors of a beat of weights
    parameter FACTORS       = 1,
    // Bytes of a line of INP
    parameter LINE          = 16,
    // Width of beat addresses
    parameter BEATS_W       = 20
) (
    input  wire                            clk_i,
    // LOAD: beat write; we_i has a bit for each scratchpad number, be_i (inp only) one for each byte
    input  wire                     [15:0] load_we_i,
    input  wire      [AXI_DATA_BITS/8-1:0] load_be_i,
    input  wire                            load_expand_i,
    input  wire              [BEATS_W-1:0] load_waddr_i,
    input  wire        [AXI_DATA_BITS-1:0] load_wdata_i,
    input  wire            [4*FACTORS-1:0] load_factor_i,
    // COMPUTE
    input  wire                            uop_re_i,
    input  wire                     [15:0] uop_raddr_i,
    output wire                     [63:0] uop_o,
    input  wire                            inp_re_i,
    input  wire                            inp_window_i,
    input  wire                     [15:0] inp_raddr_i,
    output wire           [BLOCK_IN*8-1:0] inp_o,
    output wire        [4*BLOCK_OUT*8-1:0] taps_o,
    input  wire                            wgt_re_i,
    input  wire                     [15:0] wgt_raddr_i,
    output wire [BLOCK_IN*BLOCK_OUT*WGT_BITS-1:0] wgt_o,
    input  wire                            c_re_i,
    input  wire                     [15:0] c_raddr_i,
    output wire         [BLOCK_OUT*32-1:0] c_rdata_o,
    // entry write, its data a cycle later
    input  wire                            c_we_i,
    input  wire                     [15:0] c_waddr_i,
    input  wire         [BLOCK_OUT*32-1:0] c_wdata_i,
    // OUTPUT
    input  wire                            o_re_i,
    input  wire                     [15:0] o_raddr_i,
    input  wire                      [5:0] o_rgroup_i,
    output wire         [OUT_LANES*32-1:0] o_rdata_o,
    input  wire                            prm_re_i,
    input  wire                     [15:0] prm_raddr_i,
    output wire        [OUT_LANES*128-1:0] prm_o,
    input  wire                            tab_re_i,
    input  wire                      [3:0] tab_number_i,
    input  wire          [OUT_LANES*8-1:0] tab_value_i,
    output wire          [OUT_LANES*8-1:0] tab_o,
    input  wire                     [15:0] o_waddr_i,
    input  wire          [BLOCK_OUT*8-1:0] o_wdata_i,
    input  wire                            out_we_i,
    input  wire                            inp_we_i,
    // the same to ACC, a cycle before o_wdata_i
    input  wire                            o_acc_we_i,
    input  wire                     [15:0] o_acc_waddr_i,
    // ROW: the accumulator's low bytes, written a cycle later and widened; coefficients
    input  wire                            r_re_i,
    input  wire                     [15:0] r_raddr_i,
    output wire          [BLOCK_OUT*8-1:0] r_rdata_o,
    input  wire                            r_we_i,
    input  wire                     [15:0] r_waddr_i,
    input  wire          [BLOCK_OUT*8-1:0] r_wdata_i,
    input  wire                            cof_s_re_i,
    input  wire       [BLOCK_OUT/4*16-1:0] cof_s_raddr_i,
    output wire       [BLOCK_OUT/4*16-1:0] cof_s_o,
    input  wire                            cof_r_re_i,
    input  wire       [BLOCK_OUT/4*16-1:0] cof_r_raddr_i,
    output wire       [BLOCK_OUT/4*48-1:0] cof_r_o,
    // STORE
    input  wire                            out_re_i,
    input  wire              [BEATS_W-1:0] out_raddr_i,
    output wire        [AXI_DATA_BITS-1:0] out_rdata_o,
    // accumulator users that met in a bank (see vta_acc_mem)
    output wire                      [2:0] clash_read_o,
    output wire                      [3:0] clash_write_o
);
  localparam GROUPS = BLOCK_OUT / OUT_LANES;
  // bytes of an entry of INP
  localparam INP_LANES = BLOCK_IN * WGT_BITS / 8;

  // LOAD's beats, one edge later, for those that have no such registers of their own
  reg [15:0] load_we_q;
  reg [AXI_DATA_BITS/8-1:0] be_q;
  reg [BEATS_W-1:0] beat_q;
  reg [AXI_DATA_BITS-1:0] word_q;
  always @(posedge clk_i) begin
    load_we_q <= load_we_i;
    {be_q, beat_q, word_q} <= {load_be_i, load_waddr_i, load_wdata_i};
  end

  vta_inp_mem #(
      .INP_LANES  (INP_LANES),
      .OPERAND    (8 / WGT_BITS),
      .BLOCK_OUT  (BLOCK_OUT),
      .DEPTH      (INP_DEPTH),
      .BEAT_W     (AXI_DATA_BITS),
      .BEAT_ADDR_W(BEATS_W),
      .LINE       (LINE)
  ) u_inp (
      .clk_i    (clk_i),
      .l_we_i   (load_we_q[`VTA_MEM_INP]),
      .l_waddr_i(beat_q),
      .l_be_i   (be_q),
      .l_wdata_i(word_q),
      .o_we_i   (inp_we_i),
      .o_waddr_i(o_waddr_i),
      .o_wdata_i(o_wdata_i),
      .re_i     (inp_re_i),
      .window_i (inp_window_i),
      .raddr_i  (inp_raddr_i),
      .entry_o  (inp_o),
      .taps_o   (taps_o)
  );

  vta_wgt_mem #(
      .BEAT_W     (AXI_DATA_BITS),
      .WGT_BITS   (WGT_BITS),
      .FACTORS    (FACTORS),
      .ELEM_W     (BLOCK_IN * BLOCK_OUT * WGT_BITS),
      .DEPTH      (WGT_DEPTH),
      .BEAT_ADDR_W(BEATS_W)
  ) u_wgt (
      .clk_i   (clk_i),
      .we_i    (load_we_i[`VTA_MEM_WGT]),
      .expand_i(load_expand_i),
      .waddr_i (load_waddr_i),
      .wdata_i (load_wdata_i),
      .factor_i(load_factor_i),
      .re_i    (wgt_re_i),
      .raddr_i (wgt_raddr_i),
      .elem_o  (wgt_o)
  );

  vta_ram_beat #(
      .BEAT_W     (AXI_DATA_BITS),
      .ELEM_W     (64),
      .DEPTH      (UOP_DEPTH),
      .BEAT_ADDR_W(BEATS_W)
  ) u_uop (
      .clk_i  (clk_i),
      .we_i   (load_we_q[`VTA_MEM_UOP]),
      .waddr_i(beat_q),
      .wdata_i(word_q),
      .re_i   (uop_re_i),
      .raddr_i(uop_raddr_i),
      .elem_o (uop_o)
  );

  vta_ram_beat #(
      .BEAT_W     (AXI_DATA_BITS),
      .ELEM_W     (OUT_LANES * 128),
      .DEPTH      (PRM_DEPTH * GROUPS),
      .BEAT_ADDR_W(BEATS_W)
  ) u_prm (
      .clk_i  (clk_i),
      .we_i   (load_we_q[`VTA_MEM_PRM]),
      .waddr_i(beat_q),
      .wdata_i(word_q),
      .re_i   (prm_re_i),
      .raddr_i(prm_raddr_i),
      .elem_o (prm_o)
  );

  generate
    if (TABLES > 0) begin : g_tables
      vta_tables #(
          .LANES      (OUT_LANES),
          .TABLES     (TABLES),
          .BEAT_W     (AXI_DATA_BITS),
          .BEAT_ADDR_W(BEATS_W)
      ) u_tab (
          .clk_i   (clk_i),
          .we_i    (load_we_q[`VTA_MEM_TAB]),
          .waddr_i (beat_q),
          .wdata_i (word_q),
          .re_i    (tab_re_i),
          .number_i(tab_number_i),
          .value_i (tab_value_i),
          .result_o(tab_o)
      );
    end else begin : g_no_tables
      assign tab_o = {OUT_LANES * 8{1'b0}};
      wire unused_tab = &{1'b0, tab_re_i, tab_number_i, tab_value_i};
    end
  endgenerate

  generate
    if (COF_DEPTH > 0) begin : g_cof
      vta_cof_mem #(
          .LANES      (BLOCK_OUT / `VTA_ROW_QUARTERS),
          .COF_DEPTH  (COF_DEPTH),
          .BEAT_W     (AXI_DATA_BITS),
          .BEAT_ADDR_W(BEATS_W)
      ) u_cof (
          .clk_i    (clk_i),
          .we_i     (load_we_q[`VTA_MEM_COF]),
          .waddr_i  (beat_q),
          .wdata_i  (word_q),
          .s_re_i   (cof_s_re_i),
          .s_raddr_i(cof_s_raddr_i),
          .s_word_o (cof_s_o),
          .r_re_i   (cof_r_re_i),
          .r_raddr_i(cof_r_raddr_i),
          .r_word_o (cof_r_o)
      );
    end else begin : g_no_cof
      assign cof_s_o = {BLOCK_OUT / 4 * 16{1'b0}};
      assign cof_r_o = {BLOCK_OUT / 4 * 48{1'b0}};
      wire unused_cof = &{1'b0, cof_s_re_i, cof_s_raddr_i, cof_r_re_i, cof_r_raddr_i};
    end
  endgenerate

  vta_ram_out #(
      .BEAT_W     (AXI_DATA_BITS),
      .ELEM_W     (BLOCK_OUT * 8),
      .DEPTH      (OUT_DEPTH),
      .BEAT_ADDR_W(BEATS_W)
  ) u_out (
      .clk_i  (clk_i),
      .we_i   (out_we_i),
      .waddr_i(o_waddr_i),
      .wdata_i(o_wdata_i),
      .re_i   (out_re_i),
      .raddr_i(out_raddr_i),
      .beat_o (out_rdata_o)
  );

  vta_acc_mem #(
      .BLOCK_OUT  (BLOCK_OUT),
      .ACC_DEPTH  (ACC_DEPTH),
      .ACC_BANKS  (ACC_BANKS),
      .OUT_LANES  (OUT_LANES),
      .BEAT_W     (AXI_DATA_BITS),
      .BEAT_ADDR_W(BEATS_W),
      .ROW        ((COF_DEPTH != 0) ? 1 : 0)
  ) u_acc (
      .clk_i        (clk_i),
      .c_re_i       (c_re_i),
      .c_raddr_i    (c_raddr_i),
      .c_rdata_o    (c_rdata_o),
      .c_we_i       (c_we_i),
      .c_waddr_i    (c_waddr_i),
      .c_wdata_i    (c_wdata_i),
      .o_re_i       (o_re_i),
      .o_raddr_i    (o_raddr_i),
      .o_rgroup_i   (o_rgroup_i),
      .o_rdata_o    (o_rdata_o),
      .o_we_i       (o_acc_we_i),
      .o_waddr_i    (o_acc_waddr_i),
      .o_wdata_i    (o_wdata_i),
      .l_we_i       (load_we_i[`VTA_MEM_ACC]),
      .l_expand_i   (load_expand_i),
      .l_waddr_i    (load_waddr_i),
      .l_wdata_i    (load_wdata_i),
      .r_re_i       (r_re_i),
      .r_raddr_i    (r_raddr_i),
      .r_rdata_o    (r_rdata_o),
      .r_we_i       (r_we_i),
      .r_waddr_i    (r_waddr_i),
      .r_wdata_i    (r_wdata_i),
      .clash_read_o (clash_read_o),
      .clash_write_o(clash_write_o)
  );

  wire unused = &{1'b0, load_we_q};
endmodule

`resetall
