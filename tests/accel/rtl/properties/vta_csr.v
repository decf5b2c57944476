// induction 3
// induction 3 ROW=1
// cover 10

  // Assumed of whatever is around: a fault stays until clear_o, its code follows it, and a finished program is no fault.
  reg f_was_fault_stop = 1'b0, f_was_fault = 1'b0, f_was_clear = 1'b0;
  always @(posedge clk_i) {f_was_fault_stop, f_was_fault, f_was_clear} <= {fault_stop_i, fault_i, clear_o};
  always @* begin
    if (f_started && f_was_clear) assume (!fault_stop_i && !fault_i);
    if (f_started && !f_was_clear) assume ((!f_was_fault_stop || fault_stop_i) && (!f_was_fault || fault_i));
    assume (!fault_i || fault_stop_i);
    assume (!(fault_stop_i && !f_was_fault_stop) || f_was_run);
    assume (!write_i || write_control_i == (write_addr_i == `VTA_REG_CONTROL));
  end

  // What stops the core, and when that has ended the run: with a fault its code is there, and no transfer is on its way.
  wire f_stops = fault_stop_i || abort_q;
  wire f_stopped = busy_q && f_stops && (fault_i || !fault_stop_i) && drained_i;
  wire f_control = write_i && write_addr_i == `VTA_REG_CONTROL;
  reg f_was_run = 1'b0, f_was_busy = 1'b0, f_was_soon = 1'b0, f_was_reset = 1'b0, f_was_launch = 1'b0, f_was_done = 1'b0;
  reg f_was_stopped = 1'b0, f_was_abort = 1'b0;
  reg [159:0] f_registers;
  always @(posedge clk_i) begin
    {f_was_run, f_was_busy, f_was_soon} <= {run_o, busy_q && rst_ni, soon_o};
    f_was_reset <= rst_ni && f_control && write_data_i[1];
    f_was_launch <= rst_ni && f_control && write_data_i[1:0] == 2'b01 && !busy_q;
    f_was_done <= rst_ni && run_o && done_i;
    f_was_stopped <= rst_ni && f_stopped;
    f_was_abort <= rst_ni && abort_q;
    f_registers <= {window_base_o, window_bytes_o, program_o, count_o, watchdog_q};
  end

  // What the host wrote last to each register while the core was not busy, as it was taken.
  reg [31:0] f_base = 0, f_bytes = 0, f_program = 0, f_count = 0, f_watchdog = 0;
  always @(posedge clk_i)
    if (!rst_ni) {f_base, f_bytes, f_program, f_count, f_watchdog} <= 160'd0;
    else if (write_i && !busy_q) begin
      if (write_addr_i == `VTA_REG_WINDOW_BASE) f_base <= {write_data_i[31:12], 12'd0};
      if (write_addr_i == `VTA_REG_WINDOW_BYTES) f_bytes <= write_data_i;
      if (write_addr_i == `VTA_REG_PROGRAM) f_program <= {write_data_i[31:5], 5'd0};
      if (write_addr_i == `VTA_REG_COUNT) f_count <= write_data_i;
      if (write_addr_i == `VTA_REG_WATCHDOG) f_watchdog <= write_data_i;
    end
  (* hierconn *) wire [31:0] \u_held.mem_q[6] , \u_held.mem_q[7] , \u_held.mem_q[8] , \u_held.mem_q[9] , \u_held.mem_q[10] ;

  always @* if (f_started && rst_ni) begin
    // P1 A launch is taken whenever the core is not busy, and makes it busy.
    p1: assert (!f_was_launch || (busy_q && run_o != f_stops));
    // P2 The core becomes busy by a launch only.
    p2: assert (!busy_q || f_was_busy || f_was_launch);
    p2_copy: assert (busy_q == busy_launch_q);
    // P3 soon_o says a cycle ahead whether the core is busy.
    p3: assert (busy_q == f_was_soon);
    // P4 Registers keep their values while the core is busy.
    p4: assert (!f_was_busy || {window_base_o, window_bytes_o, program_o, count_o, watchdog_q} == f_registers);
    // P5 Registers hold what was written last: the window's base to 4 KiB, the program's address to 32 bytes.
    p5: assert ({window_base_o, window_bytes_o, program_o, count_o, watchdog_q} == {f_base, f_bytes, f_program, f_count, f_watchdog});
    // P6 What is read of a register is what it holds.
    p6: assert (!(read_addr_i == `VTA_REG_WINDOW_BASE) || read_data_o == f_base);
    p6_bytes: assert (!(read_addr_i == `VTA_REG_WINDOW_BYTES) || read_data_o == f_bytes);
    p6_program: assert (!(read_addr_i == `VTA_REG_PROGRAM) || read_data_o == f_program);
    p6_count: assert (!(read_addr_i == `VTA_REG_COUNT) || read_data_o == f_count);
    p6_watchdog: assert (!(read_addr_i == `VTA_REG_WATCHDOG) || read_data_o == f_watchdog);
    p6_copy: assert ((written_q[0] ? \u_held.mem_q[6] : 32'd0) == f_base && (written_q[1] ? \u_held.mem_q[7] : 32'd0) == f_bytes
        && (written_q[2] ? \u_held.mem_q[8] : 32'd0) == f_program && (written_q[3] ? \u_held.mem_q[9] : 32'd0) == f_count
        && (written_q[4] ? \u_held.mem_q[10] : 32'd0) == f_watchdog);
    // P7 Addresses of registers are known, for reads and writes, and no others.
    p7: assert (read_known_o == (read_addr_i[1:0] == 0 && (read_addr_i <= `VTA_REG_WATCHDOG
        || (read_addr_i >= `VTA_REG_CYCLES && read_addr_i <= `VTA_REG_INSTRUCTIONS))) || read_addr_i[1:0] != 0);
    p7_write: assert (write_known_o == (write_addr_i == `VTA_REG_CONTROL
        || (write_addr_i[1:0] == 0 && write_addr_i >= `VTA_REG_WINDOW_BASE && write_addr_i <= `VTA_REG_WATCHDOG)));
    // P15 Counters of a row unit are zero at once where there is none, and those of others come when they have their turn.
    p15: assert (!(read_addr_i == `VTA_REG_ROW_BUSY || read_addr_i == `VTA_REG_ROW_TOKEN)
        || (ROW != 0 ? read_ready_o == counter_ready_i && read_data_o == counter_i : read_ready_o && read_data_o == 0));
    p15_others: assert (!(read_addr_i > `VTA_REG_CYCLES && read_addr_i < `VTA_REG_ROW_BUSY)
        || (read_ready_o == counter_ready_i && counter_o == read_addr_i[6:2]));
    // P8 done is set by the end of a program, and only by it.
    p8: assert (!f_was_done || f_was_reset || (done_q && !busy_q));
    // P9 The core runs while it is busy, but not behind a fault, nor behind a reset in its run.
    p9: assert (run_o == (busy_q && !f_stops));
    // P10 A reset in a run stops the core until its transfers have ended, then leaves nothing: neither busy, done nor fault.
    p10: assert (!(f_was_stopped && f_was_abort) || (!busy_q && !done_q && !abort_q && !fault_stop_i));
    p10_waits: assert (!(f_was_busy && f_was_abort && !f_was_stopped) || (busy_q && abort_q));
    p10_abort: assert (!abort_q || busy_q);
    p10_done: assert (!(busy_q && done_q));
    // P11 STATUS: busy, done, fault and its code, each where the manual says.
    p11: assert (read_addr_i != `VTA_REG_STATUS || read_data_o == {16'd0, fault_code_i, 5'd0, fault_i, done_q, busy_q});
    // P12 The watchdog barks only in a run, when it was set, and not before its cycles have passed.
    p12: assert (watchdog_o == (run_o && watchdog_q != 0 && cycles_i >= watchdog_q));
    // P13 What a host may still read is cleared in the cycle before a launch at the latest.
    p13: assert (!f_was_launch || f_was_clear);
    // P14 A run goes on until its end, or until a fault or a reset has stopped it.
    p14: assert (!(f_was_busy && f_was_run) || busy_q == !f_was_done);
    p14_stops: assert (!(f_was_busy && !f_was_run) || busy_q == !f_was_stopped);
  end
  always @* if (f_started && rst_ni) begin
    c1: cover (f_was_stopped && f_was_abort);
    c2: cover (done_q && f_base != 0 && read_addr_i == `VTA_REG_STATUS);
    c3: cover (f_was_stopped && fault_i);
  end
