// One lane of the output stage: operand, product, sum, rounding shift, zero point and clip.
// Contract: en_i qualifies the stage in front of each register.  Form add comes as two slots, y then r, and is summed
// in stage 3; only its second slot goes further.
// Latency: 5 edges from acc_i and prm_i to result_o.  Throughput: one slot a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_requant_lane #(
    // Bits of a multiplier without its sign, 8 to 31
    parameter MULTIPLIER_BITS = 31
) (
    input  wire         clk_i,
    // enables of the stages 1 to 5
    input  wire [  5:1] en_i,
    // stage 1
    input  wire [ 31:0] acc_i,
    input  wire [127:0] prm_i,
    input  wire [  1:0] form_i,
    input  wire         second_i,
    input  wire [  7:0] pass_zero_i,
    // stage 3
    input  wire         add_i,
    // stage 4
    input  wire [  1:0] rounding_i,
    // stage 5
    input  wire [  7:0] zero_point_i,
    input  wire [  7:0] clip_lo_i,
    input  wire [  7:0] clip_hi_i,
    output wire [  7:0] result_o
);
  localparam M_W = MULTIPLIER_BITS + 1;
  localparam P_W = 32 + M_W;

  // stage 1: the operand and its multiplier
  wire [  7:0] zero = second_i ? prm_i[`VTA_PRM_R_ZERO] : prm_i[`VTA_PRM_Y_ZERO];
  wire [ 31:0] bias = prm_i[`VTA_PRM_BIAS];
  wire [ 31:0] multiplier = prm_i[`VTA_PRM_MULTIPLIER];
  wire [  7:0] shift = prm_i[`VTA_PRM_SHIFT];
  wire [  8:0] centred = acc_i[8:0] - {zero[7], zero};
  wire [  5:0] limited = (shift > 8'd62) ? 6'd62 : shift[5:0];

  reg  [ 31:0] operand_q;
  reg  [M_W-1:0] multiplier_q;
  reg  [  5:0] shift_1_q;

  always @(posedge clk_i)
    if (en_i[1])
      case (form_i)
        `VTA_FORM_SCALE: begin
          operand_q    <= acc_i + bias;
          multiplier_q <= multiplier[M_W-1:0];
          shift_1_q    <= limited;
        end
        `VTA_FORM_ADD: begin
          operand_q    <= {{23{centred[8]}}, centred};
          multiplier_q <= second_i ? bias[M_W-1:0] : multiplier[M_W-1:0];
          shift_1_q    <= limited;
        end
        default: begin
          operand_q    <= acc_i + {{24{pass_zero_i[7]}}, pass_zero_i};
          multiplier_q <= {{(M_W - 1) {1'b0}}, 1'b1};
          shift_1_q    <= 6'd0;
        end
      endcase

  // stage 2: product; stage 3: sum of the two products of form add
  wire signed [P_W-1:0] operand_x = {{M_W{operand_q[31]}}, operand_q};
  wire signed [P_W-1:0] multiplier_x = {{32{multiplier_q[M_W-1]}}, multiplier_q};
  reg  [P_W-1:0] product_q;
  reg  [  5:0] shift_2_q;
  reg  [P_W-1:0] total_q;
  reg  [  5:0] shift_3_q;

  always @(posedge clk_i) begin
    if (en_i[2]) begin
      product_q <= operand_x * multiplier_x;
      shift_2_q <= shift_1_q;
    end
    if (en_i[3]) begin
      total_q   <= add_i ? total_q + product_q : product_q;
      shift_3_q <= shift_2_q;
    end
  end

  // stage 4: floor and rounding; stage 5: zero point and clip
  wire [63:0] total = {{(65 - P_W) {total_q[P_W-1]}}, total_q[P_W-2:0]};
  wire [63:0] floor = $signed(total) >>> shift_3_q;
  wire [63:0] half = (64'd1 << shift_3_q) >> 1;
  wire        upper = |(total & half);
  wire        sticky = |(total & (half - 64'd1)) && half != 64'd0;
  reg         round_up;
  always @* begin
    round_up = 1'b0;
    case (rounding_i)
      `VTA_ROUNDING_HALF_UP: round_up = upper;
      `VTA_ROUNDING_HALF_EVEN: round_up = upper && (sticky || floor[0]);
      `VTA_ROUNDING_HALF_AWAY: round_up = upper && (sticky || !total[63]);
      default: round_up = 1'b0;
    endcase
  end

  // beyond 11 bits, rounding and zero point cannot bring the result back between the bounds
  wire        fits = &floor[63:10] || ~|floor[63:10];
  reg  [10:0] floor_q;
  reg         round_up_q;
  wire signed [11:0] shifted = {floor_q[10], floor_q} + {11'd0, round_up_q} + {{4{zero_point_i[7]}}, zero_point_i};
  wire signed [11:0] low = {{4{clip_lo_i[7]}}, clip_lo_i};
  wire signed [11:0] high = {{4{clip_hi_i[7]}}, clip_hi_i};
  reg  [7:0] result_q;
  assign result_o = result_q;

  always @(posedge clk_i) begin
    if (en_i[4]) begin
      floor_q    <= fits ? floor[10:0] : {floor[63], {10{!floor[63]}}};
      round_up_q <= round_up;
    end
    if (en_i[5]) result_q <= (shifted < low) ? clip_lo_i : (shifted > high) ? clip_hi_i : shifted[7:0];
  end

  wire unused = &{1'b0, prm_i, acc_i, bias, multiplier};
endmodule

`resetall
