"""What the compute module does for one tile, in the half of the buffers of one thread.

In: a plan, data and weights in the half of a thread. Out: GEMM and ALU instructions, and the micro-ops that they
execute, each sequence once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, AluOp, Gemm, Insn, Loops, with_flags
from relay_hw.vta.kernel import Kind, Tail, inner_tap
from relay_hw.vta.tiles import THREADS, Plan

# An instruction and the number of the section that its address counts from, or -1.
Code = tuple[Insn, int]
Uop = tuple[int, int, int]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Spot:
    """Where a tile lies: batch, first block of results, first row and column."""

    batch: int
    out: int
    row: int
    column: int


@dataclass(slots=True)
class Writer:
    """Collects instructions with the section of each, and micro-ops of the layer."""

    code: list[Code] = field(default_factory=list[Code])
    uops: list[Uop] = field(default_factory=list[Uop])
    known: dict[tuple[Uop, ...], int] = field(default_factory=dict[tuple[Uop, ...], int])

    def add(self, insn: Insn, section: int = -1) -> None:
        """One more instruction."""
        self.code.append((insn, section))

    def loops(self, uops: Sequence[Uop], sizes: Pair, dst: Pair, src: Pair = (0, 0)) -> Loops:
        """Loops of these sizes around micro-ops, which are written once; counters add `dst` and `src`."""
        key = tuple(uops)
        if key not in self.known:
            self.known[key] = len(self.uops)
            self.uops += key
        begin = self.known[key]
        factors = [by if size > 1 else 0 for pair in (dst, src) for by, size in zip(pair, sizes, strict=True)]
        return Loops(begin, begin + len(key), *sizes, *factors)

    def flag(self, index: int, **flags: bool) -> None:
        """Set flags of an instruction that was written."""
        insn, section = self.code[index]
        self.code[index] = with_flags(insn, **flags), section


class Half:
    """One thread's part of the buffers, what is in it, and the instructions that work there."""

    def __init__(self, plan: Plan, thread: int, writer: Writer) -> None:
        depth = plan.geometry.depth
        self.inp, self.wgt, self.acc = (thread * depth(b) // THREADS for b in (Buffer.INP, Buffer.WGT, Buffer.ACC))
        # Behind the results: parameters, or for a maximum the data.
        self.behind = self.acc + plan.tile.outs * plan.area
        self.data: object = None
        self.weight: object = None
        self.vectors: object = None
        self._plan, self._writer = plan, writer

    @property
    def _whole(self) -> Pair:
        """Results of a tile, counted as one row."""
        return 1, self._plan.tile.outs * self._plan.area

    def reset(self) -> None:
        """Clear the accumulators of a tile."""
        size = self._plan.used()[Buffer.ACC] - self._plan.vectors * self._plan.tile.outs
        self._writer.add(Gemm(self._writer.loops([(self.acc, 0, 0)], (1, size), (0, 1)), reset=True))

    def products(self, source: Half) -> None:
        """Add products of what lies in the half `source`."""
        plan, tile = self._plan, self._plan.tile
        if plan.kernel.kind is Kind.MAXIMUM:
            size = (1, plan.used()[Buffer.INP])
            self._gemm([(self.behind, source.inp, source.wgt)], size, (0, 1), (0, 1))
            self._windows([(self.acc, source.inp + self._offset(*self._middle), source.wgt)])
            return
        taps = [
            self._offset(row, column)
            for row in range(plan.kernel.window.size[0])
            for column in range(plan.kernel.window.size[1])
        ]
        area, depth = plan.in_rows * plan.in_columns, tile.ins * len(taps)
        if plan.kernel.kind is Kind.DENSE:
            pairs = [(block, k) for block in range(tile.ins) for k in range(len(taps))]
            uops = [
                (
                    self.acc + out * plan.area,
                    source.inp + block * area + taps[k],
                    source.wgt + out * depth + block * len(taps) + k,
                )
                for block, k in pairs
                for out in range(tile.outs)
            ]
        else:
            uops = [
                (self.acc + out * plan.area, source.inp + out * area + tap, source.wgt)
                for tap in taps
                for out in range(tile.outs)
            ]
        # One accumulator in two micro-ops in a row is what no VTA computes: a new instruction begins.
        for part in [uops] if tile.outs > 1 else [[uop] for uop in uops]:
            self._gemm(part, (tile.rows, tile.columns), (tile.columns, 1), self._steps)

    @property
    def _middle(self) -> Pair:
        """A place of the window that is never in the padding."""
        row, column = (inner_tap(self._plan.kernel, axis) for axis in (0, 1))
        assert row is not None and column is not None
        return row, column

    @property
    def _steps(self) -> Pair:
        """Entries of the data from one window to the next, down and to the right."""
        return self._plan.row_step * self._plan.in_columns, self._plan.kernel.window.strides[1]

    def _offset(self, row: int, column: int) -> int:
        """Entries from the begin of a window to one of its places."""
        window = self._plan.kernel.window
        return row * window.dilation[0] * self._plan.in_columns + column * window.dilation[1]

    def _windows(self, firsts: Sequence[Uop]) -> None:
        """Copy the place of the window that `firsts` name, for each block."""
        plan, tile = self._plan, self._plan.tile
        area = plan.in_rows * plan.in_columns
        uops = [(a + out * plan.area, x + out * area, w) for a, x, w in firsts for out in range(tile.outs)]
        self._gemm(uops, (tile.rows, tile.columns), (tile.columns, 1), self._steps)

    def _gemm(self, uops: Sequence[Uop], sizes: Pair, dst: Pair, src: Pair) -> None:
        self._writer.add(Gemm(self._writer.loops(uops, sizes, dst, src)))

    def tail(self, spot: Spot) -> None:
        """ALU operations on the sums, or the largest of each window."""
        if self._plan.kernel.tail is not None:
            self._scale(self._plan.kernel.tail)
        else:
            self._largest(spot)

    def _scale(self, tail: Tail) -> None:
        self._vector(AluOp.ADD, 0)
        used = 1
        if tail.left:
            self._number(AluOp.SHR, -tail.left)
        for shift in tail.shifts:
            if isinstance(shift, int):
                self._number(AluOp.SHR, shift)
            else:
                self._vector(AluOp.SHR, used)
                used += 1
        if tail.zero_point:
            self._number(AluOp.ADD, tail.zero_point)
        self._number(AluOp.MAX, tail.low)
        self._number(AluOp.MIN, tail.high)

    def _number(self, opcode: AluOp, value: int) -> None:
        loops = self._writer.loops([(self.acc, 0, 0)], self._whole, (0, 1))
        self._writer.add(Alu(loops, opcode, True, value))

    def _vector(self, opcode: AluOp, number: int) -> None:
        """An operation with a row of parameters: one for each block."""
        outs, area = self._plan.tile.outs, self._plan.area
        uops = [(self.acc + out * area, self.behind + number * outs + out, 0) for out in range(outs)]
        self._writer.add(Alu(self._writer.loops(uops, (1, area), (0, 1)), opcode))

    def _largest(self, spot: Spot) -> None:
        window = self._plan.kernel.window
        for row in range(window.size[0]):
            for column in range(window.size[1]):
                if (row, column) != self._middle:
                    self._at_least(spot, row, column)

    def _at_least(self, spot: Spot, row: int, column: int) -> None:
        """Raise results to one place of their windows, where that is not in the padding."""
        plan, tile = self._plan, self._plan.tile
        rows = self._inside(0, spot.row, tile.rows, row)
        columns = self._inside(1, spot.column, tile.columns, column)
        sizes = (len(rows), len(columns))
        if not all(sizes):
            return
        area, (down, right) = plan.in_rows * plan.in_columns, self._steps
        dst = self.acc + rows.start * tile.columns + columns.start
        src = self.behind + rows.start * down + columns.start * right + self._offset(row, column)
        uops = [(dst + out * plan.area, src + out * area, 0) for out in range(tile.outs)]
        self._writer.add(Alu(self._writer.loops(uops, sizes, (tile.columns, 1), (down, right)), AluOp.MAX))

    def _inside(self, axis: int, begin: int, count: int, tap: int) -> range:
        """Results of a tile whose place `tap` of the window lies in the data."""
        window, size = self._plan.kernel.window, self._plan.kernel.data[2 + axis]
        stride = window.strides[axis]
        first = begin * stride + tap * window.dilation[axis] - window.before[axis]
        low = max(-(first // stride), 0)
        high = min((size - 1 - first) // stride + 1, count)
        return range(min(low, count), max(high, min(low, count)))
