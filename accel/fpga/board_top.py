"""Generates a board's SoC with LiteX, and the register writes with which the driver initialises its SDRAM.

In: a configuration, a board, clock and line speed. Out: Verilog of the top module, constraints and the map.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any, Final

from relay_hw.accel.fpga.boards import Board, HostLink, SdramChip
from relay_hw.accel.fpga.etherbone import PREFIX
from relay_hw.accel.fpga.litex_soc import Request
from relay_hw.accel.fpga.multipliers import core_parameters
from relay_hw.accel.fpga.part_top import COMMAND_SECONDS
from relay_hw.accel.fpga.parts import FlowError
from relay_hw.accel.fpga.soc_map import MemorySetup, SetupStep, SocMap
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.support.child import run_child

MODULES: Final = ("litex", "litedram", "liteeth", "litex_boards", "migen")
# Below, the chip could not be refreshed in time; above, data come later than its latency says.
_LEAST_MHZ, _MOST_MHZ = 20, 100
_ADDRESS: Final = "192.168.1.50"
# Fields of LiteDRAM's registers: who controls the chip and its clock enable; the pins of a command.
_HARDWARE, _CLOCK_ENABLE = 1, 2
_CHIP, _WRITE, _COLUMN, _ROW = 1, 2, 4, 8
_ALL_BANKS = 1 << 10
_POWER_UP_US, _REFRESHES = 200, 8


@dataclass(frozen=True, slots=True)
class BoardSoc:
    """Sizes of the SoC. `baud` counts only where the board has a serial line."""

    config: AccelConfig
    board: Board
    clock_hz: int
    baud: int

    def __post_init__(self) -> None:
        mhz = self.clock_hz / 1e6
        if not _LEAST_MHZ <= mhz <= _MOST_MHZ:
            raise FlowError(f"clock of {self.board.name} must be from {_LEAST_MHZ} to {_MOST_MHZ} MHz, not {mhz:g}")
        if self.serial and self.divisor < 4:
            raise FlowError(f"baud must be at most a quarter of the clock, not {self.baud}")

    @property
    def serial(self) -> bool:
        """Whether the host comes by a serial line."""
        return self.board.link is HostLink.SERIAL

    @property
    def divisor(self) -> int:
        """Cycles of a bit on the serial line; 0 without one."""
        return round(self.clock_hz / self.baud) if self.serial else 0


@dataclass(frozen=True, slots=True)
class BoardParts:
    """The generated SoC of a board. `constraints`: an LPF file."""

    verilog: str
    constraints: str
    map: SocMap


def board_parts(soc: BoardSoc) -> BoardParts:
    """Let LiteX make the SoC; takes about a second. Raises FlowError."""
    answer = _ask_litex(_request(soc))
    registers: dict[str, int] = answer["registers"]
    board, config = soc.board, soc.config
    soc_map = SocMap(
        board=board.name,
        config=config.name,
        config_hash=config.hash32,
        clock_hz=soc.clock_hz,
        memory_bytes=board.sdram.size_bytes,
        baud=round(soc.clock_hz / soc.divisor) if soc.serial else 0,
        setup=memory_setup(board.sdram, registers),
        address="" if soc.serial else f"{PREFIX}{_ADDRESS}",
    )
    return BoardParts(answer["verilog"], answer["constraints"], soc_map)


def memory_setup(chip: SdramChip, registers: Mapping[str, int]) -> MemorySetup:
    """The chip's initialisation as its data sheet orders it, through the registers of LiteDRAM."""
    control = registers["sdram_dfii_control"]

    def command(what: str, pins: int, address: int) -> SetupStep:
        names = ("address", "baddress", "command", "command_issue")
        values = (address, 0, pins | _CHIP, 1)
        writes = tuple((registers[f"sdram_dfii_pi0_{name}"], value) for name, value in zip(names, values, strict=True))
        return SetupStep(what, writes, 1)

    steps = [
        SetupStep("clock enable", ((control, _CLOCK_ENABLE),), _POWER_UP_US),
        command("precharge all", _ROW | _WRITE, _ALL_BANKS),
        *(command("refresh", _ROW | _COLUMN, 0) for _ in range(_REFRESHES)),
        command("mode: bursts of one word", _ROW | _COLUMN | _WRITE, chip.cas_latency << 4),
        SetupStep("controller", ((control, _HARDWARE),), 0),
    ]
    return MemorySetup(control, _HARDWARE, tuple(steps))


def cycles(nanoseconds: float, clock_hz: int) -> int:
    """Cycles in which a time of the chip has passed."""
    return ceil(round(nanoseconds * clock_hz / 1e9, 6))


def missing_modules() -> list[str]:
    """Packages of LiteX that are not installed."""
    return [name for name in MODULES if importlib.util.find_spec(name) is None]


def _request(soc: BoardSoc) -> Request:
    return Request(
        board=soc.board.name,
        clock_hz=soc.clock_hz,
        divisor=soc.divisor,
        timeout=max(16, round(soc.clock_hz * COMMAND_SECONDS)),
        bus_bits=soc.config.axi_data_bits,
        parameters=core_parameters(soc.config, soc.board.part.multipliers),
        address=_ADDRESS,
    )


def _ask_litex(request: Request) -> dict[str, Any]:
    if missing := missing_modules():
        raise FlowError(f"{', '.join(missing)} must be installed: pip install 'relay-hw[fpga]'")
    root = str(Path(__file__).parents[3])
    paths = os.pathsep.join(path for path in (root, *sys.path) if path)
    done = run_child(
        [sys.executable, "-m", "relay_hw.accel.fpga.litex_soc"],
        environment={**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"},
        given=json.dumps(asdict(request)),
    )
    if done.returncode:
        said = next(iter(done.stderr.strip().splitlines()[-1:]), "nothing")
        if "No PLL config" in said:
            raise FlowError(f"clock must be one that the board's PLL can make, not {request.clock_hz / 1e6:g} MHz")
        raise FlowError(f"LiteX must build the SoC of {request.board}, not stop: {said}")
    return json.loads(done.stdout)
