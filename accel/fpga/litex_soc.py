"""A board's SoC in LiteX: clocks, SDRAM controller, bus, host link and the accelerator, without a CPU.

In: a JSON object on standard input. Out: one on standard output with Verilog, constraints and register addresses.
A program of its own (`python -m relay_hw.accel.fpga.litex_soc`): LiteX counts in global state; fresh,
it always says the same.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from relay_hw.accel.fpga.boards import Board, HostLink, find_board
from relay_hw.accel.fpga.etherbone import PORT as ETHERBONE_PORT
from relay_hw.accel.fpga.litex_text import constraints, without_comments
from relay_hw.accel.fpga.row_hits import know_row_hits
from relay_hw.accel.fpga.soc_map import MEMORY_BASE, REGISTERS_BASE

TOP = "fpga_board"
# Registers of the memory controller.
CONTROL_BASE = 0xF000_0000
_REGISTERS_BYTES = 4096
# A locally administered address on Ethernet.
_MAC_ADDRESS = 0x02_00_52_45_4C_59
# Beats that the memory controller's AXI port holds each way.
BUFFER_BEATS = 16
# Cycles after which an access to an address without a slave ends.
_BUS_TIMEOUT = 1 << 14


@dataclass(frozen=True, slots=True)
class Request:
    """The SoC to build. `parameters`: the accelerator's; `divisor`: cycles of a bit on a serial line; `timeout`:
    cycles after which half a command is forgotten; `address`: of the board on Ethernet."""

    board: str
    clock_hz: int
    divisor: int
    timeout: int
    bus_bits: int
    parameters: dict[str, int]
    address: str


def build(request: Request) -> dict[str, Any]:
    """Verilog, constraints and addresses of one SoC."""
    board = find_board(request.board)
    platform = _module(f"litex_boards.platforms.{board.platform}").Platform(
        **dict(board.platform_arguments), toolchain="trellis"
    )
    soc = _build_soc(request, board, platform)
    soc.finalize()
    output = platform.get_verilog(soc, name=TOP, special_overrides={_module("migen.fhdl.specials").Tristate: _Pads})
    export = _module("litex.soc.integration.export")
    registers = json.loads(export.get_csr_json(soc.csr_regions, soc.constants, soc.mem_regions))["csr_registers"]
    pins, _ = platform.resolve_signals(output.ns)
    return {
        "verilog": without_comments(output.main_source),
        "constraints": constraints(board, pins),
        "registers": {name: row["addr"] for name, row in registers.items()},
    }


def _module(name: str) -> Any:
    """A module of LiteX: without types, and not needed by anything but this program."""
    return importlib.import_module(name)


def _build_soc(request: Request, board: Board, platform: Any) -> Any:
    """The SoC as LiteX builds it; modules are added in the order of their dependencies."""
    core = _module("litex.soc.integration.soc_core")
    soc = core.SoCMini(platform, request.clock_hz, with_ctrl=False, bus_timeout=_BUS_TIMEOUT, ident="")
    soc.mem_map = {**soc.mem_map, "csr": CONTROL_BASE}
    soc.crg = _clocks(request, board, platform)
    chip = getattr(_module("litedram.modules"), board.sdram.module)(request.clock_hz, "1:1")
    # LiteDRAM rounds up: rows would be refreshed late at clocks whose cycles do not divide the interval.
    chip.timing_settings.tREFI = board.sdram.refresh_every(request.clock_hz)
    soc.sdrphy = _chip_pins(request, board, platform)
    soc.add_sdram("sdram", phy=soc.sdrphy, module=chip, with_soc_interconnect=False)
    for _, module in soc.sdram.controller._submodules:
        if type(module).__name__ == "BankMachine":
            know_row_hits(module)
    # Until the host has initialised the chip, nothing but the host may give it commands.
    soc.sdram.dfii._control.storage.reset.value = 0
    _add_host_memory(soc, board)
    _add_accelerator(soc, request, board, platform)
    match board.link:
        case HostLink.SERIAL:
            _add_serial(soc, request, platform)
        case HostLink.ETHERBONE:
            _add_etherbone(soc, request, platform)
    return soc


def _clocks(request: Request, board: Board, platform: Any) -> Any:
    """The SoC's clock, and that of the memory chip, from the board's oscillator."""
    migen = _module("migen")
    clocks = _module("litex.gen").LiteXModule()
    clocks.rst = migen.Signal()
    clocks.cd_sys = migen.ClockDomain("sys")
    clocks.cd_sys_ps = migen.ClockDomain("sys_ps", reset_less=True)
    clocks.pll = pll = _module("litex.soc.cores.clock").ECP5PLL()
    clocks.comb += pll.reset.eq((platform.request(board.reset_pin) == board.reset_level) | clocks.rst)
    pll.register_clkin(platform.request(board.clock_pin), board.input_mhz * 1e6)
    pll.create_clkout(clocks.cd_sys, request.clock_hz, margin=0)
    pll.create_clkout(clocks.cd_sys_ps, request.clock_hz, phase=board.sdram.clock_phase, margin=0, with_reset=False)
    output = _module("litex.build.io").DDROutput
    clocks.specials += output(1, 0, platform.request("sdram_clock"), migen.ClockSignal("sys_ps"))
    for pin in board.high_pins:
        clocks.comb += platform.request(pin).eq(1)
    return clocks


def _chip_pins(request: Request, board: Board, platform: Any) -> Any:
    """LiteDRAM's way to the pins of the memory chip, behind registers: the pins lie along an edge of the part, and what
    decides on a command is late and need not lie there too. Commands have two of them and data to be written one, as
    they lie far from where they are asked for: that has a cycle more as well. A read takes two cycles more."""
    migen, ahead = _module("migen"), _module("litex.gen").LiteXModule()
    ahead.pins = pins = _module("litedram.phy").GENSDRPHY(
        platform.request("sdram"), request.clock_hz, cl=board.sdram.cas_latency
    )
    ahead.settings = pins.settings
    ahead.settings.read_latency += 2
    ahead.settings.write_latency += 1
    dfi, near = _module("litedram.phy.dfi"), pins.dfi.p0
    ahead.dfi = dfi.Interface(len(near.address), len(near.bank), len(near.cs_n), len(near.wrdata))
    for name, _, direction in near.layout:
        far, here = getattr(ahead.dfi.p0, name), getattr(near, name)
        if direction == dfi.DIR_S_TO_M:
            ahead.comb += far.eq(here)
            continue
        for _ in range(1 if name in ("wrdata", "wrdata_mask") else 2):
            late = migen.Signal.like(far)
            ahead.sync += late.eq(far)
            far = late
        ahead.comb += here.eq(far)
    return ahead


def _add_host_memory(soc: Any, board: Board) -> None:
    """The host's way to the memory, and whether it waits there."""
    words, port = _words(), soc.sdram.crossbar.get_port()
    soc.host_waits = _module("migen").Signal()
    soc.sync += soc.host_waits.eq(port.cmd.valid & ~port.cmd.ready)
    region = _module("litex.soc.integration.soc").SoCRegion(origin=MEMORY_BASE, size=board.sdram.size_bytes, mode="rwx")
    bridge = _module("litedram.frontend.wishbone").LiteDRAMWishbone2Native
    soc.host_memory = bridge(words, port, base_address=MEMORY_BASE)
    soc.bus.add_slave("memory", words, region)


