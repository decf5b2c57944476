"""The SoC for a bare part: accelerator, block RAM as its memory, and a serial line to the host.

In: a configuration, clock and line speed, the size of the memory. Out: the Verilog of its top module and its map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from relay_hw.accel.fpga.multipliers import core_parameters
from relay_hw.accel.fpga.parts import FlowError, Part
from relay_hw.accel.fpga.soc_map import MEMORY_BASE, REGISTERS_BASE, SocMap
from relay_hw.accel.isa.config import AccelConfig

TOP = "fpga_part"
FPGA_RTL = Path(__file__).parent / "rtl"
SOURCES = tuple(
    FPGA_RTL / f"{name}.v"
    for name in ("fpga_uart_rx", "fpga_uart_tx", "fpga_bridge", "fpga_serial", "fpga_registers", "fpga_axi_memory")
)
# Seconds after which a command that stopped half-way is forgotten.
COMMAND_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class PartSoc:
    """Sizes of the SoC. `memory_bytes` is a power of two; `divisor`: cycles of a bit on the line, at least 4."""

    config: AccelConfig
    part: Part
    clock_hz: int
    divisor: int
    memory_bytes: int

    def __post_init__(self) -> None:
        if self.memory_bytes & (self.memory_bytes - 1) or self.memory_bytes < 2 * self.config.bus_bytes:
            raise FlowError(f"memory_bytes must be a power of two of two beats or more, not {self.memory_bytes}")
        if self.divisor < 4:
            raise FlowError(f"divisor must be at least 4, not {self.divisor}")

    def map(self) -> SocMap:
        """What the driver must know."""
        baud = round(self.clock_hz / self.divisor)
        return SocMap(self.part.name, self.config.name, self.config.hash32, self.clock_hz, self.memory_bytes, baud)


def part_verilog(soc: PartSoc) -> str:
    """The top module: pins clk_i, rst_ni, rx_i, tx_o and done_o."""
    config = soc.config
    memory = {"DATA_BITS": config.axi_data_bits, "DEPTH": soc.memory_bytes // config.bus_bytes}
    return _TEXT.format(
        top=TOP,
        divisor=soc.divisor,
        timeout=max(16, round(soc.clock_hz * COMMAND_SECONDS)),
        memory_page=MEMORY_BASE >> 28,
        registers_page=REGISTERS_BASE >> 28,
        beat=f"[{config.axi_data_bits - 1}:0]",
        core=_sizes(core_parameters(config, soc.part.multipliers)),
        memory=_sizes(memory),
    )


def _sizes(values: Mapping[str, int]) -> str:
    """Parameters of an instance; hashes do not fit Verilog's signed integers."""
    return ", ".join(f".{key}(32'd{value})" for key, value in sorted(values.items()))


