"""Runs programs on random numbers that stand for terms, to prove that two of them compute the same.

In: words, bytes of memory, which of them are constants of the program. Out: numbers for every byte of memory.
A byte that is no constant is an indeterminate; sums and products are those of numbers modulo a prime, shifts and casts
are random functions, and a maximum is that of the numbers. Equal terms have equal numbers. Different ones have equal
numbers with a probability of about 2**-30 in each round, of a half where a maximum is between them; all rounds run at
once. It says nothing about the order of modules, which the checker proves before.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, AluOp, Gemm, Insn, Memory, Op, Queue, Words, decode, queue_of
from relay_hw.vta.sim.arith import indices
from relay_hw.vta.sim.choices import Choices
from relay_hw.vta.sim.machine import Link, links
from relay_hw.vta.sim.memory import load, pads
from relay_hw.vta.sim.state import State

ROUNDS = 8
PRIME = (1 << 31) - 1
# int64 [..., rounds]
Numbers = NDArray[np.int64]


def function(*parts: object) -> Numbers:
    """A random function of numbers and arrays of them."""
    word = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        for part in parts:
            word = (np.asarray(part).astype(np.uint64) ^ word) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(29))) * np.uint64(0x94D049BB133111EB)
            word = word ^ (word >> np.uint64(32))
    return np.asarray(word % np.uint64(PRIME)).astype(np.int64)


@dataclass(slots=True)
class Bytes:
    """Numbers [bytes, rounds] of memory from `base` on; `values` of those that are `known`."""

    numbers: Numbers
    values: NDArray[np.int8]
    known: NDArray[np.bool_]

    @classmethod
    def of(cls, memory: NDArray[np.uint8], known: NDArray[np.bool_]) -> Bytes:
        """Constants where they are known, else an indeterminate for each byte."""
        values = memory.view(np.int8)
        names = function(99, np.arange(len(values))[:, None], np.arange(ROUNDS))
        return cls(np.where(known[:, None], values.astype(np.int64)[:, None] % PRIME, names), values, known.copy())


class Abstract:
    """A machine whose entries are numbers; micro-ops are real."""

    def __init__(self, state: State, memory: Bytes) -> None:
        self._real, self.memory = state, memory
        geometry = state.geometry
        block = (geometry.batch, geometry.block)
        shapes = {Buffer.INP: block, Buffer.WGT: (geometry.block,) * 2, Buffer.ACC: block, Buffer.OUT: block}
        self._of = {
            buffer: function(int(buffer), np.arange(np.prod((geometry.depth(buffer), *shape, ROUNDS)))).reshape(
                -1, *shape, ROUNDS
            )
            for buffer, shape in shapes.items()
        }

    def run(self, words: Words) -> Numbers:
        """All instructions in an order that tokens allow; numbers of memory."""
        program = decode(words, self._real.geometry)
        queues = {queue: deque(one for one in program if queue_of(one) is queue) for queue in Queue}
        tokens: Counter[Link] = Counter()
        while any(queues.values()):
            for queue, items in queues.items():
                while items and all(tokens[link] for link in links(queue, items[0].flags)[0]):
                    takes, gives = links(queue, items[0].flags)
                    tokens.subtract(takes)
                    self._step(items.popleft())
                    tokens.update(gives)
        return self.memory.numbers

    def _step(self, insn: Insn) -> None:
        if isinstance(insn, Memory):
            self._store(insn) if insn.op is Op.STORE else self._load(insn)
        elif isinstance(insn, Gemm | Alu) and indices(self._real, insn)[0].size:
            self._gemm(insn) if isinstance(insn, Gemm) else self._alu(insn)

    def _load(self, insn: Memory) -> None:
        if not insn.x_size:
            return
        if insn.memory_type is Buffer.UOP:
            load(self._real, insn, Choices())
            return
        place = self._of[insn.memory_type]
        top, bottom, left, right = pads(insn, Choices())
        shape = (top + insn.y_size + bottom, left + insn.x_size + right, *place.shape[1:])
        block = np.zeros(shape, np.int64)
        for y in range(insn.y_size):
            block[top + y, left : left + insn.x_size] = self._row(insn, y).reshape(insn.x_size, *place.shape[1:])
        place[insn.sram_base : insn.sram_base + shape[0] * shape[1]] = block.reshape(-1, *place.shape[1:])

    def _row(self, insn: Memory, y: int) -> Numbers:
        """Numbers of the elements of a row in memory."""
        size = self._real.geometry.entry_bytes(insn.memory_type)
        span = self._real.dram.span(insn.dram_base + y * insn.x_stride, insn.x_size, size)
        if insn.memory_type is not Buffer.ACC:
            return self.memory.numbers[span]
        numbers = self.memory.numbers[span].reshape(-1, 4, ROUNDS)
        words = self.memory.values[span].view("<i4").astype(np.int64)[:, None] % PRIME
        known = self.memory.known[span].reshape(-1, 4).all(axis=1)[:, None]
        return np.where(known, words, function(4, *numbers.transpose(1, 0, 2)))

    def _store(self, insn: Memory) -> None:
        size = self._real.geometry.entry_bytes(Buffer.OUT)
        out = self._of[Buffer.OUT].reshape(len(self._of[Buffer.OUT]), -1, ROUNDS)
        for y in range(insn.y_size):
            span = self._real.dram.span(insn.dram_base + y * insn.x_stride, insn.x_size, size)
            begin = insn.sram_base + y * insn.x_size
            self.memory.numbers[span] = out[begin : begin + insn.x_size].reshape(-1, ROUNDS)
            self.memory.known[span] = False

    def _gemm(self, insn: Gemm) -> None:
        dst, src, wgt = indices(self._real, insn)
        acc = self._of[Buffer.ACC]
        if insn.reset:
            acc[dst.reshape(-1)] = 0
        else:
            for target, data, weights in zip(dst, src, wgt, strict=True):
                # [micro-op, row, out, rounds], a lane at a time.
                left, right = self._of[Buffer.INP][data], self._of[Buffer.WGT][weights]
                total = np.zeros((*left.shape[:2], right.shape[1], ROUNDS), np.int64)
                for lane in range(left.shape[2]):
                    total += left[:, :, None, lane] * right[:, None, :, lane] % PRIME
                np.add.at(acc, target, total % PRIME)
            acc[dst] %= PRIME
        self._written(dst)

    def _alu(self, insn: Alu) -> None:
        dst, src, _ = (grid.reshape(-1) for grid in indices(self._real, insn))
        acc = self._of[Buffer.ACC]
        apart = len(np.unique(dst)) == len(dst) and (insn.use_imm or not np.isin(src, dst).any() or (src == dst).all())
        for step in [slice(None)] if apart else [slice(k, k + 1) for k in range(len(dst))]:
            right = np.int64(insn.imm % PRIME) if insn.use_imm else acc[src[step]]
            acc[dst[step]] = _operated(insn.alu_opcode, acc[dst[step]], right)
        self._written(dst)

    def _written(self, dst: NDArray[np.int64]) -> None:
        self._of[Buffer.OUT][dst] = function(8, self._of[Buffer.ACC][dst])


def _operated(operation: AluOp, left: Numbers, right: Numbers | np.int64) -> Numbers:
    if operation is AluOp.ADD:
        return (left + right) % PRIME
    if operation in (AluOp.MIN, AluOp.MAX):
        return np.minimum(left, right) if operation is AluOp.MIN else np.maximum(left, right)
    unchanged = operation is AluOp.SHR and np.ndim(right) == 0 and not right
    return left if unchanged else function(int(operation), right, left)
