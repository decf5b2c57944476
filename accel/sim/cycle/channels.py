"""The two directions of the AXI port as recurrences over bursts, memory model included.

In: the cycle in which a burst is taken into the address register. Out: the cycles of its first and last beat, and
when the next burst may be taken. A cycle is named by its number from the launch; what happens in it, happens at the
edge that ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from accel.isa.config import AccelConfig
from accel.sim.memory import MemoryModel


@dataclass(slots=True)
class ReadChannel:
    """AR register, memory and R data in order."""

    config: AccelConfig
    memory: MemoryModel
    # cycle of the last beat of each burst, in the order in which they were taken
    ends: list[int] = field(default_factory=list[int])
    # first cycle in which the AR register may take the next burst, and in which the R channel may bring a next beat
    free: int = 0
    beat: int = 0

    def address(self, taken: int) -> int:
        """Take a burst in cycle `taken`: the earliest cycle of its first beat."""
        ends, behind = self.ends, len(self.ends) - self.memory.read_outstanding
        accepted = taken + 1
        if behind >= 0 and ends[behind] + 1 > accepted:
            accepted = ends[behind] + 1
        first = accepted + self.memory.latency
        self.free = accepted
        return first if first > self.beat else self.beat

    def finish(self, last: int) -> None:
        """The burst's last beat comes in cycle `last`."""
        self.ends.append(last)
        self.beat = last + 1
        behind = len(self.ends) - self.config.read_outstanding
        if behind >= 0 and self.ends[behind] + 1 > self.free:
            self.free = self.ends[behind] + 1


@dataclass(slots=True)
class WriteChannel:
    """AW register, W data in order, memory and B responses."""

    config: AccelConfig
    memory: MemoryModel
    # cycle of the response of each burst
    responses: list[int] = field(default_factory=list[int])
    free: int = 0
    # first cycle in which the data side may take the next burst
    data: int = 0

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
        self.free = accepted
        begin = max(accepted + 1, self.data)
        self.data = begin + beats
        response = begin + beats + 1 + self.memory.latency
        if done:
            response = max(response, done[-1] + 1)
        done.append(response)
        return taken
