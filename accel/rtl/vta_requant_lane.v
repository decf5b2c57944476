// One lane of the output stage: parameters, operand, product, sum, rounding shift in two steps, zero point and clip.
// Contract: en_i qualifies the stage in front of each register.  Forms add and mul come as two slots, y then r: summed
// in stage 4, or the first product multiplied by r in stage 3; only the second slot goes further.
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
    // stages 2 and 3: the slot is the second of form mul, whose operand multiplies the product before it
    input  wire [  3:2] times_i,
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
    output wire [  7:0] result_d_o,  // what result_o will be, in stage 7
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
        `VTA_FORM_ADD, `VTA_FORM_MUL: begin
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

  // stage 2: operand, of forms add and mul 9 bits, and the shift as far as it matters; stage 3: product; stage 4: sum of the two
  // products of form add
  function [31:0] operand;
    input [31:0] acc, addend;
    input narrow;
    reg [32:0] added;
    reg unused;
    begin
      added   = {acc, 1'b1} + {addend, narrow};
      operand = narrow ? {{23{added[9]}}, added[9:1]} : added[32:1];
      unused  = &{1'b0, added};
    end
  endfunction

  reg  [ 31:0] operand_q;
  reg  [P_W-1:0] product_q;
  wire [ 31:0] operand_d = operand(acc_i, addend_q, narrow_q);
  wire [ 31:0] factor = times_i[3] ? product_q[31:0] : operand_q;
  wire signed [P_W-1:0] operand_x = {{M_W{factor[31]}}, factor};
  wire signed [P_W-1:0] multiplier_x = {{32{multiplier_2_q[M_W-1]}}, multiplier_2_q};
  reg  [P_W-1:0] kept_q;
  reg  [P_W-1:0] total_q;

  always @(posedge clk_i) begin
    if (en_i[2]) begin
      operand_q      <= operand_d;
      multiplier_2_q <= times_i[2] ? operand_d[M_W-1:0] : multiplier_1_q;
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
  function [26:0] coarse;
    input sign;
    input [63:0] total;
    input [2:0] eighths;
    reg [80:0] padded;
    reg [24:0] window;
    reg sticky, beyond;
    integer g;
    begin
      padded = {{16{sign}}, total, 1'b0};
      case (eighths)
        3'd0: window = padded[0+:25];
        3'd1: window = padded[8+:25];
        3'd2: window = padded[16+:25];
        3'd3: window = padded[24+:25];
        3'd4: window = padded[32+:25];
        3'd5: window = padded[40+:25];
        3'd6: window = padded[48+:25];
        default: window = padded[56+:25];
      endcase
      // an eighth is below the windows of longer shifts, above those that end before it
      {sticky, beyond} = 2'b00;
      for (g = 0; g < 7; g = g + 1) sticky = sticky | (eighths > g[2:0] && |padded[g*8+:8]);
      for (g = 0; g < 5; g = g + 1) beyond = beyond | (eighths <= g[2:0] && total[(g+3)*8+:8] != {8{sign}});
      coarse = {sticky, beyond, window};
    end
  endfunction

  wire         negative = total_q[P_W-1];
  wire [ 63:0] whole = {{(65 - P_W) {negative}}, total_q[P_W-2:0]};
  reg  [ 24:0] window_q;
  reg          sign_q;
  reg          sticky_q;
  reg          beyond_q;

  // stage 6: shift by the rest; stage 7: zero point and clip.
  // Beyond 11 bits, rounding and zero point cannot bring the result back between the bounds.
  function [11:0] fine;
    input sign, sticky_above, beyond;
    input [24:0] window;
    input [2:0] amount;
    input [1:0] rounding;
    reg [24:0] shifted, below;
    reg fits, sticky, up, unused;
    begin
      shifted = window >> amount;
      below   = ~(25'h1ffffff << amount);
      fits    = !beyond && ((window ^ {25{sign}}) >> 11 >> amount) == 25'd0;
      sticky  = sticky_above || (window & below) != 25'd0;
      case (rounding)
        `VTA_ROUNDING_HALF_UP: up = shifted[0];
        `VTA_ROUNDING_HALF_EVEN: up = shifted[0] && (sticky || shifted[1]);
        `VTA_ROUNDING_HALF_AWAY: up = shifted[0] && (sticky || !sign);
        default: up = 1'b0;
      endcase
      fine   = {up, fits ? shifted[11:1] : {sign, {10{!sign}}}};
      unused = &{1'b0, shifted};
    end
  endfunction

  function [7:0] clipped;
    input [10:0] floor;
    input up;
    input [7:0] zero_point, clip_lo, clip_hi;
    reg [12:0] moved;
    reg signed [11:0] value, low, high;
    reg unused;
    begin
      moved   = {floor[10], floor, 1'b1} + {{4{zero_point[7]}}, zero_point, up};
      value   = moved[12:1];
      low     = {{4{clip_lo[7]}}, clip_lo};
      high    = {{4{clip_hi[7]}}, clip_hi};
      clipped = (value < low) ? clip_lo : (value > high) ? clip_hi : value[7:0];
      unused  = &{1'b0, moved};
    end
  endfunction

  reg  [10:0] floor_q;
  reg         round_up_q;
  reg  [ 7:0] result_q;
  wire [ 7:0] result_d = clipped(floor_q, round_up_q, zero_point_i, clip_lo_i, clip_hi_i);
  assign result_d_o = result_d;
  assign result_o   = result_q;

  always @(posedge clk_i) begin
    if (en_i[5]) begin
      {sticky_q, beyond_q, window_q} <= coarse(negative, whole, shift_4_q[5:3]);
      sign_q    <= negative;
      shift_5_q <= shift_4_q[2:0];
    end
    if (en_i[6]) {round_up_q, floor_q} <= fine(sign_q, sticky_q, beyond_q, window_q, shift_5_q, rounding_i);
    if (en_i[7]) result_q <= result_d;
  end

  wire unused = &{1'b0, prm_i, bias, multiplier};
endmodule

`resetall
