// induction 2 AXI_DATA_BITS=64 BURST_BEATS=64 COUNT_W=2 LENGTH_W=12
// induction 2 AXI_DATA_BITS=64 BURST_BEATS=1 COUNT_W=2 LENGTH_W=9
// induction 2 AXI_DATA_BITS=128 BURST_BEATS=16 COUNT_W=3 LENGTH_W=10
// induction 2 AXI_DATA_BITS=256 BURST_BEATS=8 COUNT_W=2 LENGTH_W=8
// cover 12 AXI_DATA_BITS=128 BURST_BEATS=16 COUNT_W=3 LENGTH_W=10

  // Assumed: its contract. Whole granules (or beats where they are larger), at least one run and row, no start in a walk.
  localparam F_UNIT = 1 << UNIT_LOG;
  always @* begin
    assume (!(start_i && active_q));
    assume ((dram_i & (F_UNIT - 1)) == 0 && (x_stride_i & (F_UNIT - 1)) == 0 && (y_stride_i & (F_UNIT - 1)) == 0);
    assume ((window_bytes_i & (F_UNIT - 1)) == 0);
    assume (x_one_i || x_i[COUNT_W-1:0] > 1);
    assume (y_one_i || y_i[COUNT_W-1:0] > 1);
    assume (BEATS_LOG == 0 || length_i[0]);
  end
  // The window holds for a walk.
  reg [31:0] f_window;
  always @(posedge clk_i) f_window <= window_bytes_i;
  always @* if (active_q) assume (window_bytes_i == f_window);

  // What is walked, from the operands alone: where the next beat lies, the beats left in its run, its run and its row, in bytes.
  reg [34:0] f_addr, f_run, f_row;
  reg [LENGTH_W:0] f_left, f_length;
  reg [COUNT_W:0] f_x, f_y, f_xs, f_ys;
  reg [31:0] f_x_stride, f_y_stride;
  reg f_bad = 1'b0;
  wire [6:0] f_beats = {1'b0, req_len_o} + 7'd1;
  wire [34:0] f_bytes = {28'd0, f_beats} << BUS_LOG;
  wire f_ends = f_beats == f_left;
  wire f_run_is_last = f_x + 1'b1 == f_xs, f_row_is_last = f_y + 1'b1 == f_ys;
  wire f_inside = f_addr + f_bytes <= {3'd0, window_bytes_i};
  wire [34:0] f_next_run = f_run + {3'd0, f_x_stride}, f_next_row = f_row + {3'd0, f_y_stride};
  always @(posedge clk_i)
    if (!rst_ni) f_bad <= 1'b0;
    else if (!active_q) begin
      {f_addr, f_run, f_row} <= {3{3'd0, dram_i}};
      {f_left, f_length} <= {2{{1'b0, length_i} + 1'b1}};
      {f_x, f_y} <= 0;
      f_xs <= x_one_i ? 1 : {1'b0, x_i[COUNT_W-1:0]};
      f_ys <= y_one_i ? 1 : {1'b0, y_i[COUNT_W-1:0]};
      {f_x_stride, f_y_stride} <= {x_stride_i, y_stride_i};
    end else begin
      if (!f_inside) f_bad <= 1'b1;
      if (req_ready_i) begin
        if (!f_ends) begin
          f_addr <= f_addr + f_bytes;
          f_left <= f_left - f_beats;
        end else if (!f_run_is_last) begin
          {f_addr, f_run} <= {2{f_next_run}};
          f_left <= f_length;
          f_x <= f_x + 1'b1;
        end else begin
          {f_addr, f_run, f_row} <= {3{f_next_row}};
          f_left <= f_length;
          f_x <= 0;
          f_y <= f_y + 1'b1;
        end
      end
    end

  wire f_walks = f_started && rst_ni && active_q && !f_bad;
  wire f_page_ends = &(addr_q[PAGE_W-1:0] | BURST_MASK[PAGE_W-1:0]);
  always @* if (f_walks) begin
    // P1 Every burst begins where the walk of the operands is: no byte is read twice, none is passed over.
    p1: assert ({2'd0, addr_q} << UNIT_LOG == f_addr);
    p1_offset: assert (!req_valid_o || {3'd0, req_offset_o} == f_addr);
    // P2 No burst is longer than what is left of its run.
    p2: assert (f_beats <= f_left && f_left <= f_length);
    p2_left: assert (({1'b0, left_q} + 1'b1) << BEATS_LOG == f_left);
    p2_length: assert (({1'b0, length_q} + 1'b1) << BEATS_LOG == f_length);
    // P3 Runs and rows follow their strides and their numbers.
    p3: assert ({2'd0, run_q} << UNIT_LOG == f_run && {2'd0, row_q} << UNIT_LOG == f_row);
    p3_order: assert (f_row <= f_run && f_run <= f_addr);
    p3_strides: assert ({x_stride_q, {UNIT_LOG{1'b0}}} == f_x_stride && {y_stride_q, {UNIT_LOG{1'b0}}} == f_y_stride);
    p3_counts: assert (f_x < f_xs && f_y < f_ys && x_last_q == f_run_is_last && y_last_q == f_row_is_last);
    p3_x: assert (f_xs >= 1 && x_one_q == (f_xs == 1) && (x_one_q || (x_q == f_xs && x_count_q == f_x[COUNT_W-1:0] + TWO)));
    p3_y: assert (f_ys >= 1 && (f_ys == 1 || (y_q == f_ys && y_count_q == f_y[COUNT_W-1:0] + TWO)));
    p3_final: assert (final_q == (x_last_q && y_last_q));
    // P4 A burst is at most BURST_BEATS long.
    p4: assert (f_beats <= BURST_BEATS);
    p4_limit: assert (limit_q == (BURST_MASK[5:0] & ~(addr_q[5:0] & {6{f_page_ends}})));
    // P5 No burst crosses 4 KiB.
    p5: assert ({1'b0, f_addr[11:0]} + f_bytes[12:0] <= 13'd4096);
    // P6 The walk ends with the last beat of the last run of the last row, and not before.
    p6: assert (ends_q == f_ends && req_last_o == (f_ends && f_run_is_last && f_row_is_last));
    // P7 A burst is requested exactly if all of it lies in the window.
    p7: assert (req_valid_o == f_inside);
  end
  always @* if (f_started && rst_ni) begin
    // P8 Behind a burst outside of the window nothing is requested, and the fault stays.
    p8: assert (fault_o == f_bad && !(f_bad && req_valid_o));
    // P9 Nothing is requested but in a walk.
    p9: assert (!req_valid_o || active_o);
  end
  // P10 A request stays as it is until it is taken.
  reg f_waits = 1'b0;
  reg [38:0] f_request;
  always @(posedge clk_i) begin
    f_waits <= rst_ni && req_valid_o && !req_ready_i;
    f_request <= {req_offset_o, req_len_o, req_last_o};
  end
  always @* if (f_started && rst_ni && f_waits) p10: assert (req_valid_o && {req_offset_o, req_len_o, req_last_o} == f_request);
  // P11 The first request of a walk is up in the cycle behind its start.
  reg f_begins = 1'b0;
  always @(posedge clk_i) f_begins <= rst_ni && start_i;
  always @* if (f_started && rst_ni && f_begins) p11: assert (active_o && (f_bad || req_valid_o == f_inside));

  always @* if (f_started && rst_ni) begin
    c1: cover (f_walks && req_last_o && req_ready_i && f_x > 0 && f_y > 0);
    c2: cover (f_walks && f_page_ends && f_beats > 1 && !f_ends && req_ready_i && req_valid_o);
    c3: cover (f_bad && !active_o);
  end
