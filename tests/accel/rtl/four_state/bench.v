// Runs one program on vta_top in a simulator of four states, with a memory behind it, and writes the memory to a file.
// Registers that nobody set are X there, and so is what comes of them: X in the memory, or on a port, is a fault of the
// hardware. Plusargs: +memory= +lite= (hexadecimal, one word a line) +result=; +words of memory, +writes of registers.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module bench #(
    parameter DATA_W = 64,
    // Words of the memory, which lies at BASE
    parameter WORDS = 65536,
    parameter [31:0] BASE = 32'h4000_0000
);
  localparam BYTES = DATA_W / 8;

  reg clk = 1'b0;
  reg rst_n = 1'b0;
  always #5 clk = !clk;

  reg [DATA_W-1:0] memory[0:WORDS-1];
  reg [47:0] lite[0:63];
  reg [8*1024-1:0] memory_path, lite_path, result_path;
  integer words, writes, cycle = 0, limit;

  wire done;
  reg awvalid = 1'b0, wvalid = 1'b0;
  reg [11:0] lite_addr = 12'd0;
  reg [31:0] lite_data = 32'd0;
  wire awready, wready, bvalid;

  wire m_awid, m_awlock, m_awvalid, m_wlast, m_wvalid, m_bready, m_arid, m_arlock, m_arvalid, m_rready;
  wire [31:0] m_awaddr, m_araddr;
  wire [7:0] m_awlen, m_arlen;
  wire [2:0] m_awsize, m_awprot, m_arsize, m_arprot;
  wire [1:0] m_awburst, m_arburst;
  wire [3:0] m_awcache, m_arcache;
  wire [DATA_W-1:0] m_wdata;
  wire [BYTES-1:0] m_wstrb;
  reg m_rvalid = 1'b0, m_rlast = 1'b0, m_bvalid = 1'b0;
  reg [DATA_W-1:0] m_rdata = {DATA_W{1'b0}};

  // One burst each way at a time; the other waits at its address.
  reg reading = 1'b0, writing = 1'b0;
  reg [31:0] read_at, write_at;
  reg [7:0] read_left;

  vta_top #(`TOP_PARAMETERS) u_top (
      .clk_i(clk), .rst_ni(rst_n), .done_o(done),
      .s_axil_awaddr(lite_addr), .s_axil_awprot(3'd0), .s_axil_awvalid(awvalid), .s_axil_awready(awready),
      .s_axil_wdata(lite_data), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid), .s_axil_wready(wready),
      .s_axil_bresp(), .s_axil_bvalid(bvalid), .s_axil_bready(1'b1),
      .s_axil_araddr(12'd0), .s_axil_arprot(3'd0), .s_axil_arvalid(1'b0), .s_axil_arready(),
      .s_axil_rdata(), .s_axil_rresp(), .s_axil_rvalid(), .s_axil_rready(1'b0),
      .m_axi_awid(m_awid), .m_axi_awaddr(m_awaddr), .m_axi_awlen(m_awlen), .m_axi_awsize(m_awsize),
      .m_axi_awburst(m_awburst), .m_axi_awlock(m_awlock), .m_axi_awcache(m_awcache), .m_axi_awprot(m_awprot),
      .m_axi_awvalid(m_awvalid), .m_axi_awready(!writing),
      .m_axi_wdata(m_wdata), .m_axi_wstrb(m_wstrb), .m_axi_wlast(m_wlast), .m_axi_wvalid(m_wvalid),
      .m_axi_wready(writing && !m_bvalid),
      .m_axi_bid(1'b0), .m_axi_bresp(2'd0), .m_axi_bvalid(m_bvalid), .m_axi_bready(m_bready),
      .m_axi_arid(m_arid), .m_axi_araddr(m_araddr), .m_axi_arlen(m_arlen), .m_axi_arsize(m_arsize),
      .m_axi_arburst(m_arburst), .m_axi_arlock(m_arlock), .m_axi_arcache(m_arcache), .m_axi_arprot(m_arprot),
      .m_axi_arvalid(m_arvalid), .m_axi_arready(!reading),
      .m_axi_rid(1'b0), .m_axi_rdata(m_rdata), .m_axi_rresp(2'd0), .m_axi_rlast(m_rlast), .m_axi_rvalid(m_rvalid),
      .m_axi_rready(m_rready)
  );

  task fail(input [8*40-1:0] what);
    begin
      $display("X: %0s at cycle %0d", what, cycle);
      $finish;
    end
  endtask

  // From two edges of the reset on, no port that says something may be X.
  always @(posedge clk) begin
    cycle <= cycle + 1;
    if (cycle > 2) begin
      if ((^{m_arvalid, m_awvalid, m_wvalid, m_rready, m_bready, done, awready, wready, bvalid}) === 1'bx)
        fail("handshake");
      if (m_arvalid === 1'b1 && (^{m_arid, m_araddr, m_arlen, m_arsize, m_arburst, m_arlock, m_arcache}) === 1'bx)
        fail("read address");
      if (m_awvalid === 1'b1 && (^{m_awid, m_awaddr, m_awlen, m_awsize, m_awburst, m_awlock, m_awcache}) === 1'bx)
        fail("write address");
      if (m_wvalid === 1'b1 && (^{m_wstrb, m_wlast}) === 1'bx) fail("strobe");
      if (m_wvalid === 1'b1 && (^m_wdata) === 1'bx) fail("write data");
    end
    if (cycle > limit) begin
      $display("stuck after %0d cycles", cycle);
      $finish;
    end
  end

  // Memory
  always @(posedge clk) begin
    if (!rst_n) begin
      reading <= 1'b0;
      writing <= 1'b0;
      m_rvalid <= 1'b0;
      m_bvalid <= 1'b0;
    end else begin
      if (m_rvalid && m_rready) begin
        m_rvalid <= 1'b0;
        if (m_rlast) reading <= 1'b0;
      end
      if (!reading && m_arvalid) begin
        reading <= 1'b1;
        read_at <= m_araddr - BASE;
        read_left <= m_arlen;
      end else if (reading && (!m_rvalid || (m_rready && !m_rlast))) begin
        m_rvalid <= 1'b1;
        m_rdata <= memory[read_at/BYTES];
        m_rlast <= read_left == 8'd0;
        read_at <= read_at + BYTES;
        read_left <= read_left - 8'd1;
      end
      if (!writing && m_awvalid) begin
        writing <= 1'b1;
        write_at <= m_awaddr - BASE;
      end
      if (writing && !m_bvalid && m_wvalid) begin
        memory[write_at/BYTES] <= m_wdata;
        write_at <= write_at + BYTES;
        if (m_wlast) m_bvalid <= 1'b1;
      end
      if (m_bvalid && m_bready) begin
        m_bvalid <= 1'b0;
        writing <= 1'b0;
      end
    end
  end

  // Registers are written one after the other
  integer number = 0;
  reg waiting = 1'b0;
  always @(posedge clk)
    if (rst_n) begin
      if (awvalid && awready) awvalid <= 1'b0;
      if (wvalid && wready) wvalid <= 1'b0;
      if (!waiting && number < writes) begin
        {lite_addr, lite_data} <= lite[number][43:0];
        awvalid <= 1'b1;
        wvalid <= 1'b1;
        waiting <= 1'b1;
        number <= number + 1;
      end
      if (waiting && bvalid) waiting <= 1'b0;
    end

  initial begin
    if (!$value$plusargs("memory=%s", memory_path) || !$value$plusargs("lite=%s", lite_path)
        || !$value$plusargs("result=%s", result_path) || !$value$plusargs("words=%d", words)
        || !$value$plusargs("writes=%d", writes) || !$value$plusargs("limit=%d", limit)) begin
      $display("plusargs are missing");
      $finish;
    end
    $readmemh(memory_path, memory, 0, words - 1);
    $readmemh(lite_path, lite, 0, writes - 1);
    repeat (4) @(posedge clk);
    #1 rst_n = 1'b1;
    while (done !== 1'b1) @(posedge clk);
    repeat (8) @(posedge clk);
    $writememh(result_path, memory, 0, words - 1);
    $display("done after %0d cycles", cycle);
    $finish;
  end

endmodule

`resetall
