"""Writes the instructions of one layer: loads, computation and stores of one tile after the other.

In: a plan, the sections of its tensors. Out: instructions in program order, micro-ops. Two tiles are under way at once
(VTA's virtual threads): each has half of every buffer, and tokens hand the halves from one module to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.half import Code, Half, Spot, Writer
from relay_hw.vta.isa import Flags, Memory, Op, Queue, Uops
from relay_hw.vta.kernel import Kind
from relay_hw.vta.tiles import THREADS, Plan


@dataclass(frozen=True, slots=True)
class Places:
    """Numbers of sections: of a layer's operands, weights, parameters, micro-ops and result; -1 where it has none."""

    data: tuple[int, ...]
    weight: int
    vectors: int
    uops: int
    result: int


# Instructions that only carry flags, by module.
_CARRIERS: Final = {
    Queue.LOAD: (Op.LOAD, Buffer.INP),
    Queue.COMPUTE: (Op.LOAD, Buffer.UOP),
    Queue.STORE: (Op.STORE, Buffer.OUT),
}


def carrier(queue: Queue, **flags: bool) -> Memory:
    """An instruction without effect."""
    return Memory(*_CARRIERS[queue], 0, 0, 0, 0, 0, flags=Flags(**flags))


def lower(plan: Plan, places: Places) -> tuple[list[Code], Uops]:
    """The code of a layer and its micro-ops. It begins and ends with all buffers free and no token anywhere."""
    layer = _Layer(plan, places)
    layer.write()
    return layer.writer.code, np.array(layer.writer.uops, np.int64).reshape(-1, 3)


class _Layer:
    """The state while a layer is written: what each half of the buffers holds, and how many tokens are on their way."""

    def __init__(self, plan: Plan, places: Places) -> None:
        self.plan, self.places, self.writer = plan, places, Writer()
        self._halves = [Half(plan, thread, self.writer) for thread in range(THREADS)]
        self._piece = 0
        self._tile = 0

    def write(self) -> None:
        """All tiles, then the instructions that collect tokens."""
        for spot in self._spots():
            self._one(spot)
        uops = len(self.writer.uops)
        self.writer.code.insert(0, (Memory(Op.LOAD, Buffer.UOP, 0, 0, 1, uops, uops), self.places.uops))
        pieces, tiles = min(self._piece, THREADS), min(self._tile, THREADS)
        for number in range(tiles):
            # The last one tells the next layer's loads that all results are in DRAM.
            self.writer.add(carrier(Queue.COMPUTE, pop_next=True, push_prev=number == tiles - 1))
        for _ in range(pieces + 1):
            self.writer.add(carrier(Queue.LOAD, pop_next=True))

    def _spots(self) -> Iterator[Spot]:
        plan, (_, _, height, width) = self.plan, self.plan.kernel.result
        for batch in range(plan.batches):
            for out in _starts(plan.out_blocks, plan.tile.outs):
                for row in _starts(height, plan.tile.rows):
                    for column in _starts(width, plan.tile.columns):
                        yield Spot(batch, out, row, column)

    def _one(self, spot: Spot) -> None:
        """One tile in the accumulators of its thread."""
        half, first = self._halves[self._tile % THREADS], len(self.writer.code)
        self._load_vectors(spot, half)
        half.reset()
        if self._tile >= THREADS:
            self.writer.flag(first, pop_next=True)
        for number in range(self.plan.pieces):
            source = self._load(spot, number)
            head = len(self.writer.code)
            half.products(source)
            self.writer.flag(head, pop_prev=True)
            self.writer.flag(len(self.writer.code) - 1, push_prev=True)
        half.tail(spot)
        self.writer.flag(len(self.writer.code) - 1, push_next=True)
        self._store(spot, half)
        self._tile += 1

    def _load(self, spot: Spot, number: int) -> Half:
        """Data and weights of a piece in the buffers of its thread; what is there already stays."""
        half = self._halves[self._piece % THREADS]
        begin = len(self.writer.code)
        self._load_data(spot, number, half)
        self._load_weight(spot, number, half)
        if len(self.writer.code) == begin:
            self.writer.add(carrier(Queue.LOAD))
        if self._piece >= THREADS:
            self.writer.flag(begin, pop_next=True)
        self.writer.flag(len(self.writer.code) - 1, push_next=True)
        self._piece += 1
        return half

    def _load_data(self, spot: Spot, number: int, half: Half) -> None:
        plan, kernel = self.plan, self.plan.kernel
        dense = kernel.kind is Kind.DENSE
        section = self.places.data[0 if dense else number]
        first = number * plan.tile.ins if dense else spot.out
        key = (section, spot.batch, first, spot.row, spot.column)
        if key == half.data:
            return
        half.data = key
        for insn in _blocks(plan, spot, first):
            self.writer.add(replace(insn, sram_base=half.inp + insn.sram_base), section)

    def _load_weight(self, spot: Spot, number: int, half: Half) -> None:
        plan, taps = self.plan, self.plan.kernel.window.taps
        if plan.kernel.kind is Kind.DENSE:
            row = plan.in_blocks * taps
            first = spot.out * row + number * plan.tile.ins * taps
            insn = Memory(Op.LOAD, Buffer.WGT, half.wgt, first, plan.tile.outs, plan.tile.ins * taps, row)
        else:
            insn = Memory(Op.LOAD, Buffer.WGT, half.wgt, number, 1, 1, 1)
        if insn != half.weight:
            half.weight = insn
            self.writer.add(insn, self.places.weight)

    def _load_vectors(self, spot: Spot, half: Half) -> None:
        plan = self.plan
        if plan.vectors and half.vectors != spot.out:
            half.vectors = spot.out
            insn = Memory(Op.LOAD, Buffer.ACC, half.behind, spot.out, plan.vectors, plan.tile.outs, plan.out_blocks)
            self.writer.add(insn, self.places.vectors)

    def _store(self, spot: Spot, half: Half) -> None:
        plan, (_, _, height, width) = self.plan, self.plan.kernel.result
        first = spot.batch * plan.out_blocks * height * width
        begin = len(self.writer.code)
        whole = (plan.tile.rows, plan.tile.columns) == (height, width)
        for number in range(1 if whole else plan.tile.outs):
            at = first + ((spot.out + number) * height + spot.row) * width + spot.column
            rows, columns, stride = plan.tile.rows, plan.tile.columns, width
            if whole:
                rows, columns, stride = plan.tile.outs, plan.area, plan.area
            insn = Memory(Op.STORE, Buffer.OUT, half.acc + number * plan.area, at, rows, columns, stride)
            self.writer.add(insn, self.places.result)
        self.writer.flag(begin, pop_prev=True)
        self.writer.flag(len(self.writer.code) - 1, push_prev=True)


