"""Places for buffers in one scratchpad while a program is written: free room that was left longest ago comes first.

In: sizes and step numbers. Out: first entries. Taking the oldest room gives double buffering (two virtual threads, or
more where more fit) without a fixed split: the instruction that still uses the old content is long over.
"""

from __future__ import annotations

from dataclasses import dataclass

from tensorize.nest import Key

_NEVER = -1


@dataclass(slots=True)
class _Room:
    """A buffer's place; `freed` is the step after which nobody needs it, None while it is live."""

    key: Key
    begin: int
    end: int
    freed: int | None = None


class Scratchpad:
    """Allocator of one memory of `depth` entries; buffers start on multiples of `step`.

    `buddies`: buffers also start on multiples of their size rounded up to a power of two, so that equal ones pack.
    """

    def __init__(self, depth: int, step: int, buddies: bool = False) -> None:
        self._depth = depth
        self._step = step
        self._buddies = buddies
        self._rooms: list[_Room] = []

    def allocate(self, key: Key, size: int) -> int | None:
        """First entry of a new live buffer, or None when live ones leave no room."""
        step = max(self._step, _power_of_two(size)) if self._buddies else self._step
        size = -(-size // self._step) * self._step
        ends = [room.end for room in self._rooms]
        begins = [room.begin - size for room in self._rooms]
        places = sorted({-(-place // step) * step for place in (0, *ends, *begins) if place >= 0})
        if self._buddies:
            places = list(range(0, self._depth, step))
        best: tuple[int, int] | None = None
        for place in places:
            age = self._age(place, place + size)
            if age is not None and (best is None or (age, place) < best):
                best = (age, place)
        if best is None:
            return None
        self._take(key, best[1], best[1] + size)
        return best[1]

    def free(self, key: Key, now: int) -> None:
        """Nobody needs `key` after step `now`."""
        for room in self._rooms:
            if room.key == key and room.freed is None:
                room.freed = now

    def _age(self, begin: int, end: int) -> int | None:
        """Step after which the last old content of the place was free; None where it is live or outside."""
        if end > self._depth:
            return None
        age = _NEVER
        for room in self._rooms:
            if room.begin < end and begin < room.end:
                if room.freed is None:
                    return None
                age = max(age, room.freed)
        return age

    def _take(self, key: Key, begin: int, end: int) -> None:
        rest: list[_Room] = []
        for room in self._rooms:
            if room.begin < end and begin < room.end:
                if room.begin < begin:
                    rest.append(_Room(room.key, room.begin, begin, room.freed))
                if room.end > end:
                    rest.append(_Room(room.key, end, room.end, room.freed))
            else:
                rest.append(room)
        rest.append(_Room(key, begin, end))
        self._rooms = sorted(rest, key=lambda room: room.begin)


def _power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
