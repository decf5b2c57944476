"""Pictures of a layer's values: a histogram, and below it the range that each strategy's integers hold.

In: a histogram, ranges by strategy. Out: where bars and lines go in an SVG picture, which a template writes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from relay_hw.compare.histogram import Histogram
from relay_hw.compare.plots import Area, Tick, nice_ticks

_WIDTH, _RIGHT, _NAMES, _HIGH, _ROW = 380, 8, 122, 92, 16
_TOP, _BELOW = 8, 26
_LETTERS: Final = 16

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class RangeRow:
    """A strategy's range as a line; `ends`: those of its ends that lie inside of the picture."""

    name: str
    short: str
    is_best: bool
    y: float
    left: float
    right: float
    ends: tuple[float, ...]
    tip: str


@dataclass(frozen=True, slots=True)
class Ranges:
    """A histogram as corners (x, y) of its outline, and the ranges; `clips`: where the best strategy's range ends."""

    area: Area
    steps: tuple[tuple[float, float], ...]
    begin: float
    clips: tuple[float, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[RangeRow, ...]


def ranges(histogram: Histogram, clips: Mapping[str, Range | None], best: str | None) -> Ranges | None:
    """Square roots of counts, so that tails show; below, the range that each strategy holds. None without values."""
    if not histogram.counts:
        return None
    margin = 0.12 * (histogram.high - histogram.low)
    low, high = histogram.low - margin, histogram.high + margin

    def place(value: float) -> float:
        return _NAMES + (min(max(value, low), high) - low) / (high - low) * (_WIDTH - _NAMES - _RIGHT)

    def row(number: int, name: str, clip: Range) -> RangeRow:
        short = name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
        ends = tuple(place(value) for value in clip if low < value < high)
        tip = f"{name}: {clip[0]:.4g} to {clip[1]:.4g}"
        y = _HIGH + _BELOW + _ROW * number
        return RangeRow(name, short, name == best, y, place(clip[0]), place(clip[1]), ends, tip)

    known = [(name, clip) for name, clip in clips.items() if clip is not None]
    chosen = clips.get(best) if best is not None else None
    tallest = math.sqrt(max(histogram.counts))
    step = (histogram.high - histogram.low) / len(histogram.counts)
    return Ranges(
        Area(_WIDTH, _HIGH + _BELOW + _ROW * len(known), _NAMES, _WIDTH - _RIGHT, _TOP, _HIGH),
        tuple(
            (place(histogram.low + (number + 1) * step), _HIGH - math.sqrt(count) / tallest * (_HIGH - _TOP))
            for number, count in enumerate(histogram.counts)
        ),
        place(histogram.low),
        tuple(place(value) for value in chosen or () if low < value < high),
        tuple(Tick(place(value), f"{value:.4g}") for value in nice_ticks(histogram.low, histogram.high)),
        tuple(row(number, name, clip) for number, (name, clip) in enumerate(known)),
    )
