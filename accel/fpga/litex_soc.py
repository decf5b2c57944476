"""A board's System in LiteX: clocks, SDRAM controller, bus, host link and the accelerator, without a CPU.

In: a JSON object on standard input. Out: one on standard output with the Verilog, the constraints and the registers
of the memory. A program of its own (`python -m accel.fpga.litex_soc`): LiteX counts its signals in global state, and
the same System gives the same text only in a fresh process.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import sys
from dataclasses import dataclass
from typing import Any

from accel.fpga.boards import Board, HostLink, find_board
from accel.fpga.soc_map import MEMORY_BASE, REGISTERS_BASE

TOP = "fpga_board"
# Cycles after which an access to an address without a slave ends.
_BUS_TIMEOUT = 1 << 14
# Registers of the memory controller.
CONTROL_BASE = 0xF000_0000
_REGISTERS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be built. `parameters`: the accelerator's; `divisor`: cycles of a bit on a serial line."""

    board: str
    clock_hz: int
    divisor: int
    timeout: int
    bus_bits: int
    parameters: dict[str, int]
    address: str


def build(request: Request) -> dict[str, Any]:
    """Verilog, constraints and addresses of one System."""
    from litex.soc.integration.export import get_csr_json

    board = find_board(request.board)
    platform = _platform(board)
    soc = _system(request, board, platform)
    soc.finalize()
    output = platform.get_verilog(soc, name=TOP, special_overrides=_overrides())
    registers = json.loads(get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions))["csr_registers"]
    pins, _ = platform.resolve_signals(output.ns)
    return {
        "verilog": _without_comments(output.main_source),
        "data": {name: text for name, text in output.data_files.items()},
        "constraints": _constraints(board, pins),
        "registers": {name: row["addr"] for name, row in registers.items()},
        "read_latency": soc.sdrphy.settings.read_latency,
    }


def _overrides() -> dict[Any, Any]:
    """Pads of both directions: LiteX's own say that they are inputs, which simulators take at their word."""
    from migen import Instance
    from migen.fhdl.module import Module
    from migen.fhdl.specials import Tristate

    class Pads(Module):
        def __init__(self, pads: Any) -> None:
            width = len(pads.target)
            for k in range(width):
                # a bit of a bit is no Verilog
                target, out, back = (wire[k] if width > 1 else wire for wire in (pads.target, pads.o, pads.i))
                self.specials += Instance("TRELLIS_IO", p_DIR="BIDIR", io_B=target, i_I=out, o_O=back, i_T=~pads.oe)

    class Lowered:
        @staticmethod
        def lower(pads: Any) -> Any:
            return Pads(pads)

    return {Tristate: Lowered}


def _platform(board: Board) -> Any:
    module = importlib.import_module(f"litex_boards.platforms.{board.platform}")
    return module.Platform(**dict(board.platform_arguments), toolchain="trellis")


def _system(request: Request, board: Board, platform: Any) -> Any:
    """The System as LiteX builds it; modules are added in the order of their dependencies."""
    from litedram import modules
    from litedram.phy import GENSDRPHY
    from litex.soc.integration.soc_core import SoCMini

    soc = SoCMini(platform, request.clock_hz, with_ctrl=False, bus_timeout=_BUS_TIMEOUT, ident="")
    soc.mem_map = {**soc.mem_map, "csr": CONTROL_BASE}
    soc.crg = _clocks(request, board, platform)
    chip = getattr(modules, board.sdram.module)(request.clock_hz, "1:1")
    soc.sdrphy = GENSDRPHY(platform.request("sdram"), request.clock_hz, cl=board.sdram.cas_latency)
    soc.add_sdram("sdram", phy=soc.sdrphy, module=chip, with_soc_interconnect=False)
    # Until the host has initialised the chip, nothing but the host may give it commands.
    soc.sdram.dfii._control.storage.reset.value = 0
    _add_memory(soc, board)
    _add_accelerator(soc, request, platform, board)
    match board.link:
        case HostLink.SERIAL:
            _add_serial(soc, request, platform)
        case HostLink.ETHERBONE:
            _add_etherbone(soc, request, platform)
    return soc


