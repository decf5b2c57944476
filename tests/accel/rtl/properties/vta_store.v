// induction 3 AXI_DATA_BITS=64 BURST_BEATS=4 WRITE_OUTSTANDING=2 BEATS_W=10 LENGTH_W=8
// bounded 16 AXI_DATA_BITS=64 BURST_BEATS=4 WRITE_OUTSTANDING=2 BEATS_W=10 LENGTH_W=8 slow
// cover 18 AXI_DATA_BITS=64 BURST_BEATS=4 WRITE_OUTSTANDING=2 BEATS_W=10 LENGTH_W=8

  // Assumed of the front: an instruction starts when it is wanted, with whole granules.
  always @* begin
    assume (!start_i || want_o);
    assume (insn_i[`VTA_STORE_DRAM] % 16 == 0 && insn_i[`VTA_STORE_X_STRIDE] % 16 == 0 && insn_i[`VTA_STORE_Y_STRIDE] % 16 == 0);
    assume (window_bytes_i % 16 == 0 && length_i[0]);
    assume (one_i[0] || insn_i[`VTA_STORE_X] == 2);
    assume (one_i[1] || insn_i[`VTA_STORE_Y] == 2);
  end
  reg [63:0] f_window;
  always @(posedge clk_i) f_window <= {window_base_i, window_bytes_i};
  always @* if (f_started) assume ({window_base_i, window_bytes_i} == f_window);

  // Bursts that were granted, that AW took, whose last beat W took, that have a response.
  wire f_aw = m_axi_awvalid && m_axi_awready, f_w = m_axi_wvalid && m_axi_wready, f_b = m_axi_bvalid;
  wire f_w_ends = f_w && m_axi_wlast;
  reg [2:0] f_granted = 0, f_addressed = 0, f_sent = 0;
  always @(posedge clk_i)
    if (!rst_ni) {f_granted, f_addressed, f_sent} <= 9'd0;
    else begin
      f_granted   <= f_granted + {2'd0, take} - {2'd0, f_b};
      f_addressed <= f_addressed + {2'd0, f_aw} - {2'd0, f_b};
      f_sent      <= f_sent + {2'd0, f_w_ends} - {2'd0, f_b};
    end
  // Assumed of the bus: a response for a burst whose address and data it has.
  always @* assume (!(m_axi_bvalid && (f_addressed == 0 || f_sent == 0)));

  reg f_waits_aw = 1'b0, f_waits_w = 1'b0, f_answered = 1'b0;
  reg [39:0] f_aw_was;
  reg f_wlast_was;
  always @(posedge clk_i) begin
    f_waits_aw  <= rst_ni && m_axi_awvalid && !m_axi_awready;
    f_waits_w   <= rst_ni && m_axi_wvalid && !m_axi_wready;
    f_answered  <= rst_ni && f_b;
    f_aw_was    <= {m_axi_awaddr, m_axi_awlen};
    f_wlast_was <= m_axi_wlast;
  end
  (* hierconn *) wire [1:0] \u_bursts.count_q ;
  (* hierconn *) wire \u_bursts.any_q , \u_bursts.full_q ;
  always @* if (f_started && rst_ni) begin
    // P1 AWVALID stays high, with address and length as they were, until AWREADY.
    p1: assert (!f_waits_aw || (m_axi_awvalid && {m_axi_awaddr, m_axi_awlen} == f_aw_was));
    // P2 WVALID stays high, with WLAST as it was, until WREADY.
    p2: assert (!f_waits_w || (m_axi_wvalid && m_axi_wlast == f_wlast_was));
    // P3 The word of a beat that waits is not read anew: OUT keeps it.
    p3: assert (!f_waits_w || !f_read_was);
    // P4 At most WRITE_OUTSTANDING bursts are between the AW register and their response.
    p4: assert (f_granted <= WRITE_OUTSTANDING);
    p4_count: assert (\u_bursts.count_q == f_granted + {2'd0, f_answered} && \u_bursts.any_q == (\u_bursts.count_q != 0));
    p4_full: assert (\u_bursts.full_q == (\u_bursts.count_q == WRITE_OUTSTANDING) && \u_bursts.count_q <= WRITE_OUTSTANDING);
    // P5 A burst is in the AW register, or the bus has its address.
    p5: assert (f_granted == f_addressed + {2'd0, aw_valid_q} && f_addressed <= WRITE_OUTSTANDING);
    // P6 Responses are taken at once.
    p6: assert (m_axi_bready);
    // P7 drained_o is high only when no burst lacks its response.
    p7: assert (!drained_o || f_granted == 0);
    // P8 After a stop no burst is granted.
    p8: assert (!(stop_i && take));
    // P9 An error is reported in the cycle behind its response, and nothing else is.
    p9: assert (error_fault_o == f_error);
  end
  reg f_read_was = 1'b0, f_error = 1'b0;
  always @(posedge clk_i) begin
    f_read_was <= rst_ni && re_o;
    f_error <= rst_ni && m_axi_bvalid && m_axi_berror;
  end

  // A burst of the solver's choice: its length and place, the bursts and beats that are sent before it.
  (* anyseq *) wire f_choose;
  reg f_in = 1'b0;
  reg [5:0] f_len;
  reg [BEATS_W-1:0] f_from;
  reg [2:0] f_ahead = 0, f_aw_ahead = 0;
  reg [6:0] f_beats = 0;
  wire [2:0] f_behind = f_unsent + {2'd0, take} - {2'd0, f_w_ends};
  reg [2:0] f_unsent = 0;
  always @(posedge clk_i)
    if (!rst_ni) begin
      f_in <= 1'b0;
      f_unsent <= 0;
      f_beats <= 0;
    end else begin
      f_unsent <= f_behind;
      if (!f_in && take && f_choose) begin
        f_in <= 1'b1;
        f_len <= req_len;
        f_from <= sram_q;
        f_ahead <= f_unsent - {2'd0, f_w_ends};
        f_beats <= 0;
      end else if (f_in) begin
        if (f_w_ends && f_ahead != 0) f_ahead <= f_ahead - 1'b1;
        if (f_w && f_ahead == 0) f_beats <= f_beats + 1'b1;
        if (f_w_ends && f_ahead == 0) f_in <= 1'b0;
      end
    end
  reg [BEATS_W-1:0] f_raddr;
  always @(posedge clk_i) if (re_o) f_raddr <= raddr_o;
`ifdef BOUNDED
  always @* if (f_started && rst_ni && f_in && f_ahead == 0 && m_axi_wvalid) begin
    // P10 WLAST is on the last beat of a burst's length, and on no other.
    p10: assert (m_axi_wlast == (f_beats == {1'b0, f_len}));
    // P11 Beats come from OUT in order, from where the burst's share of the instruction begins.
    p11: assert (f_raddr == f_from + {{(BEATS_W - 7) {1'b0}}, f_beats});
  end
  // P12 No beat is sent whose burst was not granted.
  always @* if (f_started && rst_ni) p12: assert (!m_axi_wvalid || f_unsent != 0);
  // P13 Tokens are given as often as instructions end, after their last response.
  reg [2:0] f_insns = 0;
  reg [2:0] f_lasts = 0;
  always @(posedge clk_i)
    if (!rst_ni) {f_insns, f_lasts} <= 6'd0;
    else begin
      f_insns <= f_insns + {2'd0, start_i} - {2'd0, give_o};
      f_lasts <= f_lasts + {2'd0, take && req_last} - {2'd0, give_o};
    end
  always @* if (f_started && rst_ni) begin
    p13: assert (!give_o || f_lasts != 0);
    p13_all: assert (!give_o || f_insns != 0);
    // P14 Idle is when no instruction is under way.
    p14: assert (!idle_o || f_insns == 0);
  end
  // P15 Nothing is written outside of the window (vta_dma_walk's P7, behind this unit).
  localparam F_BUS_LOG = $clog2(AXI_DATA_BITS / 8);
  always @* if (f_started && rst_ni && take)
    p15: assert ({1'b0, req_offset} + (({27'd0, req_len} + 33'd1) << F_BUS_LOG) <= {1'b0, window_bytes_i});
`endif
  reg [31:0] f_offset;
  reg [5:0] f_length;
  always @(posedge clk_i) if (take) {f_offset, f_length} <= {req_offset, req_len};
  // P16 The bus gets the offset in the window plus its base, and beats less one.
  always @* if (f_started && rst_ni && aw_valid_q)
    p16: assert (m_axi_awaddr == window_base_i + f_offset && m_axi_awlen == {2'd0, f_length});

  always @* if (f_started && rst_ni) begin
    c1: cover (give_o && f_len == 1 && !f_in);
    c2: cover (f_granted == WRITE_OUTSTANDING && m_axi_wvalid && !m_axi_awvalid);
    c3: cover (f_waits_aw && f_w);
  end
