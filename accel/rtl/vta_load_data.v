// Data side of LOAD and GATHER: turns the beats of each instruction, in order, into scratchpad writes.
// LOAD: one beat a cycle, padding included; the bus waits (beat_want_o low) while padding is written.  Beats of factors
// are kept here: each weight after them is passed on with its factor.
// GATHER: keeps rows of an image in two buffers and writes windows of them as parts of INP vectors.  Rows are filled from
// the bus in order, each completely before its first window is read; a buffer is filled again after the last read of its
// row.  One beat of scratchpad bytes a cycle, rows of padding included.
// Latency: a beat of LOAD that arrives or is made at an edge shows at we_o after it; one of GATHER that is read at an edge,
// one edge later.  Tokens are given with the last write, one cycle before it lands: no reader can be faster.
// Throughput: no cycle is lost between two instructions that wait here.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_load_data #(
    // Bus width in bits: 64, 128 or 256
    parameter AXI_DATA_BITS = 64,
    // Bytes of an INP entry
    parameter INP_LANES     = 4,
    // Beats of a line of INP, a power of two
    parameter LINE_BEATS    = 2,
    // Factors of a beat of weights; granules of weights behind each granule of factors, a power of two, 0: no factors
    parameter FACTORS       = 1,
    parameter FACTOR_GRANULES = 0,
    // Width of beat counts and addresses, at least 10
    parameter BEATS_W       = 20
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    input  wire                       stop_i,
    // next instruction; of its bits those count that the two do not have in other places
    input  wire                       valid_i,
    input  wire                       gather_i,
    input  wire [              255:0] insn_i,
    input  wire [               31:0] index_i,
    input  wire [        BEATS_W-1:0] first_beat_i,
    output wire                       pop_o,
    // OUTPUT will write INP two edges behind the one that ends this cycle (bit 0), three edges behind (bit 1)
    input  wire [                1:0] inp_soon_i,
    // beats: beat_i says that one is there, whether it is wanted or not, so that it need not wait for beat_want_o
    output wire                       beat_want_o,
    input  wire                       beat_i,
    input  wire [  AXI_DATA_BITS-1:0] data_i,
    input  wire                       error_i,
    // scratchpad writes; we_o: a bit for each scratchpad number, be_o: one for each byte of the beat
    output wire [               15:0] we_o,
    output wire [AXI_DATA_BITS/8-1:0] be_o,
    output wire                       expand_o,
    output wire [        BEATS_W-1:0] waddr_o,
    output wire [  AXI_DATA_BITS-1:0] wdata_o,
    output wire [      4*FACTORS-1:0] factor_o,
    // tokens; done_index_o also names the instruction that writes
    output wire                       give_o,
    output wire [               15:0] set_o,
    output wire [               31:0] done_index_o,
    output wire                       idle_o,
    // fault
    output wire                       error_fault_o,
    output wire [               31:0] error_index_o
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam BUS_LOG = $clog2(BUS);
  localparam GRANULE_LOG = (BUS >= 16) ? 0 : $clog2(16 / BUS);
  // beats of a granule of factors
  localparam [1:0] LEADS = 2'd1 << GRANULE_LOG;
  localparam WORDS = `VTA_ROW_BUFFER_BYTES / BUS;
  localparam WORD_W = $clog2(WORDS);
  localparam COUNT_W = (BEATS_W < 16) ? BEATS_W : 16;
  // bytes of a row from its first on, with a sign: x times x_step, and left
  localparam SRC_W = COUNT_W + 10;
  // a row, and a sign
  localparam ROW_W = $clog2(`VTA_ROW_BUFFER_BYTES) + 2;
  localparam [BUS-1:0] ALL = {BUS{1'b1}};
  localparam [31:0] BUS_BYTES = BUS;
  localparam [COUNT_W-1:0] ONE = 1;

  // the instruction at hand; whether it has positions left
  reg                active_q;
  reg                more_q;
  reg                gather_q;
  reg  [       31:0] index_q;
  reg  [       15:0] set_q;
  reg  [        3:0] mem_q;
  reg                inp_q;  // LOAD into INP
  reg                expand_q;
  reg  [        7:0] pad_value_q;
  // what GATHER read
  reg                s1_valid_q;
  reg                s1_last_q;
  reg  [    BUS-1:0] s1_be_q;
  reg  [    BUS-1:0] s1_inside_q;
  reg  [    BUS-1:0] s1_odd_q;
  reg  [BUS_LOG-1:0] s1_shift_q;
  reg  [BEATS_W-1:0] s1_addr_q;
  // rows that arrive
  reg                filling_q;
  reg  [        1:0] held_q;  // buffers that hold a row

  wire [BEATS_W-1:0] addr;
  wire               pad;
  wire               run_last;
  wire               row_last;
  wire               last;

  // beats of factors are to come
  wire [        1:0] lead;
  wire [4*FACTORS-1:0] factor;

  // steps of LOAD, reads and fills of GATHER
  wire               load_want = more_q && !gather_q && !(inp_q && inp_soon_i[0]);
  wire               step = load_want && ~|lead && (pad ? !stop_i : beat_i);
  wire               read = more_q && gather_q && (pad || |held_q) && !inp_soon_i[1] && !stop_i;
  wire               fill_want = filling_q && !held_q[1];
  wire               fill = fill_want && beat_i;

  // the next instruction may be loaded at the last position, and is taken with the last step
  wire               load = !more_q || (last && !gather_q);
  wire               move = !more_q || step || read;
  wire               ending = (step && last) || (s1_valid_q && s1_last_q && !stop_i);
  wire               next = !active_q || ending;

  assign pop_o         = valid_i && next;
  assign beat_want_o   = (load_want && !pad) || fill_want;
  assign error_fault_o = beat_want_o && beat_i && error_i;
  assign error_index_o = index_q;

  vta_load_place #(
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .INP_LANES    (INP_LANES),
      .LINE_BEATS   (LINE_BEATS),
      .BEATS_W      (BEATS_W)
  ) u_place (
      .clk_i       (clk_i),
      .load_i      (load),
      .move_i      (move),
      .gather_i    (gather_i),
      .insn_i      (insn_i),
      .first_beat_i(first_beat_i),
      .addr_o      (addr),
      .pad_o       (pad),
      .run_last_o  (run_last),
      .row_last_o  (row_last),
      .last_o      (last)
  );

  always @(posedge clk_i)
    if (next) begin
      gather_q    <= gather_i;
      index_q     <= index_i;
      set_q       <= insn_i[`VTA_INSN_SET];
      mem_q       <= insn_i[`VTA_LOAD_MEM];
      inp_q       <= !gather_i && insn_i[`VTA_LOAD_MEM] == `VTA_MEM_INP;
      expand_q    <= !gather_i && insn_i[`VTA_LOAD_EXPAND];
      pad_value_q <= gather_i ? insn_i[`VTA_GATHER_PAD_VALUE] : insn_i[`VTA_LOAD_PAD_VALUE];
    end

  // LOAD: factors, in front of each block of beats
  generate
    if (FACTOR_GRANULES > 0) begin : g_factors
      localparam BLOCK_W = $clog2(FACTOR_GRANULES) + GRANULE_LOG;
      localparam GRANULE = BUS << GRANULE_LOG;
      // beats that share a factor
      localparam SHARE_LOG = $clog2((FACTOR_GRANULES << GRANULE_LOG) * FACTORS / (2 * GRANULE));
      reg                 factored_q;
      reg [          1:0] lead_q;
      reg [  BLOCK_W-1:0] block_q;  // beats of the block before the one at hand
      reg [8*GRANULE-1:0] factors_q;
      wire factored = valid_i && !gather_i && insn_i[`VTA_LOAD_EXPAND] && |insn_i[`VTA_LOAD_PITCH];
      wire [  BLOCK_W-1:0] share = block_q >> SHARE_LOG;

      always @(posedge clk_i) begin
        if (next) begin
          factored_q <= factored;
          lead_q     <= factored ? LEADS : 2'd0;
          block_q    <= {BLOCK_W{1'b0}};
        end else begin
          if (step) block_q <= block_q + 1'b1;
          if (|lead_q) lead_q <= lead_q - {1'b0, beat_i};
          else if (step && &block_q && factored_q) lead_q <= LEADS;
        end
      end

      // what data_i shows is taken until it is a beat
      integer k;
      always @(posedge clk_i)
        for (k = 0; k < GRANULE / BUS; k = k + 1)
          if (lead_q == LEADS - k[1:0]) factors_q[k*AXI_DATA_BITS+:AXI_DATA_BITS] <= data_i;

      assign lead   = lead_q;
      assign factor = factored_q ? factors_q[share*4*FACTORS+:4*FACTORS] : {4 * FACTORS{1'b0}};
    end else begin : g_no_factors
      assign lead   = 2'd0;
      assign factor = {4 * FACTORS{1'b0}};
    end
  endgenerate

  // GATHER: the bytes of its windows and rows
  reg  [        7:0] x_step_q;
  reg  [  ROW_W-1:0] row_bytes_q;
  reg  [    BUS-1:0] head_q;  // bytes of its first beat that are in the window, of its last one
  reg  [    BUS-1:0] tail_q;
  reg  [COUNT_W-1:0] rows_q;
  reg  [ WORD_W-1:0] fill_last_q;
  reg  [  SRC_W-1:0] origin_q;  // byte of the row (with a sign) that the first byte of a row's first beat comes from
  reg  [  SRC_W-1:0] window_q;  // the same of the window
  reg  [  SRC_W-1:0] source_q;  // the same of the beat to be read
  reg                first_q;
  reg                read_half_q;
  reg  [COUNT_W-1:0] fill_row_q;  // next row
  reg  [ WORD_W-1:0] fill_word_q;
  reg                fill_half_q;

  wire [BUS_LOG-1:0] offset = insn_i[240+:BUS_LOG];
  wire [BUS_LOG-1:0] end_offset = offset + insn_i[224+:BUS_LOG];
  wire [       15:0] row_end = insn_i[`VTA_GATHER_ROW_BYTES] - 16'd1;
  wire [       15:0] fill_last = {row_end[15:BUS_LOG+GRANULE_LOG], {(BUS_LOG + GRANULE_LOG) {1'b1}}} >> BUS_LOG;
  // -left - offset
  wire [       15:0] left = insn_i[`VTA_GATHER_LEFT];
  wire [  BUS_LOG:0] less_offset = {{BUS_LOG{1'b0}}, 1'b1} - {1'b0, offset};
  wire               offset_sign = |offset[BUS_LOG-1:1];
  wire [  SRC_W-1:0] origin = {{(SRC_W - 16) {!left[15]}}, ~left}
      + {{(SRC_W - BUS_LOG) {offset_sign}}, less_offset[BUS_LOG-1:0]};
  wire [  SRC_W-1:0] source_d = load ? origin : row_last ? origin_q
      : run_last ? window_q + {{(SRC_W - 8) {1'b0}}, x_step_q} : source_q + BUS_BYTES[SRC_W-1:0];

  always @(posedge clk_i)
    if (load) begin
      x_step_q    <= insn_i[`VTA_GATHER_X_STEP];
      row_bytes_q <= insn_i[192+:ROW_W];
      head_q      <= ALL << offset;
      tail_q      <= (end_offset == {BUS_LOG{1'b0}}) ? ALL : ~(ALL << end_offset);
      origin_q    <= origin;
    end

  always @(posedge clk_i)
    if (move) begin
      first_q  <= load || run_last;
      source_q <= source_d;
      if (load || run_last) window_q <= source_d;
    end

  // arrival
  wire fill_ends = fill && fill_word_q == fill_last_q;
  wire release_row = read && row_last && !pad;

  always @(posedge clk_i)
    if (next) begin
      rows_q      <= insn_i[128+:COUNT_W];
      fill_last_q <= fill_last[WORD_W-1:0];
      fill_row_q  <= ONE;
      fill_word_q <= {WORD_W{1'b0}};
    end else if (fill) begin
      fill_word_q <= fill_ends ? {WORD_W{1'b0}} : fill_word_q + 1'b1;
      if (fill_ends) fill_row_q <= fill_row_q + 1'b1;
    end

  always @(posedge clk_i)
    if (!rst_ni) begin
      active_q    <= 1'b0;
      more_q      <= 1'b0;
      filling_q   <= 1'b0;
      held_q      <= 2'd0;
      fill_half_q <= 1'b0;
      read_half_q <= 1'b0;
      s1_valid_q  <= 1'b0;
    end else begin
      if (next) active_q <= valid_i;
      if (next) more_q <= valid_i;
      else if (move && last) more_q <= 1'b0;
      if (next) filling_q <= valid_i && gather_i;
      else if (fill_ends && fill_row_q == rows_q) filling_q <= 1'b0;
      if (fill_ends && !release_row) held_q <= held_q + 2'd1;
      else if (!fill_ends && release_row) held_q <= held_q - 2'd1;
      if (fill_ends) fill_half_q <= !fill_half_q;
      if (release_row) read_half_q <= !read_half_q;
      s1_valid_q <= read;
    end

  // which bytes of the beat belong to the window, and which of them to the image
  // (thermometers: byte j of the beat is byte source_q + j of the row)
  wire [BUS-1:0] enable = (first_q ? head_q : ALL) & (run_last ? tail_q : ALL);
  wire [BUS_LOG-1:0] low = source_q[BUS_LOG-1:0];
  wire ahead = source_q[SRC_W-1];
  wire [BUS-1:0] begun = !ahead ? ALL : &source_q[SRC_W-1:BUS_LOG] ? ~(ALL >> low) : ~ALL;
  wire [ROW_W-1:0] rest = row_bytes_q - source_q[ROW_W-1:0];
  wire behind = rest[ROW_W-1] || (!ahead && |source_q[SRC_W-2:ROW_W-1]);
  wire [BUS-1:0] ended = behind ? ALL : |rest[ROW_W-2:BUS_LOG] ? ~ALL : ALL << rest[BUS_LOG-1:0];

  // Words of a row alternate between two memories, so that two neighbours can be read at once.  What data_i shows is
  // written wherever there is room: a beat that is one, which is known late and far away, only moves the place.
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
      .we_i   (!held_q[1] && !fill_word_q[0]),
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
      .we_i   (!held_q[1] && fill_word_q[0]),
      .waddr_i({fill_half_q, fill_word_q[WORD_W-1:1]}),
      .wdata_i(data_i),
      .re_i   (read),
      .raddr_i({read_half_q, word[WORD_W-1:1]}),
      .rdata_o(odd)
  );

  // none of its bytes are inside while nothing was read
  always @(posedge clk_i)
    if (!read) s1_inside_q <= ~ALL;
    else s1_inside_q <= pad ? ~ALL : begun & ~ended;

  // a lane's byte comes from the odd memory if its word, or the one behind it, is odd
  always @(posedge clk_i)
    if (read) begin
      s1_last_q  <= last;
      s1_be_q    <= enable;
      s1_odd_q   <= {BUS{!word[0]}} ^ (ALL << low);
      s1_shift_q <= low;
      s1_addr_q  <= addr;
    end

  // alignment: bytes of two words, turned
  reg [AXI_DATA_BITS-1:0] aligned;
  integer b;
  always @* begin
    aligned = even;
    for (b = 0; b < BUS; b = b + 1) if (s1_odd_q[b]) aligned[8*b+:8] = odd[8*b+:8];
    for (b = 0; b < BUS_LOG; b = b + 1)
      if (s1_shift_q[b]) aligned = (aligned >> (8 << b)) | (aligned << (AXI_DATA_BITS - (8 << b)));
  end

  // write register
  reg  [             15:0] we_q;
  reg  [          BUS-1:0] be_q;
  reg                      expanding_q;
  reg  [      BEATS_W-1:0] waddr_q;
  reg  [AXI_DATA_BITS-1:0] wdata_q;
  reg  [    4*FACTORS-1:0] factor_q;
  reg                      give_q;
  reg  [             15:0] give_set_q;
  reg  [             31:0] give_index_q;
  localparam [15:0] INP = 16'd1 << `VTA_MEM_INP;

  assign we_o         = we_q;
  assign be_o         = be_q;
  assign expand_o     = expanding_q;
  assign waddr_o      = waddr_q;
  assign wdata_o      = wdata_q;
  assign factor_o     = factor_q;
  assign give_o       = give_q;
  assign set_o        = give_set_q;
  assign done_index_o = give_index_q;
  assign idle_o       = !active_q && !give_q;

  always @(posedge clk_i)
    if (!rst_ni) begin
      we_q   <= 16'd0;
      give_q <= 1'b0;
    end else begin
      we_q   <= stop_i ? 16'd0 : s1_valid_q ? INP : step ? 16'd1 << mem_q : 16'd0;
      give_q <= ending && !stop_i;
    end

  // loaded in every cycle: whether there is a step is known late, and said by we_q
  integer i;
  always @(posedge clk_i) begin
    be_q        <= gather_q ? s1_be_q : ALL;
    expanding_q <= expand_q;
    factor_q    <= factor;
    waddr_q     <= gather_q ? s1_addr_q : addr;
    for (i = 0; i < BUS; i = i + 1)
      wdata_q[8*i+:8] <= s1_inside_q[i] ? aligned[8*i+:8] : (gather_q || pad) ? pad_value_q : data_i[8*i+:8];
    give_set_q   <= set_q;
    give_index_q <= index_q;
  end

  wire unused = &{1'b0, insn_i, row_end, fill_last, less_offset, word, word_up};
endmodule

`resetall
