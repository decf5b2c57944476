"""Lays out a network as a layered graph: from top to bottom, few crossings, straight lines.

In: widths of nodes, and edges to nodes behind them. Out: a place for each, and the corners of each line. Nodes are put
into ranks by their longest path, lines of several ranks get a bend in each; ranks are put in order by the mean of their
neighbours, and moved together as far as order and gaps allow (isotonic regression).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

HEIGHT: Final = 46
_GAP_X, _GAP_Y, _BEND, _MARGIN = 18.0, 26.0, 10.0, 10.0
_SWEEPS: Final = 12
_PULLS: Final = 10
# Weight of a bend relative to a node: nodes stay in line, and passing wires give way.
_BEND_WEIGHT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Wire:
    """A line from one node to another, through its corners."""

    begin: int
    end: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """`places`: left and top of each node, by number."""

    width: float
    height: float
    places: tuple[tuple[float, float], ...]
    wires: tuple[Wire, ...]


def lay_out(widths: Sequence[float], edges: Iterable[tuple[int, int]]) -> Layout:
    """Lay out nodes whose edges lead from lower to higher numbers; deterministic."""
    distinct = list(dict.fromkeys(edges))
    ranks = _ranks(len(widths), distinct)
    graph = _Graph(widths, distinct, ranks)
    graph.put_in_order()
    left = graph.pulled_together()
    top = [_MARGIN + rank * (HEIGHT + _GAP_Y) for rank in graph.rank]
    count = len(widths)
    width = max((left[k] + graph.width[k] for k in range(len(left))), default=0.0) + _MARGIN
    height = max(top, default=0.0) + HEIGHT + _MARGIN
    places = tuple((round(left[k], 1), top[k]) for k in range(count))
    wires = tuple(_wire(edge, chain, graph, left, top) for edge, chain in zip(distinct, graph.chains, strict=True))
    return Layout(round(width, 1), height, places, wires)


def _ranks(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """Ranks of nodes by longest path; nodes without inputs are right above their first reader."""
    ranks = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    has_inputs = [False] * count
    for begin, end in sorted(edges, key=lambda edge: edge[1]):
        ranks[end] = max(ranks[end], ranks[begin] + 1)
        readers[begin].append(end)
        has_inputs[end] = True
    for node in range(count):
        if not has_inputs[node] and readers[node]:
            ranks[node] = min(ranks[end] for end in readers[node]) - 1
    return ranks


class _Graph:
    """Nodes and bends in ranks. `chains`: for each edge its nodes and bends from top to bottom."""

    def __init__(self, widths: Sequence[float], edges: Sequence[tuple[int, int]], ranks: Sequence[int]) -> None:
        self.width, self.rank = list(widths), list(ranks)
        self.chains: list[list[int]] = []
        self._count = len(widths)
        for begin, end in edges:
            chain = [begin]
            for rank in range(ranks[begin] + 1, ranks[end]):
                chain.append(len(self.width))
                self.width.append(_BEND)
                self.rank.append(rank)
            self.chains.append([*chain, end])
        self.above: list[list[int]] = [[] for _ in self.width]
        self.below: list[list[int]] = [[] for _ in self.width]
        for chain in self.chains:
            for upper, lower in pairwise(chain):
                self.above[lower].append(upper)
                self.below[upper].append(lower)
        self.rows: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for node, rank in enumerate(self.rank):
            self.rows[rank].append(node)

    def put_in_order(self) -> None:
        """Order each rank by the mean places of its neighbours above and below in turn; the best order stays."""
        best, least = [list(row) for row in self.rows], self._crossings()
        for sweep in range(_SWEEPS):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                place = self._places()
                means = {node: sum(place[k] for k in near[node]) / len(near[node]) for node in row if near[node]}
                row.sort(key=lambda node, m=means, p=place: m.get(node, p[node]))
            found = self._crossings()
            if found < least:
                best, least = [list(row) for row in self.rows], found
        self.rows = best

    def _places(self) -> list[float]:
        """The centre of each node in its rank; ranks are as wide as the widest."""
        place = [0.0] * len(self.rank)
        for row in self.rows:
            for number, node in enumerate(row):
                place[node] = (number + 0.5) / len(row)
        return place

    def _crossings(self) -> int:
        """Pairs of lines between neighbouring ranks that cross."""
        place = {node: number for row in self.rows for number, node in enumerate(row)}
        total = 0
        for row in self.rows:
            ends = [end for node in row for end in sorted(place[k] for k in self.below[node])]
            total += _inversions(ends)
        return total

    def pulled_together(self) -> list[float]:
        """The left edge of each node: near its neighbours, in order, nowhere nearer to the next one than the gap."""
        middle = [0.0] * len(self.rank)
        for row in self.rows:
            self._settle(row, [0.0] * len(row), middle)
        for turn in range(_PULLS):
            near = self.above if turn % 2 == 0 else self.below
            for row in self.rows if turn % 2 == 0 else reversed(self.rows):
                self._settle(row, [self._wanted(node, near[node], middle) for node in row], middle)
        left = [x - width / 2 for x, width in zip(middle, self.width, strict=True)]
        least = min(left, default=0.0)
        return [x - least + _MARGIN for x in left]

    def _weight(self, node: int) -> float:
        return 1.0 if node < self._count else _BEND_WEIGHT

    def _wanted(self, node: int, near: Sequence[int], middle: Sequence[float]) -> float:
        """The mean position of a node's neighbours on one side; without any, its own position."""
        weights = [self._weight(other) for other in near]
        total = sum(weight * middle[other] for weight, other in zip(weights, near, strict=True))
        return total / sum(weights) if near else middle[node]

    def _settle(self, row: Sequence[int], wanted: Sequence[float], middle: list[float]) -> None:
        """Put a rank's nodes as near to `wanted` as their order and widths allow."""
        offsets, offset = [0.0], 0.0
        for one, other in pairwise(row):
            offset += (self.width[one] + self.width[other]) / 2 + _GAP_X
            offsets.append(offset)
        weights = [self._weight(node) for node in row]
        fitted = _isotonic([want - off for want, off in zip(wanted, offsets, strict=False)], weights)
        for node, value, off in zip(row, fitted, offsets, strict=False):
            middle[node] = value + off


