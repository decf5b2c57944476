"""Exact integer softmax, layer norm and RMS norm of int8 rows: `fixed.softmax`, `fixed.layer_norm`, `fixed.rms_norm`.

A row is the last axis. It is read twice from a buffer that holds it: for sums, and for one product an element and, of
norms, a second one a channel. What is divided by comes once a row. These definitions specify the hardware, to the bit:

* `fixed.softmax` adds what its table has for each distance to the row's largest number. An entry is 16 bits, of which
  the number is `(entry & 4095) << (entry >> 12)`: in plain 16 bits thousands of entries below a half would be lost from
  a sum. The sum is cut to its 16 highest bits `m`, and `r = (2**32 - 1) // m` is 18 trial subtractions. The result is
  `mantissa * (r * multiplier >> 16)`, 12 by 17 bits, shifted right by what the row and the entry's exponent say.
* Norms make `s` and `q`, sums of `u` and of its squares, exact in 32 bits, and `v = 16 * (n * q - s * s) + epsilon`,
  16 * n * n times the variance, in 49 bits; RMS norm leaves `s` at 0. `v` is cut by an even shift to 16 bits `m`, of
  which one of the two highest is 1, and `r` is the largest number with `r * r * m < 2**46`: 16 trials, one bit each.
  `n * u - s` is at most the root of `n * v`, so that the same shift says how much of it fits 18 bits. Its product with
  `r`, 18 by 16 bits, is the standardised element `z` in units of 1/1024, and `(z * gain + bias)` rounded `>> shift` the
  result.

Bounds. Of softmax with `multiplier / 2**shift = 256`: an entry is within 2**-12 of its value, relatively, a sum of 4096
within 2**-12 + 2**-16, and `m`, `r` and the product lose 2**-15, 2**-16 and 2**-15. So a result is within
`0.5 + 256 * (2**-11 + 2**-13) < 0.7` of the real one, or 1 where that is 256, for which int8 has no place above -128.
Of norms: `r` is within 2**-14, relatively, `z` within 1/2048 and what `n * u - s` loses, less than 1/1024, and epsilon
within 1/32 of a `v` of 16 * (n - 1) or more. So a result differs from the real one by its rounding and some hundredths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import KEEPS_AXES, Array, Attrs, call, const, expect, rule, same_dim, show_shape, tensor
from relay_hw.op.fixed_scale import check_range, round_shift

# Columns of a row: its sums fit.
MOST_COLUMNS = {"fixed.softmax": 1 << 16, "fixed.layer_norm": 1 << 14, "fixed.rms_norm": 1 << 14}
# Bits of the mantissa of an exponential, of the fraction of a standardised element, and of what is multiplied there.
MANTISSA_BITS = 12
FRACTION_BITS = 10
ELEMENT_BITS = 18
MOST_EPSILON = (1 << 48) - 1
# Bits of the fraction of a norm's epsilon.
EPSILON_BITS = 4
MOST_SHIFT = 40
# How far the product of an element and an inverse root is shifted, less what the two say: 16 has the root 4.
NORM_SHIFT = 23 - FRACTION_BITS - EPSILON_BITS // 2
# Bytes of a length, the lower one first.
LENGTH_BYTES = 2
# No row is longer.
WHOLE = (1 << 31) - 1


def bit_length(value: Array) -> Array:
    """The number of bits of each number from 0 to 2**53, 0 for 0."""
    return np.frexp(np.asarray(value).astype(np.float64))[1].astype(np.int64)


def reciprocal(total: Array) -> tuple[Array, Array]:
    """(`bits`, `r`) with 1 / total = r / 2**(16 + bits) and a few units of 2**-16 below; of 0 as of the number 1."""
    total = np.maximum(np.asarray(total, np.int64), 1)
    bits = bit_length(total)
    highest = (total << np.maximum(16 - bits, 0)) >> np.maximum(bits - 16, 0)
    return bits, ((1 << 32) - 1) // highest


def inverse_root(value: Array) -> tuple[Array, Array]:
    """(`half`, `r`) with 1 / sqrt(value) = r / 2**(23 + half) and 2**-14 more or less, relatively; of 0 to 15 as of 16,
    which is the least of a row with an element that is not 0."""
    value = np.maximum(np.asarray(value, np.int64), 1 << EPSILON_BITS)
    half = ((bit_length(value) + 1) >> 1) - 8
    highest = (value << np.maximum(-2 * half, 0)) >> np.maximum(2 * half, 0)
    return half, np.floor(np.sqrt((((1 << 46) - 1) // highest).astype(np.float64))).astype(np.int64)


def _check_rows(name: str, data: TensorType) -> None:
    if data.dtype != "int8":
        raise TypeCheckError(f"the data of {name} must be int8, not {data.dtype}")
    if data.rank < 1:
        raise TypeCheckError(f"the data of {name} must have an axis, not none")
    columns, most = data.shape[-1], MOST_COLUMNS[name]
    if isinstance(columns, int) and not 1 <= columns <= most:
        raise TypeCheckError(f"the rows of {name} must have 1 to {most} columns, not {columns}")


@dataclass(frozen=True, slots=True)
class FixedSoftmaxAttrs(Attrs):
    multiplier: int = 1 << 15
    shift: int = 7
    zero_point: int = -128
    causal: bool = False


@rule("fixed.softmax", 3)
def _softmax_type(attrs: FixedSoftmaxAttrs, data: TensorType, table: TensorType, lengths: TensorType) -> Type:
    name = "fixed.softmax"
    _check_rows(name, data)
    if table.dtype != "uint16" or table.shape != (256,):
        raise TypeCheckError(
            f"the table of {name} must be 256 numbers of uint16, not {show_shape(table.shape)} of {table.dtype}"
        )
    rank = {"int32": 1, "int8": 2}.get(lengths.dtype)
    if lengths.rank != rank or not (lengths.shape[0] == 1 or same_dim(lengths.shape[0], data.shape[0])):
        raise TypeCheckError(
            f"the lengths of {name} must be one int32, or its bytes, or one for each part of the first axis, "
            f"not {show_shape(lengths.shape)} of {lengths.dtype}"
        )
    if rank == 2 and isinstance(bytes_each := lengths.shape[1], int) and bytes_each < LENGTH_BYTES:
        raise TypeCheckError(f"lengths of {name} in bytes must have {LENGTH_BYTES} or more each, not {bytes_each}")
    if attrs.causal and data.rank < 2:
        raise TypeCheckError(f"the data of causal {name} must have 2 axes, not {data.rank}")
    check_range(name, "multiplier", attrs.multiplier, 1 << 15, (1 << 16) - 1)
    check_range(name, "shift", attrs.shift, -15, 15)
    check_range(name, "zero_point", attrs.zero_point, -128, 127)
    return data


def visible(shape: Sequence[int], lengths: Array, causal: bool) -> Array:
    """Which columns each row of `shape` takes part in: the first ones, as many as `lengths` says for its part of the
    first axis; of a causal row none behind its own, where the last row ends with the last column."""
    columns = np.arange(shape[-1])
    numbers = np.asarray(lengths)
    if numbers.dtype == np.int8:
        low, high = (numbers[:, at].astype(np.int64) & 0xFF for at in range(LENGTH_BYTES))
        numbers = low | high << 8
    first = numbers.reshape(-1, *[1] * (len(shape) - 1))
    seen = columns < first
    if causal:
        seen = seen & (columns <= np.arange(shape[-2])[:, None] + shape[-1] - shape[-2])
    return np.broadcast_to(seen, shape)


def _softmax(attrs: FixedSoftmaxAttrs, values: Sequence[Array], result: Type) -> Array:
    data, table = np.asarray(values[0]).astype(np.int64), np.asarray(values[1]).astype(np.int64)
    if data.size == 0:
        return data.astype(np.int8)
    seen = visible(data.shape, values[2], attrs.causal)
    top = np.where(seen, data, -128).max(axis=-1, keepdims=True)
    entry = np.where(seen, table[np.maximum(top - data, 0)], 0)
    mantissa, exponent = entry & ((1 << MANTISSA_BITS) - 1), entry >> MANTISSA_BITS
    bits, inverse = reciprocal((mantissa << exponent).sum(axis=-1, keepdims=True))
    factor = (inverse * attrs.multiplier) >> 16
    down = np.maximum(bits + attrs.shift - exponent, 0)
    quotient = round_shift(mantissa * factor, down, "half_up") + attrs.zero_point
    return np.clip(quotient, -128, 127).astype(np.int8)


SOFTMAX = Op(
    "fixed.softmax",
    3,
    _softmax_type,
    _softmax,
    attrs_type=FixedSoftmaxAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=KEEPS_AXES,
    doc="clip((table[max - data] / sum of those * multiplier rounded >> shift) + zero_point) along the last axis, "
    "0 beyond `lengths` and, if causal, behind a row's own column",
)


def softmax(data: Expr, table: Expr, lengths: Expr | None = None, **numbers: AnyValue) -> Call:
    """Softmax of the rows of int8 `data`, by default in units of 1/256 above -128.

    `table`: uint16 [256], what a number counts that is so much less than its row's largest one, see `exponentials`.
    `lengths`: how many columns count, int32, one or one for each part of the first axis, or int8 [.., 2 or more], the
    bytes of such numbers; all if None. `numbers`: fields
    of FixedSoftmaxAttrs by name.
    """
    given = const(np.full(1, WHOLE, np.int32)) if lengths is None else lengths
    return call(SOFTMAX, (data, table, given), FixedSoftmaxAttrs(**numbers))


def exponentials(scale: float) -> Array:
    """The table of fixed.softmax for data of this scale: exp(-scale * d) for d from 0 to 255, uint16 [256]."""
    real = np.exp(-float(scale) * np.arange(256)) * float(4095 << 15)
    exponent = np.maximum(np.frexp(real)[1] - MANTISSA_BITS, 0)
    mantissa = np.rint(np.ldexp(real, -exponent)).astype(np.int64)
    # What rounds up to 13 bits.
    exponent, mantissa = exponent + (mantissa >> MANTISSA_BITS), mantissa >> (mantissa >> MANTISSA_BITS)
    return (mantissa | exponent << MANTISSA_BITS).astype(np.uint16)


@dataclass(frozen=True, slots=True)
class FixedLayerNormAttrs(Attrs):
    shift: int
    epsilon: int = 0
    zero_point: int = 0


@dataclass(frozen=True, slots=True)
class FixedRmsNormAttrs(Attrs):
    shift: int
    epsilon: int = 0
    zero_point: int = 0
    input_zero_point: int = 0


def _norm_type(name: str) -> AnyValue:
    def relation(types: Sequence[Type], attrs: FixedLayerNormAttrs | FixedRmsNormAttrs, solver: Solver) -> Type | None:
        data = tensor(name, types, 0)
        if data is None:
            return None
        _check_rows(name, data)
        check_range(name, "shift", attrs.shift, 0, MOST_SHIFT)
        check_range(name, "epsilon", attrs.epsilon, 0, MOST_EPSILON)
        check_range(name, "zero_point", attrs.zero_point, -128, 127)
        if isinstance(attrs, FixedRmsNormAttrs):
            check_range(name, "input_zero_point", attrs.input_zero_point, -128, 127)
        expect(name, solver, "gain", types[1], TensorType((data.shape[-1],), "int16"))
        expect(name, solver, "bias", types[2], TensorType((data.shape[-1],), "int32"))
        return data

    return relation


def reach(columns: int) -> int:
    """An element that is not yet divided loses as many bits as its row's `half` and this are more than 0."""
    return (columns.bit_length() + 1) // 2 + 8 - EPSILON_BITS // 2 - (ELEMENT_BITS - 1)


