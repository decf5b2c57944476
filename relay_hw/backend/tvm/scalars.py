"""Arithmetic on TE scalars with numpy's exact semantics, written so that TVM and LLVM do not change it.

LLVM may assume that sums and products of 32 and 64 bits never wrap around: they are made in a wider type, or in halves.
TVM takes the inner one of two casts away in comparisons: what it would cut off is cut off before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relay_hw.backend.tvm.api import te, tirx

Scalar = Any
FLOATS = ("float16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# TVM folds no difference of unsigned numbers below 0.
WIDER = {"int32": "int64", "uint8": "int32", "uint16": "int64", "uint32": "int64"}
LOW = 0xFFFFFFFF


def kind(x: Scalar) -> str:
    """Element type."""
    return str(x.ty.dtype)


def number(value: Any, dtype: str) -> Scalar:
    """A constant."""
    return tirx.const(value, dtype)


def select(condition: Scalar, yes: Scalar, no: Scalar) -> Scalar:
    """`yes` or `no`, both computed."""
    return tirx.Select(condition, yes, no)


def bind(build: Callable[..., Scalar], *values: Scalar) -> Scalar:
    """`build` of the values under names: expressions are trees, which grow where a value is written out twice."""
    names = [v if isinstance(v, tirx.IntImm) else tirx.Var(f"v{k}", kind(v)) for k, v in enumerate(values)]
    body = build(*names)
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = body if name is value else tirx.Let(name, _opaque(value), body)
    return body


def _opaque(x: Scalar) -> Scalar:
    """An integer of which TVM knows no bounds: it ends where it finds two for one name."""
    dtype = kind(x)
    if dtype in FLOATS or dtype == "bool":
        return x
    other = dtype.removeprefix("u") if dtype.startswith("u") else f"u{dtype}"
    return tirx.reinterpret(dtype, tirx.reinterpret(other, x))


def equal(a: Scalar, b: Scalar) -> Scalar:
    """Whether both are equal; they must not be the same expression, which TVM simplifies to true."""
    return tirx.EQ(a, b)


def same(a: Scalar, b: Scalar) -> Scalar:
    """Whether both are equal; NaN equals nothing, not even itself."""
    return bind(lambda x, y: tirx.all(x <= y, y <= x), a, b) if kind(a) in FLOATS else equal(a, b)


def is_nan(x: Scalar) -> Scalar:
    """Whether a float is no number."""
    return tirx.isnan(x)


def is_zero(x: Scalar) -> Scalar:
    """Whether x is false; NaN is true."""
    return tirx.Not(x) if kind(x) == "bool" else equal(x, number(0, kind(x)))


def truth(x: Scalar) -> Scalar:
    """Whether x is not 0."""
    if kind(x) in FLOATS:
        # TVM simplifies `not x == 0` to `x != 0`, which is wrong for NaN.
        return tirx.any(is_nan(x), tirx.Not(is_zero(x)))
    return x if kind(x) == "bool" else tirx.Not(is_zero(x))


def not_equal(a: Scalar, b: Scalar) -> Scalar:
    """Whether they differ; NaN differs from everything."""
    differ = tirx.Not(equal(a, b))
    return tirx.any(is_nan(a), is_nan(b), differ) if kind(a) in FLOATS else differ


def add(a: Scalar, b: Scalar) -> Scalar:
    """a + b, which wraps around."""
    return _halves(a, b, 1) if kind(a) == "int64" else _wide(lambda x, y: x + y, a, b)


def subtract(a: Scalar, b: Scalar) -> Scalar:
    """a - b, which wraps around. TVM takes x - x for 0 and x + y - x for y, which of floats they are not."""
    if kind(a) in FLOATS:
        return a + number(-1, kind(b)) * b
    return _halves(a, b, -1) if kind(a) == "int64" else _wide(lambda x, y: x - y, a, b)


def multiply(a: Scalar, b: Scalar) -> Scalar:
    """a * b of less than 64 bits, which wraps around."""
    if kind(a) == "uint32":
        return narrow(a.astype("uint64") * b.astype("uint64"), "uint32")
    return _wide(lambda x, y: x * y, a, b)


def times(x: Scalar, factor: float) -> Scalar:
    """x * factor of a float. TVM takes 0 for every x * 0, which of infinity and NaN is NaN."""
    dtype = kind(x)
    if number(factor, dtype).value:
        return x * number(factor, dtype)
    zero, nothing = number(0, dtype), number(float("nan"), dtype)
    return select(tirx.abs(x) < number(float("inf"), dtype), zero, nothing)


def _wide(build: Callable[[Scalar, Scalar], Scalar], a: Scalar, b: Scalar) -> Scalar:
    dtype = kind(a)
    target = WIDER.get(dtype)
    return build(a, b) if target is None else narrow(build(a.astype(target), b.astype(target)), dtype)


def narrow(x: Scalar, dtype: str) -> Scalar:
    """An integer in another integer type, which wraps around."""
    source = kind(x)
    if source == dtype:
        return x
    have, want = np.dtype(source).itemsize * 8, np.dtype(dtype).itemsize * 8
    if have > want:
        gap = number(have - want, source)
        x = x & number((1 << want) - 1, source) if dtype.startswith("uint") else (x << gap) >> gap
    return x.astype(dtype)


def _halves(a: Scalar, b: Scalar, sign: int) -> Scalar:
    mask, half = number(LOW, "int64"), number(32, "int64")

    def build(x: Scalar, y: Scalar) -> Scalar:
        low = (x & mask) + (y & mask) if sign > 0 else (x & mask) - (y & mask)
        high = (x >> half) + (y >> half) if sign > 0 else (x >> half) - (y >> half)
        return ((high + (low >> half)) << half) | (low & mask)

    return bind(build, a, b)


def maximum(a: Scalar, b: Scalar) -> Scalar:
    """The larger one; NaN if one is."""
    if kind(a) not in FLOATS:
        return tirx.max(a, b)
    return bind(lambda x, y: select(is_nan(x), x, select(x > y, x, y)), a, b)


def minimum(a: Scalar, b: Scalar) -> Scalar:
    """The smaller one; NaN if one is."""
    if kind(a) not in FLOATS:
        return tirx.min(a, b)
    return bind(lambda x, y: select(is_nan(x), x, select(x < y, x, y)), a, b)


def limited(x: Scalar, low: Any, high: Any) -> Scalar:
    """x within [low, high]; NaN stays."""
    low, high = number(low, kind(x)), number(high, kind(x))
    if kind(x) not in FLOATS:
        return tirx.min(tirx.max(x, low), high)
    return bind(lambda v: bind(lambda above: select(above > high, high, above), select(v < low, low, v)), x)


def negative(x: Scalar) -> Scalar:
    """-x, which wraps around."""
    return subtract(number(0, kind(x)), x) if kind(x) not in FLOATS else number(-1, kind(x)) * x


def absolute(x: Scalar) -> Scalar:
    """|x|; the lowest integer stays."""
    dtype = kind(x)
    if dtype.startswith("uint") or dtype == "bool":
        return x
    return tirx.abs(x) if dtype in FLOATS else bind(lambda v: select(v < number(0, dtype), negative(v), v), x)


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1; NaN stays."""
    return bind(_sign, x)