def _add_accelerator(soc: Any, request: Request, board: Board, platform: Any) -> None:
    """vta_top: AXI4 to the memory, AXI4-Lite from the bus."""
    migen = _module("migen")
    frontend = _module("litedram.frontend.axi")
    beats = frontend.LiteDRAMAXIPort(data_width=request.bus_bits, address_width=32, id_width=1)
    _add_frontend(soc, frontend, _held(soc, beats), _joined(soc, soc.sdram.crossbar.get_port(), request.bus_bits))
    registers = _module("litex.soc.interconnect.axi").AXILiteInterface(data_width=32, address_width=32)
    region = _module("litex.soc.integration.soc").SoCRegion(origin=REGISTERS_BASE, size=_REGISTERS_BYTES, cached=False)
    soc.bus.add_slave("accelerator", registers, region)
    done = migen.Signal()
    led = platform.request(board.led_pin, 0)
    soc.comb += led.eq(~done if board.led_pin.endswith("_n") else done)
    pins: dict[str, Any] = {f"p_{name}": migen.Constant(value, 32) for name, value in request.parameters.items()}
    pins |= _clock_pins() | {"o_done_o": done} | _slave_pins(registers) | _master_pins(beats)
    soc.specials += migen.Instance("vta_top", **pins)


def _add_frontend(soc: Any, frontend: Any, beats: Any, ports: list[Any]) -> None:
    """The way from AXI to LiteDRAM's own ports, for writes and reads; each has a port of its own."""
    writes, reads = ports
    _add_writes(soc, beats, writes)
    soc.accelerator_reads = frontend.LiteDRAMAXI2NativeR(beats, reads, BUFFER_BEATS, MEMORY_BASE)
    soc.comb += soc.accelerator_reads.cmd_grant.eq(1)


