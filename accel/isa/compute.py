"""Semantics of GEMM and ALU: functions from state to state on whole numpy arrays.

Micro-ops take effect one after the other; the code here only reorders what cannot be told apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.alu import AluOp
from relay_hw.accel.isa.loops import INDEX_MASK, Index, Values, all_distinct, check_range, independent, indices, pieces
from relay_hw.accel.isa.nibbles import unpack_nibbles
from relay_hw.accel.isa.rules import check_instruction
from relay_hw.accel.isa.spec import GemmMode, Mem, Nibble, Op, Rounding
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.taps import taps_piece

_GEMM_STEPS = (
    ("acc_base", "acc_out", "acc_in"),
    ("inp_base", "inp_out", "inp_in"),
    ("wgt_base", "wgt_out", "wgt_in"),
)
_ALU_STEPS = (("dst_base", "dst_out", "dst_in"), ("src_base", "src_out", "src_in"))

# A gathered weight matrix stays under this many bytes.
_GATHER_BYTES = 1 << 24
# Products of two int8 are at most 2**14; sums of up to this many are exact in float32.
_FLOAT32_TERMS = 1 << 10
# Matrix products of this many rows stay on one thread: waking others for so little costs more than it gains.
_PRODUCT_ROWS = 32


def gemm(state: AccelState, v: Values, index: int) -> None:
    """acc[a] += inp[i] . wgt[w] with int32 wrap-around, or taps of lines, for each micro-op in two nested loops."""
    check_instruction(state.config, Op.GEMM, v, index)
    uops = _uops(state, v)
    one_piece = taps_piece if v["mode"] in (GemmMode.TAPS, GemmMode.MAX) else _gemm_piece
    for piece in pieces(v, uops.size, _GEMM_STEPS):
        one_piece(state, piece, uops, index)


def alu(state: AccelState, v: Values, index: int) -> None:
    """acc[d] = op(acc[d], acc[s] or imm), wrapped to int32, for each micro-op in two nested loops."""
    check_instruction(state.config, Op.ALU, v, index)
    uops = _uops(state, v)
    for piece in pieces(v, uops.size, _ALU_STEPS):
        _alu_piece(state, piece, uops, index)


def _uops(state: AccelState, v: Values) -> Index:
    return state.uop[v["uop_begin"] : v["uop_end"]].astype(np.int64)


def _gemm_piece(state: AccelState, v: Values, uops: Index, index: int) -> None:
    dst, src, wgt = uops & INDEX_MASK, (uops >> 16) & INDEX_MASK, (uops >> 32) & INDEX_MASK
    first = ((uops >> 48) & 1).astype(np.bool_) & bool(v["overwrite"])
    acc_index = indices(v, "acc_base", "acc_out", "acc_in", dst)
    inp_index = indices(v, "inp_base", "inp_out", "inp_in", src)
    wgt_index = indices(v, "wgt_base", "wgt_out", "wgt_in", wgt)
    check_range(state.config.acc_depth, acc_index, Mem.ACC, index)
    check_range(state.config.inp_depth, inp_index + (_operand_entries(state, v) - 1), Mem.INP, index)
    check_range(state.config.wgt_depth, wgt_index, Mem.WGT, index)

    folded = (_repeats(v, "iter_out", "acc_out"), _repeats(v, "iter_in", "acc_in"))
    groups = _groups(dst, first)
    heads = np.array([group[0] for group in groups])
    kept = acc_index[: 1 if folded[0] else None, : 1 if folded[1] else None][:, :, heads]
    if not all_distinct(kept):
        order = np.broadcast_to(first, acc_index.shape).reshape(-1)
        products = _gathered_products(state, v, inp_index.reshape(-1), wgt_index.reshape(-1))
        _accumulate(state.acc, acc_index.reshape(-1), products, order)
        return
    for members in _stacks(groups, first):
        _gemm_stack(state, v, (acc_index, inp_index, wgt_index), members, first, folded)


def _operand_entries(state: AccelState, v: Values) -> int:
    return 1 if v["mode"] == GemmMode.ENTRY else state.config.operand_entries


def _operands(state: AccelState, v: Values, entries: Index) -> NDArray[np.int8]:
    """int8 [*entries.shape, lanes]: an entry, or two neighbouring ones."""
    first = np.take(state.inp, entries, axis=0)
    if _operand_entries(state, v) == 1:
        return first
    return np.concatenate([first, np.take(state.inp, entries + 1, axis=0)], axis=-1)


def _weights(state: AccelState, v: Values, tiles: Index) -> NDArray[np.int8]:
    """int8 [*tiles.shape, block_out, lanes]: as many weights of a lane as the operand has lanes."""
    stored = np.take(state.wgt, tiles, axis=0)
    if state.config.wgt_bits == 4:
        stored = unpack_nibbles(stored.view(np.uint8), Nibble(v["nibble"]))
    return stored[..., : _operand_entries(state, v) * state.config.inp_lanes]


def _repeats(v: Values, trips: str, step: str) -> bool:
    """True when all trips of a loop, more than one, add to the same entries."""
    return v[trips] > 1 and v[step] == 0


def _groups(dst: Index, first: NDArray[np.bool_]) -> list[Index]:
    """Positions of the micro-ops of each destination, in order; what the last overwriting one drops is left out."""
    order = np.argsort(dst, kind="stable")
    cuts = np.flatnonzero(np.diff(dst[order])) + 1
    groups: list[Index] = []
    for group in np.split(order, cuts):
        overwriting = np.flatnonzero(first[group])
        groups.append(group[overwriting[-1] :] if overwriting.size else group)
    return groups


def _stacks(groups: list[Index], first: NDArray[np.bool_]) -> list[Index]:
    """[groups, micro-ops] arrays of groups alike in length and in overwriting, so that one product computes each."""
    alike: dict[tuple[int, bool], list[Index]] = {}
    for group in groups:
        alike.setdefault((group.size, bool(first[group[0]])), []).append(group)
    return [np.stack(members) for members in alike.values()]


def _gemm_stack(
    state: AccelState,
    v: Values,
    where: tuple[Index, Index, Index],
    members: Index,
    first: NDArray[np.bool_],
    folded: tuple[bool, bool],
) -> None:
    """Products of groups whose destinations, in all trips that are not folded, are distinct.

    Axes are outer trips, inner trips, groups, micro-ops. An axis is folded (summed over), or a batch axis (weights
    differ along it), or a row axis (weights are shared along it).
    """
    overwrite = bool(first[members[0, 0]])
    # With an overwriting micro-op, only the last of the trips that share a destination counts.
    trips = tuple(slice(-1, None) if fold and overwrite else slice(None) for fold in folded)
    acc_index, inp_index, wgt_index = (entries[trips][:, :, members] for entries in where)
    fold = folded + (False,)
    varies = (v["wgt_out"] != 0, v["wgt_in"] != 0, bool((wgt_index != wgt_index[:, :, :1]).any()))
    sums = [axis for axis in range(3) if fold[axis]]
    batch = [axis for axis in range(3) if not fold[axis] and varies[axis] and inp_index.shape[axis] > 1]
    rows = [axis for axis in range(3) if axis not in sums and axis not in batch]

    shape = inp_index.shape
    count = [prod(shape[axis] for axis in axes) for axes in (batch, rows, sums)]
    terms = count[2] * shape[3] * _operand_entries(state, v) * state.config.inp_lanes
    order = batch + rows + sums + [3]
    x = _operands(state, v, inp_index.transpose(order)).reshape(count[0], count[1], terms)
    tiles = wgt_index.transpose(order).reshape(count[0], count[1], count[2] * shape[3])[:, 0]
    w = _weights(state, v, tiles).transpose(0, 1, 3, 2).reshape(count[0], terms, state.config.block_out)
    total = _product(x, w).reshape(-1, state.config.block_out)

    one = [0 if fold[axis] else slice(None) for axis in range(3)]
    target = acc_index[one[0], one[1], :, 0]
    axes = [axis for axis in range(3) if not fold[axis]]
    entries = target.transpose([axes.index(axis) for axis in batch + rows]).reshape(-1)
    acc = state.acc
    if not overwrite:
        total += np.take(acc, entries, axis=0)
    acc[entries] = total.astype(np.int32)


def _product(x: NDArray[np.int8], w: NDArray[np.int8]) -> Index:
    """[n, rows, columns] exact matrix products, by float32 products of as many terms as it holds exactly."""
    total = np.zeros((x.shape[0], x.shape[1], w.shape[2]), np.int64)
    for begin in range(0, x.shape[2], _FLOAT32_TERMS):
        terms = slice(begin, begin + _FLOAT32_TERMS)
        left, right = x[:, :, terms].astype(np.float32), w[:, terms].astype(np.float32)
        for top in range(0, x.shape[1], _PRODUCT_ROWS):
            rows = slice(top, top + _PRODUCT_ROWS)
            total[:, rows] += np.matmul(left[:, rows], right).astype(np.int64)
    return total


def _gathered_products(state: AccelState, v: Values, inp_index: Index, wgt_index: Index) -> Index:
    """[n, block_out] products of any sequence of tiles, gathered in bounded pieces."""
    result = np.empty((inp_index.size, state.config.block_out), np.int64)
    step = max(1, _GATHER_BYTES // (4 * state.config.block_in * state.config.block_out))
    for begin in range(0, inp_index.size, step):
        part = slice(begin, begin + step)
        x = _operands(state, v, inp_index[part]).astype(np.float32)
        w = _weights(state, v, wgt_index[part]).astype(np.float32)
        result[part] = np.matmul(w, x[:, :, None])[:, :, 0].astype(np.int64)
    return result


def _accumulate(acc: NDArray[np.int32], where: Index, products: Index, first: NDArray[np.bool_]) -> None:
    """Add products in order; an entry's last overwriting micro-op drops what came before it."""
    total = acc.astype(np.int64)
    keep = np.ones(where.size, np.bool_)
    if first.any():
        last = np.full(acc.shape[0], -1, np.int64)
        np.maximum.at(last, where[first], np.flatnonzero(first))
        keep = np.arange(where.size) >= last[where]
        total[last >= 0] = 0
    np.add.at(total, where[keep], products[keep])
    touched = np.unique(where)
    acc[touched] = total[touched].astype(np.int32)


