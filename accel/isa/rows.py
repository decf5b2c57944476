"""Semantics of ROW: softmax, layer norm and RMS norm of rows of int8 numbers in the accumulators, in place.

In: the state and the fields of one instruction. Out: the state. All arithmetic is exact; ISA.md, section "row", states
it in the steps that hardware takes. Rows of one instruction share no entry.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa import arith
from relay_hw.accel.isa.config import EXPONENTIALS
from relay_hw.accel.isa.loops import INDEX_MASK, Index, Values, check_range
from relay_hw.accel.isa.rules import check_instruction, row_entries
from relay_hw.accel.isa.spec import Mem, Op, Rounding, RowKind
from relay_hw.accel.isa.state import AccelState

# Bits of the mantissa of an exponential; of the fraction of a standardised element, and of an element before that.
MANTISSA_BITS = 12
FRACTION_BITS = 10
ELEMENT_BITS = 18
# Bits of the fraction of `epsilon`; a variance below 1 counts as 1.
EPSILON_BITS = 4
# How far the product of an element and an inverse root is shifted, less what the two say.
NORM_SHIFT = 23 - FRACTION_BITS - EPSILON_BITS // 2


@dataclass(frozen=True, slots=True)
class _Rows:
    """The elements of all rows, int64 [rows, columns of whole entries], and their coefficients by column."""

    v: Values
    elements: Index
    gain: Index
    bias: Index

    @property
    def counts(self) -> NDArray[np.bool_]:
        """Whether an element takes part in its row, [1, columns]."""
        return _columns(self.elements)[None, :] < self.v["columns"]


def row(state: AccelState, v: Values, index: int) -> None:
    """Softmax or a norm of each row, written over it; lanes behind a row's columns change too."""
    check_instruction(state.config, Op.ROW, v, index)
    config = state.config
    places = entries(v, row_entries(config, v["columns"]))
    check_range(config.acc_depth, places, Mem.ACC, index)
    elements = arith.sign_extend(state.acc[places].astype(np.int64), 8).reshape(v["rows"], -1)
    cof = state.cof[v["cof_base"] :]
    if v["kind"] == RowKind.SOFTMAX:
        result = _softmax(v, elements, cof[: EXPONENTIALS + v["bounded"]].astype(np.int64) & 0xFFFF)
    else:
        records = cof[: elements.shape[1] // config.row_lanes].reshape(-1).view(np.int64)
        result = _norm(_Rows(v, elements, arith.sign_extend(records, 16), records >> 32))
    state.acc[places] = result.reshape(*places.shape, config.block_out).astype(np.int32)


def entries(v: Values, count: int) -> Index:
    """[rows, count] accumulator entries of the rows."""
    first = v["acc_base"] + np.arange(v["rows"], dtype=np.int64) * v["row_step"]
    return (first[:, None] + np.arange(count, dtype=np.int64) * v["entry_step"]) & INDEX_MASK


def bit_length(values: Index) -> Index:
    """The number of bits of each number from 0 to 2**53, 0 for 0."""
    return np.frexp(values.astype(np.float64))[1].astype(np.int64)


def _softmax(v: Values, elements: Index, table: Index) -> Index:
    most = min(v["columns"], int(table[EXPONENTIALS, 0])) if v["bounded"] else v["columns"]
    limit = np.minimum(v["visible"] + np.arange(v["rows"]) * v["visible_step"], most)
    seen = _columns(elements)[None, :] < limit[:, None]
    top = np.where(seen, elements, -128).max(axis=1, keepdims=True)
    lane = _columns(elements) % table.shape[1]
    entry = np.where(seen, table[np.maximum(top - elements, 0), lane], 0)
    mantissa, exponent = entry & ((1 << MANTISSA_BITS) - 1), entry >> MANTISSA_BITS
    total = np.maximum((mantissa << exponent).sum(axis=1, keepdims=True), 1)
    bits = bit_length(total)
    inverse = ((1 << 32) - 1) // _highest(total, bits)
    factor = (inverse * v["multiplier"]) >> 16
    down = np.maximum(bits + v["shift"] - exponent, 0)
    return _to_int8(v, _half_up(mantissa * factor, down))


def _norm(rows: _Rows) -> Index:
    v, n = rows.v, rows.v["columns"]
    centered = v["kind"] == RowKind.LAYER_NORM
    u = rows.elements if centered else rows.elements - v["inp_zero"]
    counted = np.where(rows.counts, u, 0)
    total = counted.sum(axis=1, keepdims=True) * int(centered)
    spread = n * (counted * counted).sum(axis=1, keepdims=True) - total * total
    epsilon = v["epsilon_high"] << 32 | v["epsilon_low"]
    value = np.maximum((spread << EPSILON_BITS) + epsilon, 1 << EPSILON_BITS)
    half = ((bit_length(value) + 1) >> 1) - 8
    inverse = np.floor(np.sqrt((((1 << 46) - 1) // _highest(value, 2 * half + 16)).astype(np.float64))).astype(np.int64)
    drop = np.maximum(half + reach(n), 0)
    element = arith.sign_extend(_half_up(n * u - total, drop), ELEMENT_BITS)
    limit = (1 << (ELEMENT_BITS - 1)) - 1
    z = np.clip(_half_up(element * inverse, NORM_SHIFT + half - drop), -limit, limit)
    return _to_int8(v, _half_up(z * rows.gain + rows.bias, np.asarray(v["shift"], np.int64)))


def reach(columns: int) -> int:
    """An element that is not yet divided loses as many bits as its row's `half` and this are more than 0."""
    return (columns.bit_length() + 1) // 2 + 8 - EPSILON_BITS // 2 - (ELEMENT_BITS - 1)


def _columns(elements: Index) -> Index:
    return np.arange(elements.shape[1], dtype=np.int64)


def _highest(values: Index, bits: Index) -> Index:
    """Numbers of `bits` bits cut, or filled with zeros, to 16."""
    return (values << np.maximum(16 - bits, 0)) >> np.maximum(bits - 16, 0)


def _half_up(values: Index, down: Index) -> Index:
    return arith.round_shift(values, down, Rounding.HALF_UP)


def _to_int8(v: Values, values: Index) -> Index:
    return np.clip(values + v["zero_point"], -128, 127)
