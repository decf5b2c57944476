"""An exploration as text for terminals. In: `Findings`. Out: lines."""

from __future__ import annotations

from collections import Counter
from typing import Final

from relay_hw.explore.findings import Findings, lead
from relay_hw.explore.front import Objective
from relay_hw.explore.results import Row, State
from relay_hw.report import number, percent, table
from relay_hw.support.quote import line

_RIGHT: Final = frozenset(
    {"point", "cycles", "ms", "LUT4", "block RAMs", "mult", "area", "uJ", "DRAM", "accuracy"}
)  # fmt: skip
_OPTIONAL: Final = ("mult", "block RAMs", "DRAM", "LUT4")
# Reasons of refusals that are listed.
_MOST: Final = 4


def exploration_text(found: Findings, width: int | None = None) -> str:
    """The front, how many points were measured, the most common refusals."""
    axes = [axis.name for axis in found.axes if len(axis.values) > 1]
    rows = lead(found.rows, found.front)
    measures = ["cycles", "LUT4", "block RAMs", "mult", "area", "uJ", "DRAM"]
    measures += ["ms"] if any(row.milliseconds is not None for row in rows) else []
    measures += ["accuracy"] if any(row.accuracy is not None for row in rows) else []
    header = ("point", *axes, *measures)
    right = _RIGHT | frozenset(axes)
    cells = [tuple(_cells(found, row)[column] for column in header) for row in rows]
    lines = [
        f"{line(found.model)}: {_counted(found)}; {len(found.front)} on the front of {_listed(found.objectives)}",
        "",
        table(header, cells, right, width, _OPTIONAL),
    ]
    refused = Counter(_kind(row.reason) for row in found.of(State.REFUSED))
    lines += [""] if refused else []
    lines += [f"refused {count:,}: {line(reason)}" for reason, count in refused.most_common(_MOST)]
    lines.append(f"area: mean share of the LUT4, block RAMs and multipliers of {line(found.part.name)}, by a model")
    return "\n".join(lines)


def _counted(found: Findings) -> str:
    counts = Counter(row.state for row in found.rows)
    parts = [f"{counts[state]:,} {state.value}" for state in State if counts[state]]
    return f"{len(found.rows):,} points, {', '.join(parts)}"


def _listed(objectives: tuple[Objective, ...]) -> str:
    return ", ".join(objective.value.replace("_", " ") for objective in objectives)


def _kind(reason: str) -> str:
    """A refusal without the name of the point."""
    head, mark, rest = reason.partition(": ")
    return rest if mark and head.startswith("configuration point-") else reason


def _cells(found: Findings, row: Row) -> dict[str, str]:
    measured, placed = row.measured, row.placed
    assert measured is not None and placed is not None
    axes = {name: str(value) for name, value in row.point.values}
    return axes | {
        "point": f"#{row.number}",
        "cycles": number(measured.cycles),
        "ms": "-" if row.milliseconds is None else f"{row.milliseconds:.3f}",
        "LUT4": number(placed.area.luts),
        "block RAMs": number(placed.area.block_rams),
        "mult": number(placed.area.multipliers),
        "area": percent(found.share(row)),
        "uJ": f"{measured.energy.total:,.1f}",
        "DRAM": number(measured.dram_bytes),
        "accuracy": "-" if row.accuracy is None else f"{row.accuracy:.4g}",
    }
