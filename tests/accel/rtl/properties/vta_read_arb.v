// induction 3 READ_OUTSTANDING=1
// induction 3 READ_OUTSTANDING=3
// bounded 14 READ_OUTSTANDING=1
// bounded 14 READ_OUTSTANDING=3
// cover 14 READ_OUTSTANDING=3

  // Assumed of the bus: data come for a burst that was taken, in order, as many beats as were asked, the last one marked.
  // Bursts that were granted and have not ended; f_sent of them are past AR.
  reg [2:0] f_all = 0;
  reg [2:0] f_sent = 0;
  wire f_take = (fetch_valid_i && fetch_ready_o) || (load_valid_i && load_ready_o);
  wire f_accept = m_axi_arvalid && m_axi_arready;
  wire f_beat = m_axi_rvalid && m_axi_rready;
  wire f_ends = f_beat && m_axi_rlast;
  always @(posedge clk_i)
    if (!rst_ni) begin
      f_all  <= 0;
      f_sent <= 0;
    end else begin
      f_all  <= f_all + {2'd0, f_take} - {2'd0, f_ends};
      f_sent <= f_sent + {2'd0, f_accept} - {2'd0, f_ends};
    end
  always @* assume (!(m_axi_rvalid && f_sent == 0));

  localparam F_COUNT_W = $clog2(READ_OUTSTANDING + 1);
  (* hierconn *) wire [F_COUNT_W-1:0] \u_owners.u_count.count_q ;
  (* hierconn *) wire \u_owners.u_count.any_q , \u_owners.u_count.full_q ;
  reg f_was_valid = 1'b0, f_was_ready = 1'b0;
  reg [31:0] f_addr;
  reg [7:0] f_len;
  reg f_was_stop;
  always @(posedge clk_i) begin
    f_was_valid <= rst_ni && m_axi_arvalid;
    f_was_ready <= m_axi_arready;
    {f_addr, f_len, f_was_stop} <= {m_axi_araddr, m_axi_arlen, stop_i};
  end
  always @* if (f_started && rst_ni) begin
    // P1 At most READ_OUTSTANDING bursts are between the AR register and their last beat.
    p1: assert (f_all <= READ_OUTSTANDING);
    p1_count: assert (\u_owners.u_count.count_q == f_all);
    p1_flags: assert (\u_owners.u_count.any_q == (f_all != 0) && \u_owners.u_count.full_q == (f_all == READ_OUTSTANDING));
    // P2 A burst is either past AR or in its register.
    p2: assert (f_all == f_sent + {2'd0, valid_q});
    // P3 ARVALID stays high, with address and length as they were, until ARREADY.
    p3: assert (!(f_was_valid && !f_was_ready) || (m_axi_arvalid && m_axi_araddr == f_addr && m_axi_arlen == f_len));
    // P4 Fetch goes first: LOAD is taken only when fetch does not ask.
    p4: assert (!(load_valid_i && load_ready_o && fetch_valid_i));
    // P5 Nothing is taken after a stop.
    p5: assert (!(f_take && stop_i));
    // P6 A beat goes to one owner.
    p6: assert (!(fetch_beat_o && load_beat_o) && (fetch_beat_o || load_beat_o) == f_beat);
    // P7 After a stop every beat is taken at once.
    p7: assert (!(stop_i && m_axi_rvalid) || m_axi_rready);
    // P8 Idle is when nothing is on its way.
    p8: assert (idle_o == (f_all == 0));
  end

  // A burst of the solver's choice: f_ahead bursts leave before it.
  (* anyseq *) wire f_choose;
  reg f_in = 1'b0, f_is_load = 1'b0, f_done = 1'b0;
  reg [2:0] f_ahead = 0;
  always @(posedge clk_i)
    if (!rst_ni) {f_in, f_done} <= 2'd0;
    else if (f_in) begin
      if (f_ends) f_ahead <= f_ahead - 3'd1;
      if (f_ends && f_ahead == 0) {f_in, f_done} <= 2'b01;
    end else if (f_take && f_choose && !f_done) begin
      f_in <= 1'b1;
      f_is_load <= !fetch_valid_i;
      f_ahead <= f_all - {2'd0, f_ends};
    end

`ifdef BOUNDED
  // P11 Data go to whoever asked for the burst, in the order in which bursts were granted.
  always @* if (f_started && rst_ni && f_in && f_ahead == 0) p11: assert (!f_beat || load_beat_o == f_is_load);
`endif

  // P9 No starvation: fetch waits only for the bus or for bursts that end, LOAD for fetch too.
  wire f_waits = stop_i || f_all == READ_OUTSTANDING || (m_axi_arvalid && !m_axi_arready);
  always @* if (f_started && rst_ni) begin
    p9: assert (!load_valid_i || load_ready_o || fetch_valid_i || f_waits);
    p9_fetch: assert (!fetch_valid_i || fetch_ready_o || f_waits);
  end

  reg f_was_take = 1'b0, f_fetch = 1'b0;
  reg [31:0] f_wanted;
  reg [7:0] f_wanted_len;
  always @(posedge clk_i) begin
    f_was_take <= rst_ni && f_take;
    f_wanted <= window_base_i + (fetch_valid_i ? fetch_offset_i : load_offset_i);
    f_wanted_len <= fetch_valid_i ? {1'b0, fetch_beats_i} - 8'd1 : {2'd0, load_len_i};
  end
  // P10 The edge behind a grant has the burst on the bus: base and offset, beats less one.
  always @* if (f_started && rst_ni && f_was_take)
    p10: assert (m_axi_arvalid && m_axi_araddr == f_wanted && m_axi_arlen == f_wanted_len);

  always @* if (f_started && rst_ni) begin
    c1: cover (f_done && f_is_load && f_all == 0);
    c2: cover (f_all == READ_OUTSTANDING && load_valid_i && m_axi_rvalid);
  end
