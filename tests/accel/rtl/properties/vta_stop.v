// induction 3
// induction 3 ROW=1
// cover 5 ROW=1

  // Reports and index words of the cycles before.
  reg f_cleared = 1'b0;
  reg f_dispatch, f_watchdog, f_output, f_row;
  reg [2:0] f_read;
  reg [7:0] f_dispatch_code;
  reg [31:0] f_dispatch_index;
  reg [95:0] f_read_index;
  reg [3:0] f_clash_1, f_clash_2;
  reg f_error_1, f_error_2;
  reg [159:0] f_done_1, f_done_2, f_done_3;
  always @(posedge clk_i) begin
    if (clear_i) f_cleared <= 1'b1;
    {f_dispatch, f_watchdog, f_output, f_row, f_read} <= {7{rst_ni}} & {dispatch_i, watchdog_i, output_i, row_i, clash_read_i};
    {f_dispatch_code, f_dispatch_index, f_read_index} <= {dispatch_code_i, dispatch_index_i, read_index_i};
    {f_clash_1, f_clash_2} <= {8{rst_ni}} & {clash_write_i, f_clash_1};
    {f_error_1, f_error_2} <= {2{rst_ni}} & {store_error_i, f_error_1};
    {f_done_1, f_done_2, f_done_3} <= {done_index_i, f_done_1, f_done_2};
  end

  // What counts at the edge that ends this cycle: each report with its code and its instruction.
  localparam F_REPORTS = 23;
  // Assumed: where there is no row unit it reports nothing.
  always @* assume (ROW != 0 || !(row_i || clash_read_i[2] || clash_write_i[3] || overflow_i[4]));
  wire [F_REPORTS-1:0] f_now = {
    overflow_i[4], f_clash_2[3], f_read[2], f_row,
    overflow_i[3:0], f_error_2, f_clash_2[2:0], f_read[1:0], f_output, store_range_i, compute_i, load_i, fetch_i, f_watchdog, f_dispatch
  };
  wire [F_REPORTS*8-1:0] f_codes = {
    `VTA_FAULT_TOKEN_OVERFLOW, {2{`VTA_FAULT_ACC_BANK}}, `VTA_FAULT_SRAM_RANGE,
    {4{`VTA_FAULT_TOKEN_OVERFLOW}}, `VTA_FAULT_AXI_WRITE, {3{`VTA_FAULT_ACC_BANK}}, {2{`VTA_FAULT_ACC_BANK}}, `VTA_FAULT_SRAM_RANGE,
    `VTA_FAULT_DRAM_RANGE, `VTA_FAULT_SRAM_RANGE, {2{`VTA_FAULT_DRAM_RANGE, `VTA_FAULT_AXI_READ}}, `VTA_FAULT_WATCHDOG, f_dispatch_code
  };
  wire [F_REPORTS*32-1:0] f_indices = {
    {2{f_done_2[159:128]}}, {2{f_read_index[95:64]}},
    f_done_2[127:0], f_done_2[127:96], f_done_3[31:0], f_done_2[95:64], f_done_2[63:32], f_read_index[63:0], f_read_index[63:32],
    store_range_index_i, compute_index_i, load_index_i, fetch_index_i, f_dispatch_index, f_dispatch_index
  };
  // The first edge with reports since the last clear.
  wire f_first = run_i && f_now != 0 && !f_seen && !clear_i;
  reg f_seen = 1'b0, f_aborts = 1'b0, f_fresh = 1'b1;
  always @(posedge clk_i) begin
    {f_aborts, f_fresh} <= {abort_soon_i, clear_i};
    f_seen <= !clear_i && (f_seen || f_first);
  end

  (* hierconn *) wire \u_fault.open_q ;
  wire f_runs = f_started && f_cleared;
  always @* if (f_runs) begin
    // P1 No report is lost: the core stops at its edge, and is stopped until clear_i.
    p1: assert (fault_stop_o == f_seen);
    p1_open: assert (\u_fault.open_q == !f_seen);
    // P2 Nothing new starts behind a fault, nor behind a cycle with abort_soon_i.
    p2: assert (f_fresh || stop_o == {ROW != 0 && (f_seen || f_aborts), {5{f_seen || f_aborts}}});
  end
  // P3 due_o is high from the cycle behind a write that clashes, an error of STORE or a token on, until it is reported.
  always @* if (f_started && rst_ni)
    p3: assert (due_o == (overflow_soon_i || overflow_i != 0 || f_clash_1 != 0 || f_clash_2 != 0 || f_error_1 || f_error_2));

  // What vta_fault gets, which finds the smallest of an edge (its own properties): a source stands for one report or for two,
  // of which the one in F_ONE counts.  A source of the solver's choice.
  localparam [31:0] F_SOURCES = (ROW != 0) ? 15 : 13;
  localparam [74:0] F_ONE = {5'd22, 5'd19, 5'd18, 5'd17, 5'd16, 5'd13, 5'd7, 5'd8, 5'd9, 5'd6, 5'd5, 5'd4, 5'd3, 5'd2, 5'd0};
  localparam [74:0] F_OTHER = {5'd21, 5'd20, 5'd14, 5'd12, 5'd11, 5'd15, 5'd7, 5'd10, 5'd9, 5'd6, 5'd5, 5'd4, 5'd3, 5'd2, 5'd1};
  (* hierconn *) wire [F_SOURCES-1:0] \u_fault.valid_i ;
  (* hierconn *) wire [F_SOURCES*8-1:0] \u_fault.code_i ;
  (* hierconn *) wire [F_SOURCES*32-1:0] \u_fault.index_i ;
  (* anyconst *) reg [3:0] f_k;
  always @* assume ({28'd0, f_k} < F_SOURCES);
  wire [4:0] f_one = F_ONE[f_k*5+:5], f_other = F_OTHER[f_k*5+:5], f_r = f_now[f_one] ? f_one : f_other;
  wire f_valid = \u_fault.valid_i [f_k];
  wire [7:0] f_code = \u_fault.code_i [f_k*8+:8];
  wire [31:0] f_index = \u_fault.index_i [f_k*32+:32];
  always @* if (f_runs) begin
    // P4 Each report goes to vta_fault in the cycle that its header names, and nothing else does.
    p4: assert (f_valid == (f_now[f_one] || f_now[f_other]));
    // P5 It has its code and the index of its instruction, as done_index_i and the others named it one, two or three cycles ago.
    p5: assert (!f_valid || (f_code == f_codes[f_r*8+:8] && f_index == f_indices[f_r*32+:32]));
    // P6 Where two reports share a source, both are of one instruction; but a clash of LOAD's write, one cycle older than the
    //   token beside it, counts before that.
    p6: assert (f_k == 4'd9 || f_indices[f_one*32+:32] == f_indices[f_other*32+:32]);
  end
  always @* if (f_runs) c1: cover (f_now[15] && f_now[13] && f_indices[13*32+:32] < f_indices[15*32+:32]);
  always @* if (f_runs) c2: cover (fault_stop_o && f_now[12]);
