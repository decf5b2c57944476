"""Scatter plots of the points of a search. In: marks. Out: a plot, whose line joins the best in both axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from relay_hw.compare.plots import Axes, Mark, Plot, plot

# Up to this many marks on the line have their names beside them; other names are in tooltips only.
_NAMED: Final = 14


def scatter(marks: Sequence[Mark], axes: Axes, more_is_better: bool) -> Plot:
    """A plot of `marks` whose least `x` is best; a line joins those that are best in both axes."""
    steps = _steps(marks, more_is_better)
    named = [(mark.name, mark) for mark in steps] if len(steps) <= _NAMED else []
    return plot(marks, axes, steps, named)


def _steps(marks: Sequence[Mark], more_is_better: bool) -> list[Mark]:
    """The best `y` for each `x`, from the smallest `x` on."""
    sign = -1 if more_is_better else 1
    steps: list[Mark] = []
    for mark in sorted(marks, key=lambda mark: (mark.x, sign * mark.y)):
        if not steps or sign * mark.y < sign * steps[-1].y:
            steps.append(mark)
    return steps