def _starts(count: int, size: int) -> list[int]:
    """Where tiles begin: side by side, the last one moved back so that it ends with the others."""
    return [min(begin, count - size) for begin in range(0, count, size)]


def _blocks(plan: Plan, spot: Spot, first: int) -> Iterator[Memory]:
    """Loads of a tile's data, addresses on the chip from 0 on: one for each block, or one for whole planes."""
    kernel, window = plan.kernel, plan.kernel.window
    _, _, height, width = kernel.data
    top = spot.row * window.strides[0] - window.before[0]
    left = spot.column * window.strides[1] - window.before[1]
    step = window.strides[0] if plan.skips_rows else 1
    rows = _clipped(top, plan.in_rows, height, step)
    columns = _clipped(left, plan.in_columns, width, 1)
    plane = (spot.batch * plan.in_blocks + first) * height * width
    size = plan.in_rows * plan.in_columns
    if (rows[1], columns[1]) == (height, width) and size == height * width:
        yield Memory(Op.LOAD, Buffer.INP, 0, plane, plan.tile.ins, size, size)
        return
    for number in range(plan.tile.ins):
        at = plane + (number * height + top + rows[0] * step) * width + left + columns[0]
        pads = (rows[0], rows[2], columns[0], columns[2])
        yield Memory(Op.LOAD, Buffer.INP, number * size, at, rows[1], columns[1], width * step, *pads)


def _clipped(begin: int, count: int, size: int, step: int) -> tuple[int, int, int]:
    """Of `count` places from `begin` on: how many lie before the data, in it, behind it."""
    before = max(-begin, 0)
    inside = min(count, -(-(size - begin) // step)) - before
    return before, inside, count - before - inside
