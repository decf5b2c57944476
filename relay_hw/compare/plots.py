"""Plots of a comparison: points with their Pareto front, histograms with the strategies' ranges.

In: numbers with names. Out: where lines, marks and texts go in an SVG picture, which templates write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from relay_hw.compare.front import Point, staircase, unbeaten
from relay_hw.compare.rows import Key

_TICKS: Final = 5
_STEP: Final = 16  # between lines of labels
_LETTER: Final = 7.1  # width of a letter, roughly


@dataclass(frozen=True, slots=True)
class Area:
    """The size of a picture, and the edges of what its axes enclose."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int


AREA: Final = Area(width=430, height=300, left=52, right=414, top=30, bottom=252)


class Kind(Enum):
    """What a mark stands for: on the front, beaten, or without a part of its cost."""

    FRONT = "front"
    BEHIND = "behind"
    PARTIAL = "partial"


@dataclass(frozen=True, slots=True)
class Mark:
    """A point by its values. `row`: the number of its row in the page's tables; `within`: the interval of `y`."""

    row: int
    name: str
    x: float
    y: float
    kind: Kind
    radius: float
    within: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Axes:
    """Titles of both axes, and how their numbers are written."""

    x_title: str
    y_title: str
    x_text: Callable[[float], str]
    y_text: Callable[[float], str]


@dataclass(frozen=True, slots=True)
class Tick:
    """A number beside an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A mark in its place. `interval`: heights of the ends of its interval; `tip`: its numbers in words."""

    row: int
    kind: Kind
    x: float
    y: float
    radius: float
    interval: tuple[float, float] | None
    tip: str


@dataclass(frozen=True, slots=True)
class Label:
    """A name beside its mark; `lead`: begin and end of a line to it, where it stands apart."""

    row: int
    text: str
    x: float
    y: float
    anchor: str
    lead: tuple[float, float, float, float] | None


@dataclass(frozen=True, slots=True)
class Plot:
    """A picture of marks over two axes; `steps`: corners of the line that joins the best."""

    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    steps: tuple[tuple[float, float], ...]
    dots: tuple[Dot, ...]
    labels: tuple[Label, ...]
    area: Area = AREA


def pareto_plot(points: Sequence[Point], axes: Axes, best: Key | None, rows: Mapping[Key, int]) -> Plot:
    """A plot of `points` with their intervals; a line joins the best for each cost.

    The point with the key `best` is drawn larger. `rows`: the number of each key's row.
    """
    front = unbeaten(points)

    def mark(point: Point) -> Mark:
        kind = Kind.PARTIAL if point.is_partial else Kind.FRONT if point in front else Kind.BEHIND
        is_best = point.key == best
        return Mark(rows[point.key], point.name, point.x, point.y, kind, 6.5 if is_best else 4.5, point.within)

    marks = [mark(point) for point in sorted(points, key=lambda p: p in front)]
    named = [(point.name + (" ★" if point.key == best else ""), mark(point)) for point in points]
    return plot(marks, axes, [mark(point) for point in staircase(points)], named)


def plot(marks: Sequence[Mark], axes: Axes, steps: Sequence[Mark], named: Sequence[tuple[str, Mark]]) -> Plot:
    """A plot of `marks`, later ones over earlier ones; a line joins `steps`, and `named` have labels."""
    xs = _span([mark.x for mark in marks])
    ys = _span([y for mark in marks for y in (mark.y, *(mark.within or ()))])

    def across(value: float) -> float:
        return AREA.left + (value - xs[0]) / (xs[1] - xs[0]) * (AREA.right - AREA.left)

    def height(value: float) -> float:
        return AREA.bottom - (value - ys[0]) / (ys[1] - ys[0]) * (AREA.bottom - AREA.top)

    def dot(mark: Mark) -> Dot:
        ends = (height(mark.within[0]), height(mark.within[1])) if mark.within is not None else None
        tip = f"{mark.name}: {axes.x_text(mark.x)} {axes.x_title}, {axes.y_text(mark.y)} {axes.y_title}"
        return Dot(mark.row, mark.kind, across(mark.x), height(mark.y), mark.radius, ends, tip)

    return Plot(
        axes.x_title,
        axes.y_title,
        tuple(Tick(across(value), axes.x_text(value)) for value in nice_ticks(*xs)),
        tuple(Tick(height(value), axes.y_text(value)) for value in nice_ticks(*ys)),
        tuple((across(mark.x), height(mark.y)) for mark in steps),
        tuple(map(dot, marks)),
        tuple(_labels([(name, mark.row, across(mark.x), height(mark.y)) for name, mark in named])),
    )


def _span(values: Sequence[float]) -> tuple[float, float]:
    """The smallest and largest value, with a margin."""
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def nice_ticks(low: float, high: float) -> list[float]:
    """Round numbers between `low` and `high`: steps of 1, 2 or 5 times a power of ten."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw)
    first = math.ceil(low / step)
    return [number * step for number in range(first, math.floor(high / step) + 1)]


def amount_text(value: float) -> str:
    """A short text for a number on an axis."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scale = limit if unit != "k" else 1e3
            return f"{value / scale:.4g}{unit}"
    return f"{value:.4g}"


def _labels(marks: Sequence[tuple[str, int, float, float]]) -> list[Label]:
    """Names beside their points, moved apart where they would overlap."""
    found: list[Label] = []
    # Left, right and line of the labels that stand, and of the points.
    taken: list[tuple[float, float, float]] = [(x - 6, x + 6, y + 4) for _, _, x, y in marks]
    for name, row, x, y in sorted(marks, key=lambda mark: (mark[3], mark[2])):
        width = _LETTER * len(name)
        to_left = x + 14 + width > AREA.width - 2
        left = x - 12 - width if to_left else x + 12
        line = _free_line(left, left + width, y + 4, taken)
        taken.append((left, left + width, line))
        anchor, at = ("end", x - 12) if to_left else ("start", x + 12)
        near = at + (3 if to_left else -3)
        lead = (x, y, near, line - 4) if abs(line - y - 4) > 3 else None
        found.append(Label(row, name, at, line, anchor, lead))
    return found


def _free_line(left: float, right: float, wanted: float, taken: Sequence[tuple[float, float, float]]) -> float:
    """The place nearest to `wanted` where a label from `left` to `right` meets no other one, inside of the plot."""
    low, high = AREA.top + 4.0, AREA.bottom - 3.0
    for number in range(200):
        offset = (number + 1) // 2 * 3.0 * (1 if number % 2 else -1)
        line = wanted + offset
        clear = all(right < a or left > b or abs(line - y) >= _STEP for a, b, y in taken)
        if clear and low <= line <= high:
            return line
    return wanted
