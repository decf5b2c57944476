// Not the accelerator: a master with the ports of vta_top that breaks one AXI rule on request, to test the harness.
// Registers: 0x20 offset and 0x24 beats of one burst, 0x28 which rule to break (0: none); launch copies the burst + 1
// to offset 0 of the window. 0x40 counts cycles.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module vta_top #(
    parameter BLOCK_IN = 4, WGT_BITS = 8, BLOCK_OUT = 4, INP_DEPTH = 8, WGT_DEPTH = 8, ACC_DEPTH = 8, ACC_BANKS = 1,
    parameter OUT_DEPTH = 8, UOP_DEPTH = 8, PRM_DEPTH = 8, OUT_LANES = 1, MULTIPLIER_BITS = 8, TABLES = 2, COF_DEPTH = 0, AXI_DATA_BITS = 64, BURST_BEATS = 64,
    parameter READ_OUTSTANDING = 16, WRITE_OUTSTANDING = 16, QUEUE_DEPTH = 2, DSP_PRODUCTS = 64, CONFIG_HASH = 0
) (
    input  wire                       clk_i,
    input  wire                       rst_ni,
    output wire                       done_o,
    output wire                       m_axi_awid,
    output wire [31:0]                m_axi_awaddr,
    output wire [7:0]                 m_axi_awlen,
    output wire [2:0]                 m_axi_awsize,
    output wire [1:0]                 m_axi_awburst,
    output wire                       m_axi_awlock,
    output wire [3:0]                 m_axi_awcache,
    output wire [2:0]                 m_axi_awprot,
    output wire                       m_axi_awvalid,
    input  wire                       m_axi_awready,
    output wire [AXI_DATA_BITS-1:0]   m_axi_wdata,
    output wire [AXI_DATA_BITS/8-1:0] m_axi_wstrb,
    output wire                       m_axi_wlast,
    output wire                       m_axi_wvalid,
    input  wire                       m_axi_wready,
    input  wire                       m_axi_bid,
    input  wire [1:0]                 m_axi_bresp,
    input  wire                       m_axi_bvalid,
    output wire                       m_axi_bready,
    output wire                       m_axi_arid,
    output wire [31:0]                m_axi_araddr,
    output wire [7:0]                 m_axi_arlen,
    output wire [2:0]                 m_axi_arsize,
    output wire [1:0]                 m_axi_arburst,
    output wire                       m_axi_arlock,
    output wire [3:0]                 m_axi_arcache,
    output wire [2:0]                 m_axi_arprot,
    output wire                       m_axi_arvalid,
    input  wire                       m_axi_arready,
    input  wire                       m_axi_rid,
    input  wire [AXI_DATA_BITS-1:0]   m_axi_rdata,
    input  wire [1:0]                 m_axi_rresp,
    input  wire                       m_axi_rlast,
    input  wire                       m_axi_rvalid,
    output wire                       m_axi_rready,
    input  wire [11:0]                s_axil_awaddr,
    input  wire [2:0]                 s_axil_awprot,
    input  wire                       s_axil_awvalid,
    output wire                       s_axil_awready,
    input  wire [31:0]                s_axil_wdata,
    input  wire [3:0]                 s_axil_wstrb,
    input  wire                       s_axil_wvalid,
    output wire                       s_axil_wready,
    output wire [1:0]                 s_axil_bresp,
    output reg                        s_axil_bvalid,
    input  wire                       s_axil_bready,
    input  wire [11:0]                s_axil_araddr,
    input  wire [2:0]                 s_axil_arprot,
    input  wire                       s_axil_arvalid,
    output wire                       s_axil_arready,
    output reg  [31:0]                s_axil_rdata,
    output wire [1:0]                 s_axil_rresp,
    output reg                        s_axil_rvalid,
    input  wire                       s_axil_rready
);
  localparam SIZE = $clog2(AXI_DATA_BITS / 8);
  localparam [7:0] GOOD = 0, SMALL = 1, FIXED = 2, EARLY_LAST = 3, NO_LAST = 4, STROBE = 5, DROP_AR = 6, MOVE_AR = 7;
  localparam [7:0] MUTE = 8, FLOOD = 9, MOVE_W = 10, DROP_AW = 11, LONG = 12, AW_ID = 13, AR_ID = 14;
  localparam [7:0] PROT = 15, CACHE = 16, DEAF = 17, AW_SMALL = 18, AW_FIXED = 19, AW_LONG = 20, AW_ODD = 21;
  localparam [7:0] AW_FAR = 22, AW_OUT = 23, AW_LOCK = 24, AW_CACHE = 25, AR_PROT = 26, AR_CACHE = 27, MOVE_AW = 28;
  localparam [7:0] DROP_W = 29, MOVE_LAST = 30, MOVE_STROBE = 31, AW_FLOOD = 32, LITE_WRITE = 33, LITE_READ = 34;
  localparam [7:0] MOVE_LEN = 35, WRAP = 36, MOVE_ID = 37, DEAF_AW = 38, DEAF_W = 39, MOVE_SIZE = 40;

  reg [31:0] base, program_q, count, cycles;
  reg [7:0]  rule;
  reg        busy, done, arvalid, awvalid;
  reg [2:0]  deaf;
  reg [8:0]  n;
  reg [2:0]  state;
  reg [AXI_DATA_BITS-1:0] buffer [0:255];

  wire write = s_axil_awvalid && s_axil_wvalid && !s_axil_bvalid && rule != MUTE;
  wire [7:0] len = count[7:0] - 8'd1;
  wire last = n[7:0] == len;

  assign done_o = done;
  assign s_axil_awready = write;
  assign s_axil_wready  = write;
  assign s_axil_bresp   = rule == LITE_WRITE ? 2'd2 : 2'd0;
  assign s_axil_rresp   = rule == LITE_READ ? 2'd3 : 2'd0;
  assign s_axil_arready = !s_axil_rvalid;

  assign {m_axi_awid, m_axi_awlock} = {rule == AW_ID, rule == AW_LOCK};
  assign {m_axi_awcache, m_axi_awprot} = {rule == AW_CACHE ? 4'd0 : 4'd3, rule == PROT, 2'd0};
  assign {m_axi_arid, m_axi_arlock} = {rule == AR_ID || (rule == MOVE_ID && cycles[0]), rule == CACHE};
  assign {m_axi_arcache, m_axi_arprot} = {rule == AR_CACHE ? 4'd15 : 4'd3, 1'b0, rule == AR_PROT, 1'b0};
  assign m_axi_araddr  = base + program_q + (rule == MOVE_AR && cycles[0] ? 32'd64 : 32'd0);
  assign m_axi_arlen   = rule == LONG ? 8'd127 : len ^ {7'd0, rule == MOVE_LEN && cycles[0]};
  assign m_axi_arsize  = rule == SMALL || (rule == MOVE_SIZE && cycles[0]) ? 3'd0 : SIZE[2:0];
  assign m_axi_arburst = rule == FIXED ? 2'd0 : rule == WRAP ? 2'd2 : 2'd1;
  assign m_axi_arvalid = arvalid || (deaf[0] && !rst_ni);
  assign m_axi_rready  = state == 3'd1;
  assign m_axi_awaddr  = base + (rule == AW_ODD ? 32'd2 : rule == AW_FAR ? 32'd4088 : rule == AW_OUT ? 32'd16384 :
                                 rule == MOVE_AW && cycles[0] ? 32'd64 : 32'd0);
  assign m_axi_awlen   = rule == AW_LONG ? 8'd127 : len;
  assign m_axi_awsize  = rule == AW_SMALL ? 3'd1 : SIZE[2:0];
  assign m_axi_awburst = rule == AW_FIXED ? 2'd0 : 2'd1;
  assign m_axi_awvalid = awvalid || (deaf[1] && !rst_ni);
  assign m_axi_wdata   = buffer[n[7:0]] + 1 + (rule == MOVE_W ? {32'd0, cycles} : 64'd0);
  assign m_axi_wstrb   = rule == STROBE || (rule == MOVE_STROBE && cycles[0]) ? {{(AXI_DATA_BITS/8-1){1'b1}}, 1'b0} :
                         {(AXI_DATA_BITS/8){1'b1}};
  assign m_axi_wlast   = rule == EARLY_LAST ? n == 0 : rule == NO_LAST ? 1'b0 : last ^ (rule == MOVE_LAST && cycles[0]);
  assign m_axi_wvalid  = (state == 3'd3 && !(rule == DROP_W && cycles[0])) || (deaf[2] && !rst_ni);
  assign m_axi_bready  = 1'b1;

  always @(posedge clk_i)
    if (!rst_ni) begin
      {s_axil_bvalid, s_axil_rvalid, arvalid, awvalid, done, busy} <= 6'd0;
      state <= 3'd0;
      rule  <= GOOD;
    end else begin
      if (busy) cycles <= cycles + 1;
      if (s_axil_bready) s_axil_bvalid <= 1'b0;
      if (s_axil_rready) s_axil_rvalid <= 1'b0;
      if (m_axi_arready && rule != FLOOD || rule == DROP_AR) arvalid <= 1'b0;
      if (m_axi_awready && rule != AW_FLOOD || rule == DROP_AW) awvalid <= 1'b0;
      if (write) begin
        s_axil_bvalid <= 1'b1;
        case (s_axil_awaddr)
          12'h18: base <= s_axil_wdata;
          12'h20: program_q <= s_axil_wdata;
          12'h24: count <= s_axil_wdata;
          12'h28: begin
            rule <= s_axil_wdata[7:0];
            deaf <= {s_axil_wdata[7:0] == DEAF_W, s_axil_wdata[7:0] == DEAF_AW, s_axil_wdata[7:0] == DEAF};
          end
          12'h0C: begin
            busy <= 1'b1;  done <= 1'b0;  cycles <= 0;  state <= 3'd1;  n <= 0;  arvalid <= 1'b1;
          end
          default: ;
        endcase
      end
      if (s_axil_arvalid && s_axil_arready) begin
        s_axil_rvalid <= 1'b1;
        case (s_axil_araddr)
          12'h00: s_axil_rdata <= 32'h57484C52;
          12'h04: s_axil_rdata <= 1;
          12'h08: s_axil_rdata <= CONFIG_HASH;
          12'h10: s_axil_rdata <= {30'd0, done, busy};
          12'h40: s_axil_rdata <= cycles;
          default: s_axil_rdata <= 0;
        endcase
      end
      case (state)
        3'd1: if (m_axi_rvalid) begin
          buffer[n[7:0]] <= m_axi_rdata;
          n <= n + 1;
          if (m_axi_rlast && rule != FLOOD) begin
            state <= 3'd2;  awvalid <= 1'b1;  n <= 0;
          end
        end
        3'd2: if (m_axi_awready) state <= 3'd3;
        3'd3: if (m_axi_wready && m_axi_wvalid) begin
          n <= n + 1;
          if (last) state <= 3'd4;
        end
        3'd4: if (m_axi_bvalid) begin
          state <= 3'd0;  busy <= 1'b0;  done <= 1'b1;
        end
        default: ;
      endcase
    end
endmodule

`resetall
