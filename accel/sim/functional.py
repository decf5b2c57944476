"""The functional simulator: what a program computes, exactly and fast, without time.

In: a program. Out: the window after its launch. Its units with queues of the configuration's depth take tokens and
run the semantics of `relay_hw.accel.isa`; any order of units that the tokens allow can be chosen by a seed.
"""

from __future__ import annotations

import random
import time
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache

from relay_hw.accel.isa.config import INSTRUCTION_BYTES, SEMAPHORE_MAX, SEMAPHORES, AccelConfig
from relay_hw.accel.isa.errors import AccelError, DeadlockError, EncodeError, Fault, FaultCode
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.isa.rules import check_instruction, check_opcode, dram_granules, gather_fetch_bytes
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import BY_OP, Op, Unit, decode
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import Instr, decode_instructions
from relay_hw.accel.sim.device import Bytes, LaunchStats, Window


@dataclass(frozen=True, slots=True)
class Entry:
    """One instruction: its index, fields, and semaphores to take from and give to."""

    index: int
    op: Op
    values: dict[str, int]
    waits: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass(slots=True)
class _Run:
    """Queues and counts of one launch."""

    queues: dict[Unit, deque[Entry]] = field(default_factory=lambda: {unit: deque[Entry]() for unit in Unit})
    counters: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, name: str, amount: int) -> None:
        self.counters[name] = self.counters.get(name, 0) + amount


