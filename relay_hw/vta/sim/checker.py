"""Proves from the words of a program alone that it ends, and that tokens order all that touches the same entries.

In: words, DRAM with the micro-ops. Out: nothing, or CheckError with the first violation: a module that waits for ever,
tokens or instructions that FINISH leaves behind, two modules at the same entry in no fixed order, entries read that
nobody wrote. It assumes the least of a machine: an instruction may begin as soon as its tokens are there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import RelayHwError
from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, Finish, Gemm, Insn, Memory, Op, Queue, Words, decode, queue_of, show
from relay_hw.vta.sim.arith import indices
from relay_hw.vta.sim.choices import Choices
from relay_hw.vta.sim.machine import Link, links
from relay_hw.vta.sim.memory import load
from relay_hw.vta.sim.state import SimulationError, State

Cells = NDArray[np.int64]
# Accesses to DRAM count in units of this many bytes.
GRANULE: Final = 4
_DRAM: Final = "DRAM"


class CheckError(RelayHwError):
    """A program that depends on the speed of the modules, or never ends."""


@dataclass(frozen=True, slots=True)
class Access:
    """Cells of one memory that an instruction touches."""

    memory: str
    cells: Cells
    writes: bool


def check(words: Words, state: State) -> None:
    """Check a program on a machine before it runs: `state` is used up. Raises CheckError, DecodeError."""
    program = decode(words, state.geometry)
    try:
        _Check(program, state).run()
    except SimulationError as error:
        raise CheckError(str(error)) from None


class _Check:
    """Walks through a program in an order that its tokens allow, with the clock of each instruction.

    A clock says how many instructions of each module are known to have ended before.
    """

    def __init__(self, program: Sequence[Insn], state: State) -> None:
        self._state = state
        self._program = program
        self._queues = {queue: deque(one for one in program if queue_of(one) is queue) for queue in Queue}
        self._given: dict[Link, deque[Cells]] = {}
        self._clocks = {queue: np.zeros(len(Queue), np.int64) for queue in Queue}
        self._memories: dict[str, _Memory] = {}

    def run(self) -> None:
        """The whole program."""
        if not self._program or not isinstance(self._program[-1], Finish):
            raise CheckError("a program must end in FINISH")
        while any(self._queues.values()):
            ready = [queue for queue in Queue if self._queues[queue] and self._may(queue)]
            if not ready:
                raise CheckError(f"the program must end: {self._waits()}")
            self._step(ready[0])
        left = sum(map(len, self._given.values()))
        if left:
            raise CheckError(f"FINISH must leave no token behind, not {left}")
        final = self._clocks[Queue.COMPUTE]
        for queue in Queue:
            count = sum(queue_of(one) is queue for one in self._program)
            if final[queue] != count:
                raise CheckError(f"FINISH must wait for the {queue.name.lower()} module")

    def _may(self, queue: Queue) -> bool:
        takes, _ = links(queue, self._queues[queue][0].flags)
        return all(self._given.get(link) for link in takes)

    def _step(self, queue: Queue) -> None:
        insn = self._queues[queue].popleft()
        takes, gives = links(queue, insn.flags)
        clock = self._clocks[queue].copy()
        for link in takes:
            clock = np.maximum(clock, self._given[link].popleft())
        for access in accesses(self._state, insn):
            memory = self._memories.setdefault(access.memory, _Memory())
            memory.meet(access, queue, clock, insn)
        clock[queue] += 1
        self._clocks[queue] = clock
        for link in gives:
            self._given.setdefault(link, deque()).append(clock)

    def _waits(self) -> str:
        fronts = [f"{queue.name.lower()} waits at {show(items[0])}" for queue, items in self._queues.items() if items]
        return "; ".join(fronts)


class _Memory:
    """By module and cell, the number of its last instruction that read or wrote there, from 1 on."""

    def __init__(self) -> None:
        self._written = np.zeros((len(Queue), 0), np.int64)
        self._read = np.zeros((len(Queue), 0), np.int64)

    def meet(self, access: Access, queue: Queue, clock: Cells, insn: Insn) -> None:
        """Compare an access with those before it. Raises CheckError."""
        self._grow(int(access.cells.max(initial=0)) + 1)
        before = [self._written, self._read] if access.writes else [self._written]
        for other in Queue:
            for table in before:
                if other is not queue and table[other, access.cells].max(initial=0) > clock[other]:
                    names = f"{queue.name.lower()} and {other.name.lower()}"
                    raise CheckError(f"tokens must order {names} at {access.memory}, not leave it open: {show(insn)}")
        never = access.memory != _DRAM and not access.writes and not self._written[:, access.cells].any(0).all()
        if never:
            raise CheckError(f"entries of {access.memory} must be written before they are read: {show(insn)}")
        table = self._written if access.writes else self._read
        table[queue, access.cells] = clock[queue] + 1

    def _grow(self, size: int) -> None:
        if size > self._written.shape[1]:
            more = np.zeros((len(Queue), 2 * size - self._written.shape[1]), np.int64)
            self._written, self._read = np.hstack([self._written, more]), np.hstack([self._read, more])


def accesses(state: State, insn: Insn) -> Iterator[Access]:
    """What an instruction touches; LOAD of micro-ops takes effect, since GEMM and ALU are read by them."""
    match insn:
        case Memory(op=Op.STORE):
            count = insn.y_size * insn.x_size
            cells = np.arange(insn.sram_base, insn.sram_base + count)
            _below(cells, Buffer.OUT, state)
            yield Access(Buffer.OUT.name, cells, False)
            yield Access(_DRAM, _dram(state, insn), True)
        case Memory():
            yield from _loads(state, insn)
        case Gemm() | Alu():
            yield from _computes(state, insn)
        case Finish():
            return


def _loads(state: State, insn: Memory) -> Iterator[Access]:
    if not insn.x_size:
        return
    buffer = insn.memory_type
    rows, columns = (1, insn.x_size) if buffer is Buffer.UOP else (insn.rows, insn.columns)
    cells = np.arange(insn.sram_base, insn.sram_base + rows * columns)
    _below(cells, buffer, state)
    yield Access(_DRAM, _dram(state, insn), False)
    yield Access(Buffer.ACC.name if buffer is Buffer.ACC_8BIT else buffer.name, cells, True)
    if buffer is Buffer.UOP:
        load(state, insn, Choices())
    if buffer in (Buffer.ACC, Buffer.ACC_8BIT):
        # Without a buffer OUT of its own, a store would read what is loaded here.
        yield Access(Buffer.OUT.name, cells, True)


def _computes(state: State, insn: Gemm | Alu) -> Iterator[Access]:
    dst, src, wgt = indices(state, insn)
    if not dst.size:
        return
    yield Access(Buffer.UOP.name, np.arange(insn.loops.uop_bgn, insn.loops.uop_end), False)
    target = np.unique(dst)
    _below(target, Buffer.ACC, state)
    if isinstance(insn, Alu):
        source = target if insn.use_imm else np.union1d(target, src)
        _below(source, Buffer.ACC, state)
        yield Access(Buffer.ACC.name, source, False)
    elif not insn.reset:
        for buffer, grid in ((Buffer.INP, src), (Buffer.WGT, wgt)):
            cells = np.unique(grid)
            _below(cells, buffer, state)
            yield Access(buffer.name, cells, False)
        yield Access(Buffer.ACC.name, target, False)
    yield Access(Buffer.ACC.name, target, True)
    yield Access(Buffer.OUT.name, target, True)


def _dram(state: State, insn: Memory) -> Cells:
    """Granules of DRAM, counted from its first one."""
    entry = state.geometry.entry_bytes(insn.memory_type)
    rows = 1 if insn.memory_type is Buffer.UOP else insn.y_size
    spans = [state.dram.span(insn.dram_base + y * insn.x_stride, insn.x_size, entry) for y in range(rows)]
    parts = [np.arange(span.start // GRANULE, -(-span.stop // GRANULE)) for span in spans]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def _below(cells: Cells, buffer: Buffer, state: State) -> None:
    most = len(state.of(buffer))
    if len(cells) and cells.max() >= most:
        raise CheckError(f"entries of {buffer.name} must be below {most}, not {cells.max()}")