def _norm(attrs: FixedLayerNormAttrs | FixedRmsNormAttrs, values: Sequence[Array], result: Type) -> Array:
    centered = isinstance(attrs, FixedLayerNormAttrs)
    data, gain, bias = (np.asarray(value).astype(np.int64) for value in values)
    u = data if isinstance(attrs, FixedLayerNormAttrs) else data - attrs.input_zero_point
    n = data.shape[-1]
    total = u.sum(axis=-1, keepdims=True) * int(centered)
    spread = n * (u * u).sum(axis=-1, keepdims=True) - total * total
    half, inverse = inverse_root((spread << EPSILON_BITS) + attrs.epsilon)
    drop = np.maximum(half + reach(n), 0)
    element = round_shift(n * u - total, drop, "half_up")
    limit = (1 << (ELEMENT_BITS - 1)) - 1
    z = np.clip(round_shift(element * inverse, NORM_SHIFT + half - drop, "half_up"), -limit, limit)
    scaled = round_shift(z * gain + bias, attrs.shift, "half_up") + attrs.zero_point
    return np.clip(scaled, -128, 127).astype(np.int8)


def _norm_op(name: str, attrs_type: type, doc: str) -> Op:
    return Op(
        name,
        3,
        _norm_type(name),
        _norm,
        attrs_type=attrs_type,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        traits=KEEPS_AXES,
        doc=f"clip(({doc} in units of 1/1024 * gain + bias rounded >> shift) + zero_point) along the last axis",
    )


LAYER_NORM = _norm_op("fixed.layer_norm", FixedLayerNormAttrs, "(data - mean) / sqrt(variance + epsilon / (16 * n**2))")
RMS_NORM = _norm_op("fixed.rms_norm", FixedRmsNormAttrs, "x / sqrt(mean of x**2 + epsilon / (16 * n**2))")


def layer_norm(data: Expr, gain: Expr, bias: Expr, shift: int, epsilon: int = 0, zero_point: int = 0) -> Call:
    """The rows of int8 `data` standardised, times int16 `gain` plus int32 `bias` of each column, scaled to int8.

    `epsilon` is in units of `data` squared, times 16 and the square of the number of columns.
    """
    return call(LAYER_NORM, (data, gain, bias), FixedLayerNormAttrs(shift, epsilon, zero_point))


def rms_norm(data: Expr, gain: Expr, bias: Expr, shift: int, **numbers: int) -> Call:
    """The rows of int8 `data` less a zero point, divided by their root mean square, as in layer_norm.

    `numbers`: further fields of FixedRmsNormAttrs by name.
    """
    return call(RMS_NORM, (data, gain, bias), FixedRmsNormAttrs(shift, **numbers))


OPS = (SOFTMAX, LAYER_NORM, RMS_NORM)
