"""Prices the places to which a group of cells may go: its paths and its wires, while everything else stays.

In: a group, a placement with its analysis, how many columns and rows further. Out: a price; places that may be cheap.
Uses only addition and multiplication, so results are identical on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from relay_hw.accel.fpga.place.placed import Placed
from relay_hw.accel.fpga.place.timing import WIRE_DELAYS, Analysis, Arcs

# Nanoseconds before the period at which a path begins to cost something.
MARGIN: Final = 5.0
# What a tile of wire costs, where a path that takes the whole period costs 1.
TILE_PRICE: Final = 0.005
# Users on the latest paths of a group by which places are chosen.
NEIGHBOURS: Final = 6

_WIRE: Final[list[list[float]]] = WIRE_DELAYS.tolist()
_AROUND: Final = ((0, 0), (3, 0), (-3, 0), (0, 3), (0, -3))


class Around:
    """What a group's place decides: its paths and its wires, while everything else stays."""

    def __init__(
        self,
        cells: Sequence[int],
        placed: Placed,
        arcs: Arcs,
        analysis: Analysis,
        early: float,
        wires: list[tuple[int, int, int, int, list[int]]],
    ) -> None:
        self._cells, self._placed, self._arcs, self._analysis = cells, placed, arcs, analysis
        self._early, self._wires = early, wires
        # of a way in: where it comes from, its cell, when it starts there, what it leads to, and how late behind
        self._ins: list[tuple[int, int, int, float, int, float]] = []
        # of a way out: where it goes to, its cell, the net, what is behind the wire
        self._outs: list[tuple[int, int, int, int, float]] = []
        # inside, the nearest to the ways in first: net, what it leads to, how long that takes
        self._inner: list[tuple[int, int, float]] = []
        self._begins: dict[int, float] = {}

    def connected(self, into: Sequence[Sequence[int]], out_of: Sequence[Sequence[int]]) -> Around:
        """This, with the group's ways in and out found among the arcs into and out of each cell."""
        own, arcs, analysis = set(self._cells), self._arcs, self._analysis
        x, y = self._placed.x, self._placed.y
        inner: list[int] = []
        for cell in self._cells:
            for arc in into[cell]:
                start, leads = int(arcs.start[arc]), int(arcs.leads[arc])
                if start in own:
                    inner.append(arc)
                elif not arcs.one_way[arc]:
                    at, delay = float(analysis.arrival[arcs.net[arc]]), float(arcs.delay[arc])
                    self._ins.append((x[start], y[start], cell, at, leads, delay))
            for arc in out_of[cell]:
                end, net = int(arcs.end[arc]), int(arcs.net[arc])
                self._begins.setdefault(net, float(arcs.begins[net]))
                if end not in own and not arcs.one_way[arc]:
                    self._outs.append((x[end], y[end], cell, net, float(analysis.beyond[arc])))
        inner.sort(key=lambda arc: float(analysis.arrival[arcs.net[arc]]))
        self._inner = [
            (int(arcs.net[arc]), int(arcs.leads[arc]), float(analysis.wire[arc] + arcs.delay[arc])) for arc in inner
        ]
        return self

    def cost(self, columns: int, rows: int) -> float:
        """What the group's paths and wires cost if it lies so many columns and rows further."""
        x, y, early = self._placed.x, self._placed.y, self._early
        arrival = self._begins.copy()
        ins: list[tuple[float, int]] = []
        for from_x, from_y, cell, at, leads, delay in self._ins:
            at += _WIRE[abs(x[cell] + columns - from_x)][abs(y[cell] + rows - from_y)] + delay
            ins.append((at, leads))
            if leads >= 0 and at > arrival.get(leads, 0.0):
                arrival[leads] = at
        for net, leads, delay in self._inner:
            if leads >= 0 and (at := arrival[net] + delay) > arrival.get(leads, 0.0):
                arrival[leads] = at
        total = 0.0
        behinds, beyond = self._behind(columns, rows)
        for (_, _, _, net, _), behind in zip(self._outs, behinds, strict=True):
            if (excess := arrival[net] + behind - early) > 0.0:
                total += price_of(excess)
        for at, leads in ins:
            if (excess := at + (beyond.get(leads, 0.0) if leads >= 0 else 0.0) - early) > 0.0:
                total += price_of(excess)
        return total + TILE_PRICE * self._length(columns, rows)

    def places(self) -> Iterable[tuple[int, int]]:
        """Where the group might go: to what is at the other ends of its latest paths, between these, half the way."""
        x, y = self._placed.x, self._placed.y
        arrival = self._analysis.arrival
        _, beyond = self._behind(0, 0)
        ends: list[tuple[float, int, int]] = []
        for from_x, from_y, cell, at, leads, delay in self._ins:
            wire = _WIRE[abs(x[cell] - from_x)][abs(y[cell] - from_y)]
            ends.append((-(at + wire + delay + beyond.get(leads, 0.0)), from_x - x[cell], from_y - y[cell]))
        for to_x, to_y, cell, net, behind in self._outs:
            wire = _WIRE[abs(x[cell] - to_x)][abs(y[cell] - to_y)]
            ends.append((-(float(arrival[net]) + wire + behind), to_x - x[cell], to_y - y[cell]))
        ends.sort()
        near = [(right, down) for _, right, down in ends[:NEIGHBOURS]]
        points = list(near)
        for k, (right, down) in enumerate(near):
            for other_right, other_down in near[k + 1 :]:
                points.append(((right + other_right) // 2, (down + other_down) // 2))
                points.append((right, other_down))
        points += [(right // 2, down // 2) for right, down in points]
        points.append((0, 0))
        if near:
            some = ends[: NEIGHBOURS + 2]
            right, down = (sorted(end[k] for end in some)[len(some) // 2] for k in (1, 2))
            points.append((int(right), int(down)))
        return dict.fromkeys((right + a, down + b) for right, down in points for a, b in _AROUND)

    def _behind(self, columns: int, rows: int) -> tuple[list[float], dict[int, float]]:
        """What is behind each way out's driver and behind each net that the group drives, so many tiles further."""
        x, y = self._placed.x, self._placed.y
        behinds: list[float] = []
        beyond: dict[int, float] = {}
        for to_x, to_y, cell, net, behind in self._outs:
            behind += _WIRE[abs(x[cell] + columns - to_x)][abs(y[cell] + rows - to_y)]
            behinds.append(behind)
            if behind > beyond.get(net, 0.0):
                beyond[net] = behind
        for net, leads, delay in reversed(self._inner):
            behind = delay + (beyond.get(leads, 0.0) if leads >= 0 else 0.0)
            if behind > beyond.get(net, 0.0):
                beyond[net] = behind
        return behinds, beyond

    def _length(self, columns: int, rows: int) -> int:
        """Tiles that the group's wires span."""
        x, y = self._placed.x, self._placed.y
        total = 0
        for left, right, top, bottom, cells in self._wires:
            for cell in cells:
                at_x, at_y = x[cell] + columns, y[cell] + rows
                left, right = min(left, at_x), max(right, at_x)
                top, bottom = min(top, at_y), max(bottom, at_y)
            total += right - left + bottom - top
        return total


def price_of(excess: Any) -> Any:
    """What a path costs that reaches so many ns into the margin, 0 or more: a number, or an array of them."""
    part = excess * (1.0 / MARGIN)
    part *= part
    part *= part
    part *= part
    return part * part
