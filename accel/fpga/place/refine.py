"""Moves placed logic to shorten late paths: detailed placement for timing, between nextpnr's placer and router.

In: the JSON of a netlist that nextpnr placed, and the period that is aimed at. Out: the same with other sites.

nextpnr's static placer makes wires short, whichever they are: a gate on a long path lies where most of its wires want
it. Here each group of cells on a late path is tried where the path's other cells lie and around that, and goes where
the paths through it and its wires cost least; then neighbours on a late path go together, which alone would only
stretch the wire between them. A path's price grows with the sixteenth power of how far it reaches into a margin before
the period: what is early costs nothing, and no path hides behind a worse one. Uses only addition and
multiplication, so results are identical on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from relay_hw.accel.fpga.place.around import MARGIN, NEIGHBOURS, TILE_PRICE, Around, price_of
from relay_hw.accel.fpga.place.placed import Placed, read_placed, with_sites
from relay_hw.accel.fpga.place.slices import LANES, Tiles, read_groups
from relay_hw.accel.fpga.place.timing import Arcs, Floats, Places, analysed, read_arcs
from relay_hw.support.progress import Progress

# Nanoseconds before the period at which a path's groups are looked at.
LOOKED_AT: Final = 1.0
# Users of the wires that count.
FANOUT: Final = 40
# A group moves if that saves this part of its cost.
GAIN: Final = 0.02
# Passes over all late paths, moves after which there is another one, groups between two analyses.
PASSES: Final = 20
FEW: Final = 10
BETWEEN: Final = 40
# Cells of the largest group that is moved, places that are tried.
LARGEST: Final = 60
PLACES: Final = 30
# Tiles between neighbours on a path that are moved together.
CLOSE: Final = 3
# What decides a refinement beside its input: part of the key of what is made of it.
REFINEMENT: Final = (
    "refine",
    MARGIN,
    LOOKED_AT,
    TILE_PRICE,
    FANOUT,
    GAIN,
    PASSES,
    FEW,
    BETWEEN,
    LARGEST,
    NEIGHBOURS,
    PLACES,
    CLOSE,
)

# Columns, rows and lanes of all cells.
Sites = tuple[list[int], list[int], list[int]]

_NEAR: Final = 4
_RINGS: Final = sorted(
    ((x, y) for x in range(-_NEAR, _NEAR + 1) for y in range(-_NEAR, _NEAR + 1) if abs(x) + abs(y) <= _NEAR),
    key=lambda step: abs(step[0]) + abs(step[1]),
)


def refined(document: Mapping[str, Any], period_ns: float, progress: Progress) -> tuple[dict[str, Any], float]:
    """The document with sites by which paths longer than `period_ns` are shorter, or fewer; when the latest signal then
    comes, in ns. Raises FlowError."""
    placed = read_placed(document)
    mover = Mover(placed, period_ns)
    best, before, sites = mover.price(), mover.late(), mover.sites()
    progress.started("refinement", PASSES)
    for done in range(PASSES):
        progress.advanced("refinement", done)
        moved = mover.sweep()
        if (price := mover.price()) < best:
            best, sites = price, mover.sites()
        if moved < FEW:
            break
    mover.restore(sites)
    after = mover.late()
    kept = f"{after[0]} of {before[0]} late signals stay later than {period_ns:.1f} ns"
    progress.advanced("refinement", PASSES, f"{kept}, the latest {after[1]:.1f} ns instead of {before[1]:.1f}")
    return with_sites(document, placed), after[1]


class Mover:
    """Moves groups of cells of `placed` and keeps account of its tiles."""

    def __init__(self, placed: Placed, period_ns: float) -> None:
        self._placed = placed
        self._early = period_ns - MARGIN
        self._limit = period_ns
        self._arcs: Arcs = read_arcs(placed)
        self._analyse()
        self._groups = read_groups(placed)
        self._group_of = {cell: group for group, cells in enumerate(self._groups) for cell in cells}
        self._tiles = Tiles(placed)
        count = len(placed.cells)
        self._into: list[list[int]] = [[] for _ in range(count)]
        self._out_of: list[list[int]] = [[] for _ in range(count)]
        self._start, self._end = self._arcs.start.tolist(), self._arcs.end.tolist()
        for arc, (start, end) in enumerate(zip(self._start, self._end, strict=True)):
            self._out_of[start].append(arc)
            self._into[end].append(arc)
        self._nets: list[tuple[int, ...]] = []
        self._nets_of: list[list[int]] = [[] for _ in range(count)]
        for net in placed.nets:
            pins = tuple(dict.fromkeys((net.driver.cell, *(user.cell for user in net.users))))
            if len(pins) <= FANOUT:
                for cell in pins:
                    self._nets_of[cell].append(len(self._nets))
                self._nets.append(pins)

    def late(self) -> tuple[int, float]:
        """How many ends of paths come after the period, and when the latest does, in ns."""
        ends = self._ends()
        return int((ends > self._limit).sum()), float(ends.max(initial=0.0))

    def price(self) -> float:
        """What all paths cost together."""
        return float(price_of(np.maximum(self._ends() - self._early, 0.0)).sum())

    def sites(self) -> Sites:
        """Where all cells lie."""
        return list(self._placed.x), list(self._placed.y), list(self._placed.lane)

    def restore(self, sites: Sites) -> None:
        """Let all cells lie where they lay once. Nothing moves afterwards."""
        self._placed.x[:], self._placed.y[:], self._placed.lane[:] = sites
        self._analyse()

    def sweep(self) -> int:
        """Try every group on a late path once, the latest first, then neighbours together. How many have moved."""
        latest: dict[int, float] = {}
        path = self._analysis.path
        for arc in np.flatnonzero(path > self._limit - LOOKED_AT).tolist():
            for cell in (self._start[arc], self._end[arc]):
                group = self._group_of.get(cell)
                if group is not None and len(self._groups[group]) <= LARGEST:
                    latest[group] = max(latest.get(group, 0.0), float(path[arc]))
        moved = self._improve_each((group,) for group in sorted(latest, key=lambda group: (-latest[group], group)))
        return moved + self._improve_each(self._bundles())

    def around(self, cells: Sequence[int]) -> Around:
        """What a place decides for some cells, as all others lie now."""
        return Around(cells, self._placed, self._arcs, self._analysis, self._early, self._wires(cells)).connected(
            self._into, self._out_of
        )

    def _analyse(self) -> None:
        self._analysis = analysed(self._arcs, self._placed)

    def _ends(self) -> Floats:
        """By end of a path, when the signal comes there."""
        return self._analysis.path[self._arcs.leads < 0]

    def _improve_each(self, bundles: Iterable[tuple[int, ...]]) -> int:
        """Move each of some bundles of groups if that helps; analyse now and then and at the end. How many moved."""
        moved = 0
        for turn, bundle in enumerate(bundles, 1):
            moved += self._improve([self._groups[group] for group in bundle])
            if turn % BETWEEN == 0:
                self._analyse()
        self._analyse()
        return moved

    def _bundles(self) -> list[tuple[int, ...]]:
        """Groups that follow one another on late paths and lie close together, where none gains by going alone."""
        arcs, path, arrival = self._arcs, self._analysis.path, self._analysis.arrival
        onward = np.flatnonzero(arcs.leads >= 0)[::-1]
        at = arrival[arcs.net] + self._analysis.wire + arcs.delay
        latest = onward[at[onward] >= arrival[arcs.leads[onward]]]
        before = np.full(len(arrival), -1, dtype=np.int64)
        before[arcs.leads[latest]] = latest
        ends = np.flatnonzero((arcs.leads < 0) & (path > self._limit - LOOKED_AT))
        order = ends[np.argsort(-path[ends], kind="stable")].tolist()
        return list(dict.fromkeys(run for end in order for run in self._runs(end, before)))

    def _runs(self, end: int, before: Places) -> Iterable[tuple[int, ...]]:
        """Neighbours on the latest path to an end, from there on. `before`: by net, the arc that makes it as late."""
        run: list[int] = []
        arc, last = end, -1
        while arc >= 0:
            cell = self._end[arc]
            group = self._group_of.get(cell, -1)
            is_small = group >= 0 and len(self._groups[group]) <= 2
            if not is_small or (last >= 0 and self._apart(cell, last) > CLOSE):
                if len(run) > 1:
                    yield tuple(run)
                run = []
            if is_small and group not in run:
                run.append(group)
            last = cell
            arc = int(before[self._arcs.net[arc]])
        if len(run) > 1:
            yield tuple(run)

    def _apart(self, cell: int, other: int) -> int:
        x, y = self._placed.x, self._placed.y
        return abs(x[cell] - x[other]) + abs(y[cell] - y[other])

    def _improve(self, groups: Sequence[Sequence[int]]) -> bool:
        """Move groups together to the best place that was found, if there is one. Whether they moved."""
        cells = [cell for group in groups for cell in group]
        around = self.around(cells)
        best, step = around.cost(0, 0) * (1.0 - GAIN), None
        self._tiles.take(cells)
        rated = sorted((around.cost(*place), *place) for place in around.places())
        tried: set[tuple[int, int]] = set()
        for cost, columns, rows in rated[:PLACES]:
            if cost >= best:
                break
            for right, down in _RINGS:
                place = columns + right, rows + down
                if place in tried:
                    continue
                tried.add(place)
                if (here := around.cost(*place)) < best and (lanes := self._rooms(groups, *place)) is not None:
                    best, step = here, (*place, lanes)
        if step is not None:
            for group, lanes in zip(groups, step[2], strict=True):
                self._shift(group, step[0], step[1], lanes)
        self._tiles.put(cells)
        return step is not None

    def _shift(self, cells: Sequence[int], columns: int, rows: int, lanes: int) -> None:
        for cell in cells:
            self._placed.x[cell] += columns
            self._placed.y[cell] += rows
            self._placed.lane[cell] += lanes

    def _rooms(self, groups: Sequence[Sequence[int]], columns: int, rows: int) -> list[int] | None:
        """Lanes that each group goes further to lie so many columns and rows further; None: there is no room."""
        chosen: list[int] = []
        for group in groups:
            if (lanes := self._room(group, columns, rows)) is None:
                break
            self._shift(group, columns, rows, lanes)
            self._tiles.put(group)
            chosen.append(lanes)
        for group, lanes in zip(groups, chosen, strict=False):
            self._tiles.take(group)
            self._shift(group, -columns, -rows, -lanes)
        return chosen if len(chosen) == len(groups) else None

    def _room(self, cells: Sequence[int], columns: int, rows: int) -> int | None:
        """Lanes that a group goes further to lie so many columns and rows further; None: there is no room."""
        lane = self._placed.lane[cells[0]]
        is_one_lane = len(cells) <= 2 and all(self._placed.lane[cell] == lane for cell in cells)
        for lanes in range(-lane, LANES - lane) if is_one_lane else (0,):
            if self._tiles.has_room(cells, columns, rows, lanes):
                return lanes
        return None

    def _wires(self, cells: Sequence[int]) -> list[tuple[int, int, int, int, list[int]]]:
        """For each net of a group: the box of its other cells, and the group's own."""
        x, y, own = self._placed.x, self._placed.y, set(cells)
        boxes: list[tuple[int, int, int, int, list[int]]] = []
        for net in dict.fromkeys(net for cell in cells for net in self._nets_of[cell]):
            pins = self._nets[net]
            others = [cell for cell in pins if cell not in own]
            if others:
                columns, rows = [x[cell] for cell in others], [y[cell] for cell in others]
                inside = [cell for cell in pins if cell in own]
                boxes.append((min(columns), max(columns), min(rows), max(rows), inside))
        return boxes
