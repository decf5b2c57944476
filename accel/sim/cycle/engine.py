"""A discrete-event model of the core: fetch, dispatcher, queues, semaphores and the units.

In: the work of each instruction. Out: the counters of the launch. Cycle 0 is the first in which the core runs; the
module-level docstring of `channels` says what a cycle's number means.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES, AccelConfig
from relay_hw.accel.isa.errors import DeadlockError, Fault, FaultCode
from relay_hw.accel.isa.spec import Dst, Op, Unit
from relay_hw.accel.sim.cycle.channels import NEVER, ReadChannel, WriteChannel
from relay_hw.accel.sim.cycle.front import Front, Queue
from relay_hw.accel.sim.cycle.hazards import OutputHazards
from relay_hw.accel.sim.cycle.load import LoadData
from relay_hw.accel.sim.cycle.sdram import Chip
from relay_hw.accel.sim.cycle.unit_work import Work
from relay_hw.accel.sim.cycle.writes import DEPTH, InpWrites
from relay_hw.accel.sim.dram_timing import MemoryModel

# A slot of COMPUTE in cycle t has its last effect in cycle t + this.
COMPUTE_DEPTH = 10
# Cycles behind the slots of ROW by which its last result is written; it starts the next instruction behind them.
ROW_DEPTH = 4
_UNITS = tuple(Unit)


@dataclass(frozen=True, slots=True)
class InstructionTime:
    """One instruction in time: the cycle from which only tokens were missing, that of its start, that of its last
    effect (where its tokens are given)."""

    index: int
    unit: Unit
    asked: int
    start: int
    end: int


@dataclass(slots=True)
class _Unit:
    """One unit: its queue and when it may start the next instruction."""

    queue: Queue = field(default_factory=Queue)
    asked: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    ready: int = 0
    # cycle in which the next instruction starts, as far as it is known; from which it had everything but its tokens
    next: int = NEVER
    asking: int = NEVER
    # mask of the semaphores that it waits for
    waits: int = 0
    # first cycle in which the unit is idle again, cycles in which it was not, cycles of waiting for tokens
    idle: int = 0
    busy: int = 0
    token: int = 0

    def occupy(self, begin: int, end: int) -> None:
        """Count the cycles [begin, end) as busy; intervals come in the order of their ends."""
        self.busy += max(0, end - max(begin, self.idle))
        self.idle = max(self.idle, end)


class Engine:
    """One launch. `run` gives the counters by register name. Raises Fault unless FINISH is last, and only there."""

    def __init__(self, config: AccelConfig, memory: MemoryModel, program_offset: int, works: Sequence[Work]) -> None:
        _check_finish(works)
        self._works = works
        self._chip = None if memory.sdram is None else Chip(config, memory)
        self._read = ReadChannel(config, memory) if self._chip is None else self._chip.reads
        self._write = WriteChannel(config, memory) if self._chip is None else self._chip.writes
        self._hazards = OutputHazards(config, [])
        self._units = tuple(_Unit() for _ in _UNITS)
        self._front = Front(config, program_offset, works, [unit.queue for unit in self._units])
        self._bus_bytes = config.bus_bytes
        # instructions that may be between their start and: the data side of LOAD, the last response of STORE
        self._ahead: dict[int, int] = {
            Unit.LOAD: max(2, config.read_outstanding),
            Unit.STORE: max(2, config.write_outstanding),
        }
        # per semaphore: cycles from which its tokens can be taken; cycle in which one was last taken
        self._tokens: list[list[int]] = [[] for _ in range(SEMAPHORES)]
        self._taken = [-1] * SEMAPHORES
        # cycle in which a token was last given
        self._given = 0
        # LOAD: bursts of the instruction that is being walked; data side, and LOADs that it was known to have taken up
        self._walk: Work | None = None
        self._walk_burst = 0
        self._walk_from = NEVER
        shared = any(work.values is not None and work.values["dst"] == Dst.INP for work in works)
        self._data = LoadData(self._read, shared)
        self._followed = 0
        # STORE: instructions that have not ended, with their starts; cycles in which the others gave their tokens
        self._storing: deque[tuple[Work, int]] = deque()
        self._stored: list[int] = []
        self._store_beats = 0

    def run(self) -> dict[str, int]:
        """Counters of the launch. Raises DeadlockError where hardware would stop with its watchdog."""
        units, data, chip = self._units, self._data, self._chip
        while True:
            bus, beat = self._bus_time(), NEVER if chip is None else chip.time
            cycle, chosen = NEVER, 0
            for number, unit in enumerate(units):
                if unit.queue.changed:
                    unit.queue.changed = False
                    unit.next = self._start_time(number, unit)
                if unit.next < cycle:
                    cycle, chosen = unit.next, number
            nearest = min(bus, cycle, beat)
            if data.need - DEPTH <= nearest:
                if data.need == NEVER:
                    break
                self._advance(nearest)
            elif chip is not None and beat == nearest:
                self._serve(chip, beat)
            elif bus <= cycle:
                self._take_burst(bus, min(cycle, beat))
            else:
                self._start(chosen, cycle)
        return self._finish()

    @property
    def writes(self) -> InpWrites:
        """Cycles in which OUTPUT wrote INP."""
        return self._data.writes

    def spans(self) -> list[InstructionTime]:
        """Every instruction but FINISH in time, in program order, after `run`."""
        spans = [
            InstructionTime(index, name, asked, start, end)
            for name, unit in zip(_UNITS, self._units, strict=True)
            for index, asked, start, end in zip(
                unit.queue.indices, unit.asked, unit.queue.starts, unit.ends, strict=True
            )
        ]
        return sorted(spans, key=lambda span: span.index)

    # starts

    def _start_time(self, number: int, unit: _Unit) -> int:
        """First cycle in which the unit's next instruction starts, as far as it is known."""
        queue = unit.queue
        k = len(queue.starts)
        if k == len(queue.pushed):
            unit.waits = 0
            return NEVER
        cycle = max(queue.pushed[k] + 1, unit.ready, queue.starts[k - 1] + 1 if k else 0)
        work = self._works[queue.indices[k]]
        unit.waits = work.wait_mask
        if number in self._ahead:
            behind = k - self._ahead[number]
            let_in = self._data.follow if number == Unit.LOAD else self._stored
            if behind >= len(let_in):
                return NEVER
            if behind >= 0:
                cycle = max(cycle, let_in[behind] + 1)
        unit.asking = cycle
        for s in work.waits:
            tokens = self._tokens[s]
            if not tokens:
                return NEVER
            if tokens[0] > cycle:
                cycle = tokens[0]
        # Of two units that take the same semaphore in one cycle, the second waits.
        while any(self._taken[s] == cycle for s in work.waits):
            cycle += 1
        return cycle

    def _start(self, number: int, cycle: int) -> None:
        unit = self._units[number]
        queue = unit.queue
        work = self._works[queue.indices[len(queue.starts)]]
        unit.token += cycle - unit.asking
        unit.asked.append(unit.asking)
        queue.starts.append(cycle)
        queue.changed = True
        for s in work.waits:
            heappop(self._tokens[s])
            self._taken[s] = cycle
        self._change(work.wait_mask)
        match _UNITS[number]:
            case Unit.LOAD:
                self._start_load(unit, work, cycle)
            case Unit.STORE:
                self._start_store(unit, work, cycle)
            case Unit.COMPUTE:
                unit.ready = cycle + work.slots
                unit.occupy(cycle + 1, unit.ready + COMPUTE_DEPTH + 1)
                self._give(work, unit.ready + COMPUTE_DEPTH)
            case Unit.OUTPUT:
                assert work.values is not None
                unit.ready = self._hazards.last_slot(cycle, work.values, self._data.writes)
                unit.occupy(cycle + 1, unit.ready + DEPTH + 1)
                self._give(work, unit.ready + DEPTH)
            case Unit.ROW:
                unit.ready = cycle + work.slots + ROW_DEPTH + 1
                unit.occupy(cycle + 1, unit.ready)
                self._give(work, unit.ready - 1)
        self._front.started(number)

    def _give(self, work: Work, cycle: int) -> None:
        """The last effect is in `cycle`; tokens given then can be taken in the next."""
        assert work.unit is not None
        self._units[work.unit].ends.append(cycle)
        for s in work.gives:
            heappush(self._tokens[s], cycle + 1)
        if work.gives:
            self._given = max(self._given, cycle)
        self._change(work.give_mask)

    def _change(self, semaphores: int) -> None:
        """Semaphores of a mask have got or lost tokens."""
        for unit in self._units:
            if unit.waits & semaphores:
                unit.queue.changed = True

    def _start_store(self, unit: _Unit, work: Work, cycle: int) -> None:
        self._storing.append((work, cycle))
        self._write.store(cycle + 1, work.places, work.bursts)
        self._end_stores(unit)

    def _end_stores(self, unit: _Unit) -> None:
        """Let STORE go as far as is known."""
        if unit.ready != self._write.ready or self._write.ended:
            unit.ready, unit.queue.changed = self._write.ready, True
        while self._write.ended:
            work, start = self._storing.popleft()
            given = self._write.ended.pop(0) + 1
            self._stored.append(given)
            self._store_beats += work.beats
            unit.occupy(start + 1, given + 1)
            self._give(work, given)

    # LOAD and the bus

    def _start_load(self, unit: _Unit, work: Work, cycle: int) -> None:
        unit.ready = NEVER
        self._walk, self._walk_burst, self._walk_from = work, 0, cycle + 1
        self._data.start(work, cycle)
        self._advance(cycle)

    def _bus_time(self) -> int:
        """First cycle in which the AR register takes a burst, as far as it is known."""
        wanted = min(self._front.asks, self._walk_from)
        return NEVER if wanted == NEVER else max(wanted, self._read.free)

    def _take_burst(self, cycle: int, until: int) -> None:
        """Take a burst in `cycle`; of a LOAD, all bursts that nothing else can come between."""
        fetch = self._front.asks
        if fetch <= cycle:
            self._read.take(cycle, self._front.place, self._front.beats, True)
            self._front.take(cycle)
            self._advance(cycle)
            return
        work, read, data = self._walk, self._read, self._data
        assert work is not None
        bursts, last = work.bursts, len(work.bursts) - 1
        while True:
            read.take(cycle, work.places[self._walk_burst], bursts[self._walk_burst], False)
            changed = self._advance(cycle)
            if self._walk_burst == last:
                load = self._units[Unit.LOAD]
                load.ready, load.queue.changed = cycle + 1, True
                self._walk, self._walk_from = None, NEVER
                return
            self._walk_burst += 1
            self._walk_from = cycle + 1
            cycle = max(cycle + 1, read.free)
            if cycle > until or cycle >= fetch or changed or data.need != NEVER:
                return

    def _serve(self, chip: Chip, cycle: int) -> None:
        """Let the chip serve the next beat, which is decided in `cycle`."""
        chip.decide()
        self._advance(cycle)
        self._end_stores(self._units[Unit.STORE])

    def _advance(self, cycle: int) -> bool:
        """Let LOAD's data side go as far as what OUTPUT did before `cycle` decides; True when others may see it."""
        data = self._data
        data.advance(cycle + DEPTH if data.shared and cycle < NEVER else NEVER)
        if len(data.follow) == self._followed and not data.finished and not data.fetched:
            return False
        self._followed = len(data.follow)
        self._units[Unit.LOAD].queue.changed = True
        while data.finished:
            work, start, end = data.finished.pop(0)
            # The write register holds the last beat for one more cycle.
            self._units[Unit.LOAD].occupy(start + 1, end + 2)
            self._give(work, end + 1)
        while data.fetched:
            self._front.arrive(*data.fetched.pop(0))
        return True

    # the end

    def _blocked(self, unit: Unit) -> str:
        """What the unit waits for for ever, empty when it does not."""
        queue = self._units[unit].queue
        if len(queue.starts) == len(queue.pushed):
            return ""
        index = queue.indices[len(queue.starts)]
        work = self._works[index]
        empty = ",".join(f"s{s}" for s in work.waits if not self._tokens[s])
        return f"{unit.name.lower()} at instruction {index} ({work.op.name.lower()}) for {empty}"

    def _finish(self) -> dict[str, int]:
        blocked = [text for unit in _UNITS if (text := self._blocked(unit))]
        if blocked:
            raise DeadlockError(f"deadlock: waiting for tokens that nobody gives: {'; '.join(blocked)}")
        load, compute, output, store, row = self._units
        done = max(self._front.done + 1, self._given + 2, *(unit.idle for unit in self._units))
        beats = sum(work.beats for work in self._works if work.unit is Unit.LOAD)
        results = {op: sum(work.results for work in self._works if work.op is op) for op in Op}
        bus = self._bus_bytes
        return {
            "CYCLES": done + 1,
            "LOAD_BUSY": load.busy,
            "LOAD_TOKEN": load.token,
            "LOAD_MEMORY": self._data.memory,
            "COMPUTE_BUSY": compute.busy,
            "COMPUTE_TOKEN": compute.token,
            "OUTPUT_BUSY": output.busy,
            "OUTPUT_TOKEN": output.token,
            "STORE_BUSY": store.busy,
            "STORE_TOKEN": store.token,
            "STORE_MEMORY": store.busy - self._store_beats,
            "GEMM_UOPS": results[Op.GEMM],
            "ALU_UOPS": results[Op.ALU],
            "OUTPUT_VECTORS": results[Op.REQUANT],
            "FETCH_BYTES": len(self._works) * INSTRUCTION_BYTES,
            "READ_BYTES": beats * bus,
            "WRITE_BYTES": self._store_beats * bus,
            "ROW_BUSY": row.busy,
            "ROW_TOKEN": row.token,
            "INSTRUCTIONS": len(self._works),
        }


def _check_finish(works: Sequence[Work]) -> None:
    """The dispatcher's own rules."""
    for index, work in enumerate(works[:-1]):
        if work.op is Op.FINISH:
            raise Fault(FaultCode.ILLEGAL_FIELD, index, "finish must be the last instruction")
    if not works or works[-1].op is not Op.FINISH:
        raise Fault(FaultCode.ILLEGAL_OPCODE, len(works), "program must end with finish")
