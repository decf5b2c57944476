"""Designs that bitstreams are made of: a SoC around a configuration, for a part or for a board.

In: names and sizes. Out: a `Design` and the map that its driver needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay_hw.accel.fpga import gowin
from relay_hw.accel.fpga.board_top import BoardSoc, board_parts
from relay_hw.accel.fpga.boards import Board, HostLink
from relay_hw.accel.fpga.flow import Design
from relay_hw.accel.fpga.litex_soc import TOP as BOARD_TOP
from relay_hw.accel.fpga.part_top import FPGA_RTL, SOURCES, TOP, PartSoc, part_verilog
from relay_hw.accel.fpga.parts import Family, FlowError, Part
from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.fpga.synth import core_files, files_of
from relay_hw.accel.isa.config import AccelConfig

PART_MHZ: Final = 25.0
PART_BAUD: Final = 1_000_000
PART_MEMORY_BYTES: Final = 8192
# Of boards whose host is on Ethernet.
_ETHERNET: Final = ("fpga_crc32", "fpga_eth_rx", "fpga_eth_tx", "fpga_etherbone")


@dataclass(frozen=True, slots=True)
class Soc:
    """A design to build, and what its driver must know."""

    design: Design
    map: SocMap


def part_soc(
    config: AccelConfig,
    part: Part,
    mhz: float = PART_MHZ,
    memory_bytes: int = PART_MEMORY_BYTES,
    baud: int = PART_BAUD,
) -> Soc:
    """The accelerator with block RAM as its memory, behind a serial line. The tools place all pins but the clock's."""
    if not 1 <= mhz <= 400:
        raise FlowError(f"clock must be from 1 to 400 MHz, not {mhz:g}")
    clock_hz = round(mhz * 1e6)
    part_of = PartSoc(config, part, clock_hz, max(4, round(clock_hz / baud)), memory_bytes)
    files = {**core_files(), **files_of(SOURCES), f"{TOP}.v": part_verilog(part_of)}
    name = f"{part.name}-{config.name}"
    return Soc(Design(name, TOP, files, part, _clock_constraints(part, mhz), mhz), part_of.map())


def board_soc(config: AccelConfig, board: Board, mhz: float | None = None, baud: int | None = None) -> Soc:
    """The accelerator on a board: its SDRAM as memory, its link to the host, pins where the board has them.

    `mhz`: clock of the SoC, by default the board's for this configuration; `baud`: of its serial line.
    Raises FlowError.
    """
    fit = board.fit(config.name)
    usual = board.mhz if fit is None else fit.mhz
    sizes = BoardSoc(config, board, round((mhz or usual) * 1e6), baud or board.baud)
    parts = board_parts(sizes)
    files = {**core_files(), **files_of(_sources(board)), f"{BOARD_TOP}.v": parts.verilog}
    name = f"{board.name}-{config.name}"
    return Soc(Design(name, BOARD_TOP, files, board.part, parts.constraints, sizes.clock_hz / 1e6), parts.map)


def _sources(board: Board) -> tuple[Path, ...]:
    """Verilog of a board's SoC beside the accelerator's."""
    return (*SOURCES, *(FPGA_RTL / f"{name}.v" for name in _ETHERNET)) if board.link is HostLink.ETHERBONE else SOURCES


def _clock_constraints(part: Part, mhz: float) -> str:
    """The pin of a part's clock, and its frequency where a file says that."""
    match part.family:
        case Family.ECP5:
            return f'FREQUENCY PORT "clk_i" {mhz:g} MHZ;\nLOCATE COMP "clk_i" SITE "{part.clock_pin}";\n'
        case Family.GOWIN:
            return gowin.constraints(part)