def _isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Isotonic regression: the nearest sequence that never falls."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pool = (value, weight, 1)
        while pools and pools[-1][0] > pool[0]:
            mean, heavy, count = pools.pop()
            both = heavy + pool[1]
            pool = ((mean * heavy + pool[0] * pool[1]) / both, both, count + pool[2])
        pools.append(pool)
    return [mean for mean, _, count in pools for _ in range(count)]


def _inversions(values: Sequence[int]) -> int:
    """Number of inversions, counted by a Fenwick tree."""
    size = max(values, default=-1) + 1
    tree, total = [0] * (size + 1), 0
    for seen, value in enumerate(values):
        upto, k = 0, value + 1
        while k > 0:
            upto += tree[k]
            k -= k & -k
        total += seen - upto
        k = value + 1
        while k <= size:
            tree[k] += 1
            k += k & -k
    return total


def _wire(
    edge: tuple[int, int], chain: Sequence[int], graph: _Graph, left: Sequence[float], top: Sequence[float]
) -> Wire:
    """The wire from the bottom of the first node through the bends to the top of the last."""
    middle = [left[node] + graph.width[node] / 2 for node in chain]
    first, last = (middle[0], top[chain[0]] + HEIGHT), (middle[-1], top[chain[-1]])
    bends: list[tuple[float, float]] = []
    for x, node in zip(middle[1:-1], chain[1:-1], strict=True):
        bends += [(x, top[node]), (x, top[node] + HEIGHT)]
    return Wire(*edge, tuple((round(x, 1), round(y, 1)) for x, y in (first, *bends, last)))
