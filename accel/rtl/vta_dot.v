// One output lane of the GEMM array: dot product of BLOCK_IN int8 inputs and weights, or of four taps, or their maximum.
// Weights of 4 bits are multiplied signed, without sign (low halves), or signed and the sum times 16 (high halves).
// Contract: weights come a cycle before the inputs.  en_i enables the operand stage and, one cycle later each, the stages
// behind it.  A disabled stage holds its operands and partial sums; the sum itself is then undefined.  With taps_i the
// first four multipliers take the tap bytes and the rotated weights of one group; the other operands are 0.  With zero_i
// all operands are 0, and so is the sum, except for a maximum.
// Weights, first_i and the register after inp_i share enable and reset, so that multiplier blocks can absorb them.
// Latency: 4 edges from inputs (operand, products, sums of two, their sum).  Throughput: one sum a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_dot #(
    // Products, a multiple of 4
    parameter BLOCK_IN     = 4,
    // Bits of a weight: 8 or 4
    parameter WGT_BITS     = 8,
    // Products that `*` makes, which takes a multiplier block each on an FPGA; LUTs make the others.  At least 4.
    parameter DSP_PRODUCTS = 4
) (
    input  wire                         clk_i,
    input  wire                         en_i,
    // stage in front of the operands: weights, those of this group of four rotated up by this many; both are 0 without taps_i
    input  wire [                  3:0] group_i,
    input  wire [                  1:0] rotate_i,
    input  wire [BLOCK_IN*WGT_BITS-1:0] wgt_i,
    // operand stage: inputs of the first four multipliers, and taps: what those take with taps_i, and what a maximum is
    // of; a tap that is left out is the lowest value
    input  wire [                 31:0] first_i,
    input  wire [                 31:0] tap_i,
    input  wire                         zero_i,
    input  wire                         taps_i,
    input  wire                         max_i,
    // product stage; inputs of the other multipliers, 0 behind taps_i
    input  wire                         low_1_i,
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    // multiples of each input for products out of LUTs: vta_multiples' three, top_two and top_three
    input  wire [      BLOCK_IN*30-1:0] multiples_i,
    // sum, behind the third register; sum_o behind the fourth
    input  wire                         high_3_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam GROUPS = BLOCK_IN / 4;
  localparam GROUPS_LOG = $clog2(GROUPS);
  // width of a product of the first stage, of a sum of two of the second, and how many of those there are
  localparam PRODUCT_W = 8 + WGT_BITS;
  localparam PART_W = 9 + WGT_BITS;
  localparam PARTS = 2 * GROUPS;
  localparam TREE_W = $clog2(BLOCK_IN) + 8 + WGT_BITS;

  // stages 1 to 3 have work.  A register of each lane: one for all would drive every product of the array
  reg [3:1] en_q;
  (* keep *) always @(posedge clk_i) en_q <= {en_q[2:1], en_i};

  // weights on their way, and which of them; a register of each lane for that too
  reg [BLOCK_IN*WGT_BITS-1:0] way_q;
  reg [3:0] group_q;
  reg [1:0] rotate_q;
  always @(posedge clk_i) way_q <= wgt_i;
  (* keep *) always @(posedge clk_i) {group_q, rotate_q} <= {group_i, rotate_i};

  // operands
  wire [4*WGT_BITS-1:0] four;
  generate
    if (GROUPS > 1) begin : g_select
      assign four = way_q[group_q[GROUPS_LOG-1:0]*4*WGT_BITS+:4*WGT_BITS];
    end else begin : g_only
      assign four = way_q;
    end
  endgenerate
  localparam WGT_LOG = $clog2(WGT_BITS);
  wire [8*WGT_BITS-1:0] turned = {four, four} << {rotate_q, {WGT_LOG{1'b0}}};

  reg [BLOCK_IN*WGT_BITS-1:0] wgt_q;
  reg [31:0] first_q;
  always @(posedge clk_i)
    if (en_i) begin
      if (zero_i) {first_q, wgt_q[4*WGT_BITS-1:0]} <= {(32 + 4 * WGT_BITS) {1'b0}};
      else {first_q, wgt_q[4*WGT_BITS-1:0]} <= {taps_i ? tap_i : first_i, turned[8*WGT_BITS-1:4*WGT_BITS]};
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

  // maximum of two taps each, then of all; 0 without one, so that it can be joined with sums that are 0 with one
  reg [7:0] best_0_q, best_1_q, best_q;
  wire [7:0] best_0 = ($signed(tap_i[15:8]) > $signed(tap_i[7:0])) ? tap_i[15:8] : tap_i[7:0];
  wire [7:0] best_1 = ($signed(tap_i[31:24]) > $signed(tap_i[23:16])) ? tap_i[31:24] : tap_i[23:16];
  always @(posedge clk_i)
    if (en_i) begin
      if (max_i) {best_0_q, best_1_q} <= {best_0, best_1};
      else {best_0_q, best_1_q} <= 16'd0;
    end
  always @(posedge clk_i) if (en_q[1]) best_q <= ($signed(best_1_q) > $signed(best_0_q)) ? best_1_q : best_0_q;

  // registered parts of the lane's sum
  wire [PARTS*PART_W-1:0] parts;
  genvar g, k;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      wire [31:0] operand = (g == 0) ? first_q : inp_i[g*32+:32];
      wire [ 7:0] joined = (g == 0) ? best_q : 8'd0;

      wire [4*PRODUCT_W-1:0] products;
      for (k = 0; k < 4; k = k + 1) begin : g_product
        localparam PLACE = 4 * g + k;
        wire [7:0] x = operand[k*8+:8];
        wire [WGT_BITS-1:0] w = wgt_q[PLACE*WGT_BITS+:WGT_BITS];
        reg signed [PRODUCT_W-1:0] product_q;
        assign products[k*PRODUCT_W+:PRODUCT_W] = product_q;
        if (PLACE < DSP_PRODUCTS) begin : g_block
          wire signed [WGT_BITS:0] factor = {w[WGT_BITS-1] && !(WGT_BITS == 4 && low_1_i), w};
          always @(posedge clk_i) if (en_q[1]) product_q <= $signed(x) * factor;
        end else begin : g_luts
          wire [9:0] three, top_two, top_three;
          wire [11:0] high;
          assign {top_three, top_two, three} = multiples_i[PLACE*30+:30];
          vta_nibble u_high (
              .inp_i      (x),
              .three_i    (three),
              .top_two_i  (top_two),
              .top_three_i(top_three),
              .wgt_i      (w[WGT_BITS-1:WGT_BITS-4]),
              .product_o  (high)
          );
          if (WGT_BITS == 4) begin : g_half
            always @(posedge clk_i) if (en_q[1]) product_q <= high;
          end else begin : g_byte
            wire [11:0] low;
            vta_nibble u_low (
                .inp_i      (x),
                .three_i    (three),
                .top_two_i  ({x[7], x, 1'b0}),
                .top_three_i(three),
                .wgt_i      (w[3:0]),
                .product_o  (low)
            );
            always @(posedge clk_i)
              if (en_q[1]) product_q <= {high, 4'd0} + {{(PRODUCT_W - 12) {low[11]}}, low};
          end
        end
      end

      // sums of two: a register each, since synthesis would make one adder of full adders of more operands
      wire signed [PRODUCT_W-1:0] a = products[0+:PRODUCT_W];
      wire signed [PRODUCT_W-1:0] b = products[PRODUCT_W+:PRODUCT_W];
      wire signed [PRODUCT_W-1:0] c = products[2*PRODUCT_W+:PRODUCT_W];
      wire signed [PRODUCT_W-1:0] d = products[3*PRODUCT_W+:PRODUCT_W];
      reg [PART_W-1:0] two_q, two_behind_q;
      always @(posedge clk_i)
        if (en_q[2]) begin
          two_q        <= ({a[PRODUCT_W-1], a} + {b[PRODUCT_W-1], b}) | {{(PART_W - 8) {joined[7]}}, joined};
          two_behind_q <= {c[PRODUCT_W-1], c} + {d[PRODUCT_W-1], d};
        end
      assign parts[2*g*PART_W+:2*PART_W] = {two_behind_q, two_q};
    end
  endgenerate

  // Sums of two, of four and so on, each a bit wider: node n has the children 2n and 2n+1, the lane's sum is node 1.  They
  // matter with en_q[3] alone: a simulator skips them otherwise, and synthesis, to which the choice costs nothing, makes
  // one adder of each instead of one of full adders for all of them, which would be twice as large as carry chains.
  wire [TREE_W-1:0] node[1:2*PARTS-1];
  generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_leaf
      wire [PART_W-1:0] part = parts[g*PART_W+:PART_W];
      assign node[PARTS+g] = {{(TREE_W - PART_W) {part[PART_W-1]}}, part};
    end
    for (g = 1; g < PARTS; g = g + 1) begin : g_node
      localparam W = TREE_W - $clog2(g + 1) + 1;
      wire [W-1:0] sum = en_q[3] ? node[2*g][W-1:0] + node[2*g+1][W-1:0] : `VTA_DONT_CARE(W);
      assign node[g] = {{(TREE_W - W + 1) {sum[W-1]}}, sum[W-2:0]};
    end
    // that of high halves times 16
    reg [$clog2(BLOCK_IN)+15:0] sum_q;
    assign sum_o = sum_q;
    if (WGT_BITS == 8) begin : g_same
      always @(posedge clk_i) sum_q <= node[1];
    end else begin : g_shift
      always @(posedge clk_i) sum_q <= high_3_i ? {node[1], 4'd0} : {{4{node[1][TREE_W-1]}}, node[1]};
    end
  endgenerate

  wire unused = &{1'b0, group_q, taps_i, turned, low_1_i, high_3_i, inp_i[31:0], multiples_i};
endmodule

`resetall
