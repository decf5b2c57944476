// Multiplexer of words whose select is registered one cycle ahead.
// Contract: word_o is the word of the way_i that the last edge with en_i sampled.
// Latency: none from words_i to word_o.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_pick #(
    // Width of a word in bits
    parameter WIDTH = 32,
    // Words, a power of two
    parameter WAYS  = 4,
    // Width of the choice in bits: log2(WAYS), at least 1
    parameter WAY_W = 2
) (
    input  wire                  clk_i,
    input  wire                  en_i,
    input  wire [     WAY_W-1:0] way_i,
    input  wire [WAYS*WIDTH-1:0] words_i,
    output wire [     WIDTH-1:0] word_o
);
  generate
    if (WAYS < 4) begin : g_plain
      reg [WAY_W-1:0] way_q;
      always @(posedge clk_i) if (en_i) way_q <= way_i;
      if (WAYS == 2) begin : g_two
        assign word_o = way_q[0] ? words_i[WIDTH+:WIDTH] : words_i[0+:WIDTH];
      end else begin : g_one
        assign word_o = words_i;
        wire unused = &{1'b0, way_q};
      end
    end else begin : g_fours
      // Of four words two LUT4 a bit: the first makes a bit of the lower two, or which of the upper two it is.  Registers
      // of either polarity keep tools from finding the usual form again, which takes three.
      localparam FOURS = WAYS / 4;
      reg odd_q, upper_q, lower_q;
      always @(posedge clk_i)
        if (en_i) begin
          odd_q   <= way_i[0];
          upper_q <= way_i[1];
          lower_q <= !way_i[1];
        end
      wire [FOURS*WIDTH-1:0] picked;
      genvar i;
      for (i = 0; i < FOURS; i = i + 1) begin : g_four
        wire [WIDTH-1:0] first = odd_q ? words_i[(4*i+1)*WIDTH+:WIDTH] : words_i[4*i*WIDTH+:WIDTH];
        wire [WIDTH-1:0] either = upper_q ? {WIDTH{odd_q}} : first;
        wire [WIDTH-1:0] second = (either & words_i[(4*i+3)*WIDTH+:WIDTH]) | (~either & words_i[(4*i+2)*WIDTH+:WIDTH]);
        assign picked[i*WIDTH+:WIDTH] = lower_q ? either : second;
      end
      if (FOURS > 1) begin : g_rest
        reg [WAY_W-3:0] four_q;
        always @(posedge clk_i) if (en_i) four_q <= way_i[WAY_W-1:2];
        assign word_o = picked[four_q*WIDTH+:WIDTH];
      end else begin : g_all
        assign word_o = picked;
      end
    end
  endgenerate
endmodule

`resetall
