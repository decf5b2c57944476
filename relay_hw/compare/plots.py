"""SVG plots of a comparison: points with their Pareto front, histograms with the strategies' ranges.

In: numbers with names. Out: SVG elements in the colours of the house style.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from relay_hw.compare.front import Point, staircase, unbeaten
from relay_hw.compare.histogram import Histogram
from relay_hw.support.quote import html

# Sizes of plots and of their margins.
WIDTH, HEIGHT = 580, 360
LEFT, RIGHT, TOP, BOTTOM = 62, 18, 30, 46
_TICKS: Final = 5
_STEP: Final = 15  # between lines of labels
_LETTER: Final = 6.6  # width of a letter, roughly


def pareto_svg(
    points: Sequence[Point],
    x_title: str,
    y_title: str,
    x_text: Callable[[float], str],
    y_text: Callable[[float], str],
    best: tuple[str, str] | None,
) -> str:
    """A plot of `points` with their intervals; a line joins the best for each cost.

    The point with the key `best` is drawn larger.
    """
    xs = plot_span([p.x for p in points])
    ys = plot_span([y for p in points for y in (p.y, *(p.within or ()))])

    def height(value: float) -> float:
        return HEIGHT - BOTTOM - (value - ys[0]) / (ys[1] - ys[0]) * (HEIGHT - TOP - BOTTOM)

    def place(point: Point) -> tuple[float, float]:
        return LEFT + (point.x - xs[0]) / (xs[1] - xs[0]) * (WIDTH - LEFT - RIGHT), height(point.y)

    steps = [place(p) for p in staircase(points)]
    parts = [*axes(xs, ys, x_text, y_text), titles(x_title, y_title), front_line(steps)]
    front = unbeaten(points)
    for point in sorted(points, key=lambda p: p in front):
        x, y = place(point)
        if point.within is not None:
            low, high = map(height, point.within)
            parts.append(f'<line class="interval" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
        kind = "partial" if point.is_partial else "front" if point in front else "behind"
        radius = 6.5 if point.key == best else 4.5
        tip = f"{html(point.name)}: {html(x_text(point.x))} {html(x_title)}, {html(y_text(point.y))} {html(y_title)}"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{tip}</title></circle>')
    parts += labels([(p.name + (" ★" if p.key == best else ""), *place(p)) for p in points])
    label = f"{html(y_title)} over {html(x_title)}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def plot_span(values: Sequence[float]) -> tuple[float, float]:
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


def axes(
    xs: tuple[float, float], ys: tuple[float, float], x_text: Callable[[float], str], y_text: Callable[[float], str]
) -> list[str]:
    """Lines and numbers of both axes."""
    parts: list[str] = []
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for tick in nice_ticks(*ys):
        y = bottom - (tick - ys[0]) / (ys[1] - ys[0]) * (bottom - TOP)
        parts.append(f'<line class="rule" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="soft" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{html(y_text(tick))}</text>')
    for tick in nice_ticks(*xs):
        x = LEFT + (tick - xs[0]) / (xs[1] - xs[0]) * (right - LEFT)
        parts.append(f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text class="soft" x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{html(x_text(tick))}</text>'
        )
    return parts


def titles(x_title: str, y_title: str) -> str:
    """Titles of the axes."""
    middle = (LEFT + WIDTH - RIGHT) / 2
    return (
        f'<text class="soft" x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{html(x_title)}</text>'
        f'<text class="soft" x="{LEFT}" y="17">{html(y_title)}</text>'
    )


def front_line(places: Sequence[tuple[float, float]]) -> str:
    """The front as a staircase: between two points the cheaper one is the best."""
    if len(places) < 2:
        return ""
    path = f"M{places[0][0]:.1f},{places[0][1]:.1f}"
    for x, y in places[1:]:
        path += f"H{x:.1f}V{y:.1f}"
    return f'<path class="step" d="{path}"/>'


def amount_text(value: float) -> str:
    """A short text for a number on an axis."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            scale = limit if unit != "k" else 1e3
            return f"{value / scale:.4g}{unit}"
    return f"{value:.4g}"


