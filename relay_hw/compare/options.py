"""Options of a comparison. In: one record. Out: strategies and places to compile for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.backend.engines import ENGINES
from relay_hw.compare.mixed import check_points
from relay_hw.compare.places import Place, places
from relay_hw.compare.targets import check_target
from relay_hw.errors import InputError
from relay_hw.quantize import Strategy, find_strategy
from relay_hw.support.names import one_of
from relay_hw.sweep.workers import check_scheduler


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Options of `compare`. Raises InputError for invalid or conflicting values.

    `strategies`: to compare, of different names, in the order of the rows.
    `mixed`: for each configuration, add that many mixes of 4- and 8-bit layers, from the fewest cycles to the least
    noise; 0: none.
    `images`: use that many samples from the start of the data.
    `unlabelled`: compare with the float model only, even if the data have labels or targets.
    `output`: name of the output to compare; the first by default.
    `configs`: of the accelerator; by default `default`, and `w4` for 4-bit weights.
    `board`: compile for it, by default for every configuration that has a clock there.
    `targets`: others than ours, by name, or name and configuration with a colon between them: their instructions.
    `area`: add the synthesis results of each configuration.
    `engine`: how integers are evaluated: auto, tvm or numpy.
    `processes`: on this machine, or the address of a Dask `scheduler`.
    `work`: a folder in which finished strategies are cached.
    `name`: of the model, in the report.
    """

    strategies: Sequence[str | Strategy]
    mixed: int = 0
    images: int | None = None
    unlabelled: bool = False
    output: str | None = None
    configs: Sequence[str | AccelConfig] | None = None
    board: str | None = None
    targets: Sequence[str] = ()
    area: bool = False
    engine: str = "auto"
    processes: int = 1
    scheduler: str | None = None
    work: str | Path | None = None
    name: str = "model"

    def __post_init__(self) -> None:
        if not self.strategies:
            raise InputError("strategies must have at least one entry, not none")
        if self.engine not in ENGINES:
            raise InputError(one_of("engine", ENGINES, self.engine))
        if self.processes < 1:
            raise InputError(f"processes must be at least 1, not {self.processes}")
        if self.scheduler is not None:
            check_scheduler(self.scheduler)
        for name in self.targets:
            check_target(name)
        if self.mixed:
            check_points(self.mixed)

    def find_strategies(self) -> list[Strategy]:
        """The named strategies. Raises InputError for an unknown or repeated name."""
        found = [find_strategy(strategy) for strategy in self.strategies]
        names = [strategy.name for strategy in found]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise InputError(f"strategies must have different names, not {twice[0]} twice")
        return found

    def find_places(self) -> tuple[Place, ...]:
        """The places that strategies are compiled for. Raises InputError."""
        return places(self.configs, self.board)
