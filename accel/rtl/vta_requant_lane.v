// One lane of the output stage: parameters, operand, product, sum, rounding shift in two steps, zero point and clip.
// Contract: en_i qualifies the stage in front of each register.  Form add comes as two slots, y then r, and is summed
// in stage 4; only its second slot goes further.
// Latency: 7 edges from prm_i and 6 from acc_i to result_o.  Throughput: one slot a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_requant_lane #(
    // Bits of a multiplier without its sign, 8 to 31
    parameter MULTIPLIER_BITS = 31
) (
    input  wire         clk_i,
    input  wire         rst_ni,
    // enables of the stages 1 to 7
    input  wire [  7:1] en_i,
    // stage 1
    input  wire [127:0] prm_i,
    input  wire [  1:0] form_i,
    input  wire         second_i,
    input  wire [  7:0] pass_zero_i,
    // stage 2
    input  wire [ 31:0] acc_i,
    // stage 4: the slot is the first of form add
    input  wire         keep_i,
    // stage 6
    input  wire [  1:0] rounding_i,
    // stage 7
    input  wire [  7:0] zero_point_i,
    input  wire [  7:0] clip_lo_i,
    input  wire [  7:0] clip_hi_i,
    output wire [  7:0] result_o
);
  localparam M_W = MULTIPLIER_BITS + 1;
  localparam P_W = 32 + M_W;

  // stage 1: what the accumulator is multiplied by, and what is added to it before: bias, zero point or, of form add,
  // minus the zero point, as its complement and a carry
  wire [  7:0] zero = second_i ? prm_i[`VTA_PRM_R_ZERO] : prm_i[`VTA_PRM_Y_ZERO];
  wire [ 31:0] bias = prm_i[`VTA_PRM_BIAS];
  wire [ 31:0] multiplier = prm_i[`VTA_PRM_MULTIPLIER];
  wire [  7:0] shift = prm_i[`VTA_PRM_SHIFT];

  reg  [ 31:0] addend_q;
  reg          narrow_q;
  reg  [M_W-1:0] multiplier_1_q, multiplier_2_q;
  reg  [  7:0] shift_1_q;
  reg  [  5:0] shift_2_q, shift_3_q, shift_4_q;
  reg  [  2:0] shift_5_q;

  always @(posedge clk_i)
    if (en_i[1])
      case (form_i)
        `VTA_FORM_SCALE: begin
          addend_q       <= bias;
          narrow_q       <= 1'b0;
          multiplier_1_q <= multiplier[M_W-1:0];
          shift_1_q      <= shift;
        end
        `VTA_FORM_ADD: begin
          addend_q       <= {{24{pass_zero_i[7]}}, ~zero};
          addend_q[8]    <= !zero[7];
          narrow_q       <= 1'b1;
          multiplier_1_q <= second_i ? bias[M_W-1:0] : multiplier[M_W-1:0];
          shift_1_q      <= shift;
        end
        default: begin
          addend_q       <= {{24{pass_zero_i[7]}}, pass_zero_i};
          narrow_q       <= 1'b0;
          multiplier_1_q <= {{(M_W - 1) {1'b0}}, 1'b1};
          shift_1_q      <= 8'd0;
        end
      endcase

  // stage 2: operand, of form add 9 bits, and the shift as far as it matters; stage 3: product; stage 4: sum of the two
  // products of form add
  wire [ 32:0] added = {acc_i, 1'b1} + {addend_q, narrow_q};
  reg  [ 31:0] operand_q;
  wire signed [P_W-1:0] operand_x = {{M_W{operand_q[31]}}, operand_q};
  wire signed [P_W-1:0] multiplier_x = {{32{multiplier_2_q[M_W-1]}}, multiplier_2_q};
  reg  [P_W-1:0] product_q;
  reg  [P_W-1:0] kept_q;
  reg  [P_W-1:0] total_q;

  always @(posedge clk_i) begin
    if (en_i[2]) begin
      operand_q      <= narrow_q ? {{23{added[9]}}, added[9:1]} : added[32:1];
      multiplier_2_q <= multiplier_1_q;
      shift_2_q      <= (shift_1_q > 8'd62) ? 6'd62 : shift_1_q[5:0];
    end
    if (en_i[3]) begin
      product_q <= operand_x * multiplier_x;
      shift_3_q <= shift_2_q;
    end
    if (en_i[4]) begin
      total_q   <= product_q + kept_q;
      shift_4_q <= shift_3_q;
    end
  end

  // zero but between the two slots of form add; the reset ends an addition that was stopped there
  always @(posedge clk_i)
    if (!rst_ni) kept_q <= {P_W{1'b0}};
    else if (en_i[4]) kept_q <= keep_i ? product_q : {P_W{1'b0}};

  // stage 5: shift by eighths of a word: 25 bits from the one below the result's lowest on, and what lies outside of
  // them: a one below (sticky), a bit unlike the sign above (beyond)
  wire         sign = total_q[P_W-1];
  wire [ 63:0] total = {{(65 - P_W) {sign}}, total_q[P_W-2:0]};
  wire [ 80:0] padded = {{16{sign}}, total, 1'b0};
  wire [ 24:0] windows[0:7];
  wire [  6:0] ones;
  wire [  7:3] unlike;
  reg  [ 24:0] window_q;
  reg          sign_q;
  reg          sticky_q;
  reg          beyond_q;
  genvar g;
  generate
    for (g = 0; g < 8; g = g + 1) begin : g_eighth
      localparam [31:0] EIGHTH = g;
      assign windows[g] = padded[g*8+:25];
      // it is below the windows of longer shifts, above those that end before it
      if (g < 7) begin : g_below
        assign ones[g] = shift_4_q[5:3] > EIGHTH[2:0] && |padded[g*8+:8];
      end
      if (g > 2) begin : g_above
        localparam [31:0] LONGEST = EIGHTH - 3;
        assign unlike[g] = shift_4_q[5:3] <= LONGEST[2:0] && total[g*8+:8] != {8{sign}};
      end
    end
  endgenerate

  // stage 6: shift by the rest; stage 7: zero point and clip.
  // Beyond 11 bits, rounding and zero point cannot bring the result back between the bounds.
  wire [ 24:0] shifted = window_q >> shift_5_q;
  wire [ 24:0] below = ~(25'h1ffffff << shift_5_q);
  wire [ 10:0] floor = shifted[11:1];
  wire         fits = !beyond_q && ((window_q ^ {25{sign_q}}) >> 11 >> shift_5_q) == 25'd0;
  wire         sticky = sticky_q || (window_q & below) != 25'd0;
  reg          round_up;
  always @* begin
    round_up = 1'b0;
    case (rounding_i)
      `VTA_ROUNDING_HALF_UP: round_up = shifted[0];
      `VTA_ROUNDING_HALF_EVEN: round_up = shifted[0] && (sticky || shifted[1]);
      `VTA_ROUNDING_HALF_AWAY: round_up = shifted[0] && (sticky || !sign_q);
      default: round_up = 1'b0;
    endcase
  end

  reg  [10:0] floor_q;
  reg         round_up_q;
  wire [12:0] moved = {floor_q[10], floor_q, 1'b1} + {{4{zero_point_i[7]}}, zero_point_i, round_up_q};
  wire signed [11:0] value = moved[12:1];
  wire signed [11:0] low = {{4{clip_lo_i[7]}}, clip_lo_i};
  wire signed [11:0] high = {{4{clip_hi_i[7]}}, clip_hi_i};
  reg  [7:0] result_q;
  assign result_o = result_q;

  always @(posedge clk_i) begin
    if (en_i[5]) begin
      window_q  <= windows[shift_4_q[5:3]];
      sign_q    <= sign;
      sticky_q  <= |ones;
      beyond_q  <= |unlike;
      shift_5_q <= shift_4_q[2:0];
    end
    if (en_i[6]) begin
      floor_q    <= fits ? floor : {sign_q, {10{!sign_q}}};
      round_up_q <= round_up;
    end
    if (en_i[7]) result_q <= (value < low) ? clip_lo_i : (value > high) ? clip_hi_i : value[7:0];
  end

  wire unused = &{1'b0, prm_i, bias, multiplier, added[0], moved[0], shifted};
endmodule

`resetall
