// One output lane of the GEMM array: dot product of BLOCK_IN int8 inputs and weights, or of four taps, or their maximum.
// Weights of 4 bits are multiplied signed, without sign (low halves), or signed and the sum times 16 (high halves).
// Contract: en_i qualifies the stage in front of each register; operands and partial sums hold otherwise.  With taps_i
// the first four multipliers take the tap bytes, with the weights of one group rotated; the other weights are 0.  With
// zero_i all weights are 0, and so is the sum, but for a maximum.
// Latency: 3 edges (operand, products, sums of two), the lane's sum is combinational behind them.  Throughput: one sum
// a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_dot #(
    // Products, a multiple of 4
    parameter BLOCK_IN = 4,
    // Bits of a weight: 8 or 4
    parameter WGT_BITS = 8,
`ifdef VERILATOR
    // Products of 4-bit weights by *, which is fast to simulate
    parameter BY_BITS  = 0
`else
    // Products of 4-bit weights bit by bit: synthesis would take a DSP for each *
    parameter BY_BITS  = 1
`endif
) (
    input  wire                         clk_i,
    input  wire [                  2:0] en_i,
    // operand stage: weights of this group of four, rotated up by this many weights; both are 0 without taps_i
    input  wire                         zero_i,
    input  wire                         taps_i,
    input  wire [                  3:0] group_i,
    input  wire [                  1:0] rotate_i,
    input  wire [BLOCK_IN*WGT_BITS-1:0] wgt_i,
    // product stage
    input  wire                         taps_1_i,
    input  wire                         max_1_i,
    input  wire                         low_1_i,
    input  wire [       BLOCK_IN*8-1:0] inp_i,
    // taps; where a maximum leaves one out, the lowest value
    input  wire [                 31:0] tap_i,
    // sum, behind the third register
    input  wire                         high_3_i,
    output wire [$clog2(BLOCK_IN)+15:0] sum_o
);
  localparam GROUPS = BLOCK_IN / 4;
  localparam GROUPS_LOG = $clog2(GROUPS);
  // width of a product of the first stage, of a sum of the second, and how many of those there are
  localparam TWO_W = 9 + WGT_BITS;
  localparam FOUR_W = 10 + WGT_BITS;
  localparam PART_W = (WGT_BITS == 8) ? TWO_W : FOUR_W;
  localparam PARTS = (WGT_BITS == 8) ? 2 * GROUPS : GROUPS;
  localparam TREE_W = $clog2(BLOCK_IN) + 8 + WGT_BITS;

  // operands
  wire [4*WGT_BITS-1:0] four;
  generate
    if (GROUPS > 1) begin : g_select
      assign four = wgt_i[group_i[GROUPS_LOG-1:0]*4*WGT_BITS+:4*WGT_BITS];
    end else begin : g_only
      assign four = wgt_i;
    end
  endgenerate
  localparam WGT_LOG = $clog2(WGT_BITS);
  wire [8*WGT_BITS-1:0] turned = {four, four} << {rotate_i, {WGT_LOG{1'b0}}};

  reg [BLOCK_IN*WGT_BITS-1:0] wgt_q;
  always @(posedge clk_i)
    if (en_i[0]) begin
      if (zero_i) wgt_q[4*WGT_BITS-1:0] <= {(4 * WGT_BITS) {1'b0}};
      else wgt_q[4*WGT_BITS-1:0] <= turned[8*WGT_BITS-1:4*WGT_BITS];
    end
  generate
    if (GROUPS > 1) begin : g_rest
      always @(posedge clk_i)
        if (en_i[0]) begin
          if (zero_i || taps_i) wgt_q[BLOCK_IN*WGT_BITS-1:4*WGT_BITS] <= {((BLOCK_IN - 4) * WGT_BITS) {1'b0}};
          else wgt_q[BLOCK_IN*WGT_BITS-1:4*WGT_BITS] <= wgt_i[BLOCK_IN*WGT_BITS-1:4*WGT_BITS];
        end
    end
  endgenerate

  // maximum of the taps; 0 without one, so that it can be joined with sums that are 0 with one
  reg signed [7:0] best_0, best_1, best;
  reg [7:0] best_q;
  always @* begin
    {best_0, best_1, best} = 24'd0;
    if (max_1_i) begin
      best_0 = ($signed(tap_i[15:8]) > $signed(tap_i[7:0])) ? tap_i[15:8] : tap_i[7:0];
      best_1 = ($signed(tap_i[31:24]) > $signed(tap_i[23:16])) ? tap_i[31:24] : tap_i[23:16];
      best   = (best_1 > best_0) ? best_1 : best_0;
    end
  end
  always @(posedge clk_i)
    if (en_i[1]) begin
      if (max_1_i) best_q <= best;
      else best_q <= 8'd0;
    end

  // registered parts of the lane's sum
  wire [PARTS*PART_W-1:0] parts;
  genvar g, k;
  generate
    for (g = 0; g < GROUPS; g = g + 1) begin : g_group
      wire [31:0] operand = (g == 0 && taps_1_i) ? tap_i : inp_i[g*32+:32];
      wire [ 7:0] joined = (g == 0) ? best_q : 8'd0;

      if (WGT_BITS == 8) begin : g_bytes
        reg signed [15:0] product_q[0:3];
        for (k = 0; k < 4; k = k + 1) begin : g_product
          always @(posedge clk_i)
            if (en_i[1]) product_q[k] <= $signed(operand[k*8+:8]) * $signed(wgt_q[g*32+k*8+:8]);
        end

        // sums of two: a register each, since synthesis would make one adder of full adders of more operands
        reg [TWO_W-1:0] two_q[0:1];
        always @(posedge clk_i)
          if (en_i[2]) begin
            two_q[0] <= ({product_q[0][15], product_q[0]} + {product_q[1][15], product_q[1]})
                | {{(TWO_W - 8) {joined[7]}}, joined};
            two_q[1] <= {product_q[2][15], product_q[2]} + {product_q[3][15], product_q[3]};
          end
        assign parts[2*g*TWO_W+:2*TWO_W] = {two_q[1], two_q[0]};
      end else begin : g_halves
        wire [FOUR_W-1:0] sum;
        reg  [FOUR_W-1:0] four_q;
        always @(posedge clk_i) if (en_i[2]) four_q <= sum | {{(FOUR_W - 8) {joined[7]}}, joined};
        assign parts[g*FOUR_W+:FOUR_W] = four_q;

        if (BY_BITS != 0) begin : g_bits
          // inputs whose weight has the bit, added up; low: the highest bit counts 8, not -8
          reg [9:0] plane_q[0:3];
          reg signed_q;
          for (k = 0; k < 4; k = k + 1) begin : g_plane
            wire [15:0] w = wgt_q[g*16+:16];
            always @(posedge clk_i)
              if (en_i[1])
                plane_q[k] <= ({{2{operand[7]}}, operand[7:0]} & {10{w[k]}})
                    + ({{2{operand[15]}}, operand[15:8]} & {10{w[4+k]}})
                    + ({{2{operand[23]}}, operand[23:16]} & {10{w[8+k]}})
                    + ({{2{operand[31]}}, operand[31:24]} & {10{w[12+k]}});
          end
          always @(posedge clk_i) if (en_i[1]) signed_q <= !low_1_i;
          assign sum = {{4{plane_q[0][9]}}, plane_q[0]} + {{3{plane_q[1][9]}}, plane_q[1], 1'b0}
              + {{2{plane_q[2][9]}}, plane_q[2], 2'b00}
              + ({plane_q[3][9], plane_q[3], 3'b000} ^ {14{signed_q}}) + {13'd0, signed_q};
        end else begin : g_times
          // weights with their sign, or 0 to 15
          wire [15:0] w = wgt_q[g*16+:16];
          reg  [13:0] sum_q;
          always @(posedge clk_i)
            if (en_i[1])
              sum_q <= {{6{operand[7]}}, operand[7:0]} * {{10{w[3] && !low_1_i}}, w[3:0]}
                  + {{6{operand[15]}}, operand[15:8]} * {{10{w[7] && !low_1_i}}, w[7:4]}
                  + {{6{operand[23]}}, operand[23:16]} * {{10{w[11] && !low_1_i}}, w[11:8]}
                  + {{6{operand[31]}}, operand[31:24]} * {{10{w[15] && !low_1_i}}, w[15:12]};
          assign sum = sum_q;
        end
      end
    end
  endgenerate

  // running sums over the parts; the last one is the lane's
  wire [TREE_W-1:0] partial[0:PARTS];
  assign partial[0] = {TREE_W{1'b0}};
  generate
    for (g = 0; g < PARTS; g = g + 1) begin : g_sum
      wire [PART_W-1:0] part = parts[g*PART_W+:PART_W];
      assign partial[g+1] = partial[g] + {{(TREE_W - PART_W) {part[PART_W-1]}}, part};
    end
    // that of high halves times 16
    if (WGT_BITS == 8) begin : g_same
      assign sum_o = partial[PARTS];
    end else begin : g_shift
      assign sum_o = high_3_i ? {partial[PARTS], 4'd0} : {{4{partial[PARTS][TREE_W-1]}}, partial[PARTS]};
    end
  endgenerate

  wire unused = &{1'b0, group_i, taps_i, turned, low_1_i, high_3_i};
endmodule

`resetall
