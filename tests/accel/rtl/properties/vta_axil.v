// induction 3
// cover 10

  // Assumed of the host: what is offered stays until it is taken.
  reg f_aw = 1'b0, f_w = 1'b0, f_ar = 1'b0;
  reg [11:0] f_awaddr, f_araddr;
  reg [35:0] f_wdata;
  reg f_b = 1'b0, f_r = 1'b0;
  reg [1:0] f_bresp;
  reg [33:0] f_rdata;
  always @(posedge clk_i) begin
    f_aw <= rst_ni && s_axil_awvalid && !s_axil_awready;
    f_w  <= rst_ni && s_axil_wvalid && !s_axil_wready;
    f_ar <= rst_ni && s_axil_arvalid && !s_axil_arready;
    f_b  <= rst_ni && s_axil_bvalid && !s_axil_bready;
    f_r  <= rst_ni && s_axil_rvalid && !s_axil_rready;
    {f_awaddr, f_araddr, f_wdata} <= {s_axil_awaddr, s_axil_araddr, s_axil_wstrb, s_axil_wdata};
    {f_bresp, f_rdata} <= {s_axil_bresp, s_axil_rresp, s_axil_rdata};
  end
  always @* begin
    if (f_aw) assume (s_axil_awvalid && s_axil_awaddr == f_awaddr);
    if (f_w) assume (s_axil_wvalid && {s_axil_wstrb, s_axil_wdata} == f_wdata);
    if (f_ar) assume (s_axil_arvalid && s_axil_araddr == f_araddr);
  end

  // Writes and reads that were taken and have no response yet.
  reg [1:0] f_writes = 2'd0, f_reads = 2'd0;
  reg f_took_write = 1'b0, f_took_read = 1'b0;
  reg f_ok = 1'b0;
  reg [31:0] f_read_data;
  reg f_read_ok;
  wire f_b_ends = s_axil_bvalid && s_axil_bready, f_r_ends = s_axil_rvalid && s_axil_rready;
  always @(posedge clk_i)
    if (!rst_ni) {f_writes, f_reads} <= 4'd0;
    else begin
      f_writes <= f_writes + {1'b0, s_axil_awvalid && s_axil_awready} - {1'b0, f_b_ends};
      f_reads  <= f_reads + {1'b0, s_axil_arvalid && s_axil_arready} - {1'b0, f_r_ends};
    end
  always @(posedge clk_i) begin
    f_took_write <= rst_ni && s_axil_awready;
    f_took_read  <= rst_ni && read_q && read_ready_i;
    f_ok         <= &s_axil_wstrb && write_known_i;
    {f_read_ok, f_read_data} <= {read_known_i, read_data_i};
  end

  always @* if (f_started && rst_ni) begin
    // P1 Address and data of a write are taken in the same cycle, and only if both are offered.
    p1: assert (s_axil_awready == s_axil_wready && (!s_axil_awready || (s_axil_awvalid && s_axil_wvalid)));
    // P2 One write at a time: none is taken before the response to the one before it was.
    p2: assert (f_writes == {1'b0, s_axil_bvalid} && !(s_axil_bvalid && s_axil_awready));
    // P3 BVALID and BRESP stay until BREADY.
    p3: assert (!f_b || (s_axil_bvalid && s_axil_bresp == f_bresp));
    // P4 The response follows in the cycle behind the write, OKAY for whole words to known registers, else SLVERR.
    p4: assert (!f_took_write || (s_axil_bvalid && s_axil_bresp == (f_ok ? 2'b00 : 2'b10)));
    // P5 A register is written in the cycle in which the write is taken, with the host's word and address, if all strobes are set.
    p5: assert (write_o == (s_axil_awready && s_axil_wready && &s_axil_wstrb));
    p5_data: assert (!write_o || (write_data_o == s_axil_wdata && write_addr_o == {s_axil_awaddr[11:2], 2'b00}));
    p5_offer: assert (!write_q || (whole_q == &s_axil_wstrb && write_data_q == s_axil_wdata && write_word_q == s_axil_awaddr[11:2]));
    // P6 write_control_o names CONTROL's address, and no other.
    p6: assert (!write_o || write_control_o == (write_addr_o == `VTA_REG_CONTROL));
    // P7 One read at a time: none is taken before the data of the one before it were.
    p7: assert (f_reads == {1'b0, read_q} + {1'b0, s_axil_rvalid} && !(read_q && s_axil_rvalid));
    p7_taken: assert (!((read_q || s_axil_rvalid) && s_axil_arready));
    // P8 RVALID, RDATA and RRESP stay until RREADY.
    p8: assert (!f_r || (s_axil_rvalid && {s_axil_rresp, s_axil_rdata} == f_rdata));
    // P9 What the block says in the cycle of read_ready_i is answered in the next: its data, SLVERR where it knows no register.
    p9: assert (!f_took_read || (s_axil_rvalid && s_axil_rdata == f_read_data && s_axil_rresp == (f_read_ok ? 2'b00 : 2'b10)));
    // P10 No write is lost: one that is offered while none is under way is taken in the next cycle.
    p10: assert (!f_offered || write_q);
  end
  reg f_offered = 1'b0;
  reg [11:0] f_read_addr;
  always @(posedge clk_i) begin
    f_offered <= rst_ni && s_axil_awvalid && s_axil_wvalid && !write_q && !s_axil_bvalid;
    if (s_axil_arvalid && s_axil_arready) f_read_addr <= s_axil_araddr;
  end
  // P11 The block is asked for the word whose address was taken.
  always @* if (f_started && rst_ni && read_q) p11: assert (read_addr_o == {f_read_addr[11:2], 2'b00});

  always @* if (f_started && rst_ni) begin
    c1: cover (f_b_ends && f_r_ends && s_axil_bresp == 2'b00 && s_axil_rresp == 2'b10);
    c2: cover (s_axil_arvalid && s_axil_arready && f_b);
  end
