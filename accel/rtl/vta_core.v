// The core: front with the queues, semaphores, LOAD and STORE with the two sides of the AXI master, execution.
// Contract: control state, not the scratchpads, is held in reset from the cycle after soon_i is low to that after it is
// high again; counters and fault outlast that until clear_i.  After a fault or abort_soon_i nothing new starts, bursts
// that were begun end; drained_o tells when none is left.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_core #(
    // Inputs of a dot product: 4 to 64, a power of two (as every size but MULTIPLIER_BITS)
    parameter BLOCK_IN          = 4,
    // Output lanes: 4 to 64
    parameter BLOCK_OUT         = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS          = 8,
    // Entries of the scratchpads: 8 to 65536
    parameter INP_DEPTH         = 1024,
    parameter WGT_DEPTH         = 1024,
    parameter ACC_DEPTH         = 1024,
    // Accumulator banks: 1 to 16, at least 8 entries each
    parameter ACC_BANKS         = 4,
    parameter OUT_DEPTH         = 1024,
    parameter UOP_DEPTH         = 512,
    parameter PRM_DEPTH         = 64,
    parameter TABLES            = 0,
    // Entries of coefficients, 0: no row unit
    parameter COF_DEPTH         = 0,
    // Lanes of the output stage: 1 to BLOCK_OUT
    parameter OUT_LANES         = 2,
    // Bits of a multiplier without its sign: 8 to 31
    parameter MULTIPLIER_BITS   = 31,
    // Bus width in bits: 64 to 256
    parameter AXI_DATA_BITS     = 64,
    // Longest burst: 1 to 64 beats, at most 4096 bytes
    parameter BURST_BEATS       = 64,
    // Bursts in flight: 1 to 64
    parameter READ_OUTSTANDING  = 16,
    parameter WRITE_OUTSTANDING = 16,
    // Instructions in each queue: 2 to 64
    parameter QUEUE_DEPTH       = 8,
    // Products of a lane that multiplier blocks make, LUTs the others: at least 4; BLOCK_IN or more are all of them
    parameter DSP_PRODUCTS      = 64
) (
    input  wire                     clk_i,
    // control and status
    input  wire                     soon_i,
    input  wire                     clear_i,
    input  wire                     run_i,
    input  wire                     abort_soon_i,
    input  wire [             31:0] window_base_i,
    input  wire [             31:0] window_bytes_i,
    input  wire [             31:0] program_i,
    input  wire [             31:0] count_i,
    input  wire                     watchdog_i,
    output wire                     done_o,
    output wire                     drained_o,
    // a fault was seen; a few cycles later which
    output wire                     fault_stop_o,
    output wire                     fault_o,
    output wire [              7:0] fault_code_o,
    output wire [             31:0] fault_index_o,
    // counters: see vta_counters
    output wire [             31:0] cycles_o,
    output wire [             31:0] instructions_o,
    input  wire [              4:0] counter_i,
    output wire                     counter_ready_o,
    output wire [             31:0] counter_o,
    // AXI4 master without its constant signals
    output wire [             31:0] m_axi_awaddr,
    output wire [              7:0] m_axi_awlen,
    output wire                     m_axi_awvalid,
    input  wire                     m_axi_awready,
    output wire [AXI_DATA_BITS-1:0] m_axi_wdata,
    output wire                     m_axi_wlast,
    output wire                     m_axi_wvalid,
    input  wire                     m_axi_wready,
    input  wire                     m_axi_berror,
    input  wire                     m_axi_bvalid,
    output wire                     m_axi_bready,
    output wire [             31:0] m_axi_araddr,
    output wire [              7:0] m_axi_arlen,
    output wire                     m_axi_arvalid,
    input  wire                     m_axi_arready,
    input  wire [AXI_DATA_BITS-1:0] m_axi_rdata,
    input  wire                     m_axi_rerror,
    input  wire                     m_axi_rlast,
    input  wire                     m_axi_rvalid,
    output wire                     m_axi_rready
);
  localparam BUS = AXI_DATA_BITS / 8;
  // beats of the largest scratchpad give the width of what is legal, PLACE_W; the front counts further, and
  // memories have room for more, BEATS_W
  localparam INP_LANES = BLOCK_IN * WGT_BITS / 8;
  localparam INP_BEATS = INP_DEPTH * INP_LANES / BUS;
  localparam WGT_BEATS = WGT_DEPTH / BUS * INP_LANES * BLOCK_OUT;
  localparam ACC_BEATS = ACC_DEPTH * BLOCK_OUT * 4 / BUS;
  localparam PRM_BEATS = PRM_DEPTH * BLOCK_OUT * `VTA_PRM_LANE_BYTES / BUS;
  localparam OUT_BEATS = OUT_DEPTH * BLOCK_OUT / BUS;
  localparam UOP_BEATS = UOP_DEPTH * `VTA_UOP_BYTES / BUS;
  localparam MAX_1 = (INP_BEATS > WGT_BEATS) ? INP_BEATS : WGT_BEATS;
  localparam MAX_2 = (ACC_BEATS > PRM_BEATS) ? ACC_BEATS : PRM_BEATS;
  localparam MAX_3 = (OUT_BEATS > UOP_BEATS) ? OUT_BEATS : UOP_BEATS;
  localparam TAB_BEATS = TABLES * `VTA_TABLE_RECORDS * `VTA_TABLE_RECORD_BYTES / BUS;
  localparam COF_BEATS = COF_DEPTH * (BLOCK_OUT / `VTA_ROW_QUARTERS) * `VTA_COF_RECORD_BYTES / BUS;
  localparam MAX_4 = (MAX_2 > MAX_3) ? MAX_2 : MAX_3;
  localparam MAX_5 = (MAX_1 > MAX_4) ? MAX_1 : MAX_4;
  localparam MAX_6 = (COF_BEATS > TAB_BEATS) ? COF_BEATS : TAB_BEATS;
  localparam MAX_BEATS = (MAX_5 > MAX_6) ? MAX_5 : MAX_6;
  localparam PLACE_W = (MAX_BEATS > 512) ? $clog2(MAX_BEATS) + 1 : 10;
  localparam BEATS_W = (PLACE_W > 18) ? PLACE_W : 18;
  // GATHER may read a row of an image for each beat of INP
  localparam IMAGE_W = $clog2(INP_BEATS) + $clog2(`VTA_ROW_BUFFER_BYTES / BUS) + 1;
  localparam LENGTH_W = (IMAGE_W > BEATS_W) ? IMAGE_W : BEATS_W + 1;

  // bytes of a line of INP
  localparam LINE_1 = (INP_LANES > BLOCK_OUT) ? INP_LANES : BLOCK_OUT;
  localparam LINE_2 = (BUS > 16) ? BUS : 16;
  localparam LINE = (LINE_1 > LINE_2) ? LINE_1 : LINE_2;

  // weights that are multiplied while LOAD widens them: bits of those that share a factor, factors of a beat, granules
  // behind each granule of factors; 0 where entries are too small
  localparam SHARE_W = INP_LANES * WGT_BITS / 2;
  localparam FACTORS = (AXI_DATA_BITS > SHARE_W) ? AXI_DATA_BITS / SHARE_W : 1;
  localparam FACTOR_GRANULES = (INP_LANES * BLOCK_OUT >= 2 * LINE_2) ? INP_LANES * WGT_BITS / 8 : 0;

  localparam ROW = (COF_DEPTH != 0) ? 1 : 0;

  // queues and semaphores: bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE, 4 ROW.  able: has an instruction and could start it
  wire [4:0] head;
  wire [4:0] able;
  wire [4:0] want;
  wire [4:0] start;
  wire [4:0] give;
  wire [4:0] idle;
  wire [79:0] set;
  wire [159:0] done_index;

  wire [31:0] dispatch_index;
  wire [255:0] load_insn, compute_insn, output_insn, store_insn, row_insn;
  wire [3:0] compute_once;
  wire [1:0] output_once;
  wire [31:0] load_index, compute_index, output_index, store_index, row_index;
  wire [1:0] load_one, store_one;
  wire [LENGTH_W-1:0] load_length, store_length;
  wire [BEATS_W-1:0] load_first, store_first;

  // reports of faults: see vta_stop
  wire dispatch_fault, fetch_range, fetch_error, load_range, load_error;
  wire compute_fault, output_fault, row_fault, store_range, store_error;
  wire [2:0] clash_read;
  wire [3:0] clash_write;
  wire [4:0] overflow;
  wire overflow_soon, due;
  wire [7:0] dispatch_code;
  wire [31:0] fetch_range_index, fetch_error_index, load_range_index, load_error_index;
  wire [31:0] compute_fault_index, store_range_index;
  wire [95:0] read_index;

  // low: the unit is held in reset.  One register for all would drive a thousand others all over the chip
  reg awake_front_q, awake_load_q, awake_exec_q, awake_store_q, awake_core_q;
  (* keep *) always @(posedge clk_i) awake_front_q <= soon_i;
  (* keep *) always @(posedge clk_i) awake_load_q <= soon_i;
  (* keep *) always @(posedge clk_i) awake_exec_q <= soon_i;
  (* keep *) always @(posedge clk_i) awake_store_q <= soon_i;
  (* keep *) always @(posedge clk_i) awake_core_q <= soon_i;

  wire stop_start, stop_load, stop_compute, stop_output, stop_store, stop_row;
  assign want = able & {5{!stop_start}};

  vta_stop #(
      .ROW(ROW)
  ) u_stop (
      .clk_i              (clk_i),
      .rst_ni             (awake_core_q),
      .clear_i            (clear_i),
      .run_i              (run_i),
      .abort_soon_i       (abort_soon_i),
      .dispatch_i         (dispatch_fault),
      .dispatch_code_i    (dispatch_code),
      .dispatch_index_i   (dispatch_index),
      .watchdog_i         (watchdog_i),
      .fetch_i            ({fetch_range, fetch_error}),
      .fetch_index_i      ({fetch_range_index, fetch_error_index}),
      .load_i             ({load_range, load_error}),
      .load_index_i       ({load_range_index, load_error_index}),
      .store_range_i      (store_range),
      .store_range_index_i(store_range_index),
      .compute_i          (compute_fault),
      .compute_index_i    (compute_fault_index),
      .output_i           (output_fault),
      .row_i              (row_fault),
      .clash_read_i       (clash_read),
      .read_index_i       (read_index),
      .done_index_i       (done_index),
      .overflow_soon_i    (overflow_soon),
      .overflow_i         (overflow),
      .clash_write_i      (clash_write),
      .store_error_i      (store_error),
      .due_o              (due),
      .stop_o             ({stop_row, stop_store, stop_output, stop_compute, stop_load, stop_start}),
      .fault_stop_o       (fault_stop_o),
      .fault_o            (fault_o),
      .fault_code_o       (fault_code_o),
      .fault_index_o      (fault_index_o)
  );

  // fetch, dispatcher, queues
  wire fetch_valid, fetch_ready, fetch_beat;
  wire [31:0] fetch_offset;
  wire [6:0] fetch_beats;

  vta_front #(
      .BLOCK_IN     (BLOCK_IN),
      .BLOCK_OUT    (BLOCK_OUT),
      .WGT_BITS     (WGT_BITS),
      .INP_DEPTH    (INP_DEPTH),
      .WGT_DEPTH    (WGT_DEPTH),
      .ACC_DEPTH    (ACC_DEPTH),
      .OUT_DEPTH    (OUT_DEPTH),
      .UOP_DEPTH    (UOP_DEPTH),
      .PRM_DEPTH    (PRM_DEPTH),
      .TABLES       (TABLES),
      .COF_DEPTH    (COF_DEPTH),
      .AXI_DATA_BITS(AXI_DATA_BITS),
      .LINE         (LINE),
      .BURST_BEATS  (BURST_BEATS),
      .QUEUE_DEPTH  (QUEUE_DEPTH),
      .BEATS_W      (BEATS_W),
      .LENGTH_W     (LENGTH_W),
      // a vector is more than one slot
      .OUTPUT_RESTS (BLOCK_OUT > OUT_LANES)
  ) u_front (
      .clk_i              (clk_i),
      .rst_ni             (awake_front_q),
      .clear_i            (clear_i),
      .run_i              (run_i),
      .window_bytes_i     (window_bytes_i),
      .program_i          (program_i),
      .count_i            (count_i),
      .fetch_valid_o      (fetch_valid),
      .fetch_offset_o     (fetch_offset),
      .fetch_beats_o      (fetch_beats),
      .fetch_ready_i      (fetch_ready),
      .fetch_beat_i       (fetch_beat),
      .rdata_i            (m_axi_rdata),
      .rerror_i           (m_axi_rerror),
      .head_o             (head),
      .start_i            (start),
      .load_insn_o        (load_insn),
      .load_index_o       (load_index),
      .load_one_o         (load_one),
      .load_length_o      (load_length),
      .load_first_o       (load_first),
      .compute_insn_o     (compute_insn),
      .compute_once_o     (compute_once),
      .compute_index_o    (compute_index),
      .output_insn_o      (output_insn),
      .output_once_o      (output_once),
      .output_index_o     (output_index),
      .store_insn_o       (store_insn),
      .store_index_o      (store_index),
      .store_one_o        (store_one),
      .store_length_o     (store_length),
      .store_first_o      (store_first),
      .row_insn_o         (row_insn),
      .row_index_o        (row_index),
      // FINISH waits for what the last instruction may have brought
      .idle_i             (idle & {5{!due}}),
      .done_o             (done_o),
      .dispatch_fault_o   (dispatch_fault),
      .dispatch_code_o    (dispatch_code),
      .dispatch_index_o   (dispatch_index),
      .fetch_range_o      (fetch_range),
      .fetch_range_index_o(fetch_range_index),
      .fetch_error_o      (fetch_error),
      .fetch_error_index_o(fetch_error_index)
  );

  vta_sems u_sems (
      .clk_i     (clk_i),
      .rst_ni    (awake_core_q),
      .want_i    (want),
      .wait_i    ({
        row_insn[`VTA_INSN_WAIT], store_insn[`VTA_INSN_WAIT], output_insn[`VTA_INSN_WAIT],
        compute_insn[`VTA_INSN_WAIT], load_insn[`VTA_INSN_WAIT]
      }),
      .grant_o   (start),
      .give_i    (give),
      .set_i     (set),
      .soon_o    (overflow_soon),
      .overflow_o(overflow)
  );

  // LOAD and the read side of the bus
  wire load_beat, load_waits, load_expand, read_drained;
  wire [15:0] load_we;
  wire [PLACE_W-1:0] load_waddr;
  wire [AXI_DATA_BITS-1:0] load_wdata;
  wire [4*FACTORS-1:0] load_factor;
  wire [BUS-1:0] load_be;
  wire [1:0] inp_soon;

  vta_read_side #(
      .AXI_DATA_BITS   (AXI_DATA_BITS),
      .BURST_BEATS     (BURST_BEATS),
      .READ_OUTSTANDING(READ_OUTSTANDING),
      .INP_LANES       (INP_LANES),
      .LINE            (LINE),
      .FACTORS         (FACTORS),
      .FACTOR_GRANULES (FACTOR_GRANULES),
      .BEATS_W         (PLACE_W),
      .LENGTH_W        (LENGTH_W)
  ) u_read_side (
      .clk_i         (clk_i),
      .rst_ni        (awake_load_q),
      .stop_i        (stop_load),
      .window_base_i (window_base_i),
      .window_bytes_i(window_bytes_i),
      .fetch_valid_i (fetch_valid),
      .fetch_offset_i(fetch_offset),
      .fetch_beats_i (fetch_beats),
      .fetch_ready_o (fetch_ready),
      .fetch_beat_o  (fetch_beat),
      .head_valid_i  (head[0]),
      .insn_i        (load_insn),
      .index_i       (load_index),
      .one_i         (load_one),
      .length_i      (load_length),
      .first_beat_i  (load_first[PLACE_W-1:0]),
      .want_o        (able[0]),
      .start_i       (start[0]),
      .inp_soon_i    (inp_soon),
      .we_o          (load_we),
      .be_o          (load_be),
      .expand_o      (load_expand),
      .waddr_o       (load_waddr),
      .wdata_o       (load_wdata),
      .factor_o      (load_factor),
      .give_o        (give[0]),
      .set_o         (set[0*16+:16]),
      .done_index_o  (done_index[0*32+:32]),
      .idle_o        (idle[0]),
      .beat_o        (load_beat),
      .waits_o       (load_waits),
      .drained_o     (read_drained),
      .range_fault_o (load_range),
      .range_index_o (load_range_index),
      .error_fault_o (load_error),
      .error_index_o (load_error_index),
      .m_axi_araddr  (m_axi_araddr),
      .m_axi_arlen   (m_axi_arlen),
      .m_axi_arvalid (m_axi_arvalid),
      .m_axi_arready (m_axi_arready),
      .m_axi_rdata   (m_axi_rdata),
      .m_axi_rerror  (m_axi_rerror),
      .m_axi_rlast   (m_axi_rlast),
      .m_axi_rvalid  (m_axi_rvalid),
      .m_axi_rready  (m_axi_rready)
  );

  // COMPUTE, OUTPUT, ROW and the scratchpads
  wire gemm_uop, alu_uop, vector, out_re;
  wire [PLACE_W-1:0] out_raddr;
  wire [AXI_DATA_BITS-1:0] out_rdata;

  vta_exec #(
      .BLOCK_IN       (BLOCK_IN),
      .BLOCK_OUT      (BLOCK_OUT),
      .WGT_BITS       (WGT_BITS),
      .INP_DEPTH      (INP_DEPTH),
      .WGT_DEPTH      (WGT_DEPTH),
      .ACC_DEPTH      (ACC_DEPTH),
      .ACC_BANKS      (ACC_BANKS),
      .OUT_DEPTH      (OUT_DEPTH),
      .UOP_DEPTH      (UOP_DEPTH),
      .PRM_DEPTH      (PRM_DEPTH),
      .TABLES         (TABLES),
      .COF_DEPTH      (COF_DEPTH),
      .OUT_LANES      (OUT_LANES),
      .MULTIPLIER_BITS(MULTIPLIER_BITS),
      .AXI_DATA_BITS  (AXI_DATA_BITS),
      .FACTORS        (FACTORS),
      .LINE           (LINE),
      .BEATS_W        (BEATS_W),
      .DSP_PRODUCTS   (DSP_PRODUCTS)
  ) u_exec (
      .clk_i                (clk_i),
      .rst_ni               (awake_exec_q),
      .stop_i               ({stop_row, stop_output, stop_compute}),
      .head_i               ({head[4], head[2:1]}),
      .compute_insn_i       (compute_insn),
      .compute_once_i       (compute_once),
      .compute_index_i      (compute_index),
      .output_insn_i        (output_insn),
      .output_once_i        (output_once),
      .output_index_i       (output_index),
      .row_insn_i           (row_insn),
      .row_index_i          (row_index),
      .want_o               ({able[4], able[2:1]}),
      .start_i              ({start[4], start[2:1]}),
      .load_we_i            (load_we),
      .load_be_i            (load_be),
      .load_expand_i        (load_expand),
      .load_waddr_i         ({{(BEATS_W - PLACE_W) {1'b0}}, load_waddr}),
      .load_wdata_i         (load_wdata),
      .load_factor_i        (load_factor),
      .inp_soon_o           (inp_soon),
      .out_re_i             (out_re),
      .out_raddr_i          ({{(BEATS_W - PLACE_W) {1'b0}}, out_raddr}),
      .out_rdata_o          (out_rdata),
      .give_o               ({give[4], give[2:1]}),
      .set_o                ({set[4*16+:16], set[16+:32]}),
      .done_index_o         ({done_index[4*32+:32], done_index[32+:64]}),
      .idle_o               ({idle[4], idle[2:1]}),
      .gemm_uop_o           (gemm_uop),
      .alu_uop_o            (alu_uop),
      .vector_o             (vector),
      .fault_o              ({row_fault, output_fault, compute_fault}),
      .compute_fault_index_o(compute_fault_index),
      .read_index_o         (read_index),
      .clash_read_o         (clash_read),
      .clash_write_o        (clash_write)
  );

  // STORE
  wire store_drained, store_beat;

  vta_store #(
      .AXI_DATA_BITS    (AXI_DATA_BITS),
      .BURST_BEATS      (BURST_BEATS),
      .WRITE_OUTSTANDING(WRITE_OUTSTANDING),
      .BEATS_W          (PLACE_W),
      .LENGTH_W         (LENGTH_W)
  ) u_store (
      .clk_i         (clk_i),
      .rst_ni        (awake_store_q),
      .stop_i        (stop_store),
      .window_base_i (window_base_i),
      .window_bytes_i(window_bytes_i),
      .head_valid_i  (head[3]),
      .insn_i        (store_insn),
      .index_i       (store_index),
      .one_i         (store_one),
      .length_i      (store_length),
      .first_beat_i  (store_first[PLACE_W-1:0]),
      .want_o        (able[3]),
      .start_i       (start[3]),
      .re_o          (out_re),
      .raddr_o       (out_raddr),
      .rdata_i       (out_rdata),
      .give_o        (give[3]),
      .set_o         (set[3*16+:16]),
      .done_index_o  (done_index[3*32+:32]),
      .idle_o        (idle[3]),
      .drained_o     (store_drained),
      .beat_o        (store_beat),
      .range_fault_o (store_range),
      .range_index_o (store_range_index),
      .error_fault_o (store_error),
      .m_axi_awaddr  (m_axi_awaddr),
      .m_axi_awlen   (m_axi_awlen),
      .m_axi_awvalid (m_axi_awvalid),
      .m_axi_awready (m_axi_awready),
      .m_axi_wdata   (m_axi_wdata),
      .m_axi_wlast   (m_axi_wlast),
      .m_axi_wvalid  (m_axi_wvalid),
      .m_axi_wready  (m_axi_wready),
      .m_axi_berror  (m_axi_berror),
      .m_axi_bvalid  (m_axi_bvalid),
      .m_axi_bready  (m_axi_bready)
  );

  assign drained_o = read_drained && store_drained;

  // counters, in the order of their registers; waits for tokens a cycle late, which is before the program is done, and
  // INSTRUCTIONS from the dispatcher
  reg [4:0] token_q;
  always @(posedge clk_i)
    if (!awake_core_q) token_q <= 5'd0;
    else token_q <= run_i ? want & ~start : 5'd0;

  localparam COUNTERS = (ROW != 0) ? 18 : 16;
  wire [17:0] events = {
    token_q[4], !idle[4],
    store_beat, load_beat, fetch_beat,
    vector, alu_uop, gemm_uop,
    !idle[3] && !store_beat, token_q[3], !idle[3],
    token_q[2], !idle[2],
    token_q[1], !idle[1],
    load_waits, token_q[0], !idle[0]
  };

  vta_counters #(
      .COUNTERS(COUNTERS),
      .BEATS   (18'hE000),
      .BEAT_LOG($clog2(BUS))
  ) u_counters (
      .clk_i   (clk_i),
      .rst_ni  (!clear_i),
      .count_i (run_i),
      .cycles_o(cycles_o),
      .event_i (events[COUNTERS-1:0]),
      .read_i  (counter_i),
      .ready_o (counter_ready_o),
      .value_o (counter_o)
  );
  assign instructions_o = dispatch_index;

  wire unused = &{1'b0, load_first, store_first, events};
endmodule

`resetall
