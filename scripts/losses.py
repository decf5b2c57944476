"""Where the cycles of a launch go: every cycle in which the multiplier array does not work gets one cause.

In: a program and when each of its instructions ran (cycle simulator). Out: cycles by cause, for each layer. An idle
stretch is followed back from the instruction that ended it, over the token that came last, to the unit that was late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from accel.isa.config import SEMAPHORES, AccelConfig
from accel.isa.program import Instr
from accel.isa.spec import Mem, Op, Unit
from accel.sim.cycle import Span
from accel.sim.cycle.work import Work, work_of

# In the first stage of COMPUTE: products, and other operations on the accumulator.
GEMM, ALU = "gemm", "alu"
# Before the first and behind the last slot of COMPUTE.
FILL, DRAIN = "fill", "drain"
# COMPUTE waits for a load, and in this cycle the bus brings data, or it does not (request too late, or short bursts),
# or the row buffer of GATHER unfolds windows.
BUS, LATENCY, UNFOLD = "bus", "latency", "unfold"
LOADS = (BUS, LATENCY, UNFOLD)
# COMPUTE waits for the output stage, for a store (each holds a buffer), or for an effect in its own pipeline.
OUTPUT, STORE, PIPELINE = "output", "store", "pipeline"
# The next instruction is not there: the dispatcher is held by a queue that is full, or it was not fetched yet.
QUEUE, FETCH = "queue", "fetch"
CAUSES = (GEMM, ALU, FILL, *LOADS, OUTPUT, STORE, PIPELINE, QUEUE, FETCH, DRAIN)


@dataclass(slots=True)
class Account:
    """Cycles by cause. `fill`: those of FILL by their own causes; `loads`: those of LOADS, in FILL too, by the
    scratchpad that was loaded; `queues`: those of QUEUE by the unit whose queue was full."""

    cycles: Counter[str] = field(default_factory=Counter[str])
    fill: Counter[str] = field(default_factory=Counter[str])
    loads: Counter[str] = field(default_factory=Counter[str])
    queues: Counter[str] = field(default_factory=Counter[str])

    @property
    def total(self) -> int:
        """All of them."""
        return self.cycles.total()


def together(accounts: Iterable[Account]) -> Account:
    """Their sum."""
    total = Account()
    for entry in accounts:
        total.cycles.update(entry.cycles)
        total.fill.update(entry.fill)
        total.loads.update(entry.loads)
        total.queues.update(entry.queues)
    return total


def account(
    config: AccelConfig, instructions: Sequence[Instr], spans: Sequence[Span], cycles: int, owners: Sequence[int]
) -> dict[int, Account]:
    """Accounts by layer; `owners`: layer of each instruction. Together they hold all `cycles`.

    A wait belongs to the layer whose instruction ended it, DRAIN to the last one.
    """
    trace = _Trace(config, instructions, spans, cycles)
    accounts: dict[int, Account] = {}
    done, layer = 0, owners[-1]
    for span in trace.of(Unit.COMPUTE):
        layer = owners[span.index]
        entry = accounts.setdefault(layer, Account())
        trace.explain(done, span, entry)
        if not done:
            entry.cycles, entry.fill = Counter({FILL: entry.cycles.total()}), entry.cycles
        slots = trace.works[span.index].slots
        entry.cycles[GEMM if trace.works[span.index].op is Op.GEMM else ALU] += slots
        done = span.start + slots
    accounts.setdefault(layer, Account()).cycles[DRAIN] += cycles - done
    return accounts


class _Trace:
    """One launch: who waited for whom."""

    def __init__(self, config: AccelConfig, instructions: Sequence[Instr], spans: Sequence[Span], cycles: int) -> None:
        self.works: list[Work] = [work_of(config, op, values) for op, values in instructions]
        self._spans = spans
        self._mems = [Mem(values.get("mem", Mem.INP)) for _, values in instructions]
        self._before: dict[int, Span] = {}
        for unit in Unit:
            own = self.of(unit)
            self._before.update((after.index, span) for span, after in pairwise(own))
        self._room = self._queue_room(config.queue_depth)
        self._last_giver = self._givers()
        self._bus = self._bus_beats(cycles)

    def of(self, unit: Unit) -> list[Span]:
        """Instructions of one unit in order."""
        return [span for span in self._spans if span.unit is unit]

    def explain(self, begin: int, span: Span, entry: Account) -> None:
        """Give the cycles (begin, start of `span`] their causes.

        Tokens first: an instruction that came late, but would have waited for its tokens anyway, was not late.
        """
        stack = [(begin, span.start, span)]
        while stack:
            begin, end, waiting = stack.pop()
            giver, before = self._last_giver.get(waiting.index), self._before.get(waiting.index)
            given = begin if giver is None else max(begin, min(giver.end + 1, end))
            if giver is not None:
                self._follow(begin, given, giver, stack, entry)
            # Of COMPUTE, the instruction before is done at `begin`; another unit may be at it.
            done = given
            if before is not None and waiting is not span:
                done = max(given, min(before.end + 1, end))
                self._follow(given, done, before, stack, entry)
            self._absent(done, end, waiting, entry)

    def _follow(self, begin: int, end: int, late: Span, stack: list[tuple[int, int, Span]], entry: Account) -> None:
        """Cycles up to the end of `late`: those in which it was at work, and those in which it waited itself."""
        active = max(begin, min(late.start, end))
        self._charge(late, active, end, entry)
        if active > begin:
            stack.append((begin, active, late))

    def _absent(self, begin: int, end: int, waiting: Span, entry: Account) -> None:
        """Cycles in which `waiting` was not in its queue."""
        room, unit = self._room[waiting.index]
        held = max(min(room, end) - begin, 0)
        if held:
            entry.cycles[QUEUE] += held
            entry.queues[unit.name.lower()] += held
        entry.cycles[FETCH] += end - begin - held

    def _charge(self, late: Span, begin: int, end: int, entry: Account) -> None:
        match late.unit:
            case Unit.LOAD:
                entry.loads[self._mems[late.index].name.lower()] += end - begin
                unfolding = max(begin, min(end, late.end - self._unfolds(late)))
                busy = int(self._bus[unfolding] - self._bus[begin])
                entry.cycles[BUS] += busy
                entry.cycles[LATENCY] += unfolding - begin - busy
                entry.cycles[UNFOLD] += end - unfolding
            case Unit.OUTPUT:
                entry.cycles[OUTPUT] += end - begin
            case Unit.STORE:
                entry.cycles[STORE] += end - begin
            case _:
                entry.cycles[PIPELINE] += end - begin

    def _unfolds(self, span: Span) -> int:
        """Cycles at the end of a GATHER in which it reads its row buffer."""
        work = self.works[span.index]
        if work.windows is None:
            return -1
        rows = sum(work.bursts) // work.windows.beats
        return work.windows.reads * rows + work.windows.above + work.windows.below

    def _queue_room(self, depth: int) -> list[tuple[int, Unit]]:
        """For each instruction the cycle in which the last one up to it found room in its queue, and whose that was."""
        rooms: list[tuple[int, Unit]] = []
        last = (0, Unit.LOAD)
        queues: dict[Unit, list[Span]] = {unit: [] for unit in Unit}
        for span in self._spans:
            queue = queues[span.unit]
            if len(queue) >= depth:
                last = max(last, (queue[-depth].start + 1, span.unit))
            queue.append(span)
            rooms.append(last)
        return rooms

    def _givers(self) -> dict[int, Span]:
        """For each instruction that waited for tokens the one that gave the last of them: tokens are taken in order."""
        last: dict[int, Span] = {}
        for semaphore in range(SEMAPHORES):
            gives = sorted((s for s in self._spans if semaphore in self.works[s.index].gives), key=lambda s: s.end)
            takes = sorted((s for s in self._spans if semaphore in self.works[s.index].waits), key=lambda s: s.start)
            for giver, taker in zip(gives, takes, strict=False):
                known = last.get(taker.index)
                if known is None or giver.end > known.end:
                    last[taker.index] = giver
        return last

    def _bus_beats(self, cycles: int) -> np.ndarray:
        """For each cycle how many before it brought data for a load, each load's taken as its last ones."""
        change = np.zeros(cycles + 2, np.int64)
        for span in self.of(Unit.LOAD):
            change[max(span.end - sum(self.works[span.index].bursts), 0)] += 1
            change[span.end] -= 1
        return np.concatenate([[0], np.cumsum(np.minimum(np.cumsum(change), 1))])
