"""Convex regions of a dataflow graph: as few as possible, so that the graph of regions has no cycle.

In: units with a kind and the units they read. Out: the region number of each unit, numbered in execution order.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def find_regions(kinds: Sequence[Hashable], reads: Sequence[Sequence[int]]) -> list[int]:
    """Merge units of one kind into maximal convex regions.

    Unit i has kind `kinds[i]` and reads units `reads[i]`, all smaller than i. A region is convex when no path leaves
    it and comes back; it is maximal when no two regions of one kind can merge without breaking that. Neighbours merge
    before regions that do not touch each other.
    """
    regions = _Regions(reads)
    for unit, sources in enumerate(reads):
        for source in sources:
            if kinds[source] == kinds[unit]:
                regions.try_merge(source, unit)
    for unit in range(len(kinds)):
        for other in range(unit):
            if kinds[other] == kinds[unit]:
                regions.try_merge(other, unit)
    return regions.numbered()


class _Regions:
    def __init__(self, reads: Sequence[Sequence[int]]) -> None:
        count = len(reads)
        self._region = list(range(count))
        self._members: dict[int, list[int]] = {unit: [unit] for unit in range(count)}
        self._next: dict[int, set[int]] = {unit: set() for unit in range(count)}
        for unit, sources in enumerate(reads):
            for source in sources:
                self._next[source].add(unit)

    def try_merge(self, left_unit: int, right_unit: int) -> None:
        left, right = self._region[left_unit], self._region[right_unit]
        if left == right or self._has_detour(left, right) or self._has_detour(right, left):
            return
        self._members[left] += self._members[right]
        for unit in self._members.pop(right):
            self._region[unit] = left
        self._next[left] |= self._next.pop(right)
        for targets in self._next.values():
            if right in targets:
                targets.discard(right)
                targets.add(left)
        self._next[left].discard(left)

    def numbered(self) -> list[int]:
        """Regions in topological order; among those that are ready, the one with the smallest unit goes first."""
        blocked = {region: 0 for region in self._next}
        for targets in self._next.values():
            for target in targets:
                blocked[target] += 1
        number: dict[int, int] = {}
        while blocked:
            ready = min((r for r, count in blocked.items() if not count), key=lambda r: min(self._members[r]))
            number[ready] = len(number)
            del blocked[ready]
            for target in self._next[ready]:
                blocked[target] -= 1
        return [number[region] for region in self._region]

    def _has_detour(self, start: int, end: int) -> bool:
        """Whether a path from `start` to `end` passes through a third region."""
        stack = [region for region in self._next[start] if region != end]
        seen = set(stack)
        while stack:
            for target in self._next[stack.pop()]:
                if target == end:
                    return True
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return False