def labels(marks: Sequence[tuple[str, float, float]]) -> list[str]:
    """Names beside their points, moved apart where they would overlap."""
    parts: list[str] = []
    # Left, right and line of the labels that stand, and of the points.
    taken: list[tuple[float, float, float]] = [(x - 6, x + 6, y + 4) for _, x, y in marks]
    for name, x, y in sorted(marks, key=lambda mark: (mark[2], mark[1])):
        width = _LETTER * len(name)
        to_left = x + 14 + width > WIDTH - 2
        left = x - 12 - width if to_left else x + 12
        line = _free_line(left, left + width, y + 4, taken)
        taken.append((left, left + width, line))
        anchor, at = ("end", x - 12) if to_left else ("start", x + 12)
        if abs(line - y - 4) > 3:
            near = at + (3 if to_left else -3)
            parts.append(f'<line class="lead" x1="{x:.1f}" y1="{y:.1f}" x2="{near:.1f}" y2="{line - 4:.1f}"/>')
        parts.append(f'<text x="{at:.1f}" y="{line:.1f}" text-anchor="{anchor}">{html(name)}</text>')
    return parts


def _free_line(left: float, right: float, wanted: float, taken: Sequence[tuple[float, float, float]]) -> float:
    """The place nearest to `wanted` where a label from `left` to `right` meets no other one, inside of the plot."""
    low, high = TOP + 4.0, HEIGHT - BOTTOM - 3.0
    for number in range(200):
        offset = (number + 1) // 2 * 3.0 * (1 if number % 2 else -1)
        line = wanted + offset
        clear = all(right < a or left > b or abs(line - y) >= _STEP for a, b, y in taken)
        if clear and low <= line <= high:
            return line
    return wanted


_PLOT, _NAMES, _HIGH, _ROW = 380, 118, 92, 14


def histogram_svg(
    histogram: Histogram, clips: Mapping[str, tuple[float, float] | None], best: str | None, label: str
) -> str:
    """Square roots of counts, so that tails show; below, the range that each strategy holds, dashed where that of
    `best` ends."""
    if not histogram.counts:
        return ""
    margin = 0.12 * (histogram.high - histogram.low)
    low, high = histogram.low - margin, histogram.high + margin
    width = _PLOT - _NAMES - 8

    def place(value: float) -> float:
        return _NAMES + (min(max(value, low), high) - low) / (high - low) * width

    rows = [(name, clip) for name, clip in clips.items() if clip is not None]
    height = _HIGH + 22 + _ROW * len(rows)
    parts = [_bars(histogram, place)]
    chosen = clips.get(best) if best is not None else None
    if chosen is not None:
        for value in chosen:
            if low < value < high:
                x = place(value)
                parts.append(f'<line class="clip" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{_HIGH}"/>')
    parts.append(f'<line class="axis" x1="{_NAMES}" x2="{_PLOT - 8}" y1="{_HIGH}" y2="{_HIGH}"/>')
    for tick in nice_ticks(histogram.low, histogram.high):
        parts.append(
            f'<text class="soft small" x="{place(tick):.1f}" y="{_HIGH + 13}" text-anchor="middle">{tick:.4g}</text>'
        )
    for number, (name, clip) in enumerate(rows):
        parts.append(_range_row(name, clip, _HIGH + 26 + _ROW * number, place, (low, high), name == best))
    head = f'<svg class="hist" viewBox="0 0 {_PLOT} {height}" role="img" aria-label="{html(label)}">'
    return f"{head}{''.join(parts)}</svg>"


def _bars(histogram: Histogram, place: Callable[[float], float]) -> str:
    tallest = math.sqrt(max(histogram.counts))
    step = (histogram.high - histogram.low) / len(histogram.counts)
    path = f"M{place(histogram.low):.1f},{_HIGH}"
    for number, count in enumerate(histogram.counts):
        top = _HIGH - math.sqrt(count) / tallest * (_HIGH - 8)
        path += f"V{top:.1f}H{place(histogram.low + (number + 1) * step):.1f}"
    return f'<path class="fill" d="{path}V{_HIGH}Z"/>'


def _range_row(
    name: str,
    clip: tuple[float, float],
    y: float,
    place: Callable[[float], float],
    shown: tuple[float, float],
    is_best: bool,
) -> str:
    """A line from end to end of a range, with bars at ends that lie inside of the picture."""
    short = html(name if len(name) <= 17 else f"{name[:16]}…")
    kind = "range best" if is_best else "range"
    left, right = place(clip[0]), place(clip[1])
    ends = "".join(
        f'<line class="{kind}" x1="{place(v):.1f}" x2="{place(v):.1f}" y1="{y - 4}" y2="{y + 4}"/>'
        for v in clip
        if shown[0] < v < shown[1]
    )
    tip = f"{html(name)}: {clip[0]:.4g} to {clip[1]:.4g}"
    return (
        f"<g><title>{tip}</title>"
        f'<text class="small" x="{_NAMES - 8}" y="{y + 3.5}" text-anchor="end">{short}</text>'
        f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{y}" y2="{y}"/>{ends}</g>'
    )
