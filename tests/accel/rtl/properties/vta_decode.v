// induction 1
// induction 1 BLOCK_IN=16 BLOCK_OUT=16 INP_DEPTH=4096 ACC_DEPTH=2048 UOP_DEPTH=2048 TABLES=8 COF_DEPTH=512
// induction 1 BLOCK_IN=32 BLOCK_OUT=8 WGT_BITS=4 LINE=16 INP_DEPTH=4096 COF_DEPTH=256
// induction 1 BLOCK_IN=32 BLOCK_OUT=32 AXI_DATA_BITS=256 LINE=32 WGT_DEPTH=256 PRM_DEPTH=32 TABLES=2 COF_DEPTH=2048
// cover 1 BLOCK_IN=16 BLOCK_OUT=16 COF_DEPTH=512

  // The word as the instruction set has it; sizes in bytes.
  localparam [31:0] F_BUS = AXI_DATA_BITS / 8, F_GRANULE = (F_BUS > 16) ? F_BUS : 16;
  localparam [31:0] F_INP = BLOCK_IN * WGT_BITS / 8, F_WGT = BLOCK_IN * BLOCK_OUT * WGT_BITS / 8;
  localparam [31:0] F_COF = BLOCK_OUT / 4 * 8;
  localparam F_FACTORS = F_WGT >= 2 * F_GRANULE;
  wire [7:0] f_op = insn_i[`VTA_INSN_OPCODE];
  wire f_load = f_op == `VTA_OP_LOAD, f_store = f_op == `VTA_OP_STORE, f_gather = f_op == `VTA_OP_GATHER;
  wire f_gemm = f_op == `VTA_OP_GEMM, f_alu = f_op == `VTA_OP_ALU, f_requant = f_op == `VTA_OP_REQUANT;
  wire f_finish = f_op == `VTA_OP_FINISH, f_transfer = f_load || f_store || f_gather;
  wire f_row = COF_DEPTH != 0 && f_op == `VTA_OP_ROW;
  wire f_known = f_transfer || f_gemm || f_alu || f_requant || f_finish || f_row;

  // Bits that belong to a field.
  reg [255:0] f_fields;
  always @* begin
    f_fields = 256'd0;
    f_fields[`VTA_INSN_OPCODE] = 8'hFF;
    if (!f_finish) {f_fields[`VTA_INSN_WAIT], f_fields[`VTA_INSN_SET]} = 32'hFFFFFFFF;
    if (f_load || f_gather) f_fields = {256{1'b1}};
    if (f_store) begin
      f_fields[`VTA_STORE_MEM] = 4'hF;
      f_fields[223:64] = {160{1'b1}};
    end
    if (f_gemm) begin
      f_fields[`VTA_GEMM_OVERWRITE] = 1'b1;
      {f_fields[`VTA_GEMM_MODE], f_fields[`VTA_GEMM_NIBBLE], f_fields[`VTA_GEMM_WGT_BASE]} = 20'hFFFFF;
      f_fields[255:64] = {192{1'b1}};
    end
    if (f_alu) begin
      {f_fields[`VTA_ALU_ALU_OP], f_fields[`VTA_ALU_USE_IMM], f_fields[`VTA_ALU_ROUNDING]} = 7'h7F;
      f_fields[255:64] = {192{1'b1}};
    end
    if (f_requant) begin
      {f_fields[`VTA_REQUANT_FORM], f_fields[`VTA_REQUANT_DST], f_fields[`VTA_REQUANT_ROUNDING]} = 6'h3F;
      {f_fields[`VTA_REQUANT_ZERO_POINT], f_fields[`VTA_REQUANT_PRM_OUT]} = 16'hFFFF;
      f_fields[`VTA_REQUANT_STILL] = 1'b1;
      f_fields[247:64] = {184{1'b1}};
    end
    if (f_row) begin
      {f_fields[`VTA_ROW_KIND], f_fields[`VTA_ROW_ZERO_POINT], f_fields[`VTA_ROW_INP_ZERO]} = 18'h3FFFF;
      f_fields[175:64] = {112{1'b1}};
      {f_fields[`VTA_ROW_VISIBLE_STEP], f_fields[`VTA_ROW_BOUNDED], f_fields[`VTA_ROW_SHIFT]} = 9'h1FF;
      f_fields[255:192] = {64{1'b1}};
    end
  end

  // LOAD and STORE: scratchpad, where it begins and ends.
  wire [3:0] f_mem = f_gather ? `VTA_MEM_INP : insn_i[`VTA_LOAD_MEM];
  wire f_expand = f_load && insn_i[`VTA_LOAD_EXPAND];
  wire [31:0] f_widens = !f_expand ? 1 : f_mem == `VTA_MEM_WGT ? 2 : 4;
  reg [31:0] f_size, f_bytes;
  always @* case (f_mem)
      `VTA_MEM_INP: {f_size, f_bytes} = {F_INP, F_INP * INP_DEPTH};
      `VTA_MEM_WGT: {f_size, f_bytes} = {F_WGT, F_WGT * WGT_DEPTH};
      `VTA_MEM_ACC: {f_size, f_bytes} = {BLOCK_OUT * 4, BLOCK_OUT * 4 * ACC_DEPTH};
      `VTA_MEM_OUT: {f_size, f_bytes} = {BLOCK_OUT, BLOCK_OUT * OUT_DEPTH};
      `VTA_MEM_UOP: {f_size, f_bytes} = {`VTA_UOP_BYTES, `VTA_UOP_BYTES * UOP_DEPTH};
      `VTA_MEM_TAB: {f_size, f_bytes} = {`VTA_TABLE_RECORD_BYTES, `VTA_TABLE_RECORD_BYTES * `VTA_TABLE_RECORDS * TABLES};
      `VTA_MEM_COF: {f_size, f_bytes} = {F_COF, F_COF * COF_DEPTH};
      default: {f_size, f_bytes} = {BLOCK_OUT * `VTA_PRM_LANE_BYTES, BLOCK_OUT * `VTA_PRM_LANE_BYTES * PRM_DEPTH};
    endcase
  wire [31:0] f_begin = {16'd0, insn_i[`VTA_LOAD_SRAM]} * f_size;
  wire f_pitch = f_load && insn_i[`VTA_LOAD_PITCH] != 0;
  wire f_leads = f_pitch && f_mem == `VTA_MEM_WGT, f_planes = f_pitch && !f_leads;
  wire [31:0] f_z = {16'd0, insn_i[`VTA_LOAD_Z]} * F_GRANULE;
  wire f_bad_mem = f_store ? f_mem != `VTA_MEM_OUT : f_mem > `VTA_MEM_COF || f_mem == `VTA_MEM_OUT
      || (f_expand && f_mem != `VTA_MEM_ACC && f_mem != `VTA_MEM_WGT);
  wire f_bad_place = insn_i[`VTA_LOAD_DRAM] % F_GRANULE != 0 || insn_i[`VTA_LOAD_Y_STRIDE] % F_GRANULE != 0
      || (!f_gather && insn_i[`VTA_LOAD_X_STRIDE] % F_GRANULE != 0) || f_begin % (F_BUS * f_widens) != 0;
  wire f_bad_counts = insn_i[`VTA_LOAD_Y] == 0 || insn_i[`VTA_LOAD_X] == 0 || (!f_gather && insn_i[`VTA_LOAD_Z] == 0);
  wire f_bad_planes = f_planes && (f_mem != `VTA_MEM_INP || f_z % LINE != 0 || f_begin % LINE != 0);
  wire f_bad_leads = f_leads && (!f_expand || insn_i[`VTA_LOAD_PITCH] != 1 || !F_FACTORS || insn_i[`VTA_LOAD_Y] != 1
      || insn_i[`VTA_LOAD_X] != 1 || insn_i[255:224] != 0);
  // GATHER: its windows.
  wire [31:0] f_vector = {24'd0, insn_i[`VTA_GATHER_PITCH]} * F_INP;
  wire f_bad_windows = f_vector == 0 || f_vector % F_BUS != 0 || insn_i[`VTA_GATHER_RUN] == 0 || insn_i[`VTA_GATHER_ROW_BYTES] == 0
      || insn_i[`VTA_GATHER_ROW_BYTES] > 4096
      || {16'd0, insn_i[`VTA_GATHER_LANE]} + {16'd0, insn_i[`VTA_GATHER_RUN]} > f_vector;
  // GEMM, ALU, REQUANT.
  wire f_bad_trips = insn_i[`VTA_GEMM_ITER_OUT] == 0 || insn_i[`VTA_GEMM_ITER_IN] == 0;
  wire f_max = insn_i[`VTA_GEMM_MODE] == `VTA_GEMMMODE_MAX;
  wire [1:0] f_nibble = insn_i[`VTA_GEMM_NIBBLE];
  wire f_bad_gemm = f_nibble > `VTA_NIBBLE_HIGH || (f_nibble != 0 && WGT_BITS != 4) || (f_max && (f_nibble != 0
      || insn_i[`VTA_GEMM_WGT_BASE] != 0 || insn_i[`VTA_GEMM_WGT_OUT] != 0 || insn_i[`VTA_GEMM_WGT_IN] != 0));
  wire f_bad_alu = insn_i[`VTA_ALU_ALU_OP] > `VTA_ALUOP_CLIP
      || (insn_i[`VTA_ALU_ALU_OP] == `VTA_ALUOP_CLIP && !insn_i[`VTA_ALU_USE_IMM]);
  wire f_bad_requant = insn_i[`VTA_REQUANT_TABLE] > TABLES || insn_i[`VTA_REQUANT_DST] == 3
      || $signed(insn_i[`VTA_REQUANT_CLIP_LO]) > $signed(insn_i[`VTA_REQUANT_CLIP_HI]);
  wire f_bad_uops = insn_i[`VTA_GEMM_UOP_BEGIN] >= insn_i[`VTA_GEMM_UOP_END] || insn_i[`VTA_GEMM_UOP_END] > UOP_DEPTH;

  // ROW: shifts of a softmax and of norms, and the coefficients that they take.
  wire f_softmax = insn_i[`VTA_ROW_KIND] == `VTA_ROWKIND_SOFTMAX;
  wire signed [6:0] f_shift = insn_i[`VTA_ROW_SHIFT];
  wire f_bad_shift = f_softmax ? f_shift < -15 || f_shift > 15 : f_shift < 0 || f_shift > 40;
  wire f_bad_row = insn_i[`VTA_ROW_KIND] == 3 || insn_i[`VTA_ROW_ROWS] == 0 || insn_i[`VTA_ROW_COLUMNS] == 0 || f_bad_shift;
  wire [31:0] f_columns = {16'd0, insn_i[`VTA_ROW_COLUMNS]}, f_entries = (f_columns + BLOCK_OUT - 1) / BLOCK_OUT;
  wire [31:0] f_cof_end = {16'd0, insn_i[`VTA_ROW_COF_BASE]} + (f_softmax ? 32'd256 + insn_i[`VTA_ROW_BOUNDED] : 4 * f_entries);

  wire f_reserved = (insn_i & ~f_fields) != 0;
  wire f_bad_load = f_bad_mem || f_bad_counts || f_bad_place;
  wire f_fits = f_known && !f_reserved && !flaws_o[2];
  always @* begin
    // P1 An operation code outside of the instruction set is the first flaw, whatever else the word holds.
    p1: assert (flaws_o[0] == !f_known);
    // P2 A bit of no field must be 0, in each instruction.
    p2: assert (!f_known || flaws_o[1] == f_reserved);
  end
  always @* if (f_known && !f_reserved) begin
    // P3 LOAD and STORE: scratchpads that they have, counts from 1 on, whole granules in DRAM, a beat's begin in the scratchpad;
    //   with pitch whole lines of INP, or one run of weights with factors.
    p3: assert (!(f_load || f_store) || flaws_o[2] == (f_bad_load || f_bad_planes || f_bad_leads));
    // P4 GATHER: likewise, and windows inside vectors of whole beats, from rows of at most 4096 bytes.
    p4: assert (!f_gather || flaws_o[2] == (f_bad_counts || f_bad_place || f_bad_windows));
    // P5 GEMM: trips from 1 on, half weights only of 4 bits, no weights for a maximum.
    p5: assert (!f_gemm || flaws_o[2] == (f_bad_trips || f_bad_gemm));
    // P6 ALU: trips from 1 on, an operation that there is, an immediate where the operation needs one.
    p6: assert (!f_alu || flaws_o[2] == (f_bad_trips || f_bad_alu));
    // P7 REQUANT: trips from 1 on, a table and a destination that there are, bounds in order.
    p7: assert (!f_requant || flaws_o[2] == (f_bad_trips || f_bad_requant));
    // P8 FINISH has no other flaw than reserved bits.
    p8: assert (!f_finish || flaws_o == 0);
    // P9 Micro-ops of GEMM and ALU, and coefficients of ROW, are some of those in the scratchpad; nothing else has this flaw.
    p9: assert (flaws_o[3] == (((f_gemm || f_alu) && f_bad_uops) || (f_row && f_cof_end > COF_DEPTH)));
    // P10 Each instruction goes to its unit, FINISH to none.
    p10: assert (unit_o == {f_row, f_store, f_requant, f_gemm || f_alu, f_load || f_gather} && finish_o == f_finish);
    // P13 ROW: a kind that there is, rows and columns from 1 on, a shift of its kind.
    p13: assert (!f_row || flaws_o[2] == f_bad_row);
  end
  always @* if (f_fits) begin
    // P11 What a transfer is checked against is its first byte and the bytes of its scratchpad, in beats or, with pitch, lines.
    p11: assert (transfer_o == f_transfer && planes_o == f_planes);
    p11_begin: assert (!f_transfer || f_bytes == 0 || {8'd0, begin_o} * (f_planes ? LINE : F_BUS * f_widens) == f_begin);
    p11_room: assert (!f_transfer || {{(32 - BEATS_W) {1'b0}}, room_o} * (f_planes ? LINE : F_BUS * f_widens) == f_bytes);
    // P12 The first beat of a transfer that begins in its scratchpad is the one with its first byte.
    p12: assert (!f_transfer || f_begin >= f_bytes || {{(32 - BEATS_W) {1'b0}}, first_beat_o} * F_BUS * f_widens == f_begin);
  end
  always @* begin
    c1: cover (f_load && flaws_o == 0 && f_leads);
    c2: cover (f_load && flaws_o == 0 && f_planes && f_begin > 64);
    c3: cover (f_gather && flaws_o == 0);
    c4: cover (f_gemm && flaws_o == 4'b1000 && f_max);
    c5: cover (f_row && flaws_o == 0 && f_softmax && f_shift == -15);
    c6: cover (f_row && flaws_o == 4'b1000 && !f_softmax && f_cof_end == COF_DEPTH + 1);
  end
