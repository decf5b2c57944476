"""Instruction semantics: one vectorised state-transition function per instruction. REQUANT is defined here.

Each raises `Fault` for what the hardware refuses: illegal combinations of fields, indices outside a scratchpad, DMA
outside the window. The numbers contract is in ISA.md, section "Arithmetic".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from typing_extensions import assert_never

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.compute import alu, gemm
from relay_hw.accel.isa.loops import (
    Index,
    Values,
    check_inp_parts,
    check_parts,
    check_range,
    independent,
    indices,
    pieces,
    with_second_steps,
)
from relay_hw.accel.isa.records import MAX_SHIFT
from relay_hw.accel.isa.rows import row
from relay_hw.accel.isa.rules import check_instruction
from relay_hw.accel.isa.spec import TWO_OPERANDS, Dst, Form, Mem, Op, Rounding
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.transfer import gather, load, store

# The parameter entry steps in the outer loop only.
_REQUANT_STEPS = (
    ("acc_base", "acc_out", "acc_in"),
    ("res_base", "res_out", "res_in"),
    ("dst_base", "dst_out", "dst_in"),
    ("prm_base", "prm_out", ""),
)
_ONE = np.zeros((), np.int64)


def requant(state: AccelState, v: Values, index: int) -> None:
    """The output stage: accumulator vectors to int8 vectors, in two nested loops, one after the other."""
    check_instruction(state.config, Op.REQUANT, v, index)
    for piece in pieces(with_second_steps(v), 1, _REQUANT_STEPS):
        _requant_piece(state, piece, index)


def finish(state: AccelState, v: Values, index: int) -> None:
    """The end of the program; changes nothing."""


SEMANTICS: Mapping[Op, Callable[[AccelState, Values, int], None]] = MappingProxyType(
    {
        Op.LOAD: load,
        Op.STORE: store,
        Op.GEMM: gemm,
        Op.ALU: alu,
        Op.REQUANT: requant,
        Op.FINISH: finish,
        Op.GATHER: gather,
        Op.ROW: row,
    }
)


def _requant_piece(state: AccelState, v: Values, index: int) -> None:
    form, config = Form(v["form"]), state.config
    y_index = indices(v, "acc_base", "acc_out", "acc_in", _ONE)
    r_index = indices(v, "res_base", "res_out", "res_in", _ONE) if form in TWO_OPERANDS else y_index
    dst_index = indices(v, "dst_base", "dst_out", "dst_in", _ONE)
    prm_index = indices({**v, "prm_in": 0}, "prm_base", "prm_out", "prm_in", _ONE)
    check_range(config.acc_depth, y_index, Mem.ACC, index)
    check_range(config.acc_depth, r_index, Mem.ACC, index)
    if form is not Form.PASS:
        check_range(config.prm_depth, prm_index, Mem.PRM, index)
    match Dst(v["dst"]):
        case Dst.OUT:
            check_range(config.out_depth, dst_index, Mem.OUT, index)
            state.out[dst_index] = _lanes(state, v, form, y_index, r_index, prm_index).astype(np.int8)
        case Dst.INP:
            check_inp_parts(config, dst_index, index)
            check_parts(config, dst_index, index)
            lanes = _lanes(state, v, form, y_index, r_index, prm_index).astype(np.int8)
            state.inp_blocks[dst_index // config.block_parts] = lanes
        case Dst.ACC:
            check_range(config.acc_depth, dst_index, Mem.ACC, index)
            _to_acc(state, v, form, (dst_index, y_index, r_index, prm_index))


def _to_acc(state: AccelState, v: Values, form: Form, places: tuple[Index, Index, Index, Index]) -> None:
    """Write vectors into the accumulators that later vectors of the instruction may read; `places`: dst, y, r, prm."""
    dst_index, y_index, r_index, prm_index = places
    acc = state.acc
    number = np.arange(dst_index.size, dtype=np.int64).reshape(dst_index.shape)
    if independent(number, dst_index, y_index, r_index):
        acc[dst_index] = _lanes(state, v, form, y_index, r_index, prm_index).astype(np.int32)
        return
    for o in range(v["iter_out"]):
        for i in range(v["iter_in"]):
            one = (slice(o, o + 1), slice(i, i + 1))
            lanes = _lanes(state, v, form, y_index[one], r_index[one], prm_index[one])
            acc[dst_index[one]] = lanes.astype(np.int32)


def _lanes(state: AccelState, v: Values, form: Form, y_index: Index, r_index: Index, prm_index: Index) -> Index:
    """int64 [trips, trips, block_out] results, clipped to int8, and what the table makes of them."""
    lanes = _clip(v, _rounded(state, v, form, y_index, r_index, prm_index))
    return state.tab[v["table"] - 1][lanes + 128].astype(np.int64) if v["table"] else lanes


def _rounded(state: AccelState, v: Values, form: Form, y_index: Index, r_index: Index, prm_index: Index) -> Index:
    """int64 [trips, trips, block_out] results before they are clipped."""
    y = np.take(state.acc, y_index, axis=0).astype(np.int64)
    if form is Form.PASS:
        return arith.wrap32(y + v["zero_point"])
    prm = np.take(state.prm, prm_index, axis=0).astype(np.int64)
    bias, word = prm[..., 0], prm[..., 2]
    bits = state.config.multiplier_bits + 1
    multiplier = arith.sign_extend(prm[..., 1], bits)
    match form:
        case Form.SCALE:
            total = arith.wrap32(y + bias) * multiplier
        case Form.ADD:
            y_part, r = _operands(state, y, r_index, word)
            total = y_part * multiplier + r * arith.sign_extend(bias, bits)
        case Form.MUL:
            y_part, r = _operands(state, y, r_index, word)
            total = arith.wrap32(y_part * multiplier) * r
        case _:
            assert_never(form)
    shift = np.minimum(word & 0xFF, MAX_SHIFT)
    return arith.round_shift(total, shift, Rounding(v["rounding"])) + v["zero_point"]


def _operands(state: AccelState, y: Index, r_index: Index, word: Index) -> tuple[Index, Index]:
    """Both operands without their zero points, 9 bits each."""
    r = np.take(state.acc, r_index, axis=0).astype(np.int64)
    return (
        arith.sign_extend(y - arith.sign_extend(word >> 8, 8), 9),
        arith.sign_extend(r - arith.sign_extend(word >> 16, 8), 9),
    )


def _clip(v: Values, lanes: Index) -> Index:
    return np.minimum(np.maximum(lanes, v["clip_lo"]), v["clip_hi"])
