// Performance counters: CYCLES, and sixteen others of 32 bits, wrapping, cleared by their reset.
// Contract: counter k counts event k in cycles with count_i.  In a cycle with ready_o, which comes within 16 cycles,
// value_o is the value of counter read_i, at most one cycle old.
// The low four bits of each counter are registers with a carry flag; the upper bits are in a memory.  One adder serves the
// counters in turn and adds their flags: each is served every 16 cycles, in which at most one carry can arise.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_counters #(
    // Counters whose events are beats, a bit each: they count 2^BEAT_LOG an event
    parameter [15:0] BEATS = 16'd0,
    // Logarithm of the bytes of a beat, 3 to 5
    parameter BEAT_LOG = 3
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    input  wire        count_i,
    output wire [31:0] cycles_o,
    input  wire [15:0] event_i,
    // one of them
    input  wire [ 3:0] read_i,
    output wire        ready_o,
    output wire [31:0] value_o
);
  reg  [31:0] cycles_q;

  // bit n of every counter, and carries that the adder has not taken yet
  reg  [15:0] bit_0_q;
  reg  [15:0] bit_1_q;
  reg  [15:0] bit_2_q;
  reg  [15:0] bit_3_q;
  reg  [15:0] carry_q;
  wire [15:0] flip_0 = event_i & {16{count_i}};
  wire [15:0] flip_1 = flip_0 & bit_0_q;
  wire [15:0] flip_3 = flip_1 & bit_1_q & bit_2_q;

  // whose turn it is, as a bit and as a number; the first round after a reset finds old words in the memory, and no carry
  reg  [15:0] turn_q;
  reg  [ 3:0] number_q;
  reg         first_q;

  // the counter that was read and counted up in the cycle before
  reg  [ 3:0] shown_q;
  reg         beats_q;
  reg  [ 3:0] low_q;
  reg  [27:0] high_q;

  wire [27:0] word;
  wire        carry = |(carry_q & turn_q);
  wire        beats = |(BEATS & turn_q);
  wire [27:0] one = {27'd0, carry && !beats} | ({27'd0, carry && beats} << BEAT_LOG);

  vta_ram_async #(
      .WIDTH (28),
      .DEPTH (16),
      .ADDR_W(4)
  ) u_high (
      .clk_i  (clk_i),
      .we_i   (1'b1),
      .waddr_i(shown_q),
      .wdata_i(high_q),
      .raddr_i(number_q),
      .rdata_o(word)
  );

  assign cycles_o = cycles_q;
  assign ready_o  = shown_q == read_i;
  assign value_o  = {high_q, 4'd0} | (beats_q ? {28'd0, low_q} << BEAT_LOG : {28'd0, low_q});

  always @(posedge clk_i)
    if (!rst_ni) begin
      bit_0_q <= 16'd0;
      bit_1_q <= 16'd0;
      bit_2_q <= 16'd0;
      bit_3_q <= 16'd0;
      carry_q <= 16'd0;
    end else begin
      bit_0_q <= bit_0_q ^ flip_0;
      bit_1_q <= bit_1_q ^ flip_1;
      bit_2_q <= bit_2_q ^ (flip_1 & bit_1_q);
      bit_3_q <= bit_3_q ^ flip_3;
      carry_q <= (carry_q & ~turn_q) | (flip_3 & bit_3_q);
    end

  always @(posedge clk_i)
    if (!rst_ni) begin
      cycles_q <= 32'd0;
      turn_q   <= 16'd1;
      number_q <= 4'd0;
      first_q  <= 1'b1;
      shown_q  <= 4'd0;
      beats_q  <= 1'b0;
      low_q    <= 4'd0;
    end else begin
      if (count_i) cycles_q <= cycles_q + 32'd1;
      turn_q   <= {turn_q[14:0], turn_q[15]};
      number_q <= number_q + 4'd1;
      if (turn_q[15]) first_q <= 1'b0;
      shown_q  <= number_q;
      beats_q  <= beats;
      low_q    <= {|(bit_3_q & turn_q), |(bit_2_q & turn_q), |(bit_1_q & turn_q), |(bit_0_q & turn_q)};
    end

  always @(posedge clk_i)
    if (!rst_ni || first_q) high_q <= 28'd0;
    else high_q <= word + one;
endmodule

`resetall