def _clocks(request: Request, board: Board, platform: Any) -> Any:
    from litex.build.io import DDROutput
    from litex.gen import LiteXModule
    from litex.soc.cores.clock import ECP5PLL
    from migen import ClockDomain, ClockSignal, Signal

    clocks = LiteXModule()
    clocks.rst = Signal()
    clocks.cd_sys = ClockDomain()
    clocks.cd_sys_ps = ClockDomain(reset_less=True)
    clocks.pll = ECP5PLL()
    reset = platform.request(board.reset_pin)
    clocks.comb += clocks.pll.reset.eq((reset == board.reset_level) | clocks.rst)
    clocks.pll.register_clkin(platform.request(board.clock_pin), board.input_mhz * 1e6)
    clocks.pll.create_clkout(clocks.cd_sys, request.clock_hz, margin=0)
    clocks.pll.create_clkout(
        clocks.cd_sys_ps, request.clock_hz, phase=board.sdram.clock_phase, margin=0, with_reset=False
    )
    clocks.specials += DDROutput(1, 0, platform.request("sdram_clock"), ClockSignal("sys_ps"))
    for pin in board.high_pins:
        clocks.comb += platform.request(pin).eq(1)
    return clocks


def _add_memory(soc: Any, board: Board) -> None:
    """The host's way to the memory."""
    from litedram.frontend.wishbone import LiteDRAMWishbone2Native
    from litex.soc.integration.soc import SoCRegion
    from litex.soc.interconnect import wishbone

    words = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
    soc.host_memory = LiteDRAMWishbone2Native(words, soc.sdram.crossbar.get_port(), base_address=MEMORY_BASE)
    soc.bus.add_slave("memory", words, SoCRegion(origin=MEMORY_BASE, size=board.sdram.size_bytes, mode="rwx"))


def _add_accelerator(soc: Any, request: Request, platform: Any, board: Board) -> None:
    """vta_top: AXI4 to the memory, AXI4-Lite from the bus."""
    from litedram.frontend.axi import LiteDRAMAXI2Native, LiteDRAMAXIPort
    from litex.soc.integration.soc import SoCRegion
    from litex.soc.interconnect import axi
    from migen import ClockSignal, Constant, Instance, ResetSignal, Signal

    beats = LiteDRAMAXIPort(data_width=request.bus_bits, address_width=32, id_width=1)
    port = soc.sdram.crossbar.get_port(data_width=request.bus_bits)
    soc.accelerator_memory = LiteDRAMAXI2Native(beats, port, base_address=MEMORY_BASE)
    registers = axi.AXILiteInterface(data_width=32, address_width=32)
    region = SoCRegion(origin=REGISTERS_BASE, size=_REGISTERS_BYTES, cached=False)
    soc.bus.add_slave("accelerator", registers, region)
    done = Signal()
    led = platform.request(board.led_pin, 0)
    soc.comb += led.eq(~done if board.led_pin.endswith("_n") else done)
    pins: dict[str, Any] = {f"p_{name}": Constant(value, 32) for name, value in request.parameters.items()}
    pins |= {"i_clk_i": ClockSignal("sys"), "i_rst_ni": ~ResetSignal("sys"), "o_done_o": done}
    pins |= _slave_pins(registers) | _master_pins(beats)
    soc.specials += Instance("vta_top", **pins)


def _slave_pins(registers: Any) -> dict[str, Any]:
    pins: dict[str, Any] = {"i_s_axil_awprot": 0, "i_s_axil_arprot": 0}
    for name, channel in (("aw", registers.aw), ("ar", registers.ar)):
        pins |= {f"i_s_axil_{name}addr": channel.addr[:12], f"i_s_axil_{name}valid": channel.valid}
        pins[f"o_s_axil_{name}ready"] = channel.ready
    pins |= {f"i_s_axil_w{name}": getattr(registers.w, name) for name in ("data", "strb", "valid")}
    pins |= {"o_s_axil_wready": registers.w.ready, "o_s_axil_bresp": registers.b.resp}
    pins |= {"o_s_axil_bvalid": registers.b.valid, "i_s_axil_bready": registers.b.ready}
    pins |= {f"o_s_axil_r{name}": getattr(registers.r, name) for name in ("data", "resp", "valid")}
    return pins | {"i_s_axil_rready": registers.r.ready}