def _sign(x: Scalar) -> Scalar:
    zero, one = number(0, kind(x)), number(1, kind(x))
    below = (
        zero if kind(x).startswith("uint") else select(x < zero, number(-1, kind(x)), x if kind(x) in FLOATS else zero)
    )
    return select(x > zero, one, below)


def round_away(x: Scalar) -> Scalar:
    """The nearest integer, ties away from zero, as a float."""

    def build(v: Scalar, whole: Scalar) -> Scalar:
        return select(tirx.abs(v - whole) >= number(0.5, kind(v)), whole + _sign(v), whole)

    return bind(lambda v: bind(build, v, tirx.trunc(v)), x)


def round_even(x: Scalar) -> Scalar:
    """The nearest integer, ties to the even one, as a float."""
    return tirx.nearbyint(x)


def convert(x: Scalar, dtype: str) -> Scalar:
    """x in another element type; floats beyond an integer type as x86 and numpy give them."""
    source = kind(x)
    if dtype == "bool":
        return truth(x)
    if source in FLOATS and dtype not in FLOATS:
        middle = "int64" if dtype in ("int64", "uint32") else "int32"
        info = np.iinfo(middle)

        # The largest integer is no float: the one above is.
        x, source = real(x), kind(real(x))

        def build(v: Scalar) -> Scalar:
            fits = tirx.all(v >= number(float(info.min), source), v < number(-float(info.min), source))
            return select(fits, v.astype(middle), number(int(info.min), middle))

        return narrow(bind(build, x), dtype)
    return narrow(x, dtype) if source in INTEGERS and dtype in INTEGERS else x if source == dtype else x.astype(dtype)


def real(x: Scalar) -> Scalar:
    """A half in single precision, which numpy computes functions in."""
    return x.astype("float32") if kind(x) == "float16" else x


def extreme(largest: bool, plain: bool = False) -> Any:
    """A reducer: the largest or smallest element; NaN if one is, unless `plain`, which TVM's own schedules know."""
    if plain:
        return te.max if largest else te.min

    def combine(best: Scalar, x: Scalar) -> Scalar:
        better = x > best if largest else x < best
        return select(tirx.any(better, is_nan(x)), x, best) if kind(x) in FLOATS else select(better, x, best)

    return te.comm_reducer(combine, lambda dtype: number(lowest(dtype) if largest else highest(dtype), dtype))


def lowest(dtype: Any) -> float | int:
    """The smallest value of an element type."""
    return float("-inf") if str(dtype) in FLOATS else int(np.iinfo(str(dtype)).min)


def highest(dtype: Any) -> float | int:
    """The largest value of an element type."""
    return float("inf") if str(dtype) in FLOATS else int(np.iinfo(str(dtype)).max)


def rounded_shift(value: Scalar, shift: Scalar, rounding: str) -> Scalar:
    """int64 `value` shifted right by int64 `shift`, rounded as named."""
    return bind(lambda v, by: _rounded_shift(v, by, rounding), value, shift)


def _rounded_shift(value: Scalar, shift: Scalar, rounding: str) -> Scalar:
    one = number(1, "int64")
    half = select(shift > 0, one << tirx.max(shift - one, number(0, "int64")), number(0, "int64"))
    match rounding:
        case "half_up":
            return (value + half) >> shift
        case "half_away":
            return (value + half - select(tirx.all(value < 0, shift > 0), one, one - one)) >> shift
        case "half_even":
            odd = (value >> shift) & one
            return (value + half - select(shift > 0, one - odd, one - one)) >> shift
        case _:
            return value >> shift


def saturated(value: Scalar, zero_point: Any, low: int, high: int, dtype: str) -> Scalar:
    """int64 `value` plus `zero_point` within [low, high], in `dtype`."""
    shifted = value + (number(zero_point, "int64") if isinstance(zero_point, int) else zero_point)
    return limited(shifted, low, high).astype(dtype)