def _add_writes(soc: Any, beats: Any, port: Any) -> None:
    """Beats of AXI writes as commands with data. A beat's command is given when its data are here; a burst is answered
    when its last beat is taken, and its ID is 0, the only one that the accelerator has.

    LiteDRAM's own does the same in the same cycles, and compares two counts in the way of each command; here there is
    one, of the beats without a command, and a register that says whether there are any.
    """
    migen, stream = _module("migen"), _module("litex.soc.interconnect.stream")
    axi = _module("litex.soc.interconnect.axi")
    address = axi.AXIStreamInterface(layout=axi.ax_description(beats.address_width), id_width=beats.id_width)
    soc.write_bursts = stream.Buffer(beats.aw.description)
    soc.write_beats = axi.AXIBurst2Beat(soc.write_bursts.source, address, {axi.BURST_FIXED, axi.BURST_INCR})
    soc.write_data = data = stream.SyncFIFO(beats.w.description, BUFFER_BEATS, buffered=True)
    limit = BUFFER_BEATS + 2
    here, any_here = migen.Signal(max=limit), migen.Signal()
    answers = migen.Signal(max=limit)
    came, gone = beats.w.valid & beats.w.ready, port.cmd.valid & port.cmd.ready
    ended, answered = data.source.valid & data.source.ready & data.source.last, beats.b.valid & beats.b.ready
    soc.comb += [
        beats.aw.connect(soc.write_bursts.sink),
        beats.w.connect(data.sink),
        data.source.connect(port.wdata, omit={"strb", "id", "dest", "user"}),
        port.wdata.we.eq(data.source.strb),
        port.cmd.valid.eq(address.valid & any_here),
        port.cmd.last.eq(address.last),
        port.cmd.we.eq(1),
        port.cmd.addr.eq((address.addr - MEMORY_BASE) >> (len(port.wdata.we) - 1).bit_length()),
        address.ready.eq(any_here & port.cmd.ready),
        beats.b.valid.eq(answers != 0),
    ]
    soc.sync += [
        here.eq(here + came - gone),
        # The same as whether that is above 0, without the sum.
        any_here.eq(came | (here > 1) | ((here == 1) & ~gone)),
        answers.eq(answers + ended - answered),
    ]


def _held(soc: Any, beats: Any) -> Any:
    """The port behind `beats`, separated by registers that hold what the other side is not ready for.

    The controller's ready depends on its queues and arbiter, the accelerator's on its scratchpads; a combinational path
    through both would be the SoC's critical path. What is accepted at once passes in the same cycle. Read data pass one
    more register: the controller is at the chip's pins, and much of the accelerator depends on them.
    """
    behind = type(beats)(data_width=beats.data_width, address_width=beats.address_width, id_width=beats.id_width)
    soc.arrival = _module("litex.soc.interconnect.stream").Buffer(beats.r.description)
    soc.comb += [beats.w.connect(behind.w), behind.b.connect(beats.b), soc.arrival.source.connect(beats.r)]
    for source, sink in ((beats.aw, behind.aw), (beats.ar, behind.ar), (behind.r, soc.arrival.sink)):
        _hold(soc, source, sink)
    return behind


