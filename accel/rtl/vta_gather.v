// Data side of GATHER: keeps rows of an image in two buffers and writes windows of them as parts of INP vectors.
// Contract: rows are filled from the bus in order, each completely before its first window is read; a buffer is filled
// again after the last read of its row.  One beat of scratchpad bytes a cycle, rows of padding included.
// Latency: a beat read from the buffer at an edge is in the write register after the next edge, in INP one edge later;
// the tokens come with the last write.  A row that arrives at an edge is read from the next edge on.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_gather #(
    // Bus width in bits
    parameter AXI_DATA_BITS = 64,
    // Bytes of an INP entry
    parameter INP_LANES     = 4,
    // Width of beat counts
    parameter BEATS_W       = 20,
    // Width of a LOAD's record: 154 + BEATS_W
    parameter FOLLOW_W      = 174
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    input  wire                       stop_i,
    // next instruction: the fields of a LOAD, with the beats of a row as the run; pitch, step, left, row, run, lane
    input  wire                       valid_i,
    input  wire [       FOLLOW_W-1:0] follow_i,
    input  wire [               79:0] window_i,
    output wire                       pop_o,
    output wire                       free_o,
    output wire                       active_o,
    // OUTPUT writes INP in the cycle behind the next one, where the beat read now would be written
    input  wire                       inp_hold_i,
    // beats
    output wire                       beat_want_o,
    input  wire                       beat_i,
    input  wire [  AXI_DATA_BITS-1:0] data_i,
    // scratchpad writes
    output wire                       we_o,
    output wire [AXI_DATA_BITS/8-1:0] be_o,
    output wire [        BEATS_W-1:0] waddr_o,
    output wire [  AXI_DATA_BITS-1:0] wdata_o,
    // tokens
    output wire                       give_o,
    output wire [               15:0] set_o,
    output wire [               31:0] index_o,
    output wire [               31:0] done_index_o,
    output wire                       idle_o
);
  generate
    if (FOLLOW_W != 154 + BEATS_W) begin : g_param_check
      ERROR_FOLLOW_W_must_be_154_plus_BEATS_W u_param_error ();
    end
  endgenerate

  localparam BUS = AXI_DATA_BITS / 8;
  localparam BUS_LOG = $clog2(BUS);
  localparam WORDS = `VTA_ROW_BUFFER_BYTES / BUS;
  localparam WORD_W = $clog2(WORDS);
  localparam PITCH_MUL = (INP_LANES > BUS) ? $clog2(INP_LANES / BUS) : 0;
  localparam PITCH_DIV = (INP_LANES > BUS) ? 0 : $clog2(BUS / INP_LANES);
  // bytes of a row from its first on, with a sign: x times x_step, and left
  localparam SRC_W = 26;

  // current instruction
  reg                     active_q;
  reg  [            31:0] index_q;
  reg  [            15:0] set_q;
  reg  [             7:0] pad_q;
  reg  [             7:0] step_q;
  reg  [            15:0] row_bytes_q;
  reg  [     BEATS_W-1:0] pitch_q;
  reg  [     BUS_LOG-1:0] offset_q;  // of the window in its first beat
  reg  [            16:0] bytes_q;  // offset and run
  reg signed [ SRC_W-1:0] origin_q;  // source byte that the first byte of a row's first beat comes from
  reg  [            15:0] x_all_q;
  reg  [            16:0] y_first_q;
  reg  [            16:0] y_end_q;
  // rows that arrive
  reg  [            15:0] fill_left_q;
  reg  [      WORD_W-1:0] fill_last_q;
  reg  [      WORD_W-1:0] fill_word_q;
  reg                     fill_half_q;
  reg  [             1:0] held_q;  // buffers that hold a row
  // position of the next read
  reg                     reading_q;
  reg  [            16:0] y_q;
  reg  [            16:0] y_left_q;
  reg  [            15:0] x_left_q;
  reg                     first_q;
  reg  [            16:0] left_q;  // bytes of the window from this beat's first byte on
  reg signed [ SRC_W-1:0] window_q;
  reg signed [ SRC_W-1:0] source_q;
  reg  [     BEATS_W-1:0] vector_q;
  reg  [     BEATS_W-1:0] addr_q;
  reg                     read_half_q;
  // what was read
  reg                     s1_valid_q;
  reg                     s1_last_q;
  reg  [         BUS-1:0] s1_be_q;
  reg  [         BUS-1:0] s1_inside_q;
  reg  [     BUS_LOG-1:0] s1_shift_q;
  reg                     s1_odd_q;
  reg  [     BEATS_W-1:0] s1_addr_q;

  wire                    ending = s1_valid_q && s1_last_q && !stop_i;
  assign free_o   = !active_q || ending;
  assign pop_o    = valid_i && free_o;
  assign active_o = active_q;
  assign index_o  = index_q;

  // fields of the next instruction
  wire [ 7:0] next_y0 = follow_i[7:0];
  wire [ 7:0] next_y1 = follow_i[15:8];
  wire [15:0] next_y = follow_i[47:32];
  wire [17:0] next_row = follow_i[81:64] - 18'd1;
  wire [BEATS_W-1:0] next_first = follow_i[82+:BEATS_W];
  wire [15:0] next_lane = window_i[15:0];
  wire [15:0] next_left = window_i[63:48];
  wire [15:0] next_pitch = ({8'd0, window_i[79:72]} << PITCH_MUL) >> PITCH_DIV;
  wire [15:0] next_beat = next_lane >> BUS_LOG;
  wire [BEATS_W-1:0] next_addr = next_first + {{(BEATS_W - 16) {1'b0}}, next_beat};
  wire [SRC_W-1:0] next_offset = {{(SRC_W - BUS_LOG) {1'b0}}, next_lane[BUS_LOG-1:0]};
  wire signed [SRC_W-1:0] next_origin = -{{(SRC_W - 16) {next_left[15]}}, next_left} - next_offset;
  wire [16:0] next_bytes = {1'b0, window_i[31:16]} + next_offset[16:0];

  // arrival
  wire fill = active_q && beat_i && beat_want_o;
  wire fill_ends = fill && fill_word_q == fill_last_q;
  assign beat_want_o = active_q && fill_left_q != 16'd0 && held_q != 2'd2;

  // reads
  wire padding = y_q < y_first_q || y_q >= y_end_q;
  wire read = reading_q && (padding || held_q != 2'd0) && !inp_hold_i && !stop_i;
  localparam [31:0] BUS_BYTES = BUS;
  wire window_ends = left_q <= BUS_BYTES[16:0];
  wire row_ends = window_ends && x_left_q == 16'd1;
  wire last = row_ends && y_left_q == 17'd1;
  wire release_row = read && row_ends && !padding;
  wire signed [SRC_W-1:0] next_window = window_q + $signed({{(SRC_W - 8) {1'b0}}, step_q});
  wire [BEATS_W-1:0] next_vector = vector_q + pitch_q;

  // which bytes of the beat belong to the window, and which of them to the image
  // (thermometers: byte j of the beat is byte source_q + j of the row, and the window has left_q bytes from byte 0 on)
  localparam [BUS-1:0] ALL = {BUS{1'b1}};
  wire [BUS-1:0] behind = first_q ? ALL << offset_q : ALL;
  wire [BUS-1:0] in_window = |left_q[16:BUS_LOG] ? ALL : ~(ALL << left_q[BUS_LOG-1:0]);
  wire [SRC_W-1:0] lead = -source_q;
  wire [SRC_W-1:0] rest = {{(SRC_W - 16) {1'b0}}, row_bytes_q} - source_q;
  wire [BUS-1:0] begun = lead[SRC_W-1] ? ALL : |lead[SRC_W-2:BUS_LOG] ? ~ALL : ALL << lead[BUS_LOG-1:0];
  wire [BUS-1:0] ended = rest[SRC_W-1] ? ALL : |rest[SRC_W-2:BUS_LOG] ? ~ALL : ALL << rest[BUS_LOG-1:0];
  wire [BUS-1:0] enable = behind & in_window;
  wire [BUS-1:0] in_image = padding ? ~ALL : begun & ~ended;

  // words of a row alternate between two memories, so that two neighbours can be read at once
  wire [WORD_W-1:0] word = source_q[BUS_LOG+:WORD_W];
  wire [WORD_W-1:0] word_up = word + 1'b1;
  wire [AXI_DATA_BITS-1:0] even;
  wire [AXI_DATA_BITS-1:0] odd;

  vta_ram_cols #(
      .COL_W (AXI_DATA_BITS),
      .COLS  (1),
      .DEPTH (WORDS),
      .ADDR_W(WORD_W)
  ) u_even (
      .clk_i  (clk_i),
      .we_i   (fill && !fill_word_q[0]),
      .waddr_i({fill_half_q, fill_word_q[WORD_W-1:1]}),
      .wdata_i(data_i),
      .re_i   (read),
      .raddr_i({read_half_q, word_up[WORD_W-1:1]}),
      .rdata_o(even)
  );

  vta_ram_cols #(
      .COL_W (AXI_DATA_BITS),
      .COLS  (1),
      .DEPTH (WORDS),
      .ADDR_W(WORD_W)
  ) u_odd (
      .clk_i  (clk_i),
      .we_i   (fill && fill_word_q[0]),
      .waddr_i({fill_half_q, fill_word_q[WORD_W-1:1]}),
      .wdata_i(data_i),
      .re_i   (read),
      .raddr_i({read_half_q, word[WORD_W-1:1]}),
      .rdata_o(odd)
  );

  always @(posedge clk_i)
    if (!rst_ni) begin
      active_q   <= 1'b0;
      reading_q  <= 1'b0;
      s1_valid_q <= 1'b0;
      held_q     <= 2'd0;
    end else begin
      if (pop_o) active_q <= 1'b1;
      else if (ending) active_q <= 1'b0;
      if (pop_o) reading_q <= 1'b1;
      else if (read && last) reading_q <= 1'b0;
      s1_valid_q <= read;
      if (pop_o) held_q <= 2'd0;
      else if (fill_ends && !release_row) held_q <= held_q + 2'd1;
      else if (!fill_ends && release_row) held_q <= held_q - 2'd1;
    end

  always @(posedge clk_i)
    if (pop_o) begin
      {index_q, set_q} <= follow_i[FOLLOW_W-1-:48];
      pad_q       <= follow_i[82+BEATS_W+:8];
      step_q      <= window_i[71:64];
      row_bytes_q <= window_i[47:32];
      pitch_q     <= {{(BEATS_W - 16) {1'b0}}, next_pitch};
      offset_q    <= next_lane[BUS_LOG-1:0];
      bytes_q     <= next_bytes;
      origin_q    <= next_origin;
      x_all_q     <= follow_i[63:48];
      y_first_q   <= {9'd0, next_y0};
      y_end_q     <= {9'd0, next_y0} + {1'b0, next_y};
      fill_left_q <= next_y;
      fill_last_q <= next_row[WORD_W-1:0];
      fill_word_q <= {WORD_W{1'b0}};
      fill_half_q <= 1'b0;
    end else if (fill) begin
      fill_word_q <= fill_ends ? {WORD_W{1'b0}} : fill_word_q + 1'b1;
      if (fill_ends) begin
        fill_left_q <= fill_left_q - 16'd1;
        fill_half_q <= !fill_half_q;
      end
    end

  always @(posedge clk_i)
    if (pop_o) begin
      y_q         <= 17'd0;
      y_left_q    <= {9'd0, next_y0} + {1'b0, next_y} + {9'd0, next_y1};
      x_left_q    <= follow_i[63:48];
      first_q     <= 1'b1;
      left_q      <= next_bytes;
      window_q    <= next_origin;
      source_q    <= next_origin;
      vector_q    <= next_addr;
      addr_q      <= next_addr;
      read_half_q <= 1'b0;
    end else if (read) begin
      first_q <= window_ends;
      if (window_ends) begin
        left_q   <= bytes_q;
        window_q <= row_ends ? origin_q : next_window;
        source_q <= row_ends ? origin_q : next_window;
        vector_q <= next_vector;
        addr_q   <= next_vector;
        x_left_q <= row_ends ? x_all_q : x_left_q - 16'd1;
      end else begin
        left_q   <= left_q - BUS_BYTES[16:0];
        source_q <= source_q + $signed(BUS_BYTES[SRC_W-1:0]);
        addr_q   <= addr_q + 1'b1;
      end
      if (row_ends) begin
        y_q      <= y_q + 17'd1;
        y_left_q <= y_left_q - 17'd1;
        if (!padding) read_half_q <= !read_half_q;
      end
    end

  always @(posedge clk_i)
    if (read) begin
      s1_last_q   <= last;
      s1_be_q     <= enable;
      s1_inside_q <= in_image;
      s1_shift_q  <= source_q[BUS_LOG-1:0];
      s1_odd_q    <= source_q[BUS_LOG];
      s1_addr_q   <= addr_q;
    end

  // alignment
  wire [2*AXI_DATA_BITS-1:0] words = s1_odd_q ? {even, odd} : {odd, even};
  wire [2*AXI_DATA_BITS-1:0] aligned = words >> {s1_shift_q, 3'b000};

  // write register
  reg                        we_q;
  reg  [            BUS-1:0] be_q;
  reg  [        BEATS_W-1:0] waddr_q;
  reg  [  AXI_DATA_BITS-1:0] wdata_q;
  reg                        give_q;
  reg  [               15:0] give_set_q;
  reg  [               31:0] give_index_q;

  assign we_o         = we_q;
  assign be_o         = be_q;
  assign waddr_o      = waddr_q;
  assign wdata_o      = wdata_q;
  assign give_o       = give_q;
  assign set_o        = give_set_q;
  assign done_index_o = give_index_q;
  assign idle_o       = !active_q && !we_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      we_q   <= 1'b0;
      give_q <= 1'b0;
    end else begin
      we_q   <= s1_valid_q && !stop_i;
      give_q <= ending;
    end

  integer i;
  always @(posedge clk_i)
    if (s1_valid_q) begin
      be_q         <= s1_be_q;
      waddr_q      <= s1_addr_q;
      give_set_q   <= set_q;
      give_index_q <= index_q;
      for (i = 0; i < BUS; i = i + 1) wdata_q[8*i+:8] <= s1_inside_q[i] ? aligned[8*i+:8] : pad_q;
    end

  wire unused = &{1'b0, follow_i, next_row, next_offset, word, word_up, aligned};
endmodule

`resetall
