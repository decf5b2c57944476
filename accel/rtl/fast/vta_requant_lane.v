// One lane of the output stage for simulation: the module of the same name, which says what it does; shifted at once.
// Contract: as the synthesised form.
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
  reg  [  5:0] shift_2_q, shift_3_q, shift_4_q, shift_5_q;

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
  function automatic [31:0] operand;
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

  // stage 6: the shift; beyond 11 bits, rounding and zero point cannot bring the result back between the bounds
  function automatic [11:0] shifted;
    input [63:0] total;
    input [5:0] amount;
    input [1:0] rounding;
    reg [63:0] floor, dropped;
    reg up, fits;
    begin
      floor   = $signed(total) >>> amount;
      dropped = (amount == 6'd0) ? 64'd0 : total << (6'd0 - amount);
      case (rounding)
        `VTA_ROUNDING_HALF_UP: up = dropped[63];
        `VTA_ROUNDING_HALF_EVEN: up = dropped[63] && (|dropped[62:0] || floor[0]);
        `VTA_ROUNDING_HALF_AWAY: up = dropped[63] && (|dropped[62:0] || !total[63]);
        default: up = 1'b0;
      endcase
      fits = floor[63:10] == {54{total[63]}};
      shifted = {up, fits ? floor[10:0] : {total[63], {10{!total[63]}}}};
    end
  endfunction

  function automatic [7:0] clipped;
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

  reg  [ 63:0] whole_q;
  reg  [ 10:0] floor_q;
  reg          round_up_q;
  reg  [  7:0] result_q;
  wire [ 7:0] result_d = clipped(floor_q, round_up_q, zero_point_i, clip_lo_i, clip_hi_i);
  assign result_d_o = result_d;
  assign result_o   = result_q;

  always @(posedge clk_i) begin
    if (en_i[5]) begin
      whole_q   <= {{(65 - P_W) {total_q[P_W-1]}}, total_q[P_W-2:0]};
      shift_5_q <= shift_4_q;
    end
    if (en_i[6]) {round_up_q, floor_q} <= shifted(whole_q, shift_5_q, rounding_i);
    if (en_i[7]) result_q <= result_d;
  end

  wire unused = &{1'b0, prm_i, bias, multiplier};
endmodule

`resetall