def _hold(soc: Any, source: Any, sink: Any) -> None:
    """Connect two ends of a channel by a buffer. LiteX's buffer loads only when the sink stalls, a late-arriving
    signal; this one loads whenever it is empty."""
    migen, stream = _module("migen"), _module("litex.soc.interconnect.stream")
    full, kept = migen.Signal(), stream.Endpoint(source.description)
    soc.sync += migen.If(sink.ready, full.eq(0)).Elif(source.valid, full.eq(1))
    soc.sync += migen.If(~full, kept.eq(source))
    soc.comb += [
        source.ready.eq(~full),
        migen.If(full, kept.connect(sink, omit={"ready"})).Else(source.connect(sink, omit={"ready"})),
    ]


def _joined(soc: Any, narrow: Any, width: int) -> list[Any]:
    """A port of `width` bits that writes and one that reads, before a port of fewer bits for both.

    Bursts of the two take turns when both wait; commands follow one another without a pause, unless the host waits: a
    bank of the controller changes its master only when that one has no command for it, and commands for one bank can
    go on for as long as a program likes, while the bytes of a host on a serial line keep coming.
    """
    migen, stream = _module("migen"), _module("litex.soc.interconnect.stream")
    roundrobin = _module("migen.genlib.roundrobin")
    ratio = width // narrow.data_width
    steps = ratio.bit_length() - 1
    native = _module("litedram.common").LiteDRAMNativePort
    writes, reads = ports = [native(mode, narrow.address_width - steps, width) for mode in ("write", "read")]
    soc.turn = roundrobin.RoundRobin(len(ports), roundrobin.SP_CE)
    soc.next_command = stream.PipeValid(writes.cmd.description)
    soc.choice = stream.Multiplexer(writes.cmd.description, len(ports))
    chosen, command, count = soc.choice.source, soc.next_command.source, migen.Signal(steps)
    # Registers both ways: the way through the crossbar and back is the longest of the SoC. One for each side, as the
    # buffers of write and read data are as far apart as the accelerator's scratchpads.
    waiting = [soc.choice.sink0, soc.choice.sink1]
    for port, sink in zip(ports, waiting, strict=True):
        _hold(soc, port.cmd, sink)
    soc.comb += [
        soc.turn.request.eq(migen.Cat(*(sink.valid for sink in waiting))),
        soc.turn.ce.eq(~chosen.valid | (chosen.ready & chosen.last)),
        soc.choice.sel.eq(soc.turn.grant),
        chosen.connect(soc.next_command.sink, omit={"valid", "ready"}),
        soc.next_command.sink.valid.eq(chosen.valid & ~soc.host_waits),
        chosen.ready.eq(soc.next_command.sink.ready & ~soc.host_waits),
        narrow.cmd.valid.eq(command.valid),
        narrow.cmd.we.eq(command.we),
        narrow.cmd.addr.eq(migen.Cat(count, command.addr)),
        command.ready.eq(narrow.cmd.ready & (count == ratio - 1)),
    ]
    soc.sync += migen.If(narrow.cmd.valid & narrow.cmd.ready, count.eq(count + 1))
    soc.narrow_write = stream.StrideConverter(writes.wdata.description, narrow.wdata.description)
    soc.narrow_read = stream.StrideConverter(narrow.rdata.description, reads.rdata.description)
    soc.submodules += stream.Pipeline(writes.wdata, soc.narrow_write, narrow.wdata)
    soc.submodules += stream.Pipeline(narrow.rdata, soc.narrow_read, reads.rdata)
    return ports


def _words() -> Any:
    return _module("litex.soc.interconnect.wishbone").Interface(data_width=32, adr_width=30, addressing="word")


