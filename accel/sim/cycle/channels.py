"""Timing of the AXI port's read and write channels, burst by burst, with the memory behind them.

In: the cycle in which a burst is taken into the address register. Out: the cycles of its first and last beat, and
when the next burst may be taken. A cycle is named by its number from the launch; what happens in it, happens at the
edge that ends it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.sim.dram_timing import MemoryModel, WriteOrder

NEVER = 1 << 62
# Cycles from the one in which a write is taken into the AW register to the first one with its first beat on the bus.
FIRST_BEAT = 3
# Beats of one burst: (what `address` turns into the first one, beats, whether fetch's, cycles from one to the next).
# These are 0 where the beats come as fast as they are sampled, and `finish` is told of the last one only.
Chunk = tuple[int, int, bool, int]


@dataclass(slots=True)
class ReadChannel:
    """AR register, memory and R data in order. Bursts are taken, then their beats resolved, each in order."""

    config: AccelConfig
    memory: MemoryModel
    # beats to come
    line: deque[Chunk] = field(default_factory=deque[Chunk])
    # cycle of the last beat of each resolved burst; bursts that were taken
    ends: list[int] = field(default_factory=list[int])
    taken: int = 0
    # first cycle in which the R channel may bring a next beat; that in which the AR register handed its last burst over
    beat: int = 0
    _handed: int = 0
    _last: int = 0

    def take(self, cycle: int, _place: int, beats: int, fetch: bool) -> None:
        """Take a burst in `cycle`."""
        self.taken += 1
        self._last = cycle
        self.line.append((cycle, beats, fetch, 0))

    def address(self, cycle: int) -> int:
        """The earliest cycle of the first beat of the burst to resolve next, which was taken in `cycle`."""
        self._handed = accepted = self._accepted(len(self.ends), cycle)
        first = accepted + self.memory.latency
        return first if first > self.beat else self.beat

    def finish(self, last: int, _beats: int = 1) -> None:
        """The last beat of that burst comes in cycle `last`."""
        self.ends.append(last)
        self.beat = last + 1

    @property
    def free(self) -> int:
        """First cycle in which the AR register may take the next burst, NEVER while that is not known."""
        ends, taken = self.ends, self.taken
        if not taken:
            return 0
        known = len(ends)
        if taken == known:
            cycle = self._handed
        elif taken - 1 - self.memory.read_outstanding < known:
            cycle = self._accepted(taken - 1, self._last)
        else:
            return NEVER
        behind = taken - self.config.read_outstanding
        if behind < 0:
            return cycle
        if behind >= known:
            return NEVER
        after = ends[behind] + 1
        return after if after > cycle else cycle

    def _accepted(self, number: int, cycle: int) -> int:
        """Cycle of the handshake of burst `number`, taken in `cycle`."""
        behind = number - self.memory.read_outstanding
        if behind >= 0 and self.ends[behind] > cycle:
            return self.ends[behind] + 1
        return cycle + 1


@dataclass(slots=True)
class WriteChannel:
    """AW register, W data in order, memory and B responses."""

    config: AccelConfig
    memory: MemoryModel
    # cycle of the response of each burst
    responses: list[int] = field(default_factory=list[int])
    free: int = 0
    # first cycle behind the one in which the last beat of all is sampled
    data: int = 0
    # cycle of the last response of each STORE; the one behind that in which the last burst of all was taken
    ended: list[int] = field(default_factory=list[int])
    ready: int = 0

    def store(self, earliest: int, _places: Iterable[int], bursts: Iterable[int]) -> None:
        """Write bursts, the first of which may be taken in cycle `earliest`."""
        for beats in bursts:
            earliest = self.send(earliest, beats)
        self.ready = earliest + 1
        self.ended.append(self.responses[-1])

    def send(self, earliest: int, beats: int) -> int:
        """A burst that may be taken in cycle `earliest` or later: the cycle in which it is."""
        done = self.responses
        taken = max(earliest, self.free)
        behind = len(done) - self.config.write_outstanding
        if behind >= 0:
            taken = max(taken, done[behind] + 2)
        accepted = taken + 1
        behind = len(done) - self.memory.write_outstanding
        if behind >= 0:
            accepted = max(accepted, done[behind] + 1)
        first = max(taken + FIRST_BEAT, self.data)
        match self.memory.write_order:
            case WriteOrder.ADDRESS_FIRST:
                first = max(first, accepted + 1)
            case WriteOrder.DATA_SHOWN:
                accepted = max(accepted, first)
                first = accepted + 1
            case WriteOrder.DATA_FIRST:
                accepted = max(accepted, first + beats)
            case WriteOrder.ANY:
                pass
        self.free = accepted
        self.data = first + beats
        response = max(self.data - 1, accepted) + self.memory.latency
        if done:
            response = max(response, done[-1] + 1)
        done.append(response)
        return taken