def _master_pins(beats: Any) -> dict[str, Any]:
    pins: dict[str, Any] = {}
    for name, channel in (("aw", beats.aw), ("ar", beats.ar)):
        pins |= {f"o_m_axi_{name}{field}": getattr(channel, field) for field in ("id", "addr", "len", "size", "burst")}
        pins |= {f"o_m_axi_{name}valid": channel.valid, f"i_m_axi_{name}ready": channel.ready}
    pins |= {f"o_m_axi_w{field}": getattr(beats.w, field) for field in ("data", "strb", "last", "valid")}
    pins |= {"i_m_axi_wready": beats.w.ready, "o_m_axi_bready": beats.b.ready}
    pins |= {f"i_m_axi_b{field}": getattr(beats.b, field) for field in ("id", "resp", "valid")}
    pins |= {f"i_m_axi_r{field}": getattr(beats.r, field) for field in ("id", "data", "resp", "last", "valid")}
    return pins | {"o_m_axi_rready": beats.r.ready}


def _add_serial(soc: Any, request: Request, platform: Any) -> None:
    """The serial line of the part's System, as a master of the bus."""
    from litex.soc.interconnect import wishbone
    from migen import ClockSignal, Instance, ResetSignal, Signal

    serial = platform.request("serial")
    access, address = Signal(), Signal(32)
    words = wishbone.Interface(data_width=32, adr_width=30, addressing="word")
    pins: dict[str, Any] = {"p_DIVISOR": request.divisor, "p_TIMEOUT": request.timeout}
    pins |= {"i_clk_i": ClockSignal("sys"), "i_rst_ni": ~ResetSignal("sys")}
    pins |= {"i_rx_i": serial.rx, "o_tx_o": serial.tx, "o_req_o": access, "o_we_o": words.we, "o_addr_o": address}
    pins |= {"o_wdata_o": words.dat_w, "i_ack_i": words.ack | words.err, "i_rdata_i": words.dat_r}
    soc.specials += Instance("fpga_serial", **pins)
    soc.comb += [words.cyc.eq(access), words.stb.eq(access), words.adr.eq(address[2:]), words.sel.eq(15)]
    soc.bus.add_master("serial", words)


def _add_etherbone(soc: Any, request: Request, platform: Any) -> None:
    """LiteEth's Etherbone on the board's first Ethernet port."""
    from liteeth.phy.ecp5rgmii import LiteEthPHYRGMII

    clocks, pads = platform.request("eth_clocks", 0), platform.request("eth", 0)
    soc.ethphy = LiteEthPHYRGMII(clock_pads=clocks, pads=pads, tx_delay=0, with_hw_init_reset=False)
    soc.add_etherbone(phy=soc.ethphy, ip_address=request.address, with_timing_constraints=False)


def _without_comments(text: str) -> str:
    """LiteX dates its files in comments."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    lines = (line.rstrip() for line in text.splitlines() if not line.lstrip().startswith("//"))
    body = "\n".join(line for line in lines if line)
    return f"// Written by relay_hw's bitstream flow with LiteX: a board's System around the accelerator.\n{body}\n"


def _constraints(board: Board, pins: list[Any]) -> str:
    """An LPF file: place and electrical standard of each pin, and the frequency of the oscillator."""
    lines: list[str] = []
    for name, places, others, resource in sorted(pins, key=lambda row: row[0]):
        for index, place in enumerate(places):
            port = f"{name}[{index}]" if len(places) > 1 else name
            lines.append(f'LOCATE COMP "{port}" SITE "{place}";')
            words = [_setting(other) for other in others]
            lines.append(f'IOBUF PORT "{port}" {" ".join(word for word in words if word)};')
        if resource[0] == board.clock_pin:
            lines.append(f'FREQUENCY PORT "{name}" {board.input_mhz:g} MHZ;')
    return "\n".join(lines) + "\n"


def _setting(other: Any) -> str:
    from litex.build.generic_platform import IOStandard, Misc

    match other:
        case IOStandard():
            return f"IO_TYPE={other.name}"
        case Misc():
            return str(other.misc)
        case _:
            return ""


def main() -> None:
    """Read the request, write the answer."""
    logging.disable(logging.WARNING)
    sys.stdout, answer = sys.stderr, sys.stdout
    json.dump(build(Request(**json.load(sys.stdin))), answer)


if __name__ == "__main__":
    main()
