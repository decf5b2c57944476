// Execution: COMPUTE, OUTPUT, ROW and the scratchpads, wired.
// Contract: LOAD writes the scratchpads in beats and STORE reads OUT in beats through the ports below.
// Bit 0 of three-bit ports is COMPUTE, bit 1 OUTPUT, bit 2 ROW, which without entries of coefficients is not there.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_exec #(
    // Sizes of the configuration
    parameter BLOCK_IN        = 4,
    parameter BLOCK_OUT       = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS        = 8,
    parameter INP_DEPTH       = 1024,
    parameter WGT_DEPTH       = 1024,
    parameter ACC_DEPTH       = 1024,
    parameter ACC_BANKS       = 4,
    parameter OUT_DEPTH       = 1024,
    parameter UOP_DEPTH       = 512,
    parameter PRM_DEPTH       = 64,
    parameter TABLES          = 0,
    // Entries of coefficients, 0: no row unit
    parameter COF_DEPTH       = 0,
    parameter OUT_LANES       = 2,
    parameter MULTIPLIER_BITS = 31,
    parameter AXI_DATA_BITS   = 64,
    // Factors of a beat of weights
    parameter FACTORS         = 1,
    // Bytes of a line of INP
    parameter LINE            = 16,
    // Width of beat addresses
    parameter BEATS_W         = 20,
    // Products of a lane that multiplier blocks make, LUTs the others: at least 4; BLOCK_IN or more are all of them
    parameter DSP_PRODUCTS    = 64
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    input  wire [                2:0] stop_i,
    // heads of the queues; start_i pops them
    input  wire [                2:0] head_i,
    input  wire [              255:0] compute_insn_i,
    input  wire [                3:0] compute_once_i,
    input  wire [               31:0] compute_index_i,
    input  wire [              255:0] output_insn_i,
    input  wire [                1:0] output_once_i,
    input  wire [               31:0] output_index_i,
    input  wire [              255:0] row_insn_i,
    input  wire [               31:0] row_index_i,
    output wire [                2:0] want_o,
    input  wire [                2:0] start_i,
    // LOAD: beat write; OUTPUT will write INP two edges behind the one that ends this cycle (bit 0), three behind (bit 1)
    input  wire [               15:0] load_we_i,
    input  wire [AXI_DATA_BITS/8-1:0] load_be_i,
    input  wire                       load_expand_i,
    input  wire [        BEATS_W-1:0] load_waddr_i,
    input  wire [  AXI_DATA_BITS-1:0] load_wdata_i,
    input  wire [      4*FACTORS-1:0] load_factor_i,
    output wire [                1:0] inp_soon_o,
    // STORE: beat read
    input  wire                       out_re_i,
    input  wire [        BEATS_W-1:0] out_raddr_i,
    output wire [  AXI_DATA_BITS-1:0] out_rdata_o,
    // tokens of finished instructions; done_index_o also names the instructions that write
    output wire [                2:0] give_o,
    output wire [               47:0] set_o,
    output wire [               95:0] done_index_o,
    output wire [                2:0] idle_o,
    // events for the counters
    output wire                       gemm_uop_o,
    output wire                       alu_uop_o,
    output wire                       vector_o,
    // faults: indices outside; the instructions that read the accumulator, and the users that met in a bank: readers, and
    // writers (bit 2 LOAD, 3 ROW)
    output wire [                2:0] fault_o,
    output wire [               31:0] compute_fault_index_o,
    output wire [               95:0] read_index_o,
    output wire [                2:0] clash_read_o,
    output wire [                3:0] clash_write_o
);
  // COMPUTE
  wire uop_re, inp_re, inp_window, wgt_re, c_re, c_we;
  wire [15:0] uop_raddr, inp_raddr, wgt_raddr, c_raddr, c_waddr;
  wire [63:0] uop;
  wire [BLOCK_IN*8-1:0] inp;
  wire [4*BLOCK_OUT*8-1:0] taps;
  wire [BLOCK_IN*BLOCK_OUT*WGT_BITS-1:0] wgt;
  wire [BLOCK_OUT*32-1:0] c_rdata, c_wdata;

  vta_compute #(
      .BLOCK_IN    (BLOCK_IN),
      .BLOCK_OUT   (BLOCK_OUT),
      .WGT_BITS    (WGT_BITS),
      .INP_DEPTH   (INP_DEPTH),
      .WGT_DEPTH   (WGT_DEPTH),
      .ACC_DEPTH   (ACC_DEPTH),
      .UOP_DEPTH   (UOP_DEPTH),
      .OUT_LANES   (OUT_LANES),
      .LINE        (LINE),
      .DSP_PRODUCTS(DSP_PRODUCTS)
  ) u_compute (
      .clk_i        (clk_i),
      .rst_ni       (rst_ni),
      .stop_i       (stop_i[0]),
      .head_valid_i (head_i[0]),
      .insn_i       (compute_insn_i),
      .once_i       (compute_once_i),
      .index_i      (compute_index_i),
      .want_o       (want_o[0]),
      .start_i      (start_i[0]),
      .uop_re_o     (uop_re),
      .uop_raddr_o  (uop_raddr),
      .uop_i        (uop),
      .inp_re_o     (inp_re),
      .inp_window_o (inp_window),
      .inp_raddr_o  (inp_raddr),
      .inp_i        (inp),
      .taps_i       (taps),
      .wgt_re_o     (wgt_re),
      .wgt_raddr_o  (wgt_raddr),
      .wgt_i        (wgt),
      .acc_re_o     (c_re),
      .acc_raddr_o  (c_raddr),
      .acc_i        (c_rdata),
      .acc_we_o     (c_we),
      .acc_waddr_o  (c_waddr),
      .acc_wdata_o  (c_wdata),
      .give_o       (give_o[0]),
      .set_o        (set_o[0*16+:16]),
      .done_index_o (done_index_o[0*32+:32]),
      .idle_o       (idle_o[0]),
      .gemm_uop_o   (gemm_uop_o),
      .alu_uop_o    (alu_uop_o),
      .read_index_o (read_index_o[0*32+:32]),
      .fault_o      (fault_o[0]),
      .fault_index_o(compute_fault_index_o)
  );

  // OUTPUT
  wire o_re, prm_re, out_we, inp_we, o_we;
  wire [15:0] o_raddr, prm_raddr, o_waddr, o_acc_waddr;
  wire [5:0] o_rgroup;
  wire [OUT_LANES*32-1:0] o_rdata;
  wire [OUT_LANES*128-1:0] prm;
  wire tab_re;
  wire [3:0] tab_number;
  wire [OUT_LANES*8-1:0] tab_value, tab;
  wire [BLOCK_OUT*8-1:0] o_wdata;

  vta_output #(
      .INP_LANES      (BLOCK_IN * WGT_BITS / 8),
      .BLOCK_OUT      (BLOCK_OUT),
      .INP_DEPTH      (INP_DEPTH),
      .ACC_DEPTH      (ACC_DEPTH),
      .OUT_DEPTH      (OUT_DEPTH),
      .PRM_DEPTH      (PRM_DEPTH),
      .TABLES         (TABLES),
      .OUT_LANES      (OUT_LANES),
      .MULTIPLIER_BITS(MULTIPLIER_BITS)
  ) u_output (
      .clk_i       (clk_i),
      .rst_ni      (rst_ni),
      .stop_i      (stop_i[1]),
      .head_valid_i(head_i[1]),
      .insn_i      (output_insn_i),
      .once_i      (output_once_i),
      .index_i     (output_index_i),
      .want_o      (want_o[1]),
      .start_i     (start_i[1]),
      .acc_re_o    (o_re),
      .acc_raddr_o (o_raddr),
      .acc_rgroup_o(o_rgroup),
      .acc_i       (o_rdata),
      .prm_re_o    (prm_re),
      .prm_raddr_o (prm_raddr),
      .prm_i       (prm),
      .tab_re_o    (tab_re),
      .tab_number_o(tab_number),
      .tab_value_o (tab_value),
      .tab_i       (tab),
      .waddr_o     (o_waddr),
      .wdata_o     (o_wdata),
      .out_we_o    (out_we),
      .inp_we_o    (inp_we),
      .inp_soon_o  (inp_soon_o),
      .acc_we_o    (o_we),
      .acc_waddr_o (o_acc_waddr),
      .give_o      (give_o[1]),
      .set_o       (set_o[1*16+:16]),
      .done_index_o(done_index_o[1*32+:32]),
      .idle_o      (idle_o[1]),
      .vector_o    (vector_o),
      .read_index_o(read_index_o[1*32+:32]),
      .fault_o     (fault_o[1])
  );

  // ROW
  wire r_re, r_we;
  wire [15:0] r_raddr, r_waddr;
  wire [BLOCK_OUT*8-1:0] r_rdata, r_wdata;
  wire cof_s_re, cof_r_re;
  wire [BLOCK_OUT/4*16-1:0] cof_s_raddr, cof_s, cof_r_raddr;
  wire [BLOCK_OUT/4*48-1:0] cof_r;

  generate
    if (COF_DEPTH != 0) begin : g_row
      vta_row #(
          .BLOCK_OUT(BLOCK_OUT),
          .ACC_DEPTH(ACC_DEPTH)
      ) u_row (
          .clk_i        (clk_i),
          .rst_ni       (rst_ni),
          .stop_i       (stop_i[2]),
          .head_valid_i (head_i[2]),
          .insn_i       (row_insn_i),
          .index_i      (row_index_i),
          .want_o       (want_o[2]),
          .start_i      (start_i[2]),
          .acc_re_o     (r_re),
          .acc_raddr_o  (r_raddr),
          .acc_i        (r_rdata),
          .acc_we_o     (r_we),
          .acc_waddr_o  (r_waddr),
          .acc_wdata_o  (r_wdata),
          .cof_s_re_o   (cof_s_re),
          .cof_s_raddr_o(cof_s_raddr),
          .cof_s_i      (cof_s),
          .cof_r_re_o   (cof_r_re),
          .cof_r_raddr_o(cof_r_raddr),
          .cof_r_i      (cof_r),
          .give_o       (give_o[2]),
          .set_o        (set_o[2*16+:16]),
          .done_index_o (done_index_o[2*32+:32]),
          .idle_o       (idle_o[2]),
          .read_index_o (read_index_o[2*32+:32]),
          .fault_o      (fault_o[2])
      );
    end else begin : g_no_row
      assign {want_o[2], give_o[2], fault_o[2], idle_o[2]} = 4'b0001;
      assign set_o[2*16+:16] = 16'd0;
      assign {done_index_o[2*32+:32], read_index_o[2*32+:32]} = 64'd0;
      assign {r_re, r_raddr, r_we, r_waddr, r_wdata} = {BLOCK_OUT * 8 + 34{1'b0}};
      assign {cof_s_re, cof_s_raddr, cof_r_re, cof_r_raddr} = {BLOCK_OUT / 4 * 32 + 2{1'b0}};
      wire unused_row = &{1'b0, stop_i[2], head_i[2], start_i[2], row_insn_i, row_index_i, r_rdata, cof_s, cof_r};
    end
  endgenerate

  vta_scratchpads #(
      .BLOCK_IN     (BLOCK_IN),
      .BLOCK_OUT    (BLOCK_OUT),
      .WGT_BITS     (WGT_BITS),
      .INP_DEPTH    (INP_DEPTH),
      .WGT_DEPTH    (WGT_DEPTH),
      .ACC_DEPTH    (ACC_DEPTH),
      .ACC_BANKS    (ACC_BANKS),
      .OUT_DEPTH    (OUT_DEPTH),
      .UOP_DEPTH    (UOP_DEPTH),
      .PRM_DEPTH    (PRM_DEPTH),
      .TABLES       (TABLES),
      .COF_DEPTH    (COF_DEPTH),
      .OUT_LANES    (OUT_LANES),
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .FACTORS      (FACTORS),
      .LINE         (LINE),
      .BEATS_W      (BEATS_W)
  ) u_scratchpads (
      .clk_i        (clk_i),
      .load_we_i    (load_we_i),
      .load_be_i    (load_be_i),
      .load_expand_i(load_expand_i),
      .load_waddr_i (load_waddr_i),
      .load_wdata_i (load_wdata_i),
      .load_factor_i(load_factor_i),
      .uop_re_i     (uop_re),
      .uop_raddr_i  (uop_raddr),
      .uop_o        (uop),
      .inp_re_i     (inp_re),
      .inp_window_i (inp_window),
      .inp_raddr_i  (inp_raddr),
      .inp_o        (inp),
      .taps_o       (taps),
      .wgt_re_i     (wgt_re),
      .wgt_raddr_i  (wgt_raddr),
      .wgt_o        (wgt),
      .c_re_i       (c_re),
      .c_raddr_i    (c_raddr),
      .c_rdata_o    (c_rdata),
      .c_we_i       (c_we),
      .c_waddr_i    (c_waddr),
      .c_wdata_i    (c_wdata),
      .o_re_i       (o_re),
      .o_raddr_i    (o_raddr),
      .o_rgroup_i   (o_rgroup),
      .o_rdata_o    (o_rdata),
      .prm_re_i     (prm_re),
      .prm_raddr_i  (prm_raddr),
      .prm_o        (prm),
      .tab_re_i     (tab_re),
      .tab_number_i (tab_number),
      .tab_value_i  (tab_value),
      .tab_o        (tab),
      .o_waddr_i    (o_waddr),
      .o_wdata_i    (o_wdata),
      .out_we_i     (out_we),
      .inp_we_i     (inp_we),
      .o_acc_we_i   (o_we),
      .o_acc_waddr_i(o_acc_waddr),
      .r_re_i       (r_re),
      .r_raddr_i    (r_raddr),
      .r_rdata_o    (r_rdata),
      .r_we_i       (r_we),
      .r_waddr_i    (r_waddr),
      .r_wdata_i    (r_wdata),
      .cof_s_re_i   (cof_s_re),
      .cof_s_raddr_i(cof_s_raddr),
      .cof_s_o      (cof_s),
      .cof_r_re_i   (cof_r_re),
      .cof_r_raddr_i(cof_r_raddr),
      .cof_r_o      (cof_r),
      .out_re_i     (out_re_i),
      .out_raddr_i  (out_raddr_i),
      .out_rdata_o  (out_rdata_o),
      .clash_read_o (clash_read_o),
      .clash_write_o(clash_write_o)
  );
endmodule

`resetall
