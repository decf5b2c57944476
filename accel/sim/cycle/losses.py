"""Attributes lost cycles: every cycle in which the multiplier array does not work gets one cause.

In: a `Timing` and the owner of each instruction. Out: stretches of cycles with their causes, and their sums. An idle
stretch is followed back from the instruction that ended it, over the token that came last, to the unit that was late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

import numpy as np

from relay_hw.accel.isa.config import SEMAPHORES
from relay_hw.accel.isa.spec import Mem, Op, Unit
from relay_hw.accel.sim.causes import LOADS, Cause
from relay_hw.accel.sim.cycle.engine import InstructionTime
from relay_hw.accel.sim.cycle.load import READ_AHEAD, STEP_AHEAD
from relay_hw.accel.sim.cycle.timing import Timing
from relay_hw.accel.sim.cycle.unit_work import Work

Key = TypeVar("Key", Cause, str)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Cycles [begin, end) of one cause and one owner. `what`: scratchpad of LOADS, full queue of QUEUE, else empty;
    `fill`: before the first slot of COMPUTE. Inside a wait for one load, BUS stands before OUTPUT and LATENCY."""

    begin: int
    end: int
    owner: int
    cause: Cause
    what: str = ""
    fill: bool = False

    @property
    def cycles(self) -> int:
        """Length in cycles."""
        return self.end - self.begin


@dataclass(slots=True)
class Account:
    """Cycles by cause. `fill`: those of FILL by their own causes; `loads`: those of LOADS, in FILL too, by the
    scratchpad that was loaded; `queues`: those of QUEUE by the unit whose queue was full."""

    cycles: Counter[Cause] = field(default_factory=Counter[Cause])
    fill: Counter[Cause] = field(default_factory=Counter[Cause])
    loads: Counter[str] = field(default_factory=Counter[str])
    queues: Counter[str] = field(default_factory=Counter[str])

    @property
    def total(self) -> int:
        """Cycles of all causes together."""
        return self.cycles.total()

    def add(self, stretch: Stretch) -> None:
        """Count a stretch."""
        cycles = stretch.cycles
        self.cycles[Cause.FILL if stretch.fill else stretch.cause] += cycles
        if stretch.fill:
            self.fill[stretch.cause] += cycles
        if stretch.cause in LOADS:
            self.loads[stretch.what] += cycles
        elif stretch.cause == Cause.QUEUE:
            self.queues[stretch.what] += cycles

    def times(self, count: int) -> Account:
        """The account of `count` such launches."""

        def scaled(sums: Counter[Key]) -> Counter[Key]:
            return Counter({key: count * cycles for key, cycles in sums.items()})

        return Account(scaled(self.cycles), scaled(self.fill), scaled(self.loads), scaled(self.queues))


def together(accounts: Iterable[Account]) -> Account:
    """The sum of several accounts."""
    total = Account()
    for entry in accounts:
        total.cycles.update(entry.cycles)
        total.fill.update(entry.fill)
        total.loads.update(entry.loads)
        total.queues.update(entry.queues)
    return total


def accounts(found: Iterable[Stretch]) -> dict[int, Account]:
    """Accounts by owner."""
    sums: dict[int, Account] = {}
    for stretch in found:
        sums.setdefault(stretch.owner, Account()).add(stretch)
    return sums


def stretches(timing: Timing, owners: Sequence[int]) -> list[Stretch]:
    """All cycles of a launch in order; `owners`: layer of each instruction.

    A wait belongs to the owner of the instruction that ended it, DRAIN to the last one.
    """
    trace = _Trace(timing)
    found: list[Stretch] = []
    done, owner = 0, owners[-1]
    for span in trace.own[Unit.COMPUTE]:
        owner = owners[span.index]
        found += trace.explain(done, span, owner)
        work = timing.works[span.index]
        done = span.start + work.slots
        makes = work.op is Op.GEMM and work.products
        found.append(Stretch(span.start, done, owner, Cause.PRODUCTS if makes else Cause.ALU))
    if done < timing.cycles:
        found.append(Stretch(done, timing.cycles, owner, Cause.DRAIN))
    return found