def _alu_piece(state: AccelState, v: Values, uops: Index, index: int) -> None:
    dst = indices(v, "dst_base", "dst_out", "dst_in", uops & INDEX_MASK)
    check_range(state.config.acc_depth, dst, Mem.ACC, index)
    if v["use_imm"]:
        for where in _alu_steps(dst, dst):
            _alu_apply(state, v, dst[where], None)
        return
    src = indices(v, "src_base", "src_out", "src_in", (uops >> 16) & INDEX_MASK)
    check_range(state.config.acc_depth, src, Mem.ACC, index)
    for where in _alu_steps(dst, src):
        _alu_apply(state, v, dst[where], src[where])


def _alu_apply(state: AccelState, v: Values, dst: Index, src: Index | None) -> None:
    acc = state.acc
    a = np.take(acc, dst, axis=0).astype(np.int64)
    b = np.full_like(a, v["imm"]) if src is None else np.take(acc, src, axis=0).astype(np.int64)
    acc[dst] = arith.alu(AluOp(v["alu_op"]), a, b, Rounding(v["rounding"])).astype(np.int32)


def _alu_steps(dst: Index, src: Index) -> Iterable[tuple[slice | int, ...]]:
    """Selections of [outer, inner, micro-op], in order, inside each of which micro-ops do not see one another.

    Loops over as few axes as the dependences allow, at worst over all three.
    """
    shape = dst.shape
    number = np.arange(dst.size, dtype=np.int64).reshape(shape)
    best = (True, True, True)
    for sequential in product((False, True), repeat=3):
        first = tuple(slice(0, 1) if axis else slice(None) for axis in sequential)
        if _steps_of(sequential, shape) < _steps_of(best, shape) and independent(
            np.broadcast_to(number[first], shape), dst, src
        ):
            best = sequential
    return product(*(range(n) if axis else (slice(None),) for axis, n in zip(best, shape, strict=True)))


def _steps_of(sequential: tuple[bool, ...], shape: tuple[int, ...]) -> int:
    return prod(n for axis, n in zip(sequential, shape, strict=True) if axis)
