"""The core in time: fetch, dispatcher, queues, semaphores and four units as events between which nothing is decided.

In: the work of each instruction. Out: the counters of the launch. Cycle 0 is the first in which the core runs; the
module-level docstring of `channels` says what a cycle's number means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from accel.isa.config import INSTRUCTION_BYTES, SEMAPHORES, AccelConfig
from accel.isa.errors import DeadlockError, Fault, FaultCode
from accel.isa.spec import Dst, Op, Unit
from accel.sim.cycle.channels import NEVER, ReadChannel, WriteChannel
from accel.sim.cycle.hazards import OutputHazards
from accel.sim.cycle.load import LoadData
from accel.sim.cycle.work import Work
from accel.sim.cycle.writes import DEPTH
from accel.sim.memory import MemoryModel

# Sizes of the fetch unit: instructions in its buffer, instructions of one burst at most.
FETCH_BUFFER = 32
FETCH_AHEAD = 8
# A slot of COMPUTE in cycle t has its last effect in cycle t + this.
COMPUTE_DEPTH = 6
_UNITS = tuple(Unit)


@dataclass(frozen=True, slots=True)
class Span:
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

    name: str
    # index of each instruction of the queue and the cycle in which it was pushed
    indices: list[int] = field(default_factory=list[int])
    pushed: list[int] = field(default_factory=list[int])
    asked: list[int] = field(default_factory=list[int])
    starts: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    ready: int = 0
    # cycle from which the next instruction had everything but its tokens
    asking: int = NEVER
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
        self._config = config
        self._works = works
        self._offset = program_offset
        self._read = ReadChannel(config, memory)
        self._write = WriteChannel(config, memory)
        self._hazards = OutputHazards(config, [])
        self._units = tuple(_Unit(unit.name) for unit in _UNITS)
        # per semaphore: cycles from which its tokens can be taken; cycle in which one was last taken
        self._tokens: list[list[int]] = [[] for _ in range(SEMAPHORES)]
        self._taken = [-1] * SEMAPHORES
        # fetch: beats of an instruction, beats asked for, first cycle of the next request
        self._insn_beats = INSTRUCTION_BYTES // config.bus_bytes
        self._asked = 0
        self._asks = 0
        self._received = 0
        # dispatcher: cycles in which instruction i can be popped, is popped, moves on, is pushed into its queue
        self._arrived: list[int] = []
        self._popped: list[int] = []
        self._moved: list[int] = []
        self._gone: list[int] = []
        # LOAD: bursts of the instruction that is being walked; data side
        self._walk: Work | None = None
        self._walk_burst = 0
        self._walk_from = NEVER
        shared = any(work.values is not None and work.values["dst"] == Dst.INP for work in works)
        self._data = LoadData(self._read, shared)
        # STORE: cycles in which instructions gave their tokens
        self._stored: list[int] = []
        self._store_beats = 0

    def run(self) -> dict[str, int]:
        """Counters of the launch. Raises DeadlockError where hardware would stop with its watchdog."""
        while True:
            bus = self._bus_time()
            cycle, chosen = NEVER, None
            for number in range(4):
                start = self._start_time(number)
                if start < cycle:
                    cycle, chosen = start, number
            nearest = min(bus, cycle)
            if self._data.need - DEPTH <= nearest:
                if self._data.need == NEVER:
                    break
                self._advance(nearest)
            elif bus <= cycle:
                self._take_burst(bus, cycle)
            else:
                assert chosen is not None
                self._start(chosen, cycle)
        return self._finish()

    def spans(self) -> list[Span]:
        """Every instruction but FINISH in time, in program order, after `run`."""
        spans = [
            Span(index, name, asked, start, end)
            for name, unit in zip(_UNITS, self._units, strict=True)
            for index, asked, start, end in zip(unit.indices, unit.asked, unit.starts, unit.ends, strict=True)
        ]
        return sorted(spans, key=lambda span: span.index)

    # fetch and dispatcher

    def _fetch_burst(self) -> int:
        """Beats of the next fetch burst; 0 when all instructions are asked for."""
        total = len(self._works) * self._insn_beats
        chunk = min(self._config.burst_beats, FETCH_AHEAD * self._insn_beats)
        position = self._offset // self._config.bus_bytes + self._asked
        return min(total - self._asked, chunk - position % chunk)

    def _fetch_time(self) -> int:
        """First cycle in which fetch asks for a burst, as far as it is known."""
        beats = self._fetch_burst()
        if not beats:
            return NEVER
        missing = self._asked + beats - FETCH_BUFFER * self._insn_beats
        if missing <= 0:
            return self._asks
        pops = -(-missing // self._insn_beats)
        return max(self._asks, self._popped[pops - 1] + 1) if pops <= len(self._popped) else NEVER

    def _fetch(self, cycle: int) -> None:
        beats = self._fetch_burst()
        self._read.take(cycle)
        self._data.line.append((cycle, beats, True))
        self._asked += beats
        self._asks = cycle + 1
        self._advance(cycle)

    def _arrive(self, first: int, beats: int) -> None:
        """A burst of instructions comes, its first beat in cycle `first`."""
        received = self._received + beats
        while (len(self._arrived) + 1) * self._insn_beats <= received:
            wanted = (len(self._arrived) + 1) * self._insn_beats - self._received
            self._arrived.append(first + wanted)
        self._received = received
        self._dispatch()

    def _dispatch(self) -> None:
        """Let instructions pass the dispatcher as far as what is known reaches."""
        arrived, popped, moved, gone = self._arrived, self._popped, self._moved, self._gone
        before = -1
        while before != len(popped) + len(moved) + len(gone):
            before = len(popped) + len(moved) + len(gone)
            i = len(popped)
            if i < len(arrived) and i <= len(moved):
                popped.append(max(arrived[i], moved[i - 1]) if i else arrived[i])
            i = len(moved)
            if i < len(popped) and i <= len(gone):
                moved.append(max(popped[i] + 1, gone[i - 1]) if i else popped[i] + 1)
            i = len(gone)
            if i < len(moved):
                self._push(i)

    def _push(self, index: int) -> None:
        """Put the instruction in the dispatcher's second register into its queue, when that is known to have room."""
        number = self._works[index].unit
        if number is None:
            return
        unit = self._units[number]
        cycle = self._moved[index] + 1
        before = len(unit.pushed) - self._config.queue_depth
        if before >= 0:
            if before >= len(unit.starts):
                return
            cycle = max(cycle, unit.starts[before] + 1)
        self._gone.append(cycle)
        unit.indices.append(index)
        unit.pushed.append(cycle)

    # starts

    def _start_time(self, number: int) -> int:
        """First cycle in which the unit's next instruction starts, as far as it is known."""
        unit = self._units[number]
        k = len(unit.starts)
        if k == len(unit.pushed):
            return NEVER
        cycle = max(unit.pushed[k] + 1, unit.ready)
        if k:
            cycle = max(cycle, unit.starts[k - 1] + 1)
        if number == Unit.LOAD:
            behind, follow = k - max(2, self._config.read_outstanding), self._data.follow
            if behind >= len(follow):
                return NEVER
            if behind >= 0:
                cycle = max(cycle, follow[behind] + 1)
        elif number == Unit.STORE:
            behind = k - max(2, self._config.write_outstanding)
            if behind >= 0:
                cycle = max(cycle, self._stored[behind] + 1)
        unit.asking = cycle
        waits = self._works[unit.indices[k]].waits
        for s in waits:
            tokens = self._tokens[s]
            if not tokens:
                return NEVER
            cycle = max(cycle, tokens[0])
        # Of two units that take the same semaphore in one cycle, the second waits.
        while any(self._taken[s] == cycle for s in waits):
            cycle += 1
        return cycle

    def _start(self, number: int, cycle: int) -> None:
        unit = self._units[number]
        work = self._works[unit.indices[len(unit.starts)]]
        unit.token += cycle - unit.asking
        unit.asked.append(unit.asking)
        unit.starts.append(cycle)
        for s in work.waits:
            heappop(self._tokens[s])
            self._taken[s] = cycle
        match number:
            case Unit.LOAD:
                self._start_load(unit, work, cycle)
            case Unit.STORE:
                self._start_store(unit, work, cycle)
            case Unit.COMPUTE:
                unit.ready = cycle + work.slots
                unit.occupy(cycle + 1, unit.ready + COMPUTE_DEPTH + 1)
                self._give(work, unit.ready + COMPUTE_DEPTH)
            case _:
                assert work.values is not None
                unit.ready = self._hazards.last_slot(cycle, work.values, self._data.writes)
                unit.occupy(cycle + 1, unit.ready + DEPTH + 1)
                self._give(work, unit.ready + DEPTH)
        self._dispatch()

    def _give(self, work: Work, cycle: int) -> None:
        """The last effect is in `cycle`; tokens given then can be taken in the next."""
        assert work.unit is not None
        self._units[work.unit].ends.append(cycle)
        for s in work.gives:
            heappush(self._tokens[s], cycle + 1)

    def _start_store(self, unit: _Unit, work: Work, cycle: int) -> None:
        taken = cycle + 1
        for beats in work.bursts:
            taken = self._write.send(taken, beats)
        unit.ready = taken
        given = self._write.responses[-1] + 1
        self._stored.append(given)
        self._store_beats += work.beats
        unit.occupy(cycle + 1, given + 1)
        self._give(work, given)

    # LOAD and the bus

    def _start_load(self, unit: _Unit, work: Work, cycle: int) -> None:
        unit.ready = NEVER
        self._walk, self._walk_burst, self._walk_from = work, 0, cycle + 1
        self._data.start(work, cycle)
        self._advance(cycle)

    def _bus_time(self) -> int:
        """First cycle in which the AR register takes a burst, as far as it is known."""
        wanted = min(self._fetch_time(), self._walk_from)
        return NEVER if wanted == NEVER else max(wanted, self._read.free)

    def _take_burst(self, cycle: int, until: int) -> None:
        """Take a burst in `cycle`; of a LOAD, all bursts that nothing else can come between."""
        fetch = self._fetch_time()
        if fetch <= cycle:
            self._fetch(cycle)
            return
        work, read, data = self._walk, self._read, self._data
        assert work is not None
        bursts, last = work.bursts, len(work.bursts) - 1
        while True:
            read.take(cycle)
            data.line.append((cycle, bursts[self._walk_burst], False))
            changed = self._advance(cycle)
            if self._walk_burst == last:
                self._units[Unit.LOAD].ready = cycle
                self._walk, self._walk_from = None, NEVER
                return
            self._walk_burst += 1
            self._walk_from = cycle + 1
            cycle = max(cycle + 1, read.free)
            if cycle > until or cycle >= fetch or changed or data.need != NEVER:
                return

    def _advance(self, cycle: int) -> bool:
        """Let LOAD's data side go as far as what OUTPUT did before `cycle` decides; True when others may see it."""
        data = self._data
        data.advance(cycle + DEPTH if data.shared and cycle < NEVER else NEVER)
        if not data.finished and not data.fetched:
            return False
        while data.finished:
            work, start, end = data.finished.pop(0)
            # The write register holds the last beat for one more cycle.
            self._units[Unit.LOAD].occupy(start + 1, end + 2)
            self._give(work, end + 1)
        while data.fetched:
            self._arrive(*data.fetched.pop(0))
        return True

    # the end

    def _blocked(self, number: int) -> str:
        """What the unit waits for for ever, empty when it does not."""
        unit = self._units[number]
        if len(unit.starts) == len(unit.pushed):
            return ""
        index = unit.indices[len(unit.starts)]
        work = self._works[index]
        empty = ",".join(f"s{s}" for s in work.waits if not self._tokens[s])
        return f"{unit.name.lower()} at instruction {index} ({work.op.name.lower()}) for {empty}"

    def _finish(self) -> dict[str, int]:
        blocked = [text for number in range(4) if (text := self._blocked(number))]
        if blocked:
            raise DeadlockError(f"deadlock: waiting for tokens that nobody gives: {'; '.join(blocked)}")
        load, compute, output, store = self._units
        done = max(self._moved[-1] + 1, *(unit.idle for unit in self._units))
        beats = sum(work.beats for work in self._works if work.unit is Unit.LOAD)
        results = {op: sum(work.results for work in self._works if work.op is op) for op in Op}
        bus = self._config.bus_bytes
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
            "INSTRUCTIONS": len(self._works),
        }


def _check_finish(works: Sequence[Work]) -> None:
    """The dispatcher's own rules."""
    for index, work in enumerate(works[:-1]):
        if work.op is Op.FINISH:
            raise Fault(FaultCode.ILLEGAL_FIELD, index, "finish must be the last instruction")
    if not works or works[-1].op is not Op.FINISH:
        raise Fault(FaultCode.ILLEGAL_OPCODE, len(works), "program must end with finish")
