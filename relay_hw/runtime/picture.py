"""A launch as a picture: how busy each unit was, and why the array was idle, over equal parts of the time.

In: a timing and its stretches. Out: a `Timeline` for the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.spec import Unit
from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle import Timing
from relay_hw.accel.sim.cycle.losses import Stretch
from relay_hw.report import Band, Timeline

PARTS = 500

# Cycles [begin, end) and the share of them that counts; begins and ends ascend.
Pieces = Iterable[tuple[int, int, float]]


def draw_timeline(
    name: str, timing: Timing, found: Sequence[Stretch], layers: Sequence[str], useful: Mapping[int, float]
) -> Timeline:
    """The picture of one launch. `layers`: names by the owners of the stretches; `useful`: by owner, the share of its
    array's cycles that products of the model need."""
    cycles = timing.cycles
    edges = np.linspace(0, cycles, min(PARTS, cycles) + 1)
    units = {
        unit.name: _shares(((span.start + 1, span.end + 1, 1.0) for span in timing.of(unit)), edges)
        for unit in Unit
        if unit is not Unit.COMPUTE
    }
    causes = {cause: _shares(_pieces(found, cause, useful), edges) for cause in Cause}
    return Timeline(name, cycles, tuple(_bands(found, layers)), units, causes)


def _pieces(found: Sequence[Stretch], cause: Cause, useful: Mapping[int, float]) -> Pieces:
    """The stretches of a cause; those of the array are shared between products and idle lanes."""
    for stretch in found:
        charged = Cause.FILL if stretch.fill else stretch.cause
        if charged is Cause.PRODUCTS and cause in (Cause.PRODUCTS, Cause.LANES):
            share = useful.get(stretch.owner, 1.0)
            yield stretch.begin, stretch.end, share if cause is Cause.PRODUCTS else 1 - share
        elif charged is cause:
            yield stretch.begin, stretch.end, 1.0


def _shares(pieces: Pieces, edges: NDArray[np.float64]) -> tuple[float, ...]:
    """For each part of the time the share that the union of the pieces covers."""
    places, sums, total, last = [0.0], [0.0], 0.0, 0
    for begin, end, share in pieces:
        begin = max(begin, last)
        if end > begin:
            places += [begin, end]
            sums += [total, total + share * (end - begin)]
            total = sums[-1]
            last = end
    covered = np.diff(np.interp(edges, places, sums))
    return tuple(np.round(covered / np.diff(edges), 4).tolist())


def _bands(found: Sequence[Stretch], layers: Sequence[str]) -> Iterable[Band]:
    for owner, members in groupby(found, key=lambda stretch: stretch.owner):
        run = list(members)
        yield Band(layers[owner] if owner >= 0 else "", run[0].begin, run[-1].end)
