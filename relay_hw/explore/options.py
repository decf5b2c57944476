"""Options of an exploration. In: one record. Out: the base configuration, the space, the objectives.

Every option has a default; conflicting ones are refused when the record is created.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from relay_hw.accel.fpga.boards import Board, find_board
from relay_hw.accel.fpga.parts import ECP5_PARTS, FlowError, Part, find_part
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.errors import InputError
from relay_hw.explore.design import Base
from relay_hw.explore.front import Objective
from relay_hw.explore.search import Search
from relay_hw.explore.space import CLOCK, STRATEGY, Space, usual_space
from relay_hw.sweep.workers import check_scheduler
from relay_hw.target.accel.clock import STANDARD
from relay_hw.target.accel.target import DEFAULT

POINTS: Final = 500
_SLOWEST, _FASTEST = 1, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreOptions:
    """Options of `explore`. Raises InputError for invalid or conflicting values.

    What is measured:

    `space`: the points; by default the usual axes around `config`.
    `config`: sizes that no axis changes, by default `default` or the board's default; `strategy`: unless it is an axis.
    `memory`: a model's name and changes, or `board`, whose memory and part are used.
    `part`: that points must fit; the board's, else the largest ECP5. `clock_mhz`: the clock assumed for milliseconds.
    `output`: the output whose accuracy counts; `images`: use that many test samples. `name`: the model's.

    How:

    `objectives`: time, area and energy by default, with test data also accuracy.
    `search`: by default a grid, for larger spaces smart; `points` and `seed` of random and smart searches.
    `skips`: whether to skip points whose lower bounds show that they cannot be on the front.
    `processes` on this machine, or the address of a Dask `scheduler`. `work`: a folder that caches measurements.
    """

    space: Space | None = None
    config: str | AccelConfig | None = None
    strategy: str = "int8"
    memory: str | None = None
    board: str | None = None
    part: str | None = None
    clock_mhz: float | None = None
    output: str | None = None
    images: int | None = None
    name: str = "model"
    objectives: tuple[Objective, ...] | None = None
    search: Search | None = None
    points: int = POINTS
    seed: int = 0
    skips: bool = True
    processes: int = 1
    scheduler: str | None = None
    work: Path | None = None

    def __post_init__(self) -> None:
        if self.processes < 1 or self.points < 1:
            raise InputError(f"processes and points must be at least 1, not {self.processes} and {self.points}")
        if self.clock_mhz is not None and not _SLOWEST <= self.clock_mhz <= _FASTEST:
            raise InputError(f"clock must be from {_SLOWEST} to {_FASTEST} MHz, not {self.clock_mhz:g}")
        if self.objectives is not None and not self.objectives:
            raise InputError("objectives must have at least one entry, not none")
        if Objective.MS in (self.objectives or ()) and not self._has_clock:
            raise InputError(
                "objective ms must come with a clock, which is not predicted: give --clock, or clock_mhz in Python"
            )
        if self.board is not None and self.memory is not None:
            raise InputError(f"memory must be that of board {self.board}, not {self.memory}: leave one of them out")
        if self.scheduler is not None:
            check_scheduler(self.scheduler)

    @property
    def _has_clock(self) -> bool:
        axes = self.space.axes if self.space is not None else ()
        return self.clock_mhz is not None or any(axis.name == CLOCK for axis in axes)

    def find_base(self) -> Base:
        """Configuration, memory and part that points start from. Raises InputError for unknown names, ConfigError."""
        board, part = self._place()
        usual = board.fits[0].config if board is not None else DEFAULT
        sizes = self.config if isinstance(self.config, AccelConfig) else load_config(self.config or usual)
        clock_hz = round(self.clock_mhz * 1e6) if self.clock_mhz is not None else None
        return Base(sizes, self.strategy, part, self.memory or STANDARD, board, clock_hz)

    def find_space(self, base: Base) -> Space:
        """The points."""
        return self.space or usual_space(base.config)

    def find_objectives(self, has_data: bool) -> tuple[Objective, ...]:
        """The objectives asked for, or the default ones. Raises InputError for accuracy without data."""
        if self.objectives is None:
            usual = (Objective.MS if self._has_clock else Objective.CYCLES, Objective.AREA, Objective.ENERGY)
            return (*usual, Objective.ACCURACY) if has_data else usual
        if Objective.ACCURACY in self.objectives and not has_data:
            raise InputError("objective accuracy must come with test data")
        return self.objectives

    def find_strategies(self, space: Space) -> list[str]:
        """Names of the strategies of all points."""
        named = [str(value) for axis in space.axes if axis.name == STRATEGY for value in axis.values]
        return named or [self.strategy]

    def _place(self) -> tuple[Board | None, Part]:
        try:
            board = find_board(self.board) if self.board is not None else None
            if self.part is not None:
                return board, find_part(self.part)
        except FlowError as error:
            raise InputError(str(error)) from None
        return board, board.part if board is not None else ECP5_PARTS[-1]


USUAL: Final = ExploreOptions()