class _Trace:
    """One launch: who waited for whom."""

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self.own = {unit: timing.of(unit) for unit in Unit}
        self._before = {after.index: span for own in self.own.values() for span, after in pairwise(own)}
        self._room = self._queue_room(timing.config.queue_depth)
        self._last_giver = self._givers()
        self._bus = self._bus_beats()

    def explain(self, begin: int, span: InstructionTime, owner: int) -> list[Stretch]:
        """Causes of the cycles [begin, start of `span`), in order.

        Tokens first: an instruction that came late, but would have waited for its tokens anyway, was not late.
        """
        found: list[Stretch] = []
        stack, fill = [(begin, span.start, span)], not begin

        def charge(first: int, last: int, cause: Cause, what: str = "") -> None:
            if last > first:
                found.append(Stretch(first, last, owner, cause, what, fill))

        def follow(first: int, last: int, late: InstructionTime) -> None:
            """Up to the end of `late`: the cycles in which it was at work, and those in which it waited itself."""
            active = max(first, min(late.start, last))
            for part in self._blame(late, active, last):
                charge(*part)
            if active > first:
                stack.append((first, active, late))

        while stack:
            begin, end, waiting = stack.pop()
            giver, before = self._last_giver.get(waiting.index), self._before.get(waiting.index)
            given = begin if giver is None else max(begin, min(giver.end + 1, end))
            if giver is not None:
                follow(begin, given, giver)
            # Of COMPUTE, the instruction before is done at `begin`; another unit may be at it.
            done = given
            if before is not None and waiting is not span:
                done = max(given, min(before.end + 1, end))
                follow(given, done, before)
            # The rest: `waiting` was not in its queue.
            room, unit = self._room[waiting.index]
            there = max(done, min(room, end))
            charge(done, there, Cause.QUEUE, unit.name.lower())
            charge(there, end, Cause.FETCH)
        found.sort(key=lambda stretch: stretch.begin)
        return found

    def _blame(self, late: InstructionTime, begin: int, end: int) -> list[tuple[int, int, Cause, str]]:
        """(begin, end, cause, what) of cycles in which `late` was at work."""
        match late.unit:
            case Unit.LOAD:
                work = self._timing.works[late.index]
                assert work.mem is not None
                what = work.mem.name.lower()
                unfolding = max(begin, min(end, late.end - _unfolds(work)))
                brought = begin + int(self._bus[unfolding] - self._bus[begin])
                held = min(unfolding, brought + self._held(work, begin, unfolding))
                parts = [(begin, brought, Cause.BUS, what), (brought, held, Cause.OUTPUT, "")]
                return [*parts, (held, unfolding, Cause.LATENCY, what), (unfolding, end, Cause.UNFOLD, what)]
            case Unit.OUTPUT:
                return [(begin, end, Cause.OUTPUT, "")]
            case Unit.ROW:
                return [(begin, end, Cause.ROW, "")]
            case Unit.STORE:
                return [(begin, end, Cause.STORE, "")]
            case Unit.COMPUTE:
                return [(begin, end, Cause.PIPELINE, "")]

    def _held(self, work: Work, begin: int, end: int) -> int:
        """Cycles [begin, end) in which a load gave way to OUTPUT's writes of INP."""
        if work.mem is not Mem.INP or not self._timing.writes.lasts:
            return 0
        ahead = STEP_AHEAD if work.windows is None else READ_AHEAD
        return end - begin - self._timing.writes.take(begin + ahead, end, end - 1 + ahead)[0]

    def _queue_room(self, depth: int) -> list[tuple[int, Unit]]:
        """For each instruction the cycle in which the last one up to it found room in its queue, and whose that was."""
        rooms: list[tuple[int, Unit]] = []
        last = (0, Unit.LOAD)
        queues: dict[Unit, list[InstructionTime]] = {unit: [] for unit in Unit}
        for span in self._timing.spans:
            queue = queues[span.unit]
            if len(queue) >= depth:
                last = max(last, (queue[-depth].start + 1, span.unit))
            queue.append(span)
            rooms.append(last)
        return rooms

    def _givers(self) -> dict[int, InstructionTime]:
        """For each instruction that waited for tokens the one that gave the last of them: tokens are taken in order."""
        gives: list[list[InstructionTime]] = [[] for _ in range(SEMAPHORES)]
        takes: list[list[InstructionTime]] = [[] for _ in range(SEMAPHORES)]
        for span, work in zip(self._timing.spans, self._timing.works, strict=False):
            for semaphore in work.gives:
                gives[semaphore].append(span)
            for semaphore in work.waits:
                takes[semaphore].append(span)
        last: dict[int, InstructionTime] = {}
        for given, taken in zip(gives, takes, strict=True):
            given.sort(key=lambda span: span.end)
            taken.sort(key=lambda span: span.start)
            for giver, taker in zip(given, taken, strict=False):
                known = last.get(taker.index)
                if known is None or giver.end > known.end:
                    last[taker.index] = giver
        return last

    def _bus_beats(self) -> np.ndarray:
        """For each cycle how many before it brought data for a load, each load's taken as its last ones."""
        change = np.zeros(self._timing.cycles + 2, np.int32)
        for span in self.own[Unit.LOAD]:
            brings = self._timing.works[span.index].beats * self._timing.beat_cycles
            change[max(span.end - brings, span.start, 0)] += 1
            change[span.end] -= 1
        busy = np.minimum(np.cumsum(change, dtype=np.int32), 1)
        return np.concatenate([[0], np.cumsum(busy, dtype=np.int32)])


def _unfolds(work: Work) -> int:
    """Cycles at the end of a GATHER in which it reads its row buffer."""
    if work.windows is None:
        return -1
    rows = work.beats // work.windows.beats
    return work.windows.reads * rows + work.windows.above + work.windows.below