def _clock_pins() -> dict[str, Any]:
    migen = _module("migen")
    return {"i_clk_i": migen.ClockSignal("sys"), "i_rst_ni": ~migen.ResetSignal("sys")}


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
    # Answers come in order and have one master, whose only ID is 0.
    pins |= {f"i_m_axi_r{field}": getattr(beats.r, field) for field in ("data", "resp", "last", "valid")}
    return pins | {"i_m_axi_rid": 0, "o_m_axi_rready": beats.r.ready}


def _add_serial(soc: Any, request: Request, platform: Any) -> None:
    """The serial line of the part's SoC, as a master of the bus."""
    migen = _module("migen")
    serial = platform.request("serial")
    access, address = migen.Signal(), migen.Signal(32)
    words = _words()
    pins = _clock_pins() | {"p_DIVISOR": request.divisor, "p_TIMEOUT": request.timeout}
    pins |= {"i_rx_i": serial.rx, "o_tx_o": serial.tx} | _access_pins(words, access, address)
    soc.specials += migen.Instance("fpga_serial", **pins)
    _add_master(soc, "serial", words, access, address)


def _add_etherbone(soc: Any, request: Request, platform: Any) -> None:
    """Etherbone on the board's first Ethernet port, as a master of the bus; the port's pins are LiteEth's.

    LiteEth's own Etherbone takes thousands of LUT4 more, and the board's part has too few wires for them.
    """
    migen = _module("migen")
    clocks, pads = platform.request("eth_clocks", 0), platform.request("eth", 0)
    phy = _module("liteeth.phy.ecp5rgmii").LiteEthPHYRGMII
    soc.ethphy = phy(clocks, pads, tx_delay=0, with_hw_init_reset=False, with_inband_status=False)
    access, address = migen.Signal(), migen.Signal(32)
    words = _words()
    board = {"MAC": (_MAC_ADDRESS, 48), "ADDRESS": (int(ip_address(request.address)), 32), "PORT": (ETHERBONE_PORT, 16)}
    pins = _clock_pins() | {f"p_{name}": migen.Constant(value, bits) for name, (value, bits) in board.items()}
    pins |= {"i_eth_clk_i": migen.ClockSignal("eth_rx")} | _access_pins(words, access, address)
    pins |= {"i_rx_valid_i": soc.ethphy.source.valid, "i_rx_data_i": soc.ethphy.source.data}
    pins |= {"o_tx_valid_o": soc.ethphy.sink.valid, "o_tx_data_o": soc.ethphy.sink.data}
    soc.specials += migen.Instance("fpga_etherbone", **pins)
    _add_master(soc, "etherbone", words, access, address)


def _access_pins(words: Any, access: Any, address: Any) -> dict[str, Any]:
    """Pins of a module that makes accesses."""
    pins = {"o_req_o": access, "o_we_o": words.we, "o_addr_o": address}
    return pins | {"o_wdata_o": words.dat_w, "i_ack_i": words.ack | words.err, "i_rdata_i": words.dat_r}


def _add_master(soc: Any, name: str, words: Any, access: Any, address: Any) -> None:
    soc.comb += [words.cyc.eq(access), words.stb.eq(access), words.adr.eq(address[2:]), words.sel.eq(15)]
    soc.bus.add_master(name, words)


class _Pads:
    """Pads of both directions: LiteX's own say that they are inputs, which simulators take at their word."""

    @staticmethod
    def lower(pads: Any) -> Any:
        """What stands in for LiteX's Tristate."""
        migen = _module("migen")
        cells = migen.Module()
        width = len(pads.target)
        for k in range(width):
            # a bit of a bit is no Verilog
            target, out, back = (wire[k] if width > 1 else wire for wire in (pads.target, pads.o, pads.i))
            cells.specials += migen.Instance("TRELLIS_IO", p_DIR="BIDIR", io_B=target, i_I=out, o_O=back, i_T=~pads.oe)
        return cells


def main() -> None:
    """Read the request, write the answer."""
    logging.disable(logging.WARNING)
    # LiteX may print.
    sys.stdout, answer = sys.stderr, sys.stdout
    json.dump(build(Request(**json.load(sys.stdin))), answer)


if __name__ == "__main__":
    main()
