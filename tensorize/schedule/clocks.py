"""Estimates when each unit is free while steps are ordered and written, to decide what to load ahead.

In: the estimated work of every step. Out: when a step's input is stored, has arrived, and is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from relay_hw.tensorize.commands import Key, Step
from relay_hw.tensorize.schedule.step_work import ByteRange, Work, command_cycles, work_of
from relay_hw.tensorize.target import Target

# Cycles between the end of one step's work on the output stage and the start of the next one's; COMPUTE needs none.
_SWITCH = 12


def works_of(steps: Sequence[Step], config: Target) -> list[Work]:
    """The work of steps in program order; what several steps read is loaded by the first of them."""
    seen: set[Key] = set()
    found: list[Work] = []
    for step in steps:
        work = work_of(step, config)
        again = [load for b in step.buffers if b.key in seen for load in b.loads]
        if again:
            work = replace(work, load=work.load - sum(command_cycles(load, config) for load in again))
        seen.update(buffer.key for buffer in step.buffers)
        found.append(work)
    return found


@dataclass(frozen=True, slots=True)
class Flow:
    """The work of each step, and the steps that it waits for: `producers` write to DRAM what it reads, the results of
    `givers` go straight to a patch that it reads."""

    work: tuple[Work, ...]
    producers: tuple[tuple[int, ...], ...]
    givers: tuple[tuple[int, ...], ...]


def flow_of(work: Sequence[Work]) -> Flow:
    """Who waits for whom among steps."""
    return Flow(tuple(work), _producers(work), _givers(work))


class Clocks:
    """Times at which each unit is free, and at which each step's results are in DRAM. Steps are numbers into `flow`."""

    def __init__(self, flow: Flow, latency: int) -> None:
        """`latency`: of the memory."""
        self._flow = flow
        self._latency = latency
        self._stored: dict[int, int] = {}
        self._given: dict[int, int] = {}
        self._arrived: dict[int, int] = {}
        self._load = 0
        self._row = 0
        self._output = 0
        self._store = 0
        self.compute = 0
        self.started = 0

    @property
    def load(self) -> int:
        """When the bus has carried all loads so far."""
        return self._load

    @property
    def output(self) -> int:
        """When the output stage has finished all steps so far."""
        return self._output

    def stored(self, number: int) -> int | None:
        """When everything that the step reads is in DRAM, or None while a producer is not placed."""
        return _latest(self._stored, self._flow.producers[number])

    def arrival(self, number: int) -> int | None:
        """When the step's input is on chip if it is loaded next, or was; None while a producer is not placed."""
        if number in self._arrived:
            return self._arrived[number]
        loaded, given = self._loaded(number), _latest(self._given, self._flow.givers[number])
        return None if loaded is None or given is None else max(loaded, given)

    def _loaded(self, number: int) -> int | None:
        """When the step's loads are over if they come next; 0 where it has none."""
        stored = self.stored(number)
        if stored is None or not self._flow.work[number].load:
            return stored
        return max(self._load, stored) + self._latency + self._flow.work[number].load

    def load_constant(self, cycles: int, room: int = 0) -> None:
        """A load of constants follows, into places that are free from `room` on."""
        self._load = max(self._load, room) + cycles

    def load_step(self, number: int, room: int = 0) -> None:
        """The loads of a step follow; LOAD is in order and stands still until they may start."""
        if number not in self._arrived:
            self._load = max(self._load, room)
        arrival, loaded = self.arrival(number), self._loaded(number)
        if arrival is not None and loaded is not None and number not in self._arrived:
            self._arrived[number] = arrival
            self._load = max(self._load, loaded - self._latency)

    def run_step(self, number: int) -> None:
        """The commands of a step follow."""
        self.load_step(number)
        work = self._flow.work[number]
        self.started = max(self.compute, self._arrived[number])
        self.compute = self.started + work.compute
        ready = self.compute
        if work.row:
            ready = self._row = max(self._row, ready) + work.row
        if work.output:
            self._output = max(self._output, ready) + work.output + _SWITCH
        self._given[number] = self._output
        self._store = max(self._store, self._output) + work.store
        self._stored[number] = self._store + self._latency


def _latest(times: Mapping[int, int], steps: Sequence[int]) -> int | None:
    """The latest of the steps' times, 0 for no steps, None where one is not known."""
    known = [times[step] for step in steps if step in times]
    return max(known, default=0) if len(known) == len(steps) else None


def _givers(work: Sequence[Work]) -> tuple[tuple[int, ...], ...]:
    givers: dict[Key, list[int]] = {}
    for number, item in enumerate(work):
        for key in item.gives:
            givers.setdefault(key, []).append(number)
    return tuple(tuple(sorted({n for key in item.takes for n in givers.get(key, ())})) for item in work)


def _producers(work: Sequence[Work]) -> tuple[tuple[int, ...], ...]:
    writers: dict[Key, list[tuple[int, ByteRange]]] = {}
    for number, item in enumerate(work):
        for span in item.writes:
            writers.setdefault(span.key, []).append((number, span))
    found: list[tuple[int, ...]] = []
    for item in work:
        hits = {number for read in item.reads for number, span in writers.get(read.key, ()) if span.meets(read)}
        found.append(tuple(sorted(hits)))
    return tuple(found)
