"""Scatter plots of many points as SVG. In: marks. Out: an SVG element with the CSS classes of every page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from relay_hw.compare.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    amount_text,
    axes,
    front_line,
    labels,
    plot_span,
    titles,
)
from relay_hw.support.quote import html

# Up to this many marks on the front have their names beside them; other names are in tooltips only.
_NAMED: Final = 14


@dataclass(frozen=True, slots=True)
class Mark:
    """A point of a plot; `is_front`: it is on the Pareto front."""

    name: str
    x: float
    y: float
    is_front: bool


def scatter_svg(marks: Sequence[Mark], x_title: str, y_title: str, more_is_better: bool) -> str:
    """A plot of `marks` whose least `x` is best; a line joins those that are best in both axes."""
    xs, ys = plot_span([mark.x for mark in marks]), plot_span([mark.y for mark in marks])

    def place(mark: Mark) -> tuple[float, float]:
        x = LEFT + (mark.x - xs[0]) / (xs[1] - xs[0]) * (WIDTH - LEFT - RIGHT)
        return x, HEIGHT - BOTTOM - (mark.y - ys[0]) / (ys[1] - ys[0]) * (HEIGHT - TOP - BOTTOM)

    steps = _steps(marks, more_is_better)
    parts = [*axes(xs, ys, amount_text, amount_text), titles(x_title, y_title)]
    parts.append(front_line([place(mark) for mark in steps]))
    for mark in sorted(marks, key=lambda mark: mark.is_front):
        x, y = place(mark)
        kind, radius = ("front", 4.5) if mark.is_front else ("behind", 3)
        tip = f"{html(mark.name)}: {amount_text(mark.x)} {html(x_title)}, {amount_text(mark.y)} {html(y_title)}"
        parts.append(f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"><title>{tip}</title></circle>')
    if len(steps) <= _NAMED:
        parts += labels([(mark.name, *place(mark)) for mark in steps])
    label = f"{html(y_title)} over {html(x_title)}"
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _steps(marks: Sequence[Mark], more_is_better: bool) -> list[Mark]:
    """The best `y` for each `x`, from the smallest `x` on."""
    sign = -1 if more_is_better else 1
    steps: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.x, sign * mark.y)):
        if not steps or sign * mark.y < sign * steps[-1].y:
            steps.append(mark)
    return steps
