"""Allocates buffers in one scratchpad while a program is written: the space that was free longest is taken first.

In: sizes and step numbers. Out: first entries. Taking the oldest room gives double buffering (two virtual threads, or
more where more fit) without a fixed split: the instruction that still uses the old content is long over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from relay_hw.tensorize.commands import Key

_NEVER = -1


@dataclass(frozen=True, slots=True)
class Place:
    """First entry of a buffer, and the step after which its last old content was not needed any more (-1: none)."""

    begin: int
    age: int


@dataclass(slots=True)
class _Room:
    """A buffer's place; `freed` is the step after which nobody needs it, None while it is live."""

    key: Key
    begin: int
    end: int
    freed: int | None = None


class Slots(Enum):
    """Where buffers may start beside multiples of the memory's step, so that equal ones pack without gaps."""

    ANY = "any"
    SIZE = "multiples of their size"
    GAP = "where the smallest gap begins that is large enough"
    POWER = "multiples of their size rounded up to a power of two"


class Scratchpad:
    """Allocator of one memory of `depth` entries; buffers start on multiples of `step` and as `slots` says."""

    def __init__(self, depth: int, step: int, slots: Slots = Slots.ANY) -> None:
        self._depth = depth
        self._step = step
        self._slots = slots
        # Every entry belongs to one room; rooms are in order of address.
        self._rooms: list[_Room] = [_Room((), 0, depth, _NEVER)]
        self._live: dict[Key, list[_Room]] = {}
        # The smallest size that found no place since the last `free`.
        self._refused = depth + 1

    def allocate(self, key: Key, size: int) -> Place | None:
        """Where a new live buffer lies, or None when live ones leave no room."""
        size = -(-size // self._step) * self._step
        if size >= self._refused:
            return None
        best = self._smallest_gap(size) if self._slots is Slots.GAP else min(self._places(size), default=None)
        if best is None:
            self._refused = min(self._refused, size)
            return None
        age, place, first = best
        self._take(key, place, place + size, first)
        return Place(place, age)

    def settle(self, key: Key, size: int) -> int | None:
        """First entry of a buffer that stays for good, next to others, or None."""
        size = -(-size // self._step) * self._step
        gap = self._smallest_gap(size)
        if gap is not None:
            self._take(key, gap[1], gap[1] + size, gap[2])
        return None if gap is None else gap[1]

    @property
    def free_entries(self) -> int:
        """Entries that no live buffer takes."""
        return sum(room.end - room.begin for room in self._rooms if room.freed is not None)

    def free(self, key: Key, now: int) -> None:
        """Free `key`, which no step after `now` needs."""
        for room in self._live.pop(key, ()):
            room.freed = now
            self._refused = self._depth + 1

    def _smallest_gap(self, size: int) -> tuple[int, int, int] | None:
        """As `_places`: the beginning of the gap between live buffers that leaves the least."""
        best: tuple[int, int, int] | None = None
        number = 0
        while number < len(self._rooms):
            behind = number
            while behind < len(self._rooms) and self._rooms[behind].freed is not None:
                behind += 1
            if behind > number:
                begin = -(-self._rooms[number].begin // self._step) * self._step
                room = self._rooms[behind - 1].end - begin
                if room >= size and (best is None or room < best[0]):
                    best = (room, begin, number)
            number = behind + 1
        if best is None:
            return None
        age = self._age(best[1] + size, best[2])
        return None if age is None else (age, best[1], best[2])

    def _places(self, size: int) -> Iterator[tuple[int, int, int]]:
        """(step after which it was free, begin, number of its first room) of places that hold no live buffer."""
        first = 0
        for place in self._candidates(size):
            while self._rooms[first].end <= place:
                first += 1
            age = self._age(place + size, first)
            if age is not None:
                yield age, place, first

    def _candidates(self, size: int) -> Iterable[int]:
        """Places in order that are worth a look: those on or next to the ends of rooms that are free."""
        last = self._depth - size
        idle = [room for room in self._rooms if room.freed is not None]
        match self._slots:
            case Slots.POWER:
                return range(0, last + 1, max(self._step, _power_of_two(size)))
            case Slots.SIZE:
                found = {slot * size for room in idle for slot in (room.begin // size, -(-room.begin // size))}
            case Slots.ANY | Slots.GAP:
                ends = {bound for room in idle for bound in (room.begin, room.end - size)}
                found = {-(-end // self._step) * self._step for end in ends}
        return sorted(place for place in found if 0 <= place <= last)

    def _age(self, end: int, first: int) -> int | None:
        """Step after which the last old content up to `end` was free; None where a buffer is live."""
        age = _NEVER
        for number in range(first, len(self._rooms)):
            room = self._rooms[number]
            if room.begin >= end:
                break
            if room.freed is None:
                return None
            age = max(age, room.freed)
        return age

    def _take(self, key: Key, begin: int, end: int, first: int) -> None:
        """Make [begin, end), which starts in room `first`, the room of `key`."""
        behind = first
        while behind < len(self._rooms) and self._rooms[behind].begin < end:
            behind += 1
        head, tail = self._rooms[first], self._rooms[behind - 1]
        taken = _Room(key, begin, end)
        parts = [_Room(head.key, head.begin, begin, head.freed), taken, _Room(tail.key, end, tail.end, tail.freed)]
        self._rooms[first:behind] = [room for room in parts if room.begin < room.end]
        self._live.setdefault(key, []).append(taken)


def _power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
