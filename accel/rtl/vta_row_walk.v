// Walk of the row unit: rounds of slots, the entries that are read in them, and which rows are in which stage.
// Slot t of a round reads, for entry t / 4 of the rows, that of the row whose maximum is sought (t mod 4 = 0), that of the
// row before it, whose sums are made (1), and that of the row three before it, whose results are made (2).
// Contract: start_i takes an instruction; slot 0 is in the next cycle, slots follow one another.  From stop_i on there are
// none.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_row_walk #(
    // Lanes of an accumulator entry
    parameter BLOCK_OUT = 4
) (
    input  wire        clk_i,
    input  wire        rst_ni,
    input  wire        stop_i,
    input  wire        start_i,
    input  wire [15:0] rows_i,
    input  wire [15:0] columns_i,
    input  wire [15:0] acc_base_i,
    input  wire [15:0] row_step_i,
    input  wire [15:0] entry_step_i,
    output wire        active_o,
    // the slot is the first, the ninth of its round; the last of the instruction
    output wire        first_o,
    output wire        ninth_o,
    output wire        last_o,
    // reads: for the maximum, the sums, the results
    output wire [ 2:0] read_o,
    output wire [15:0] raddr_o,
    // first entry of the row whose results are made, from the second slot of the round on
    output wire [15:0] row_o
);
  localparam BLOCK_LOG = $clog2(BLOCK_OUT);
  localparam [17:0] DRAIN = `VTA_ROW_DRAIN;
  localparam [17:0] LEAST = `VTA_ROW_LEAST;
  localparam [17:0] QUARTERS = `VTA_ROW_QUARTERS;

  // entries of a row, less one; slots of a round, less one
  wire [15:0] entries = (columns_i - 16'd1) >> BLOCK_LOG;
  wire [17:0] slots = {entries, 2'd0} + QUARTERS + DRAIN - 18'd1;
  wire [17:0] round = (slots < LEAST) ? LEAST - 18'd1 : slots;

  reg active_q, first_q, ends_q, inside_q;
  reg [1:0] phase_q;
  reg [2:0] entry_low_q;
  reg [15:0] entries_q, entries_left_q, row_step_q, entry_step_q, off_q, rows_left_q, addr_q;
  reg [17:0] round_q, left_q;
  reg [15:0] row_0_q, row_1_q, row_2_q, row_3_q;
  // rows that are there in each of the four rounds
  reg [3:0] there_q;
  wire [3:0] there_d = {there_q[2:0], there_q[0] && rows_left_q != 16'd0};
  wire goes = active_q && !(ends_q && there_d == 4'd0);

  always @(posedge clk_i)
    if (!rst_ni || stop_i) active_q <= 1'b0;
    else active_q <= start_i || goes;

  always @(posedge clk_i)
    if (start_i) begin
      {first_q, ends_q, inside_q, phase_q} <= {1'b1, 1'b0, 1'b1, 2'd0};
      entry_low_q    <= 3'd0;
      entries_q      <= entries;
      entries_left_q <= entries;
      row_step_q     <= row_step_i;
      entry_step_q   <= entry_step_i;
      off_q          <= 16'd0;
      rows_left_q    <= rows_i - 16'd1;
      addr_q         <= acc_base_i;
      row_0_q        <= acc_base_i;
      round_q        <= round;
      left_q         <= round;
      there_q        <= 4'd1;
    end else if (active_q) begin
      first_q <= ends_q;
      ends_q  <= left_q == 18'd1;
      left_q  <= ends_q ? round_q : left_q - 18'd1;
      phase_q <= phase_q + 2'd1;
      case (phase_q)
        2'd0: addr_q <= row_1_q + off_q;
        2'd1: addr_q <= row_3_q + off_q;
        2'd2: off_q <= off_q + entry_step_q;
        default: addr_q <= row_0_q + (ends_q ? row_step_q : off_q);
      endcase
      if (phase_q == 2'd3) begin
        inside_q       <= ends_q || (inside_q && entries_left_q != 16'd0);
        entries_left_q <= ends_q ? entries_q : entries_left_q - 16'd1;
        if (entry_low_q != 3'd7) entry_low_q <= entry_low_q + 3'd1;
      end
      if (ends_q) begin
        entry_low_q <= 3'd0;
        off_q       <= 16'd0;
        there_q     <= there_d;
        rows_left_q <= rows_left_q - 16'd1;
        {row_3_q, row_2_q, row_1_q} <= {row_2_q, row_1_q, row_0_q};
        row_0_q     <= row_0_q + row_step_q;
      end
    end

  assign active_o = active_q;
  assign first_o  = active_q && first_q;
  assign ninth_o  = active_q && entry_low_q == 3'd2 && phase_q == 2'd0;
  assign last_o   = active_q && ends_q && there_d == 4'd0;
  assign read_o[0] = active_q && inside_q && phase_q == 2'd0 && there_q[0];
  assign read_o[1] = active_q && inside_q && phase_q == 2'd1 && there_q[1];
  assign read_o[2] = active_q && inside_q && phase_q == 2'd2 && there_q[3];
  assign raddr_o  = addr_q;
  assign row_o    = row_3_q;
endmodule

`resetall
