"""GEMM and ALU: micro-ops inside of two loops, each on entries of the accumulators.

In: a state, an instruction, the choices of an implementation. Out: the state, changed in place. What is vectorised
gives what one micro-op after the other gives: sums wrap, so that their order does not matter. Raises SimulationError.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_never

from relay_hw.vta.geometry import Buffer
from relay_hw.vta.isa import Alu, AluOp, Gemm, Loops, decode_uops
from relay_hw.vta.sim.choices import Choices, Shift
from relay_hw.vta.sim.state import SimulationError, State

Index = NDArray[np.int64]


def indices(state: State, insn: Gemm | Alu) -> tuple[Index, Index, Index]:
    """Entries of ACC, of INP (ALU: ACC) and of WGT by [iteration, micro-op], in the order of execution."""
    loops = insn.loops
    uops = decode_uops(_uops(state, loops), state.geometry)
    wgt = (insn.wgt_factor_out, insn.wgt_factor_in) if isinstance(insn, Gemm) else (0, 0)
    pairs = ((loops.dst_factor_out, loops.dst_factor_in), (loops.src_factor_out, loops.src_factor_in), wgt)
    outer, inner = np.meshgrid(np.arange(loops.iter_out), np.arange(loops.iter_in), indexing="ij")
    grids = [(outer * out + inner * by).reshape(-1, 1) + uops[:, column] for column, (out, by) in enumerate(pairs)]
    return grids[0], grids[1], grids[2]


def gemm(state: State, insn: Gemm) -> None:
    """Clear accumulators, or add products; OUT gets the low bytes of what was written."""
    dst, src, wgt = indices(state, insn)
    if not dst.size:
        return
    _within(dst, Buffer.ACC, state)
    if insn.reset:
        state.acc[dst.reshape(-1)] = 0
    else:
        _within(src, Buffer.INP, state)
        _within(wgt, Buffer.WGT, state)
        _products(state, dst, src, wgt)
    touched = np.unique(dst)
    state.out[touched] = state.acc[touched].astype(np.int8)


def _products(state: State, dst: Index, src: Index, wgt: Index) -> None:
    """Columns that write the same entries are one product of matrices."""
    base = dst[:, :1]
    offsets = dst[0] - dst[0, 0]
    plain = len(np.unique(base)) == len(base) and (wgt == wgt[:1]).all()
    if not plain:
        for row in range(len(dst)):
            for column in range(dst.shape[1]):
                a, b, c = dst[row, column], src[row, column], wgt[row, column]
                state.acc[a] += (state.inp[b].astype(np.int32) @ state.wgt[c].astype(np.int32).T).astype(np.int32)
        return
    lanes = state.geometry.block
    for offset in np.unique(offsets):
        columns = np.flatnonzero(offsets == offset)
        # [iteration, row, micro-op, lane] by [micro-op, lane, out]: exact in float64 up to 2**53.
        left = state.inp[src[:, columns]].transpose(0, 2, 1, 3).astype(np.float64)
        right = state.wgt[wgt[0, columns]].transpose(0, 2, 1).astype(np.float64)
        total = left.reshape(-1, len(columns) * lanes) @ right.reshape(len(columns) * lanes, lanes)
        place = dst[:, columns[0]]
        state.acc[place] += total.reshape(len(dst), -1, lanes).astype(np.int64).astype(np.int32)


def alu(state: State, insn: Alu, choices: Choices) -> None:
    """One operation on accumulators in place; OUT gets the low bytes of what was written."""
    if insn.alu_opcode is AluOp.MUL and not choices.multiplies:
        raise SimulationError("the ALU must have MUL where a program uses it")
    dst, src, _ = (grid.reshape(-1) for grid in indices(state, insn))
    if not dst.size:
        return
    _within(dst, Buffer.ACC, state)
    if not insn.use_imm:
        _within(src, Buffer.ACC, state)
    rows = slice(0, 1) if choices.one_row else slice(None)
    apart = len(np.unique(dst)) == len(dst) and (insn.use_imm or not np.isin(src, dst).any() or (src == dst).all())
    steps = [slice(None)] if apart else [slice(k, k + 1) for k in range(len(dst))]
    for step in steps:
        target = state.acc[dst[step], rows]
        operand = np.full_like(target, insn.imm) if insn.use_imm else state.acc[src[step], rows]
        state.acc[dst[step], rows] = _operate(insn, target, operand, choices)
    state.out[dst] = state.acc[dst].astype(np.int8)


def _operate(insn: Alu, left: NDArray[np.int32], right: NDArray[np.int32], choices: Choices) -> NDArray[Any]:
    match insn.alu_opcode:
        case AluOp.MIN:
            return np.minimum(left, right)
        case AluOp.MAX:
            return np.maximum(left, right)
        case AluOp.ADD:
            return left + right
        case AluOp.SHR:
            return _shifted(left, right, insn.use_imm, choices.shift)
        case AluOp.MUL:
            return left * right
        case _:
            assert_never(insn.alu_opcode)


def _shifted(value: NDArray[np.int32], amount: NDArray[np.int32], is_imm: bool, shift: Shift) -> NDArray[np.int32]:
    """An arithmetic shift, to the left by a negative amount; 32 and more leave the sign, or nothing."""
    by = amount.astype(np.int64)
    match shift:
        case Shift.FIVE_BITS:
            by = ((by & 31) ^ 16) - 16
        case Shift.RIGHT:
            if not is_imm or (by >= 0).all():
                by = by & 31
        case Shift.FULL:
            pass
        case _:
            assert_never(shift)
    wide = value.astype(np.int64)
    right = wide >> np.clip(by, 0, 63)
    left = (wide.astype(np.uint64) << np.clip(-by, 0, 63).astype(np.uint64)).astype(np.int64)
    return np.where(by >= 0, right, left).astype(np.int32)


def _uops(state: State, loops: Loops) -> NDArray[np.uint32]:
    if loops.uop_end > len(state.uop):
        raise SimulationError(f"micro-ops must be below {len(state.uop)}, not {loops.uop_end - 1}")
    return state.uop[loops.uop_bgn : loops.uop_end]


def _within(index: Index, buffer: Buffer, state: State) -> None:
    most = len(state.of(buffer))
    if index.max() >= most:
        raise SimulationError(f"entries of {buffer.name} must be below {most}, not {index.max()}")
