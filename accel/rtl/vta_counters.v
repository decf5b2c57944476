// Performance counters: CYCLES, and sixteen or eighteen others of 32 bits, wrapping, cleared by their reset.
// Contract: counter k counts event k in cycles with count_i.  It is read by the low bits of its word address, the first
// one's and so on from there.  In a cycle with ready_o, which comes within COUNTERS cycles, value_o is the value of the
// counter read_i, at most one cycle old.
// The low bits of each counter are registers with a carry flag; the upper bits are in a memory.  One adder serves the
// counters in turn and adds their flags: each is served every COUNTERS cycles, in which at most one carry can arise.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_counters #(
    // 16, or 18
    parameter COUNTERS = 16,
    // Counters whose events are beats, a bit each: they count 2^BEAT_LOG an event
    parameter [17:0] BEATS = 18'd0,
    // Logarithm of the bytes of a beat, 3 to 5
    parameter BEAT_LOG = 3
) (
    input  wire                clk_i,
    input  wire                rst_ni,
    input  wire                count_i,
    output wire [        31:0] cycles_o,
    input  wire [COUNTERS-1:0] event_i,
    // one of them
    input  wire [         4:0] read_i,
    output wire                ready_o,
    output wire [        31:0] value_o
);
  localparam LOW = (COUNTERS > 16) ? 5 : 4;  // bits in registers: 2^LOW events a carry
  localparam HIGH = 32 - LOW;
  localparam NUMBER_W = LOW;
  localparam [11:0] BEFORE = `VTA_REG_CYCLES >> 2;
  localparam [31:0] BEHIND = COUNTERS;
  localparam [NUMBER_W-1:0] FIRST = BEFORE[NUMBER_W-1:0] + 1'b1;
  localparam [NUMBER_W-1:0] LAST = BEFORE[NUMBER_W-1:0] + BEHIND[NUMBER_W-1:0];

  generate
    if (COUNTERS != 16 && COUNTERS != 18) begin : g_param_check
      ERROR_counters_COUNTERS_must_be_16_or_18 u_param_error ();
    end
  endgenerate

  reg  [31:0] cycles_q;

  // bit n of every counter, and carries that the adder has not taken yet; the fifth bit is 0 where there are 16
  reg  [COUNTERS-1:0] bit_0_q;
  reg  [COUNTERS-1:0] bit_1_q;
  reg  [COUNTERS-1:0] bit_2_q;
  reg  [COUNTERS-1:0] bit_3_q;
  reg  [COUNTERS-1:0] carry_q;
  wire [COUNTERS-1:0] bit_4;
  wire [COUNTERS-1:0] flip_0 = event_i & {COUNTERS{count_i}};
  wire [COUNTERS-1:0] flip_1 = flip_0 & bit_0_q;
  wire [COUNTERS-1:0] flip_3 = flip_1 & bit_1_q & bit_2_q;
  wire [COUNTERS-1:0] flip_4 = flip_3 & bit_3_q;
  wire [COUNTERS-1:0] carries;

  // whose turn it is, as a bit and as a number; the first round after a reset finds old words in the memory, and no carry
  reg  [COUNTERS-1:0] turn_q;
  reg  [NUMBER_W-1:0] number_q;
  reg                 first_q;

  // the counter that was read and counted up in the cycle before
  reg  [NUMBER_W-1:0] shown_q;
  reg                 beats_q;
  reg  [     LOW-1:0] low_q;
  reg  [    HIGH-1:0] high_q;

  wire [HIGH-1:0] word;
  wire            carry = |(carry_q & turn_q);
  wire            beats = |(BEATS[COUNTERS-1:0] & turn_q);
  wire [HIGH-1:0] one = {{(HIGH - 1) {1'b0}}, carry && !beats} | ({{(HIGH - 1) {1'b0}}, carry && beats} << BEAT_LOG);
  wire [     4:0] low = {|(bit_4 & turn_q), |(bit_3_q & turn_q), |(bit_2_q & turn_q), |(bit_1_q & turn_q), |(bit_0_q & turn_q)};

  vta_ram_async #(
      .WIDTH (HIGH),
      .DEPTH (1 << NUMBER_W),
      .ADDR_W(NUMBER_W)
  ) u_high (
      .clk_i  (clk_i),
      .we_i   (1'b1),
      .waddr_i(shown_q),
      .wdata_i(high_q),
      .raddr_i(number_q),
      .rdata_o(word)
  );

  assign cycles_o = cycles_q;
  assign ready_o  = shown_q == read_i[NUMBER_W-1:0];
  assign value_o  = {high_q, {LOW{1'b0}}} | (beats_q ? {{HIGH{1'b0}}, low_q} << BEAT_LOG : {{HIGH{1'b0}}, low_q});

  generate
    if (LOW > 4) begin : g_fifth
      reg [COUNTERS-1:0] bit_4_q;
      assign bit_4   = bit_4_q;
      assign carries = flip_4 & bit_4_q;
      always @(posedge clk_i)
        if (!rst_ni) bit_4_q <= {COUNTERS{1'b0}};
        else bit_4_q <= bit_4_q ^ flip_4;
    end else begin : g_four
      assign bit_4   = {COUNTERS{1'b0}};
      assign carries = flip_4;
    end
  endgenerate

  always @(posedge clk_i)
    if (!rst_ni) begin
      bit_0_q <= {COUNTERS{1'b0}};
      bit_1_q <= {COUNTERS{1'b0}};
      bit_2_q <= {COUNTERS{1'b0}};
      bit_3_q <= {COUNTERS{1'b0}};
      carry_q <= {COUNTERS{1'b0}};
    end else begin
      bit_0_q <= bit_0_q ^ flip_0;
      bit_1_q <= bit_1_q ^ flip_1;
      bit_2_q <= bit_2_q ^ (flip_1 & bit_1_q);
      bit_3_q <= bit_3_q ^ flip_3;
      carry_q <= (carry_q & ~turn_q) | carries;
    end

  always @(posedge clk_i)
    if (!rst_ni) begin
      cycles_q <= 32'd0;
      turn_q   <= {{(COUNTERS - 1) {1'b0}}, 1'b1};
      number_q <= FIRST;
      first_q  <= 1'b1;
      shown_q  <= LAST;
      beats_q  <= 1'b0;
      low_q    <= {LOW{1'b0}};
    end else begin
      if (count_i) cycles_q <= cycles_q + 32'd1;
      turn_q   <= {turn_q[COUNTERS-2:0], turn_q[COUNTERS-1]};
      number_q <= (LOW > 4 && turn_q[COUNTERS-1]) ? FIRST : number_q + 1'b1;
      if (turn_q[COUNTERS-1]) first_q <= 1'b0;
      shown_q  <= number_q;
      beats_q  <= beats;
      low_q    <= low[LOW-1:0];
    end

  always @(posedge clk_i)
    if (!rst_ni || first_q) high_q <= {HIGH{1'b0}};
    else high_q <= word + one;

  wire unused = &{1'b0, read_i, low};
endmodule

`resetall
