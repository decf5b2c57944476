"""The HTML page of an exploration: the front, plots, and every other point with one that dominates it.

In: `Findings`. Out: one self-contained HTML page that needs no network, for screens and paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.compare.energy import CAVEAT, SOURCE
from relay_hw.compare.plots import Axes, Kind, Mark, Plot, amount_text
from relay_hw.explore.findings import Findings, lead
from relay_hw.explore.front import Objective
from relay_hw.explore.results import Row, State
from relay_hw.explore.scatter import scatter
from relay_hw.report import ROWS_SCRIPT, number, percent, render

_TITLES: Final = {
    Objective.CYCLES: "cycles of an inference",
    Objective.MS: "ms of an inference, at the clock asked for",
    Objective.AREA: "area, mean share of the part",
    Objective.LUTS: "LUT4",
    Objective.BLOCK_RAMS: "block RAMs",
    Objective.MULTIPLIERS: "multipliers",
    Objective.ENERGY: "energy of an inference, µJ (estimated)",
    Objective.DRAM: "bytes of DRAM an inference",
    Objective.ACCURACY: "accuracy",
}
# Points that are not on the front.
_OTHERS: Final = (
    (State.DONE, "Beaten"),
    (State.SKIPPED, "Not measured, as they cannot be on the front"),
    (State.REFUSED, "Refused"),
)


def render_page(found: Findings) -> str:
    """The page."""
    columns = _columns(found)
    return render(
        "explore/templates/explore.html.j2",
        ROWS_SCRIPT,
        title=_title(found),
        found=found,
        tiles=_tiles(found),
        objectives=[objective.value.replace("_", " ") for objective in found.objectives],
        front=_table(found, lead(found.rows, found.front), columns),
        plots=_plots(found),
        others=_others(found, columns),
        energy_source=SOURCE,
        energy_caveat=CAVEAT,
    )


def _title(found: Findings) -> str:
    return f"{found.model}: accelerators"


def _tiles(found: Findings) -> list[tuple[str, str]]:
    """How many points there are, and what became of them."""
    counts = Counter(row.state for row in found.rows)
    tiles = [(number(len(found.rows)), "points"), (number(len(found.front)), "on the Pareto front")]
    return [*tiles, *((number(counts[state]), state.value) for state in State if counts[state])]


_Cell = Callable[[Row], str]


def _columns(found: Findings) -> list[tuple[str, _Cell]]:
    """Title and cell of each column of measures."""
    columns: list[tuple[str, _Cell]] = [
        ("cycles", lambda row: number(row.measured.cycles if row.measured else None)),
        ("area", lambda row: percent(found.share(row))),
        ("LUT4", lambda row: number(row.placed.area.luts if row.placed else None)),
        ("block RAMs", lambda row: number(row.placed.area.block_rams if row.placed else None)),
        ("multipliers", lambda row: number(row.placed.area.multipliers if row.placed else None)),
        ("µJ", lambda row: f"{row.measured.energy.total:,.1f}" if row.measured else "-"),
        ("DRAM bytes", lambda row: number(row.measured.dram_bytes if row.measured else None)),
    ]
    if any(row.milliseconds is not None for row in found.rows):
        columns.insert(1, ("ms", lambda row: "-" if row.milliseconds is None else f"{row.milliseconds:.3f}"))
    if any(row.accuracy is not None for row in found.rows):
        columns.append(("accuracy", lambda row: "-" if row.accuracy is None else f"{row.accuracy:.4g}"))
    return columns


@dataclass(frozen=True, slots=True)
class _Table:
    """Points under their axes and measures; `rows`: number, cells, and why it is not on the front."""

    header: tuple[str, ...]
    rows: tuple[tuple[int, tuple[object, ...], str], ...]


def _table(found: Findings, rows: Sequence[Row], columns: Sequence[tuple[str, _Cell]]) -> _Table:
    axes = [axis.name for axis in found.axes if len(axis.values) > 1]

    def cells(row: Row) -> tuple[object, ...]:
        values = dict(row.point.values)
        return (*(values[name] for name in axes), *(cell(row) for _, cell in columns))

    return _Table(
        (*axes, *(title for title, _ in columns)),
        tuple((row.number, cells(row), found.reasons.get(row.number, "")) for row in rows),
    )


def _plots(found: Findings) -> list[Plot]:
    """Each objective over the first one."""
    if len(found.objectives) < 2 or not found.amounts:
        return []
    first, front = found.objectives[0], frozenset(found.front)

    def mark(number: int, x: float, y: float) -> Mark:
        is_front = number in front
        return Mark(number, f"#{number}", x, y, Kind.FRONT if is_front else Kind.BEHIND, 4.5 if is_front else 3.0)

    plots: list[Plot] = []
    for place, objective in enumerate(found.objectives[1:], 1):
        is_accuracy = objective is Objective.ACCURACY
        marks = [
            mark(number, amounts[0], -amounts[place] if is_accuracy else amounts[place])
            for number, amounts in found.amounts.items()
        ]
        marks.sort(key=lambda one: one.kind is Kind.FRONT)
        axes = Axes(_TITLES[first], _TITLES[objective], amount_text, amount_text)
        plots.append(scatter(marks, axes, is_accuracy))
    return plots


def _others(found: Findings, columns: Sequence[tuple[str, _Cell]]) -> list[tuple[str, _Table]]:
    """Points that are not on the front, by why."""
    tables: list[tuple[str, _Table]] = []
    for state, text in _OTHERS:
        rows = [row for row in found.of(state) if row.number in found.reasons]
        if rows:
            tables.append((text, _table(found, rows, columns if state is State.DONE else [])))
    return tables