class FunctionalDevice:
    """Executes programs with `relay_hw.accel.isa.semantics`.

    `order_seed` None runs units round robin; a number picks among the units that could run at random: a program with
    all the tokens it needs gives the same bytes for every seed.
    """

    def __init__(self, config: AccelConfig, order_seed: int | None = None) -> None:
        self._config = config
        self._window = Window()
        self._state = AccelState(config, self._window.bytes)
        self._program: Program | None = None
        self._random = None if order_seed is None else random.Random(order_seed)
        self._decoded: tuple[bytes, list[Entry | Fault]] = (b"", [])

    @property
    def config(self) -> AccelConfig:
        """Sizes of the accelerator."""
        return self._config

    @property
    def state(self) -> AccelState:
        """Scratchpads, for tests and debugging."""
        return self._state

    def load(self, program: Program) -> None:
        """See `Device.load`."""
        self._window.load(self._config, program)
        self._state.dram = self._window.bytes
        self._program = program

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self._window.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        return self._window.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`."""
        begin = time.perf_counter()
        entries = self._fetch(stream)
        run = _Run()
        self._state.semaphores[:] = 0
        position, done = 0, False
        while not done:
            moved = self._step(run)
            while position < len(entries):
                entry = entries[position]
                if isinstance(entry, Fault):
                    raise Fault(entry.code, entry.index, entry.detail)
                if entry.op is Op.FINISH or not self._dispatch(run, entry):
                    break
                position, moved = position + 1, True
            at_finish = position < len(entries) and _is_finish(entries[position])
            done = at_finish and not any(run.queues.values())
            if not moved and not done:
                raise self._stuck(run)
        run.count("INSTRUCTIONS", position + 1)
        run.count("FETCH_BYTES", len(entries) * INSTRUCTION_BYTES)
        return LaunchStats(None, run.counters, time.perf_counter() - begin)

    def _fetch(self, stream: SectionKind) -> list[Entry | Fault]:
        """Instructions as they lie in the window now, decoded once for each content."""
        if self._program is None:
            raise AccelError("a program must be loaded before it is launched")
        code = self._program.stream(stream)
        data = self._window.read(code.offset, code.size).tobytes()
        if self._decoded[0] != data:
            self._decoded = (data, _decode_all(self._config, data))
        return self._decoded[1]

    def _dispatch(self, run: _Run, entry: Entry) -> bool:
        unit = BY_OP[entry.op].unit
        assert unit is not None
        queue = run.queues[unit]
        if len(queue) >= self._config.queue_depth:
            return False
        queue.append(entry)
        return True

    def _step(self, run: _Run) -> bool:
        """Let units run their next instructions where tokens allow. True when something ran."""
        units = list(Unit)
        if self._random is not None:
            # One instruction of one unit, so that every interleaving can happen.
            self._random.shuffle(units)
            return any(self._execute(run, unit) for unit in units)
        moved = False
        for unit in units:
            while self._execute(run, unit):
                moved = True
        return moved

    def _execute(self, run: _Run, unit: Unit) -> bool:
        queue = run.queues[unit]
        if not queue:
            return False
        entry, semaphores = queue[0], self._state.semaphores
        if any(not semaphores[s] for s in entry.waits):
            return False
        queue.popleft()
        for s in entry.waits:
            semaphores[s] -= 1
        SEMANTICS[entry.op](self._state, entry.values, entry.index)
        _count_work(run, self._config, entry.op, entry.values)
        for s in entry.gives:
            semaphores[s] += 1
            if semaphores[s] > SEMAPHORE_MAX:
                raise Fault(FaultCode.TOKEN_OVERFLOW, entry.index, f"semaphore {s} would pass {SEMAPHORE_MAX}")
        return True

    def _stuck(self, run: _Run) -> DeadlockError:
        blocked: list[str] = []
        for unit, queue in run.queues.items():
            if queue:
                entry = queue[0]
                empty = ",".join(f"s{s}" for s in entry.waits if not self._state.semaphores[s])
                blocked.append(
                    f"{unit.name.lower()} at instruction {entry.index} ({entry.op.name.lower()}) for {empty}"
                )
        return DeadlockError(f"deadlock: waiting for tokens that nobody gives: {'; '.join(blocked)}")


def _is_finish(entry: Entry | Fault) -> bool:
    return isinstance(entry, Entry) and entry.op is Op.FINISH


def _decode_all(config: AccelConfig, data: bytes) -> list[Entry | Fault]:
    """Instructions as the dispatcher judges them, in order; a program must end with its only FINISH."""
    entries = [_checked(config, index, decoded) for index, decoded in enumerate(_decode_legal(config, data))]
    for index, entry in enumerate(entries[:-1]):
        if _is_finish(entry):
            entries[index] = Fault(FaultCode.ILLEGAL_FIELD, index, f"finish must be the last of {len(entries)}")
    if not _is_finish(entries[-1]):
        entries.append(Fault(FaultCode.ILLEGAL_OPCODE, len(entries), "the last instruction must be finish"))
    return entries


def _decode_legal(config: AccelConfig, data: bytes) -> list[Instr | Fault]:
    """Instructions, and faults in the place of words that are none."""
    try:
        return list(decode_instructions(data))
    except EncodeError:
        return [_decode(config, data, begin) for begin in range(0, len(data), INSTRUCTION_BYTES)]


def _decode(config: AccelConfig, data: bytes, begin: int) -> Instr | Fault:
    index = begin // INSTRUCTION_BYTES
    try:
        check_opcode(config, data[begin], index)
        row, values = decode(int.from_bytes(data[begin : begin + INSTRUCTION_BYTES], "little"))
    except EncodeError as error:
        return Fault(error.code, index, str(error))
    except Fault as fault:
        return fault
    return row.op, values


def _checked(config: AccelConfig, index: int, decoded: Instr | Fault) -> Entry | Fault:
    if isinstance(decoded, Fault):
        return decoded
    op, values = decoded
    try:
        check_instruction(config, op, values, index)
    except Fault as fault:
        return fault
    return Entry(index, op, values, _bits(values.get("wait", 0)), _bits(values.get("set", 0)))


@lru_cache(maxsize=4096)
def _bits(mask: int) -> tuple[int, ...]:
    return tuple(s for s in range(SEMAPHORES) if mask >> s & 1)


def _count_work(run: _Run, config: AccelConfig, op: Op, v: dict[str, int]) -> None:
    """Counters that do not depend on time."""
    match op:
        case Op.LOAD | Op.STORE:
            moved = dram_granules(config, v) * v["y"] * v["x"] * config.granule_bytes
            run.count("READ_BYTES" if op is Op.LOAD else "WRITE_BYTES", moved)
        case Op.GATHER:
            run.count("READ_BYTES", v["y"] * gather_fetch_bytes(config, v))
        case Op.GEMM | Op.ALU:
            issued = v["iter_out"] * v["iter_in"] * (v["uop_end"] - v["uop_begin"])
            run.count("GEMM_UOPS" if op is Op.GEMM else "ALU_UOPS", issued)
        case Op.REQUANT:
            run.count("OUTPUT_VECTORS", v["iter_out"] * v["iter_in"])
        case Op.FINISH | Op.ROW:
            pass
