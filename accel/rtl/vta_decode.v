// Static checks of one instruction, before it enters a queue: operation code, reserved bits, closed sets, zero
// counts, alignment, ranges of micro-ops and coefficients; and what the scratchpad range of a transfer is checked against.
// Contract: purely combinational; the lowest bit of flaws_o gives the fault code.  A transfer must also fit:
// beats of its padded rows <= room_o - begin_o, else it is SRAM_RANGE; of planes_o lines, and begin_o leaves out what
// lies between the first plane and the last.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "vta_isa.vh"

module vta_decode #(
    // Sizes of the configuration
    parameter BLOCK_IN      = 4,
    parameter BLOCK_OUT     = 4,
    // Bits of a weight: 8, or 4 with operands of two entries of INP
    parameter WGT_BITS      = 8,
    parameter INP_DEPTH     = 1024,
    parameter WGT_DEPTH     = 1024,
    parameter ACC_DEPTH     = 1024,
    parameter OUT_DEPTH     = 1024,
    parameter UOP_DEPTH     = 512,
    parameter PRM_DEPTH     = 64,
    parameter TABLES        = 0,
    // Entries of coefficients, 0: no row unit, and ROW is no instruction
    parameter COF_DEPTH     = 0,
    parameter AXI_DATA_BITS = 64,
    // Bytes of a line of INP
    parameter LINE          = 16,
    // Width of beat counts and beat addresses: holds one more than the beats of the largest scratchpad
    parameter BEATS_W       = 20
) (
    input  wire [      255:0] insn_i,
    // units: bit 0 LOAD, 1 COMPUTE, 2 OUTPUT, 3 STORE, 4 ROW; none of them for FINISH
    output wire [        4:0] unit_o,
    output wire               finish_o,
    // first beat address of a transfer
    output wire [BEATS_W-1:0] first_beat_o,
    // range of a transfer, in beats, of a LOAD with pitch in lines: where it begins, and how much there is
    output wire               transfer_o,
    output wire               planes_o,
    output wire [       23:0] begin_o,
    output wire [BEATS_W-1:0] room_o,
    // unknown opcode (bit 0), reserved bits, illegal field, range of micro-ops or coefficients (bit 3)
    output wire [        3:0] flaws_o
);
  localparam BUS = AXI_DATA_BITS / 8;
  localparam GRANULE = (BUS > 16) ? BUS : 16;
  localparam INP_B = BLOCK_IN * WGT_BITS / 8;
  localparam WGT_B = INP_B * BLOCK_OUT;
  localparam ACC_B = BLOCK_OUT * 4;
  localparam OUT_B = BLOCK_OUT;
  localparam UOP_B = `VTA_UOP_BYTES;
  localparam PRM_B = BLOCK_OUT * `VTA_PRM_LANE_BYTES;
  localparam COF_B = BLOCK_OUT / `VTA_ROW_QUARTERS * `VTA_COF_RECORD_BYTES;
  localparam WIDE = 4 * BUS;
  localparam TWICE = 2 * BUS;
  localparam [31:0] INP_BEATS = INP_DEPTH * INP_B / BUS;
  localparam [31:0] WGT_BEATS = WGT_DEPTH * WGT_B / BUS;
  localparam [31:0] ACC_BEATS = ACC_DEPTH * ACC_B / BUS;
  localparam [31:0] OUT_BEATS = OUT_DEPTH * OUT_B / BUS;
  localparam [31:0] UOP_BEATS = UOP_DEPTH * UOP_B / BUS;
  localparam [31:0] PRM_BEATS = PRM_DEPTH * PRM_B / BUS;
  localparam [31:0] TAB_BEATS = TABLES * `VTA_TABLE_RECORDS * `VTA_TABLE_RECORD_BYTES / BUS;
  localparam [31:0] COF_BEATS = COF_DEPTH * COF_B / BUS;
  localparam [31:0] TWICE_BEATS = WGT_DEPTH * WGT_B / TWICE;
  localparam [31:0] WIDE_BEATS = ACC_DEPTH * ACC_B / WIDE;
  // logarithms: beats an element (0 where a beat holds several), elements a beat (0 where an element takes several)
  localparam [31:0] INP_MUL = (INP_B > BUS) ? $clog2(INP_B / BUS) : 0;
  localparam [31:0] INP_DIV = (INP_B > BUS) ? 0 : $clog2(BUS / INP_B);
  localparam [31:0] WGT_MUL = (WGT_B > BUS) ? $clog2(WGT_B / BUS) : 0;
  localparam [31:0] WGT_DIV = (WGT_B > BUS) ? 0 : $clog2(BUS / WGT_B);
  localparam [31:0] ACC_MUL = (ACC_B > BUS) ? $clog2(ACC_B / BUS) : 0;
  localparam [31:0] ACC_DIV = (ACC_B > BUS) ? 0 : $clog2(BUS / ACC_B);
  localparam [31:0] OUT_MUL = (OUT_B > BUS) ? $clog2(OUT_B / BUS) : 0;
  localparam [31:0] OUT_DIV = (OUT_B > BUS) ? 0 : $clog2(BUS / OUT_B);
  localparam [31:0] UOP_DIV = $clog2(BUS / UOP_B);
  localparam [31:0] TAB_DIV = $clog2(BUS / `VTA_TABLE_RECORD_BYTES);
  localparam [31:0] PRM_MUL = $clog2(PRM_B / BUS);
  localparam [31:0] COF_MUL = (COF_B > BUS) ? $clog2(COF_B / BUS) : 0;
  localparam [31:0] COF_DIV = (COF_B > BUS) ? 0 : $clog2(BUS / COF_B);
  localparam [31:0] TWICE_MUL = (WGT_B > TWICE) ? $clog2(WGT_B / TWICE) : 0;
  localparam [31:0] TWICE_DIV = (WGT_B > TWICE) ? 0 : $clog2(TWICE / WGT_B);
  localparam [31:0] WIDE_MUL = (ACC_B > WIDE) ? $clog2(ACC_B / WIDE) : 0;
  localparam [31:0] WIDE_DIV = (ACC_B > WIDE) ? 0 : $clog2(WIDE / ACC_B);

  localparam [7:0] LOAD = `VTA_OP_LOAD, STORE = `VTA_OP_STORE, GEMM = `VTA_OP_GEMM, ALU = `VTA_OP_ALU;
  localparam [7:0] REQUANT = `VTA_OP_REQUANT, FINISH = `VTA_OP_FINISH, GATHER = `VTA_OP_GATHER;
  localparam [7:0] ROW = `VTA_OP_ROW;

  // entries and granules of a line
  localparam [31:0] LINE_LOG = $clog2(LINE / INP_B);
  localparam [31:0] LINES = INP_DEPTH >> LINE_LOG;
  localparam [15:0] LINE_MASK = (16'd1 << LINE_LOG) - 16'd1;
  localparam [31:0] LINE_GRANULES = LINE / GRANULE;
  localparam [15:0] RUN_MASK = LINE_GRANULES[15:0] - 16'd1;

  // the low bits of an opcode tell the instructions apart, all but ROW, whose low bits no other has; with others above
  // them it is illegal, whatever they say
  wire [2:0] opcode = insn_i[2:0];
  wire is_row = COF_DEPTH != 0 && opcode == ROW[2:0];
  wire known = ~|insn_i[7:4] && (is_row ? insn_i[3] : |opcode && !insn_i[3]);
  wire is_load = opcode == LOAD[2:0];
  wire is_store = opcode == STORE[2:0];
  wire is_gemm = opcode == GEMM[2:0];
  wire is_alu = opcode == ALU[2:0];
  wire is_requant = opcode == REQUANT[2:0];
  wire is_gather = opcode == GATHER[2:0];
  wire is_transfer = is_load || is_store || is_gather;
  assign finish_o = opcode == FINISH[2:0];

  // reserved bits
  reg [255:0] reserved;
  always @* begin
    reserved = 256'd0;
    case (opcode)
      LOAD[2:0]: reserved = `VTA_LOAD_RESERVED;
      STORE[2:0]: reserved = `VTA_STORE_RESERVED;
      GEMM[2:0]: reserved = `VTA_GEMM_RESERVED;
      ALU[2:0]: reserved = `VTA_ALU_RESERVED;
      REQUANT[2:0]: reserved = `VTA_REQUANT_RESERVED;
      FINISH[2:0]: reserved = `VTA_FINISH_RESERVED;
      GATHER[2:0]: reserved = `VTA_GATHER_RESERVED;
      default: reserved = is_row ? `VTA_ROW_RESERVED : 256'd0;
    endcase
  end
  wire reserved_bad = |(insn_i & reserved);

  // transfers: where the first beat lies, how many there are, how many fit
  wire [15:0] sram = insn_i[`VTA_LOAD_SRAM];
  wire [3:0] mem = is_gather ? `VTA_MEM_INP : insn_i[`VTA_LOAD_MEM];
  wire wide = is_load && insn_i[`VTA_LOAD_EXPAND];
  wire [31:0] entry = {16'd0, sram};
  reg [31:0] first;
  reg [31:0] step;
  reg [31:0] capacity;
  reg mem_bad;
  always @* begin
    first    = 32'd0;
    step     = 32'd0;
    capacity = 32'd0;
    mem_bad  = is_store;
    case (mem)
      `VTA_MEM_INP: begin
        first = (entry >> INP_DIV) << INP_MUL;  step = (32'd1 << INP_DIV) - 32'd1;  capacity = INP_BEATS;
      end
      `VTA_MEM_WGT:
      if (wide) begin
        first = (entry >> TWICE_DIV) << TWICE_MUL;  step = (32'd1 << TWICE_DIV) - 32'd1;  capacity = TWICE_BEATS;
      end else begin
        first = (entry >> WGT_DIV) << WGT_MUL;  step = (32'd1 << WGT_DIV) - 32'd1;  capacity = WGT_BEATS;
      end
      `VTA_MEM_ACC:
      if (wide) begin
        first = (entry >> WIDE_DIV) << WIDE_MUL;  step = (32'd1 << WIDE_DIV) - 32'd1;  capacity = WIDE_BEATS;
      end else begin
        first = (entry >> ACC_DIV) << ACC_MUL;  step = (32'd1 << ACC_DIV) - 32'd1;  capacity = ACC_BEATS;
      end
      `VTA_MEM_OUT: begin
        first = (entry >> OUT_DIV) << OUT_MUL;  step = (32'd1 << OUT_DIV) - 32'd1;  capacity = OUT_BEATS;  mem_bad = is_load;
      end
      `VTA_MEM_UOP: begin
        first = entry >> UOP_DIV;  step = (32'd1 << UOP_DIV) - 32'd1;  capacity = UOP_BEATS;
      end
      `VTA_MEM_PRM: begin
        first = entry << PRM_MUL;  capacity = PRM_BEATS;
      end
      `VTA_MEM_TAB: begin
        first = entry >> TAB_DIV;  step = (32'd1 << TAB_DIV) - 32'd1;  capacity = TAB_BEATS;
      end
      `VTA_MEM_COF: begin
        // without any nothing fits, wherever it begins
        first = (COF_DEPTH != 0) ? (entry >> COF_DIV) << COF_MUL : 32'd0;  step = (32'd1 << COF_DIV) - 32'd1;  capacity = COF_BEATS;
      end
      default: mem_bad = 1'b1;
    endcase
    if (wide && mem != `VTA_MEM_ACC && mem != `VTA_MEM_WGT) mem_bad = 1'b1;
  end

  // with pitch in lines, else in beats; with pitch weights have factors
  wire factored = is_load && |insn_i[`VTA_LOAD_PITCH] && mem == `VTA_MEM_WGT;
  wire factors_bad = factored && (WGT_B < 2 * GRANULE || !wide || |insn_i[`VTA_LOAD_X_PAD_0] || |insn_i[`VTA_LOAD_X_PAD_1]
      || |insn_i[`VTA_LOAD_Y_PAD_0] || |insn_i[`VTA_LOAD_Y_PAD_1] || insn_i[`VTA_LOAD_PITCH] != 11'd1
      || insn_i[`VTA_LOAD_Y] != 16'd1 || insn_i[`VTA_LOAD_X] != 16'd1);
  wire planes = is_load && |insn_i[`VTA_LOAD_PITCH] && !factored;
  wire [31:0] begins = planes ? {16'd0, sram} >> LINE_LOG : first;
  wire [31:0] room = planes ? LINES : capacity;
  assign transfer_o = is_transfer;
  assign planes_o   = planes;
  assign begin_o    = begins[23:0];
  assign room_o     = room[BEATS_W-1:0];
  wire planes_bad = planes && (mem != `VTA_MEM_INP || |(sram & LINE_MASK) || |(insn_i[`VTA_LOAD_Z] & RUN_MASK));
  localparam [31:0] GRANULE_MASK = GRANULE - 1;
  wire [31:0] x_stride = is_gather ? 32'd0 : insn_i[`VTA_LOAD_X_STRIDE];
  wire unaligned = |((insn_i[`VTA_LOAD_DRAM] | insn_i[`VTA_LOAD_Y_STRIDE] | x_stride) & GRANULE_MASK)
      || |(entry & step);
  wire no_run = (!is_gather && ~|insn_i[`VTA_LOAD_Z]) || ~|insn_i[`VTA_LOAD_Y] || ~|insn_i[`VTA_LOAD_X];

  // windows of GATHER: inside their vector, which is whole beats, from rows that fit the buffer
  localparam PITCH_LOG = $clog2(INP_B);
  wire [7:0] pitch = insn_i[`VTA_GATHER_PITCH];
  wire [16:0] window_end = {1'b0, insn_i[`VTA_GATHER_LANE]} + {1'b0, insn_i[`VTA_GATHER_RUN]};
  wire [16:0] vector_bytes = {9'd0, pitch} << PITCH_LOG;
  wire window_bad = ~|pitch || ~|insn_i[`VTA_GATHER_RUN] || ~|insn_i[`VTA_GATHER_ROW_BYTES]
      || {16'd0, insn_i[`VTA_GATHER_ROW_BYTES]} > `VTA_ROW_BUFFER_BYTES
      || |({8'd0, pitch} & ((16'd1 << INP_DIV) - 16'd1)) || window_end > vector_bytes;
  assign first_beat_o = first[BEATS_W-1:0];

  // loops and micro-ops: GEMM, ALU and REQUANT hold the trip counts in the same place
  wire no_trip = ~|insn_i[`VTA_GEMM_ITER_OUT] || ~|insn_i[`VTA_GEMM_ITER_IN];
  localparam [1:0] LAST_NIBBLE = (WGT_BITS == 8) ? `VTA_NIBBLE_WHOLE : `VTA_NIBBLE_HIGH;
  wire gemm_bad = insn_i[`VTA_GEMM_NIBBLE] > LAST_NIBBLE || (insn_i[`VTA_GEMM_MODE] == `VTA_GEMMMODE_MAX && |{
      insn_i[`VTA_GEMM_WGT_BASE], insn_i[`VTA_GEMM_WGT_OUT], insn_i[`VTA_GEMM_WGT_IN], insn_i[`VTA_GEMM_NIBBLE]});
  localparam [15:0] LEGAL_OPS = `VTA_ALUOPS_LEGAL;
  localparam [15:0] IMM_OPS = `VTA_ALUOPS_NEEDS_IMM;
  wire [3:0] alu_op = insn_i[`VTA_ALU_ALU_OP];
  wire alu_bad = !LEGAL_OPS[alu_op] || (IMM_OPS[alu_op] && !insn_i[`VTA_ALU_USE_IMM]);
  wire signed [7:0] clip_lo = insn_i[`VTA_REQUANT_CLIP_LO];
  wire signed [7:0] clip_hi = insn_i[`VTA_REQUANT_CLIP_HI];
  wire form_bad = insn_i[`VTA_REQUANT_DST] > `VTA_DST_INP || clip_lo > clip_hi
      || {24'd0, insn_i[`VTA_REQUANT_TABLE]} > TABLES;
  // rows: a softmax has an entry for each distance, a norm one for each quarter of a row's entries
  localparam BLOCK_LOG = $clog2(BLOCK_OUT);
  localparam [31:0] ROUND_UP = BLOCK_OUT - 1;
  wire is_softmax = insn_i[`VTA_ROW_KIND] == `VTA_ROWKIND_SOFTMAX;
  wire signed [6:0] shift = insn_i[`VTA_ROW_SHIFT];
  wire shift_bad = is_softmax ? shift < -7'sd15 || shift > 7'sd15 : shift < 7'sd0 || shift > 7'sd40;
  wire row_bad = insn_i[`VTA_ROW_KIND] > `VTA_ROWKIND_RMS_NORM || ~|insn_i[`VTA_ROW_ROWS] || ~|insn_i[`VTA_ROW_COLUMNS]
      || shift_bad;
  wire [16:0] row_entries = ({1'b0, insn_i[`VTA_ROW_COLUMNS]} + ROUND_UP[16:0]) >> BLOCK_LOG;
  wire [18:0] coefficients = is_softmax ? `VTA_EXPONENTIALS + {18'd0, insn_i[`VTA_ROW_BOUNDED]} : {row_entries, 2'd0};
  wire cof_bad = {12'd0, {4'd0, insn_i[`VTA_ROW_COF_BASE]} + {1'b0, coefficients}} > COF_DEPTH;
  wire uops_bad = insn_i[`VTA_GEMM_UOP_BEGIN] >= insn_i[`VTA_GEMM_UOP_END]
      || {16'd0, insn_i[`VTA_GEMM_UOP_END]} > UOP_DEPTH;

  wire field_bad = (is_transfer && (mem_bad || no_run || unaligned))
      || planes_bad || factors_bad || (is_gather && window_bad) || ((is_gemm || is_alu || is_requant) && no_trip)
      || (is_gemm && gemm_bad) || (is_alu && alu_bad) || (is_requant && form_bad) || (is_row && row_bad);
  wire range_bad = ((is_gemm || is_alu) && uops_bad) || (is_row && cof_bad);

  assign unit_o  = {is_row, is_store, is_requant, is_gemm || is_alu, is_load || is_gather};
  assign flaws_o = {range_bad, field_bad, reserved_bad, !known};

  wire unused = &{1'b0, first, begins, room, row_entries, cof_bad, row_bad};
endmodule

`resetall
