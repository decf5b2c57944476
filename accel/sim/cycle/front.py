"""Timing of fetch and dispatcher: when instructions arrive, and when each enters the queue of its unit.

In: cycles in which bursts were taken and came, starts of units. Out: the next burst that fetch asks for; queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, AccelConfig
from relay_hw.accel.sim.cycle.channels import NEVER
from relay_hw.accel.sim.cycle.unit_work import Work

# Sizes of the fetch unit: instructions in its buffer, instructions of one burst at most.
FETCH_BUFFER = 32
FETCH_AHEAD = 8


@dataclass(slots=True)
class Queue:
    """Instructions of one unit, in order: index of each, cycle in which it was pushed, and in which it started.

    `changed`: something that decides when its head starts is other than it was.
    """

    indices: list[int] = field(default_factory=list[int])
    pushed: list[int] = field(default_factory=list[int])
    starts: list[int] = field(default_factory=list[int])
    changed: bool = False


class Front:
    """The timing of fetch and dispatcher during a launch.

    `asks`: first cycle in which fetch asks for a burst, as far as it is known; `beats` of it.
    """

    def __init__(
        self, config: AccelConfig, program_offset: int, works: Sequence[Work], queues: Sequence[Queue]
    ) -> None:
        self.asks = 0
        self.beats = 0
        self._works = works
        self._queues = queues
        self._depth = config.queue_depth
        self._insn_beats = INSTRUCTION_BYTES // config.bus_bytes
        self._bus_bytes = config.bus_bytes
        self._begin = program_offset // config.bus_bytes
        self._total = len(works) * self._insn_beats
        self._chunk = min(config.burst_beats, FETCH_AHEAD * self._insn_beats)
        # beats asked for and received, first cycle of the next request
        self._asked = 0
        self._received = 0
        self._after = 0
        # cycles in which instruction i can be popped, is popped into the first register, moves into the second and the
        # third, is pushed into its queue
        self._arrived: list[int] = []
        self._popped: list[int] = []
        self._second: list[int] = []
        self._third: list[int] = []
        self._gone: list[int] = []
        # the unit whose full queue holds the dispatcher
        self._full = -1
        self._ask()

    @property
    def place(self) -> int:
        """Byte of the window at which the burst that is asked for begins."""
        return (self._begin + self._asked) * self._bus_bytes

    @property
    def done(self) -> int:
        """Cycle in which FINISH, the last instruction, is in the dispatcher's third register."""
        return self._third[-1]

    def _ask(self) -> None:
        self.beats = min(self._total - self._asked, self._chunk - (self._begin + self._asked) % self._chunk)
        if not self.beats:
            self.asks = NEVER
            return
        missing = self._asked + self.beats - FETCH_BUFFER * self._insn_beats
        pops = -(-missing // self._insn_beats)
        if missing <= 0:
            self.asks = self._after
        elif pops <= len(self._popped):
            self.asks = max(self._after, self._popped[pops - 1] + 1)
        else:
            self.asks = NEVER

    def take(self, cycle: int) -> None:
        """The burst that was asked for is taken in `cycle`."""
        self._asked += self.beats
        self._after = cycle + 1
        self._ask()

    def arrive(self, first: int, beats: int) -> None:
        """A burst of instructions comes, its first beat in cycle `first`."""
        received = self._received + beats
        while (len(self._arrived) + 1) * self._insn_beats <= received:
            wanted = (len(self._arrived) + 1) * self._insn_beats - self._received
            self._arrived.append(first + wanted)
        self._received = received
        self._dispatch()

    def started(self, unit: int) -> None:
        """A unit has started the head of its queue."""
        if unit == self._full:
            self._dispatch()

    def _dispatch(self) -> None:
        """Let instructions pass the dispatcher as far as what is known reaches."""
        arrived, popped, second, third, gone = self._arrived, self._popped, self._second, self._third, self._gone
        before = len(popped)
        moving = True
        while moving:
            moving = len(gone) < len(third) and self._push(len(gone))
            i = len(third)
            if i < len(second) and i <= len(gone):
                third.append(max(second[i] + 1, gone[i - 1]) if i else second[i] + 1)
                moving = True
            i = len(second)
            if i < len(popped) and i <= len(third):
                second.append(max(popped[i] + 1, third[i - 1]) if i else popped[i] + 1)
                moving = True
            i = len(popped)
            if i < len(arrived) and i <= len(second):
                popped.append(max(arrived[i], second[i - 1]) if i else arrived[i])
                moving = True
        if len(popped) != before and self.asks == NEVER:
            self._ask()

    def _push(self, index: int) -> bool:
        """Put the instruction in the third register into its queue; False where that is not known to have room."""
        number = self._works[index].unit
        if number is None:
            return False
        queue = self._queues[number]
        cycle = self._third[index] + 1
        before = len(queue.pushed) - self._depth
        if before >= 0:
            if before >= len(queue.starts):
                self._full = number
                return False
            cycle = max(cycle, queue.starts[before] + 1)
        self._full = -1
        self._gone.append(cycle)
        queue.indices.append(index)
        queue.pushed.append(cycle)
        if len(queue.pushed) == len(queue.starts) + 1:
            queue.changed = True
        return True
