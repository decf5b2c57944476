"""Turns a point into an accelerator with memory and strategy, or into one sentence why it is illegal.

In: a point, what all points share. Out: `Design`, or a `Refusal`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from relay_hw.accel.fpga.area import Area, area_of
from relay_hw.accel.fpga.board_sdram import board_memory
from relay_hw.accel.fpga.boards import Board
from relay_hw.accel.fpga.parts import Part
from relay_hw.accel.isa.config import SIZES, AccelConfig, resized
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.accel.sim.dram_timing import MemoryModel, memory_model, memory_text
from relay_hw.explore.space import CLOCK, MEMORY, RESIDENT, RESIDENTS, STRATEGY, Point
from relay_hw.target.accel.changes import MEMORY_KEYS
from relay_hw.target.accel.clock import STANDARD


@dataclass(frozen=True, slots=True)
class Base:
    """What points start from, and the part that they must fit: `config`, the text of a `memory` model or a `board` that
    has one, the name of a `strategy`, an assumed `clock_hz`, a `part`."""

    config: AccelConfig
    strategy: str
    part: Part
    memory: str = STANDARD
    board: Board | None = None
    clock_hz: int | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """Everything but the network that cycles depend on, and the clock for milliseconds."""

    config: AccelConfig
    memory: str
    strategy: str
    resident: str
    clock_hz: int | None = None

    def content(self) -> dict[str, Any]:
        """Everything that a measurement depends on: neither name nor clock."""
        return {
            "sizes": self.config.sizes,
            "memory": self.memory,
            "strategy": self.strategy,
            "resident": self.resident,
        }


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a point is illegal, in one sentence."""

    reason: str


@dataclass(frozen=True, slots=True)
class Placed:
    """A design with its area on the part."""

    design: Design
    area: Area


def placed(point: Point, base: Base) -> Placed | Refusal:
    """The design of a point, or a refusal if the configuration is illegal or does not fit the part."""
    try:
        config = configured(point, base.config)
        clock = point[CLOCK]
        clock_hz = int(clock) * 1_000_000 if clock is not None else base.clock_hz
        memory = _memory(point, base, clock_hz)
    except ConfigError as error:
        return Refusal(str(error))
    area = area_of(config, base.part)
    lacking = room(area, base.part)
    if lacking:
        return Refusal(lacking)
    strategy, resident = point[STRATEGY] or base.strategy, point[RESIDENT] or RESIDENTS[0]
    return Placed(Design(config, memory, str(strategy), str(resident), clock_hz), area)


def configured(point: Point, base: AccelConfig) -> AccelConfig:
    """The configuration of a point, under the name of its number. Raises ConfigError."""
    sizes = {name: int(value) for name, value in point.values if name in SIZES}
    return resized(base, f"point-{point.number}", sizes)


def room(area: Area, part: Part) -> str:
    """The resources that the part lacks, in one sentence; empty if the design fits."""
    have = {"LUT4": part.luts, "block RAMs": part.block_rams, "multipliers": part.multipliers}
    need = {"LUT4": area.luts, "block RAMs": area.block_rams, "multipliers": area.multipliers}
    lacking = [f"{need[what]:,} {what} of {have[what]:,}" for what in have if need[what] > have[what]]
    return f"part {part.name} must have room, not {' and '.join(lacking)}" if lacking else ""


def _memory(point: Point, base: Base, clock_hz: int | None) -> str:
    """The memory's text: the board's at the clock, or the named one, with what is changed of it. Raises ConfigError."""
    named = point[MEMORY]
    if base.board is not None and named is None:
        model = board_memory(base.board, clock_hz or round(base.board.mhz * 1e6))
    else:
        model = memory_model(str(named or base.memory))
    changes: Mapping[str, int] = {MEMORY_KEYS[name]: int(value) for name, value in point.values if name in MEMORY_KEYS}
    return memory_text(_changed(model, changes))


def _changed(model: MemoryModel, changes: Mapping[str, int]) -> MemoryModel:
    return replace(model, **changes) if changes else model


def config_json(config: AccelConfig) -> dict[str, Any]:
    """The object of a configuration file."""
    return {key: value for key, value in sorted(asdict(config).items()) if key != "name"}
