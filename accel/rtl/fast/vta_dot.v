// One output lane of the GEMM array for simulation: the module of the same name, which says what it does, with one sum.
// Contract: as the synthesised form; sum_o holds where that form leaves it undefined.
// Products of four inputs each are added where the fabric registers products: words side by side, of which a compiler
// makes vectors.  They are added up a stage later, and the sum waits for the stage where it is due.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dot #(
    // Products, a multiple of 4
    parameter BLOCK_IN     = 4,
    // Bits of a weight: 8 or 4
    parameter WGT_BITS     = 8,
    // Of the fabric's form: who makes products
    parameter DSP_PRODUCTS = 4
) (
    input  wire                         clk_i,
    input  wire                         en_i,
    input  wire [                  3:0] group_i,
    input  wire [                  1:0] rotate_i,
    input  wire [BLOCK_IN*WGT_BITS-1:0] wgt_i,
    input  wire [                 31:0] first_i,
    input  wire [                 31:0] tap_i,
    input  wire                         zero_i,
    input  wire                         taps_i,
    input  wire                         max_i,
    input  wire                         low_1_i,
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    input  wire [      BLOCK_IN*30-1:0] multiples_i,
    input  wire                         high_3_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam SUM_W = $clog2(BLOCK_IN) + 16;
  localparam GROUPS = BLOCK_IN / 4;
  localparam GROUPS_LOG = $clog2(GROUPS);
  localparam WGT_LOG = $clog2(WGT_BITS);

  function automatic [31:0] product;
    input [7:0] x;
    input [WGT_BITS-1:0] w;
    input low;
    if (WGT_BITS == 4) product = $signed(x) * $signed({w[WGT_BITS-1] && !low, w});
    else product = $signed(x) * $signed(w);
  endfunction

  // sums of four products each, 32 bits wide
  function automatic [GROUPS*32-1:0] fours;
    input [BLOCK_IN*8-1:0] x;
    input [BLOCK_IN*WGT_BITS-1:0] w;
    input low;
    integer k;
    begin
      for (k = 0; k < BLOCK_IN; k = k + 4)
        fours[k*8+:32] = product(x[k*8+:8], w[k*WGT_BITS+:WGT_BITS], low)
            + product(x[(k+1)*8+:8], w[(k+1)*WGT_BITS+:WGT_BITS], low)
            + product(x[(k+2)*8+:8], w[(k+2)*WGT_BITS+:WGT_BITS], low)
            + product(x[(k+3)*8+:8], w[(k+3)*WGT_BITS+:WGT_BITS], low);
    end
  endfunction

  function automatic [SUM_W-1:0] total;
    input [GROUPS*32-1:0] parts;
    integer k;
    begin
      total = {SUM_W{1'b0}};
      for (k = 0; k < GROUPS; k = k + 1) total = total + parts[k*32+:SUM_W];
    end
  endfunction

  function automatic [7:0] greater;
    input [7:0] a, b;
    greater = ($signed(b) > $signed(a)) ? b : a;
  endfunction

  // stages 1 to 3 have work
  reg [3:1] en_q;
  always @(posedge clk_i) en_q <= {en_q[2:1], en_i};

  // weights on their way, and which of them
  reg [BLOCK_IN*WGT_BITS-1:0] way_q;
  reg [3:0] group_q;
  reg [1:0] rotate_q;
  always @(posedge clk_i) {way_q, group_q, rotate_q} <= {wgt_i, group_i, rotate_i};

  // operands, and the maximum of two taps each
  wire [4*WGT_BITS-1:0] four;
  generate
    if (GROUPS > 1) begin : g_select
      assign four = way_q[group_q[GROUPS_LOG-1:0]*4*WGT_BITS+:4*WGT_BITS];
    end else begin : g_only
      assign four = way_q;
    end
  endgenerate
  wire [8*WGT_BITS-1:0] turned = {four, four} << {rotate_q, {WGT_LOG{1'b0}}};
  reg [BLOCK_IN*WGT_BITS-1:0] wgt_q;
  reg [31:0] first_q;
  reg zero_q, max_q;
  reg [7:0] best_0_q, best_1_q;
  always @(posedge clk_i)
    if (en_i) begin
      {zero_q, max_q} <= {zero_i, max_i};
      if (zero_i) {first_q, wgt_q[4*WGT_BITS-1:0]} <= {(32 + 4 * WGT_BITS) {1'b0}};
      else {first_q, wgt_q[4*WGT_BITS-1:0]} <= {taps_i ? tap_i : first_i, turned[8*WGT_BITS-1:4*WGT_BITS]};
      if (max_i) begin
        best_0_q <= greater(tap_i[7:0], tap_i[15:8]);
        best_1_q <= greater(tap_i[23:16], tap_i[31:24]);
      end
    end
  generate
    if (GROUPS > 1) begin : g_rest
      always @(posedge clk_i)
        if (en_i) begin
          if (zero_i || taps_i) wgt_q[BLOCK_IN*WGT_BITS-1:4*WGT_BITS] <= {((BLOCK_IN - 4) * WGT_BITS) {1'b0}};
          else wgt_q[BLOCK_IN*WGT_BITS-1:4*WGT_BITS] <= way_q[BLOCK_IN*WGT_BITS-1:4*WGT_BITS];
        end
    end
  endgenerate

  // sums; of a maximum that is the first
  wire [7:0] best = greater(best_0_q, best_1_q);
  reg [BLOCK_IN*8-1:0] operand;
  always @* begin
    operand = inp_i;
    operand[31:0] = first_q;
  end
  reg [GROUPS*32-1:0] parts_q;
  reg [SUM_W-1:0] total_q, sum_q;
  assign sum_o = sum_q;
  always @(posedge clk_i) begin
    if (en_q[1]) begin
      if (!zero_q) parts_q <= fours(operand, wgt_q, low_1_i);
      else begin
        parts_q <= {GROUPS * 32{1'b0}};
        if (max_q) parts_q[31:0] <= {{24{best[7]}}, best};
      end
    end
    if (en_q[2]) total_q <= total(parts_q);
  end
  // that of high halves times 16
  generate
    if (WGT_BITS == 8) begin : g_same
      always @(posedge clk_i) if (en_q[3]) sum_q <= total_q;
    end else begin : g_shift
      always @(posedge clk_i) if (en_q[3]) sum_q <= high_3_i ? {total_q[SUM_W-5:0], 4'd0} : total_q;
    end
  endgenerate

  wire unused = &{1'b0, group_q, turned, low_1_i, high_3_i, inp_i[31:0], multiples_i, DSP_PRODUCTS == 0};
endmodule

`resetall
