"""Partitions a dataflow graph into few convex regions, whose graph has no cycle.

In: units with a kind and the units they read. Out: the region number of each unit, numbered in execution order.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence
from heapq import heapify, heappop, heappush


def find_regions(kinds: Sequence[Hashable], reads: Sequence[Sequence[int]]) -> list[int]:
    """Merge units of one kind into maximal convex regions.

    Unit i has kind `kinds[i]` and reads units `reads[i]`, all smaller than i. A region is convex when no path leaves
    it and comes back; it is maximal when no two regions of one kind can merge without breaking that. Neighbours merge
    before regions that do not touch each other.
    """
    regions = _Regions()
    for unit, sources in enumerate(reads):
        regions.add(unit, sources)
        for source in sources:
            if kinds[source] == kinds[unit]:
                regions.try_merge(source, unit)
    heads = regions.heads(kinds)
    for unit, kind in enumerate(kinds):
        regions.gather(unit, heads[kind])
    return regions.numbered()


class _Regions:
    """Regions are known by one of their units; between them goes a graph without cycles."""

    def __init__(self) -> None:
        self._region: list[int] = []
        # In ascending order.
        self._members: dict[int, list[int]] = {}
        self._next: dict[int, set[int]] = {}
        self._previous: dict[int, set[int]] = {}
        # Of regions, since the last two have merged: with which they cannot, and how many heads were tried.
        self._blocked: dict[int, set[int]] = {}
        self._tried: dict[int, int] = {}

    def add(self, unit: int, sources: Sequence[int]) -> None:
        """Add the next unit as a region without readers."""
        self._region.append(unit)
        self._members[unit] = [unit]
        self._next[unit] = set()
        self._previous[unit] = {self._region[source] for source in sources}
        for region in self._previous[unit]:
            self._next[region].add(unit)

    def try_merge(self, left_unit: int, right_unit: int) -> None:
        """Make one region of those of two units, if no path leaves it then and comes back."""
        left, right = self._region[left_unit], self._region[right_unit]
        if left != right and not self._has_detour(left, right) and not self._has_detour(right, left):
            self._merge(left, right)

    def heads(self, kinds: Sequence[Hashable]) -> dict[Hashable, list[int]]:
        """The first unit of every region, in ascending order, by kind."""
        found: dict[Hashable, list[int]] = {kind: [] for kind in kinds}
        for head in sorted(members[0] for members in self._members.values()):
            found[kinds[head]].append(head)
        return found

    def gather(self, unit: int, heads: list[int]) -> None:
        """Merge the region of `unit` with those of the units before it, one after the other; `heads`: of its kind."""
        begin = 0
        while (other := self._first_free(unit, begin, heads)) is not None:
            left, right = self._region[other], self._region[unit]
            del heads[bisect_left(heads, max(self._members[left][0], self._members[right][0]))]
            self._merge(left, right)
            begin = other + 1

    def _first_free(self, unit: int, begin: int, heads: Sequence[int]) -> int | None:
        """The first unit from `begin` on, before `unit`, with whose region that of `unit` can merge."""
        mine = self._region[unit]
        end = bisect_left(heads, unit)
        free: list[int] = []
        for index in range(0 if begin else self._tried.get(mine, 0), end):
            region = self._region[heads[index]]
            if region == mine or region in self._blocked_by(mine):
                continue
            if not begin:
                return heads[index]
            members = self._members[region]
            at = bisect_left(members, begin)
            if at < len(members) and members[at] < unit:
                free.append(members[at])
        if not begin:
            self._tried[mine] = end
        return min(free, default=None)

    def _blocked_by(self, region: int) -> set[int]:
        """Regions between which and `region` a path goes through a third one."""
        if region not in self._blocked:
            self._blocked[region] = _twice(region, self._previous) | _twice(region, self._next)
        return self._blocked[region]

    def _merge(self, left: int, right: int) -> None:
        if len(self._members[left]) < len(self._members[right]):
            left, right = right, left
        added = self._members.pop(right)
        for unit in added:
            self._region[unit] = left
        if len(added) == 1:
            insort(self._members[left], added[0])
        else:
            self._members[left] = sorted(self._members[left] + added)
        self._redirect(left, right, self._next, self._previous)
        self._redirect(left, right, self._previous, self._next)
        self._blocked.clear()
        self._tried.clear()

    @staticmethod
    def _redirect(left: int, right: int, ways: dict[int, set[int]], back: dict[int, set[int]]) -> None:
        """What `right` has in `ways`, `left` has."""
        for other in ways.pop(right):
            back[other].discard(right)
            if other != left:
                back[other].add(left)
                ways[left].add(other)

    def numbered(self) -> list[int]:
        """Regions in topological order; among those that are ready, the one with the smallest unit goes first."""
        blocked = {region: len(sources) for region, sources in self._previous.items()}
        ready = [(self._members[region][0], region) for region, count in blocked.items() if not count]
        heapify(ready)
        number: dict[int, int] = {}
        while ready:
            _, region = heappop(ready)
            number[region] = len(number)
            for target in self._next[region]:
                blocked[target] -= 1
                if not blocked[target]:
                    heappush(ready, (self._members[target][0], target))
        return [number[region] for region in self._region]

    def _has_detour(self, start: int, end: int) -> bool:
        """Whether a path from `start` to `end` passes through a third region."""
        if len(self._next[start]) <= len(self._previous[end]):
            return _leads_around(start, end, self._next)
        return _leads_around(end, start, self._previous)


def _leads_around(start: int, end: int, ways: Mapping[int, set[int]]) -> bool:
    """Whether two steps or more from `start` lead to `end`."""
    stack = list(ways[start] - {end})
    seen = set(stack)
    while stack:
        found = ways[stack.pop()]
        if end in found:
            return True
        stack += found - seen
        seen |= found
    return False


def _twice(start: int, ways: Mapping[int, set[int]]) -> set[int]:
    """What two steps or more from `start` lead to."""
    near = set(ways[start])
    stack, far = list(near), set[int]()
    while stack:
        found = ways[stack.pop()]
        stack += found - near
        near |= found
        far |= found
    return far