_TEXT = """\
// Written by relay_hw's bitstream flow: the accelerator with block RAM as its memory, behind a serial line.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module {top} (
    input wire clk_i,
    input wire rst_ni,
    input wire rx_i,
    output wire tx_o,
    output wire done_o
);
  // the reset input comes from outside
  reg [1:0] reset_q;
  wire rst_n = reset_q[1];
  always @(posedge clk_i) reset_q <= {{reset_q[0], rst_ni}};

  // words: memory, registers, and nothing elsewhere
  wire req, we, memory_ack, registers_ack;
  wire [31:0] addr, wdata, memory_word, registers_word;
  wire is_memory = addr[31:28] == 4'd{memory_page};
  wire is_registers = addr[31:28] == 4'd{registers_page};
  fpga_serial #(.DIVISOR({divisor}), .TIMEOUT({timeout})) u_serial (
      .clk_i(clk_i), .rst_ni(rst_n), .rx_i(rx_i), .tx_o(tx_o),
      .req_o(req), .we_o(we), .addr_o(addr), .wdata_o(wdata),
      .ack_i(is_memory ? memory_ack : is_registers ? registers_ack : 1'b1),
      .rdata_i(is_memory ? memory_word : is_registers ? registers_word : 32'd0)
  );

  wire lite_awvalid, lite_awready, lite_wvalid, lite_wready, lite_bvalid;
  wire lite_arvalid, lite_arready, lite_rvalid;
  wire [31:0] lite_rdata;
  wire [1:0] lite_rresp, lite_bresp;
  fpga_registers u_registers (
      .clk_i(clk_i), .rst_ni(rst_n), .req_i(req && is_registers), .we_i(we), .ack_o(registers_ack),
      .rdata_o(registers_word), .awvalid_o(lite_awvalid), .awready_i(lite_awready), .wvalid_o(lite_wvalid),
      .wready_i(lite_wready), .bvalid_i(lite_bvalid), .arvalid_o(lite_arvalid), .arready_i(lite_arready),
      .rdata_i(lite_rdata), .rresp_i(lite_rresp), .rvalid_i(lite_rvalid)
  );

  wire [31:0] awaddr, araddr;
  wire [7:0] awlen, arlen;
  wire awvalid, awready, wvalid, wready, wlast, bvalid, bready, arvalid, arready, rvalid, rready, rlast;
  wire {beat} wdata_beat, rdata_beat;
  fpga_axi_memory #({memory}) u_memory (
      .clk_i(clk_i), .rst_ni(rst_n), .awaddr_i(awaddr), .awvalid_i(awvalid), .awready_o(awready),
      .wdata_i(wdata_beat), .wlast_i(wlast), .wvalid_i(wvalid), .wready_o(wready), .bvalid_o(bvalid),
      .bready_i(bready), .araddr_i(araddr), .arlen_i(arlen), .arvalid_i(arvalid), .arready_o(arready),
      .rdata_o(rdata_beat), .rlast_o(rlast), .rvalid_o(rvalid), .rready_i(rready),
      .req_i(req && is_memory), .we_i(we), .addr_i(addr), .word_i(wdata), .ack_o(memory_ack), .word_o(memory_word)
  );

  vta_top #({core}) u_top (
      .clk_i(clk_i), .rst_ni(rst_n), .done_o(done_o),
      .s_axil_awaddr(addr[11:0]), .s_axil_awprot(3'd0), .s_axil_awvalid(lite_awvalid), .s_axil_awready(lite_awready),
      .s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(lite_wvalid), .s_axil_wready(lite_wready),
      .s_axil_bresp(lite_bresp), .s_axil_bvalid(lite_bvalid), .s_axil_bready(1'b1),
      .s_axil_araddr(addr[11:0]), .s_axil_arprot(3'd0), .s_axil_arvalid(lite_arvalid), .s_axil_arready(lite_arready),
      .s_axil_rdata(lite_rdata), .s_axil_rresp(lite_rresp), .s_axil_rvalid(lite_rvalid), .s_axil_rready(1'b1),
      .m_axi_awid(), .m_axi_awaddr(awaddr), .m_axi_awlen(awlen), .m_axi_awsize(), .m_axi_awburst(), .m_axi_awlock(),
      .m_axi_awcache(), .m_axi_awprot(), .m_axi_awvalid(awvalid), .m_axi_awready(awready),
      .m_axi_wdata(wdata_beat), .m_axi_wstrb(), .m_axi_wlast(wlast), .m_axi_wvalid(wvalid), .m_axi_wready(wready),
      .m_axi_bid(1'b0), .m_axi_bresp(2'd0), .m_axi_bvalid(bvalid), .m_axi_bready(bready),
      .m_axi_arid(), .m_axi_araddr(araddr), .m_axi_arlen(arlen), .m_axi_arsize(), .m_axi_arburst(), .m_axi_arlock(),
      .m_axi_arcache(), .m_axi_arprot(), .m_axi_arvalid(arvalid), .m_axi_arready(arready),
      .m_axi_rid(1'b0), .m_axi_rdata(rdata_beat), .m_axi_rresp(2'd0), .m_axi_rlast(rlast), .m_axi_rvalid(rvalid),
      .m_axi_rready(rready)
  );

  wire unused = &{{1'b0, awlen, lite_bresp}};
endmodule

`resetall
"""
