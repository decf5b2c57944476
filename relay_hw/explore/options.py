"""What an exploration is asked for, besides its data. In: one record of choices. Out: what points begin with.

Every choice has a default; what cannot go together is refused when the record is made.
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
from relay_hw.explore.workers import check_scheduler
from relay_hw.target.accel.clock import STANDARD
from relay_hw.target.accel.target import DEFAULT

POINTS: Final = 500
_SLOWEST, _FASTEST = 1, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ExploreOptions:
    """Choices of `explore`. Raises InputError for values that are none, or that do not go together.

    What is looked at:

    `space`: the points; the usual one around `config` by default.
    `config`: where sizes begin, `default` or the board's usual one; `strategy`: where it is no axis.
    `memory`: a model's name and changes, or `board`, whose memory and part are taken.
    `part`: what must have room; the board's, else the largest ECP5. `clock_mhz`: what milliseconds are counted with.
    `output`: of the network, whose accuracy counts; `images`: the first so many of the test data. `name`: the model's.

    How:

    `objectives`: time, area and energy by default, with test data also accuracy.
    `search`: a grid by default, or a smart one of larger spaces; `points` of one that is no grid, its `seed`.
    `skips`: whether points that cannot be on the front are left out.
    `processes` of this machine, or the address of a Dask `scheduler`. `work`: a folder where measurements stay.
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
            raise InputError("objectives must be at least one, not none")
        if Objective.MS in (self.objectives or ()) and not self._has_clock:
            raise InputError("objective ms must come with a clock: no model of it holds, so somebody must ask for one")
        if self.board is not None and self.memory is not None:
            raise InputError(f"memory must be what board {self.board} has, not {self.memory}: leave one of them out")
        if self.scheduler is not None:
            check_scheduler(self.scheduler)

    @property
    def _has_clock(self) -> bool:
        axes = self.space.axes if self.space is not None else ()
        return self.clock_mhz is not None or any(axis.name == CLOCK for axis in axes)

    def find_base(self) -> Base:
        """What points begin with. Raises InputError for names that nothing has, ConfigError."""
        board, part = self._place()
        usual = board.fits[0].config if board is not None else DEFAULT
        sizes = self.config if isinstance(self.config, AccelConfig) else load_config(self.config or usual)
        clock_hz = round(self.clock_mhz * 1e6) if self.clock_mhz is not None else None
        return Base(sizes, self.strategy, part, self.memory or STANDARD, board, clock_hz)

    def find_space(self, base: Base) -> Space:
        """The points."""
        return self.space or usual_space(base.config)

    def find_objectives(self, has_data: bool) -> tuple[Objective, ...]:
        """Those asked for, or the usual ones. Raises InputError for accuracy without data."""
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
