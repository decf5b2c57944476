"""Rows of the tables on the page of a build: layers with their cycles as bars, lost cycles by cause, segments, speed.

In: `Report`. Out: records of numbers and texts, which templates show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.accel.sim.causes import LOST, Cause
from relay_hw.report.model import LayerRow, Report, layer_utilisation_all, utilisation
from relay_hw.report.names import short_names
from relay_hw.report.text import TRAFFIC_HEADER, number, percent, traffic_cells

# Columns of numbers of the table of layers; the first half is empty on the host but for the multiply-accumulates.
LAYER_NUMBERS: Final = ("cycles", "roofline", "array", "all units", "MACs", "bytes", *TRAFFIC_HEADER)
# The roofline's mark stays inside of its box.
_MOST_ROOF: Final = 99.0


@dataclass(frozen=True, slots=True)
class Bar:
    """Cycles of a layer by cause, as shares of the longest layer's in percent, and where the roofline is."""

    pieces: tuple[tuple[Cause, float], ...]
    roof: float


@dataclass(frozen=True, slots=True)
class ShownLayer:
    """A row of the table of layers. `numbers` under LAYER_NUMBERS, None on the host; `bar`: None without cycles."""

    row: LayerRow
    short: str
    macs: str
    numbers: tuple[str, ...] | None
    bar: Bar | None


def layer_rows(report: Report) -> list[ShownLayer]:
    """A row for each layer."""
    longest = max((max(row.cycles or 0, row.roofline_cycles or 0) for row in report.layers), default=0)
    short = short_names(list(dict.fromkeys(row.name for row in report.layers)))
    return [
        ShownLayer(
            row=row,
            short=short[row.name],
            macs=number(row.macs) if row.macs else "",
            numbers=_numbers(report, row) if row.on_accelerator else None,
            bar=_bar(row, longest) if longest else None,
        )
        for row in report.layers
    ]


def _numbers(report: Report, row: LayerRow) -> tuple[str, ...]:
    return (
        number(row.cycles),
        number(row.roofline_cycles),
        percent(utilisation(row.macs, row.cycles, report.macs_per_cycle)),
        percent(layer_utilisation_all(report, row)),
        number(row.macs),
        *traffic_cells(row.traffic),
    )


def _bar(row: LayerRow, longest: int) -> Bar:
    cycles = {Cause.PRODUCTS: (row.cycles or 0) - sum(row.stalls.values())}
    cycles |= {cause: row.stalls.get(cause, 0) for cause in LOST}
    pieces = tuple((cause, 100 * count / longest) for cause, count in cycles.items() if count > 0)
    return Bar(pieces, min(100 * (row.roofline_cycles or 0) / longest, _MOST_ROOF))


def layer_totals(report: Report) -> tuple[str, ...]:
    """The totals under LAYER_NUMBERS."""
    return (
        number(report.cycles),
        number(report.roofline_cycles),
        percent(report.utilisation),
        percent(report.utilisation_all),
        number(report.all_macs),
        *traffic_cells(report.traffic),
    )


def bounds_text(report: Report) -> str:
    """What each part of the machine needs at least for the network."""
    parts = {
        "array": sum(b.array for b in report.bounds),
        "output stage": sum(b.output for b in report.bounds),
        "row unit": sum(b.rows for b in report.bounds),
        "reads": sum(b.reads for b in report.bounds),
        "writes": sum(b.writes for b in report.bounds),
    }
    return ", ".join(f"{name} {number(cycles)}" for name, cycles in parts.items())


@dataclass(frozen=True, slots=True)
class Losses:
    """Cycles in which the array made no product of the model: causes that occur, with shares of all cycles, and for
    each layer that lost some its number, short name, name and cells."""

    causes: tuple[Cause, ...]
    shares: tuple[str, ...]
    rows: tuple[tuple[int, str, str, tuple[str, ...]], ...]

    @property
    def legend(self) -> tuple[Cause, ...]:
        """The causes that bars show: products first, then those that occur."""
        return (Cause.PRODUCTS, *self.causes)


def losses_of(report: Report, shown: Sequence[ShownLayer]) -> Losses:
    """Lost cycles by layer and cause; without rows if none were measured."""
    total = report.stalls
    causes = tuple(cause for cause in LOST if total.get(cause))
    return Losses(
        causes,
        tuple(percent(total[cause] / (report.cycles or 1)) for cause in causes),
        tuple(
            (index, one.short, one.row.name, tuple(number(one.row.stalls.get(cause, 0)) for cause in causes))
            for index, one in enumerate(shown)
            if causes and one.row.stalls
        ),
    )
