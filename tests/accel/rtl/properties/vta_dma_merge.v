// induction 1 AXI_DATA_BITS=64 LENGTH_W=8
// induction 1 AXI_DATA_BITS=256 LENGTH_W=8

  // Assumed: beats of a row and of all rows are what the numbers of runs and rows make of a run's. Few of them: products are hard.
  wire [7:0] f_row = run_beats_i * x_i[7:0], f_all = f_row * y_i[7:0];
  always @* begin
    assume (x_i >= 1 && y_i >= 1 && x_i < 8 && y_i < 8 && run_beats_i < 8);
    assume (row_beats_i == f_row && all_beats_i == f_all);
  end
  // Bytes of a run and of a row, from the width of the bus.
  wire [31:0] f_run_bytes = run_beats_i * (AXI_DATA_BITS / 8), f_row_bytes = row_beats_i * (AXI_DATA_BITS / 8);
  // The run and the row of the solver's choice.
  (* anyconst *) reg [15:0] f_x, f_y;
  always @* assume (f_x < x_i && f_y < y_i);
  wire [31:0] f_before = f_y[2:0] * y_stride_i + f_x[2:0] * x_stride_i;
  always @* begin
    // P1 Runs of a row become one run only where each begins where the one before it ends.
    p1: assert (!x_one_o || f_x[2:0] * x_stride_i == f_x[2:0] * f_run_bytes);
    // P2 Rows become one only where each begins where the one before it ends.
    p2: assert (!y_one_o || f_before == f_y[2:0] * f_row_bytes + f_x[2:0] * x_stride_i);
    // P3 The beats of all runs that are left are the beats of all runs that were there.
    p3: assert (length_o * (x_one_o ? 8'd1 : x_i[7:0]) * (y_one_o ? 8'd1 : y_i[7:0]) == all_beats_i);
    // P4 What could be one run is one.
    p4: assert (x_one_o == (x_i == 1 || x_stride_i == f_run_bytes) && y_one_o == (y_i == 1 || (x_one_o && y_stride_i == f_row_bytes)));
  end
