"""The HTML page of an exploration: the front, plots, and every other point with one that dominates it.

In: `Findings`. Out: one self-contained HTML page, without script or network, for screens and paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from relay_hw.compare.energy import CAVEAT, SOURCE
from relay_hw.explore.findings import Findings, lead
from relay_hw.explore.front import Objective
from relay_hw.explore.results import Row, State
from relay_hw.explore.scatter import Mark, scatter_svg
from relay_hw.report import number, page, percent
from relay_hw.support.quote import html

_STYLE: Final = """
svg .front { fill: var(--products); } svg .behind { fill: var(--fill); opacity: 0.7; }
svg .step { stroke: var(--products); stroke-width: 1.5; fill: none; opacity: 0.7; }
svg text { paint-order: stroke; stroke: var(--card); stroke-width: 3px; stroke-linejoin: round; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(470px, 100%), 1fr)); gap: 12px; }
td.why { min-width: 18em; } details summary { cursor: pointer; margin: 34px 0 10px; font-weight: 600; }
@media print { details > * { display: block; } main { max-width: none; padding: 0; } table { font-size: 9.5px; } }
"""
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


def render_page(found: Findings) -> str:
    """The page."""
    title = f"{html(found.model)}: accelerators"
    sections = [_head(found, title), _front(found), _plots(found), _others(found), _sources(found)]
    return page(title, "\n".join(filter(None, sections)), _STYLE)


def _head(found: Findings, title: str) -> str:
    counts = Counter(row.state for row in found.rows)
    numbers = ", ".join(f"{counts[state]:,} {state.value}" for state in State if counts[state])
    names = ", ".join(objective.value.replace("_", " ") for objective in found.objectives)
    axes = "; ".join(f"{axis.name} {', '.join(map(str, axis.values))}" for axis in found.axes)
    state = "" if found.is_over else '<p class="warn">The search is still running: open this page again later.</p>'
    return (
        f"<h1>{title}</h1><p>{len(found.rows):,} points: {numbers}. {len(found.front)} are on the Pareto front of "
        f"{html(names)}. Other sizes are those of configuration {html(found.base)}; part {html(found.part.name)}.</p>"
        f"<p>{html(axes)}</p>{state}"
    )


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


def _front(found: Findings) -> str:
    rows = lead(found.rows, found.front)
    if not rows:
        return "<h2>The front</h2><p>No point could be measured.</p>"
    return f"<h2>The front</h2>{_table(found, rows, _columns(found), False)}"


def _table(found: Findings, rows: Sequence[Row], columns: Sequence[tuple[str, _Cell]], with_reason: bool) -> str:
    axes = [axis.name for axis in found.axes if len(axis.values) > 1]
    head = "".join(f'<th class="n">{html(name)}</th>' for name in [*axes, *(title for title, _ in columns)])
    head += "<th>why it is not on the front</th>" if with_reason else ""
    lines: list[str] = []
    for row in rows:
        values = dict(row.point.values)
        cells = "".join(f'<td class="n">{html(values[name])}</td>' for name in axes)
        cells += "".join(f'<td class="n">{cell(row)}</td>' for _, cell in columns)
        cells += f'<td class="why">{html(found.reasons[row.number])}</td>' if with_reason else ""
        lines.append(f'<tr><td class="name">#{row.number}</td>{cells}</tr>')
    return (
        f'<div class="card"><table><thead><tr><th>point</th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _plots(found: Findings) -> str:
    """Each objective over the first one."""
    if len(found.objectives) < 2 or not found.amounts:
        return ""
    first, front = found.objectives[0], frozenset(found.front)
    cards: list[str] = []
    for place, objective in enumerate(found.objectives[1:], 1):
        marks = [
            Mark(f"#{number}", amounts[0], _shown(amounts[place], objective), number in front)
            for number, amounts in found.amounts.items()
        ]
        svg = scatter_svg(marks, _TITLES[first], _TITLES[objective], objective is Objective.ACCURACY)
        cards.append(f'<div class="card">{svg}</div>')
    return (
        f'<h2>Points that were measured</h2><div class="plots">{"".join(cards)}</div>'
        '<p class="legend">Coloured: on the front of all objectives together. The line joins the best in the two '
        "of a plot.</p>"
    )


def _shown(value: float, objective: Objective) -> float:
    return -value if objective is Objective.ACCURACY else value


def _others(found: Findings) -> str:
    columns = _columns(found)
    parts: list[str] = []
    for state, text in (
        (State.DONE, "Beaten"),
        (State.SKIPPED, "Not measured, as they cannot be on the front"),
        (State.REFUSED, "Refused"),
    ):
        rows = [row for row in found.of(state) if row.number in found.reasons]
        if rows:
            shown = columns if state is State.DONE else []
            parts.append(
                f"<details><summary>{text}: {len(rows):,}</summary>{_table(found, rows, shown, True)}</details>"
            )
    return "".join(parts)


def _sources(found: Findings) -> str:
    return (
        '<h2>Where the numbers come from</h2><p class="legend">Cycles, bytes: the exact engine of the cycle simulator, '
        "in steady state. Area: block RAMs and multipliers are counted, LUT4 and flip-flops are a model's, fitted to "
        f"syntheses for Lattice ECP5; the accelerator alone. Energy: {html(SOURCE)}. {html(CAVEAT)} Clocks are "
        "assumed, not predicted.</p>"
    )
