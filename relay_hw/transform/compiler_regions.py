"""Finds the regions of compilers in an annotated function, between compiler_begin and compiler_end.

In: an annotated function. Out: its regions; merged ones never depend on themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relay_hw.analysis.scope import Scope, find_scopes
from relay_hw.ir.expr import Call, Expr, Function, Let, Match, Var
from relay_hw.ir.visit import children, pattern_vars, post_order
from relay_hw.transform.annotate_target import BEGIN, END
from relay_hw.transform.graph import is_op


@dataclass(slots=True, eq=False)
class Region:
    """`ends` are its results, `begins` what it reads, both as annotations, in post-order; `inside` all between."""

    target: str
    ends: list[Call] = field(default_factory=list[Call])
    begins: list[Call] = field(default_factory=list[Call])
    inside: set[Expr] = field(default_factory=set[Expr])


def find_regions_of_compilers(function: Function) -> list[Region]:
    """The regions of `function`; two ends are of one region where they share a node."""
    owner: dict[Expr, Region] = {}
    regions: list[Region] = []
    for end in post_order(function):
        if not isinstance(end, Call) or not is_op(end, END):
            continue
        inside, begins = _below(end)
        region = Region(end.attrs.compiler)
        regions.append(region)
        for other in dict.fromkeys(owner[node] for node in inside if node in owner):
            _absorb(region, other, owner)
            regions.remove(other)
        region.ends.append(end)
        region.begins += [begin for begin in begins if begin not in region.begins]
        region.inside |= inside
        owner.update(dict.fromkeys(inside, region))
    return regions


def _absorb(region: Region, other: Region, owner: dict[Expr, Region]) -> None:
    region.ends += other.ends
    region.begins += [begin for begin in other.begins if begin not in region.begins]
    region.inside |= other.inside
    owner.update(dict.fromkeys(other.inside, region))


def _below(end: Call) -> tuple[set[Expr], list[Call]]:
    """The nodes between `end` and its begins. Leaves, which regions may share, are left out."""
    inside: set[Expr] = set()
    begins: dict[Call, None] = {}
    stack = [end.args[0]]
    while stack:
        node = stack.pop()
        if isinstance(node, Call) and is_op(node, BEGIN):
            begins[node] = None
        elif node not in inside and children(node):
            inside.add(node)
            parts = node.args if isinstance(node, Call) else children(node)
            stack.extend(reversed(parts))
    return inside, list(begins)


class RegionGraph:
    """The dependency graph of regions, updated while they merge; sets of regions are bit masks."""

    def __init__(self, function: Function, regions: Sequence[Region]) -> None:
        self._regions = regions
        self._group = list(range(len(regions)))
        self._bits = [1 << index for index in range(len(regions))]
        self._of_end: dict[Expr, int] = {end: index for index, region in enumerate(regions) for end in region.ends}
        self._scopes = find_scopes(function)
        self._reads = self._made_of(function)
        # The outside inputs of each group, and its members.
        self._sources = [[begin.args[0] for begin in region.begins] for region in regions]
        self._needs = [self._union(sources) for sources in self._sources]

    def merge_neighbours(self) -> None:
        """Merge regions that read each other's results, where nothing else stands between them."""
        for index, region in enumerate(self._regions):
            for begin in region.begins:
                other = self._of_end.get(begin.args[0])
                if other is not None and self._may_merge(other, index):
                    self._merge(self._find(other), self._find(index))

    def joins(self, begin: Call, reader: Region) -> bool:
        """Whether what `begin` reads is of the same region as `reader` by now."""
        other = self._of_end.get(begin.args[0])
        return other is not None and self._find(other) == self._find(self._of_end[reader.ends[0]])

    def _find(self, index: int) -> int:
        while self._group[index] != index:
            self._group[index] = self._group[self._group[index]]
            index = self._group[index]
        return index

    def _made_of(self, function: Function) -> dict[Expr, int]:
        """For each node outside of regions, and each end, the regions that it is made of."""
        self._reads = {}
        inside = {node for region in self._regions for node in region.inside}
        bound = _bound_to(function)
        for node in post_order(function):
            if node in self._of_end:
                region = self._of_end[node]
                mask = self._union([begin.args[0] for begin in self._regions[region].begins]) | self._bits[region]
            elif node in inside:
                continue
            else:
                mask = self._reads.get(node, 0) | self._union(children(node))
            self._reads[node] = mask
            # The uses of a variable come after its value.
            self._reads.update(dict.fromkeys(bound.get(node, ()), mask))
        return self._reads

    def _union(self, nodes: Sequence[Expr]) -> int:
        found = 0
        for node in nodes:
            found |= self._reads.get(node, 0)
        return found

    def _may_merge(self, left: int, right: int) -> bool:
        a, b = self._find(left), self._find(right)
        if a == b or self._regions[a].target != self._regions[b].target or self._scope(left) is not self._scope(right):
            return False
        # Nothing that comes before a region depends on it while it is alone.
        is_alone = self._bits[b] == 1 << right
        return not self._has_detour(a, b) and (is_alone or not self._has_detour(b, a))

    def _scope(self, index: int) -> Scope:
        return self._scopes.of[self._regions[index].ends[0]]

    def _has_detour(self, start: int, end: int) -> bool:
        """Whether `end` depends on `start` through something between."""
        return any(
            self._closure(self._reads[source]) & self._bits[start]
            for source in self._sources[end]
            if self._direct(source) != start
        )

    def _direct(self, source: Expr) -> int | None:
        index = self._of_end.get(source)
        return None if index is None else self._find(index)

    def _closure(self, mask: int) -> int:
        """`mask` with everything that its regions are made of by now."""
        done = 0
        while mask & ~done:
            rest = mask & ~done
            group = self._find((rest & -rest).bit_length() - 1)
            done |= self._bits[group]
            mask |= self._needs[group]
        return done

    def _merge(self, left: int, right: int) -> None:
        self._group[left] = right
        self._bits[right] |= self._bits[left]
        self._needs[right] = (self._needs[left] | self._needs[right]) & ~self._bits[right]
        outside = self._sources[left] + self._sources[right]
        # A node that depends on no region cannot lead back to one.
        self._sources[right] = [s for s in dict.fromkeys(outside) if self._reads[s] and self._direct(s) != right]


def _bound_to(function: Function) -> dict[Expr, list[Var]]:
    """For each node the variables that take its value."""
    found: dict[Expr, list[Var]] = {}
    for node in post_order(function):
        if isinstance(node, Let):
            found.setdefault(node.value, []).append(node.var)
        elif isinstance(node, Match):
            names = (var for clause in node.clauses for var in pattern_vars(clause.lhs))
            found.setdefault(node.data, []).extend(names)
    return found
