"""The findings of an exploration, as records, JSON and CSV: rows, the Pareto front, reasons.

In: rows. Out: `Findings`, with a configuration for each point.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

from relay_hw.accel.fpga.parts import Part
from relay_hw.accel.isa.config import AccelConfig
from relay_hw.compare.energy import table as energy_table
from relay_hw.errors import InputError
from relay_hw.explore.design import Design, config_json
from relay_hw.explore.front import (
    Amounts,
    Objective,
    amount,
    beaten_by,
    best_rival,
    host_reason,
    unbeaten,
    whole,
)
from relay_hw.explore.results import Row, State
from relay_hw.explore.space import Axis
from relay_hw.support.quote import csv_cell

FORMAT: Final = 1
_MEASURES: Final = (
    "state", "front", "cycles", "ms", "area", "luts", "flip_flops", "block_rams", "multipliers", "energy_uj",
    "dram_bytes", "resident_bytes", "launches", "accel_mac_share", "accuracy", "memory", "strategy", "resident",
    "clock_hz", "reason",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Findings:
    """Points of a space on one network. `base` is the configuration that points begin with, `part` has the room that
    areas are shares of; `is_over` once no point is left."""

    model: str
    base: str
    part: Part
    axes: tuple[Axis, ...]
    objectives: tuple[Objective, ...]
    rows: tuple[Row, ...]
    is_over: bool = True

    @cached_property
    def amounts(self) -> Mapping[int, Amounts]:
        """The value of each objective for the competing points."""
        return {row.number: self._amounts(row) for row in whole(self.rows)}

    @cached_property
    def front(self) -> tuple[int, ...]:
        """Numbers of the points on the Pareto front, best first in the first objective."""
        numbers = unbeaten(dict(self.amounts))
        return tuple(sorted(numbers, key=lambda number: (self.amounts[number], number)))

    @cached_property
    def reasons(self) -> Mapping[int, str]:
        """One sentence for each point that is not on the front."""
        front = frozenset(self.front)
        return {row.number: self._reason(row, front) for row in self.rows if row.number not in front}

    def __getitem__(self, number: int) -> Row:
        """The row of a point. Raises InputError for a number that was not measured."""
        for row in self.rows:
            if row.number == number:
                return row
        raise InputError(f"point must be a measured one, such as {self._some()}, not {number}")

    def design(self, number: int) -> Design:
        """The design of a point. Raises InputError if it is illegal."""
        row = self[number]
        if row.placed is None or row.state is State.REFUSED:
            raise InputError(f"point {number} must be a legal configuration: {row.reason}")
        return row.placed.design

    def config(self, number: int) -> AccelConfig:
        """The configuration of a point. Raises InputError if it is illegal."""
        return self.design(number).config

    def share(self, row: Row) -> float | None:
        """A design's share of the part."""
        return row.placed.area.share(self.part) if row.placed is not None else None

    def of(self, state: State) -> list[Row]:
        """The rows of which this became."""
        return [row for row in self.rows if row.state is state]

    def to_json(self) -> dict[str, Any]:
        """The object of `explore.json`."""
        return {
            "format": FORMAT,
            "model": self.model,
            "base": self.base,
            "part": self.part.name,
            "is_over": self.is_over,
            "axes": {axis.name: list(axis.values) for axis in self.axes},
            "objectives": [objective.value for objective in self.objectives],
            "front": list(self.front),
            "points": [self._row_json(row) for row in self.rows],
            "energy": energy_table(),
        }

    def to_csv(self) -> str:
        """One line for each point: number, its axes, what was measured."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        names = [axis.name for axis in self.axes]
        measures = [name for name in _MEASURES if name not in names]
        writer.writerow(["point", *names, *measures])
        for row in self.rows:
            values = self._measures(row)
            axes = [csv_cell(value) for _, value in row.point.values]
            writer.writerow([row.number, *axes, *(_cell(values[name]) for name in measures)])
        return stream.getvalue()

    def _amounts(self, row: Row) -> Amounts:
        share = self.share(row)
        assert share is not None
        return tuple(amount(row, objective, share) for objective in self.objectives)

    def _reason(self, row: Row, front: frozenset[int]) -> str:
        if row.state is not State.DONE:
            return row.reason
        own = self.amounts.get(row.number)
        if own is None:
            return host_reason(row)
        rival = best_rival(own, dict(self.amounts), front)
        assert rival is not None
        return beaten_by(rival, own, self.amounts[rival], self.objectives)

    def _some(self) -> str:
        return ", ".join(str(number) for number in (self.front or [row.number for row in self.rows])[:3])

    def _measures(self, row: Row) -> dict[str, Any]:
        placed, measured = row.placed, row.measured
        found: dict[str, Any] = dict.fromkeys(_MEASURES)
        found |= {"state": row.state.value, "front": row.number in self.front}
        found["reason"] = self.reasons.get(row.number, "")
        if placed is not None:
            design = placed.design
            found |= {**asdict(placed.area), "area": self.share(row), "memory": design.memory}
            found |= {"strategy": design.strategy, "resident": design.resident, "clock_hz": design.clock_hz}
        if measured is not None:
            found |= {
                "cycles": measured.cycles,
                "ms": row.milliseconds,
                "energy_uj": round(measured.energy.total, 4),
                "dram_bytes": measured.dram_bytes,
                "resident_bytes": measured.resident_bytes,
                "launches": measured.launches,
                "accel_mac_share": measured.accel_macs / measured.macs if measured.macs else 0.0,
                "accuracy": row.accuracy,
            }
        return found

    def _row_json(self, row: Row) -> dict[str, Any]:
        config = config_json(row.placed.design.config) if row.placed is not None else None
        return {"point": row.number, "axes": dict(row.point.values), **self._measures(row), "config": config}


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else csv_cell(value)


def lead(rows: Sequence[Row], front: Sequence[int]) -> list[Row]:
    """The rows of the front, in its order."""
    by_number = {row.number: row for row in rows}
    return [by_number[number] for number in front]
