// induction 2 BLOCK_OUT=4 ACC_DEPTH=16
// cover 56 BLOCK_OUT=4 ACC_DEPTH=16 slow

  // Assumed: a start where it is wanted, of an instruction that is legal. A core that stops does not go on before the next
  // reset.
  reg f_stopped = 1'b0;
  always @(posedge clk_i) f_stopped <= rst_ni && stop_i;
  always @* begin
    assume (!start_i || (want_o && !stop_i && rst_ni));
    assume (insn_i[`VTA_ROW_ROWS] != 0 && insn_i[`VTA_ROW_COLUMNS] != 0);
    if (f_started && f_stopped && rst_ni) assume (stop_i);
  end

  // An instruction that was taken and has given no tokens; what it shall give.
  reg f_open = 1'b0;
  reg [15:0] f_set;
  reg [31:0] f_index;
  always @(posedge clk_i) begin
    f_open <= rst_ni && !stop_i && (start_i || (f_open && !give_o));
    if (start_i) {f_set, f_index} <= {insn_i[`VTA_INSN_SET], index_i};
  end
  // Slots over: since the last one, as many cycles.
  reg [4:1] f_last = 4'd0;
  always @(posedge clk_i) f_last <= (rst_ni && !stop_i) ? {f_last[3:1], last} : 4'd0;
  // What was read for results, so many edges ago.
  reg [19:1] f_read = 19'd0;
  always @(posedge clk_i) f_read <= (rst_ni && !stop_i) ? {f_read[18:1], read[2]} : 19'd0;

  (* hierconn *) wire \u_walk.active_q , \u_walk.ends_q ;
  (* hierconn *) wire [3:0] \u_walk.there_q ;
  always @* if (f_started && rst_ni) begin
    // P1 Tokens are given in the fourth cycle behind the instruction's last slot, once.
    p1: assert (stop_i || give_o == (f_open && f_last[4]));
    p1_done: assert (done_q == f_last);
    // P2 They are those of the instruction, and so is its index.
    p2: assert (!f_open || (set_o == f_set && done_index_o == f_index && read_index_o == f_index));
    // P3 The unit is idle, and wants an instruction, unless one is in it that has not given its tokens.
    p3: assert (idle_o == !f_open && want_o == (head_valid_i && !f_open));
    p3_where: assert (f_open == (\u_walk.active_q || f_last != 4'd0));
    p3_once: assert ((f_last & (f_last - 4'd1)) == 4'd0 && !(\u_walk.active_q && f_last != 4'd0));
    // P4 An entry of results is written for each one that was read for them, 19 edges later, and no other.
    p4: assert (acc_we_o == f_read[19]);
    p4_behind: assert (written_q == f_read);
    // P5 A read at an entry outside of the accumulators is a fault, and nothing else is.
    p5: assert (fault_o == (acc_re_o && acc_raddr_o >= ACC_DEPTH));
    // P6 After a stop nothing is read, written or given.
    p6: assert (!f_stopped || (!acc_re_o && !acc_we_o && !give_o && idle_o));
  end

  // P7 An entry is taken over in the second cycle behind its read, and its quarters are at work in the four cycles behind
  //   that, of each stage its own; none is that was read before a reset.
  reg [17:0] f_reads = 18'd0;
  always @(posedge clk_i) f_reads <= rst_ni ? {f_reads[14:0], read} : 18'd0;
  wire [17:0] f_behind;
  genvar f_s;
  generate
    for (f_s = 0; f_s < 3; f_s = f_s + 1) begin : g_f_stream
      assign {f_behind[15+f_s], f_behind[12+f_s], f_behind[9+f_s], f_behind[6+f_s], f_behind[3+f_s], f_behind[f_s]} =
          g_stream[f_s].behind_q;
    end
  endgenerate
  always @* if (f_started) begin
    p7: assert (loads == f_reads[5:3] && valid == (f_reads[8:6] | f_reads[11:9] | f_reads[14:12] | f_reads[17:15]));
    p7_behind: assert (f_behind == f_reads);
  end

  // P8 Columns that count are no more than the instruction's, nor, of a softmax that is bounded, than what is read behind its
  //   exponentials as it begins.
  reg f_looked = 1'b0, f_bounded;
  reg [15:0] f_columns, f_bound;
  wire [15:0] f_most = (f_bounded && cof_r_i[15:0] < f_columns) ? cof_r_i[15:0] : f_columns;
  always @(posedge clk_i) begin
    f_looked <= start_i;
    if (f_looked) f_bound <= f_most;
    if (start_i) f_columns <= insn_i[`VTA_ROW_COLUMNS];
    if (start_i) f_bounded <= insn_i[`VTA_ROW_KIND] == `VTA_ROWKIND_SOFTMAX && insn_i[`VTA_ROW_BOUNDED];
  end
  always @* if (f_started) begin
    p8: assert (!f_open || bound == (f_looked ? f_most : f_bound));
    p8_looked: assert (looked_q == f_looked && (!f_open || bounded_q == f_bounded));
    p8_columns: assert (!f_open || columns_bound_q == (f_looked ? f_columns : f_bound));
  end
  always @* if (start_i) p8_read: assert (cof_r_re_o && cof_r_raddr_o[15:0] == 16'(insn_i[`VTA_ROW_COF_BASE] + 16'd256));

  always @* if (f_started && rst_ni) c2: cover (f_open && f_bounded && f_bound == 16'd3 && read[1]);
  always @* if (f_started && rst_ni) c1: cover (read[1] && f_open && f_set == 16'd5 && acc_raddr_o == 16'd7);
