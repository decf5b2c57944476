"""The comparison of two builds as text for terminals.

In: `Matching`, the width of the terminal. Out: lines.
"""

from __future__ import annotations

from relay_hw.report.matching import Change, Matching, Pair
from relay_hw.report.model import Report
from relay_hw.report.names import short_names
from relay_hw.report.table import table
from relay_hw.report.text import number, percent
from relay_hw.support.quote import line

DIFFERENCE_HEADER = (
    "layer",
    "cycles A",
    "cycles B",
    "change",
    "share",
    "bytes A",
    "bytes B",
    "by cause, and what changed",
)
_RIGHT = frozenset(DIFFERENCE_HEADER[1:7])
_OPTIONAL = ("bytes A", "bytes B", "share")
# Causes that are named, largest first.
_CAUSES = 3


def difference_text(found: Matching, width: int | None = None) -> str:
    """Both builds, their settings, a row for each layer, and the totals."""
    heads = [f"{key}: {_build(side)}" for key, side in (("A", found.left), ("B", found.right))]
    settings = [f"{change.what}: {change_text(change)}" for change in found.settings]
    short = short_names(list(dict.fromkeys(pair.name for pair in found.pairs)))
    rows = [(short[pair.name], *numbers(found, pair), what_changed(pair)) for pair in found.pairs]
    body = table(DIFFERENCE_HEADER, [*rows, ("total", *totals(found), "")], _RIGHT, width, _OPTIONAL)
    matched = f"{len(found.matched)} of {len(found.pairs)} layers are in both builds"
    return "\n".join([*heads, *map(line, settings), "", body, "", f"{matched}; {verdict(found)}"])


def _build(report: Report) -> str:
    return f"{line(report.model)} on {line(report.config)}, {line(report.strategy)}, {number(report.cycles)} cycles"


def verdict(found: Matching) -> str:
    """A sentence: which build is faster, and by how much."""
    before, after = found.cycles
    if before == after:
        return f"both take {number(before)} cycles"
    share = percent(abs(before - after) / before) if before else "-"
    return f"B takes {number(abs(before - after))} cycles ({share}) {'less' if after < before else 'more'} than A"


def numbers(found: Matching, pair: Pair) -> tuple[str, ...]:
    """The number cells of a pair of layers."""
    rows = (
        None if pair.left is None else found.left.layers[pair.left],
        None if pair.right is None else found.right.layers[pair.right],
    )
    cycles = ["" if row is None or not row.on_accelerator else number(row.cycles) for row in rows]
    traffic = ["" if row is None or not row.on_accelerator else number(row.traffic.total) for row in rows]
    return (*cycles, *_change(pair.cycles, found.cycles[0]), *traffic)


def totals(found: Matching) -> tuple[str, ...]:
    """The cells of the last row: totals of both profiles."""
    cycles = [number(side.cycles) for side in (found.left, found.right)]
    traffic = [number(side.traffic.total) for side in (found.left, found.right)]
    return (*cycles, *_change(found.cycles, found.cycles[0]), *traffic)


def _change(cycles: tuple[int, int], whole: int) -> tuple[str, str]:
    """The change in cycles, and its share of the first build's cycles."""
    more = cycles[1] - cycles[0]
    return (f"{more:+,}", f"{100 * more / whole:+.1f}%") if more and whole else ("", "")


def what_changed(pair: Pair) -> str:
    """Causes of the change, largest first, then other differences."""
    if pair.left is None or pair.right is None:
        return "only in A" if pair.right is None else "only in B"
    causes = sorted(pair.more.items(), key=lambda item: -abs(item[1]))[:_CAUSES]
    parts = [f"{cause} {cycles:+,}" for cause, cycles in causes]
    return "; ".join(
        [*parts, *(f"{change.what}: {change_text(change)}" for change in pair.changes if _is_told(change))]
    )


def _is_told(change: Change) -> bool:
    """Whether to print a difference: bytes have columns; tiles and scales are too long for terminals."""
    return change.what in ("where", "operator", "shape", "signal to noise")


def change_text(change: Change) -> str:
    """`before -> after`."""
    return f"{change.before or 'none'} -> {change.after or 'none'}"
