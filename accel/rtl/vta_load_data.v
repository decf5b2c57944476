// Data side of LOAD: turns the beats of each instruction, in order, into scratchpad writes, with padding around.
// Contract: one beat a cycle, padding included; the bus waits (beat_want_o low) while padding is written.
// Latency: a beat that arrives or is made at an edge is in the scratchpad after the next edge; so are the tokens.
// Throughput: no cycle is lost between two instructions that wait here.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_load_data #(
    // Bus width in bits
    parameter AXI_DATA_BITS = 64,
    // Width of beat counts
    parameter BEATS_W       = 20,
    // Width of an instruction's record: 154 + BEATS_W
    parameter FOLLOW_W      = 174,
    // Beats of a line of INP, a power of two
    parameter LINE_BEATS    = 2
) (
    input  wire                     clk_i,
    input  wire                     rst_ni,
    input  wire                     stop_i,
    // next instruction: index, set, mem, expand, pitch, pad value, first beat, beats of a run, x, y, pads x1 x0 y1 y0
    input  wire                     valid_i,
    input  wire [     FOLLOW_W-1:0] follow_i,
    output wire                     pop_o,
    output wire                     free_o,
    // OUTPUT writes INP in the next cycle
    input  wire                     inp_hold_i,
    // beats
    output wire                     beat_want_o,
    input  wire                     beat_i,
    input  wire [AXI_DATA_BITS-1:0] data_i,
    input  wire                     error_i,
    // scratchpad writes
    output wire [             15:0] we_o,
    output wire                     expand_o,
    output wire [      BEATS_W-1:0] waddr_o,
    output wire [AXI_DATA_BITS-1:0] wdata_o,
    // tokens
    output wire                     give_o,
    output wire [             15:0] set_o,
    output wire [             31:0] done_index_o,
    output wire                     idle_o,
    // fault
    output wire                     error_fault_o,
    output wire [             31:0] error_index_o
);
  generate
    if (FOLLOW_W != 154 + BEATS_W) begin : g_param_check
      ERROR_FOLLOW_W_must_be_154_plus_BEATS_W u_param_error ();
    end
  endgenerate

  // current instruction
  reg               active_q;
  reg [       31:0] index_q;
  reg [       15:0] set_q;
  reg [        3:0] mem_q;
  reg               expand_q;
  reg [        7:0] pad_q;
  reg [BEATS_W-1:0] addr_q;
  // planes: from the last beat of a line to the next line of its run; first beat of the next run
  reg               planes_q;
  reg [BEATS_W-1:0] jump_q;
  reg [BEATS_W-1:0] next_run_q;
  reg [       17:0] run_q;
  reg [       16:0] x_first_q;  // first run with data, one past the last, and all runs of a row
  reg [       16:0] x_end_q;
  reg [       16:0] x_all_q;
  reg [       16:0] y_first_q;
  reg [       16:0] y_end_q;
  reg [       16:0] y_all_q;
  // position
  reg [       17:0] z_left_q;
  reg [       16:0] x_q;
  reg [       16:0] y_q;

  wire              padding = y_q < y_first_q || y_q >= y_end_q || x_q < x_first_q || x_q >= x_end_q;
  wire              hold = inp_hold_i && mem_q == `VTA_MEM_INP;
  wire              step = active_q && (padding ? !stop_i && !hold : beat_i);
  wire              run_ends = z_left_q == 18'd1;
  wire              row_ends = run_ends && x_q == x_all_q;
  wire              last = row_ends && y_q == y_all_q;

  assign beat_want_o   = active_q && !padding && !hold;
  assign free_o        = !active_q || (step && last);
  assign pop_o         = valid_i && free_o;
  assign error_fault_o = beat_i && error_i;
  assign error_index_o = index_q;

  // fields of the next instruction
  wire [ 7:0] next_y0 = follow_i[7:0];
  wire [ 7:0] next_y1 = follow_i[15:8];
  wire [ 7:0] next_x0 = follow_i[23:16];
  wire [ 7:0] next_x1 = follow_i[31:24];
  wire [15:0] next_y = follow_i[47:32];
  wire [15:0] next_x = follow_i[63:48];
  wire [17:0] next_run = follow_i[81:64];
  wire [16:0] next_x_end = {9'd0, next_x0} + {1'b0, next_x};
  wire [16:0] next_y_end = {9'd0, next_y0} + {1'b0, next_y};

  wire [10:0] next_pitch = follow_i[90+BEATS_W+:11];
  localparam LINE_LOG = $clog2(LINE_BEATS);
  localparam [31:0] BEATS = LINE_BEATS;
  wire [31:0] next_step = {19'd0, next_pitch, 2'b00} << LINE_LOG;
  wire [31:0] next_jump = next_step - BEATS + 32'd1;
  wire line_ends = (addr_q[15:0] | ~(BEATS[15:0] - 16'd1)) == 16'hFFFF;
  wire [BEATS_W-1:0] next_addr = (!planes_q || !(run_ends || line_ends)) ? addr_q + 1'b1
      : run_ends ? next_run_q : addr_q + jump_q;

  always @(posedge clk_i)
    if (!rst_ni) active_q <= 1'b0;
    else if (pop_o) active_q <= 1'b1;
    else if (step && last) active_q <= 1'b0;

  always @(posedge clk_i)
    if (pop_o) begin
      {index_q, set_q, mem_q, expand_q} <= follow_i[FOLLOW_W-1:101+BEATS_W];
      {pad_q, addr_q} <= follow_i[89+BEATS_W:82];
      planes_q   <= next_pitch != 11'd0;
      jump_q     <= next_jump[BEATS_W-1:0];
      next_run_q <= follow_i[82+:BEATS_W] + BEATS[BEATS_W-1:0];
      run_q     <= next_run;
      z_left_q  <= next_run;
      x_first_q <= {9'd0, next_x0};
      x_end_q   <= next_x_end;
      x_all_q   <= next_x_end + {9'd0, next_x1} - 17'd1;
      y_first_q <= {9'd0, next_y0};
      y_end_q   <= next_y_end;
      y_all_q   <= next_y_end + {9'd0, next_y1} - 17'd1;
      x_q       <= 17'd0;
      y_q       <= 17'd0;
    end else if (step) begin
      addr_q   <= next_addr;
      if (run_ends) next_run_q <= next_run_q + BEATS[BEATS_W-1:0];
      z_left_q <= run_ends ? run_q : z_left_q - 18'd1;
      if (run_ends) x_q <= row_ends ? 17'd0 : x_q + 17'd1;
      if (row_ends) y_q <= y_q + 17'd1;
    end

  wire unused = &{1'b0, next_jump};

  // write register
  reg  [             15:0] we_q;
  reg                      expanding_q;
  reg  [      BEATS_W-1:0] waddr_q;
  reg  [AXI_DATA_BITS-1:0] wdata_q;
  reg                      give_q;
  reg  [             15:0] give_set_q;
  reg  [             31:0] give_index_q;

  assign we_o         = we_q;
  assign expand_o     = expanding_q;
  assign waddr_o      = waddr_q;
  assign wdata_o      = wdata_q;
  assign give_o       = give_q;
  assign set_o        = give_set_q;
  assign done_index_o = give_index_q;
  assign idle_o       = !active_q && we_q == 16'd0;

  always @(posedge clk_i)
    if (!rst_ni) begin
      we_q   <= 16'd0;
      give_q <= 1'b0;
    end else begin
      we_q   <= (step && !stop_i) ? 16'd1 << mem_q : 16'd0;
      give_q <= step && last && !stop_i;
    end

  always @(posedge clk_i)
    if (step) begin
      expanding_q  <= expand_q;
      waddr_q      <= addr_q;
      wdata_q      <= padding ? {(AXI_DATA_BITS / 8) {pad_q}} : data_i;
      give_set_q   <= set_q;
      give_index_q <= index_q;
    end
endmodule

`resetall
