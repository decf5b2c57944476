"""Unary elementwise operators: arithmetic, rounding, functions, casts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import tirx
from relay_hw.backend.tvm.ops.base import FLOATS, Arg, Context, Lowering, dtype_of, elementwise, filled, is_float

Scalar = s.Scalar
# TVM ends where it folds a comparison of one of these with 0.
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def _function(build: Callable[[Scalar], Scalar]) -> Lowering:
    """A function of floats."""
    return _floats(lambda x: build(s.real(x)))


def _floats(build: Callable[[Scalar], Scalar]) -> Lowering:
    return lambda ctx, call, args: elementwise(ctx, call, args, build) if is_float(args[0]) else None


def _whole(build: Callable[[Scalar], Scalar]) -> Lowering:
    """Rounding leaves integers alone."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        return elementwise(ctx, call, args, build if is_float(args[0]) else lambda x: x)

    return lower


def _all(build: Callable[[Scalar], Scalar], without: tuple[str, ...] = ()) -> Lowering:
    """Of any element type but those."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        return None if dtype_of(args[0]) in without else elementwise(ctx, call, args, build)

    return lower


def _relu(x: Scalar) -> Scalar:
    zero = s.number(0, s.kind(x))
    return s.bind(lambda v: s.select(v < zero, zero, v), x)


def _sigmoid(x: Scalar) -> Scalar:
    one = s.number(1, s.kind(x))
    return one / (one + tirx.exp(s.number(0, s.kind(x)) - x))


def _clip(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    low, high, dtype = call.attrs.a_min, call.attrs.a_max, dtype_of(args[0])
    if dtype == "bool" or dtype in UNSIGNED:
        return None
    if dtype not in FLOATS:
        info = np.iinfo(dtype)
        low, high = (max(min(limit, 2**63), -(2**63)) for limit in (low, high))
        low, high = max(math.ceil(low), int(info.min)), min(math.floor(high), int(info.max))
        if low > info.max or high < info.min:
            return None
    return elementwise(ctx, call, args, lambda x: s.limited(x, low, high))


def _cast(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    source, target = dtype_of(args[0]), str(call.type.dtype)  # type: ignore[union-attr]
    if (source in FLOATS and target == "uint64") or (source == "uint64" and target in FLOATS):
        return None
    return elementwise(ctx, call, args[:1], lambda x: s.convert(x, target))


def _leaky_relu(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    def scalar(x: Scalar) -> Scalar:
        zero = s.number(0, s.kind(x))
        return s.bind(lambda v: s.select(v > zero, v, s.times(v, call.attrs.alpha)), x)

    return elementwise(ctx, call, args, scalar) if is_float(args[0]) else None


def fixed_point(x: Scalar, multiplier: Any, shift: Any, away: bool = False, even: bool = False) -> Scalar:
    """int64 x times `multiplier`, a Q31 number, times 2**`shift`, rounded like `fixed_point_multiply_value`."""
    return s.bind(lambda v, by, at: _fixed_point(v, by, at, away, even), x, multiplier, shift)


def _fixed_point(x: Scalar, multiplier: Any, shift: Any, away: bool, even: bool) -> Scalar:
    zero, one, most = (s.number(value, "int64") for value in (0, 1, 31))
    left, right = tirx.max(shift - most, zero), tirx.max(most - shift, zero)

    def rounded(product: Scalar, near: Scalar, half: Scalar) -> Scalar:
        raised = product + half - (s.select(product < zero, one, zero) if away else zero)
        return s.bind(lambda scaled: settled(product, near, half, scaled), raised >> near)

    def settled(product: Scalar, near: Scalar, half: Scalar, scaled: Scalar) -> Scalar:
        if even:
            tie = tirx.all(s.equal((scaled << near) - product, half), s.equal(scaled & one, one))
            scaled = scaled - s.select(tie, one, zero)
        return s.select(s.equal(right, zero), product, s.select(right > s.number(62, "int64"), zero, scaled))

    near = tirx.min(tirx.max(right, one), s.number(62, "int64"))
    return s.bind(
        lambda at: s.bind(
            lambda product, half: rounded(product, at, half), (x << left) * multiplier, one << (at - one)
        ),
        near,
    )


def _fixed_point_multiply(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    if dtype_of(args[0]) not in ("int8", "int16", "int32", "uint8", "uint16"):
        return None
    multiplier, shift = (s.number(value, "int64") for value in (call.attrs.multiplier, call.attrs.shift))
    return elementwise(ctx, call, args, lambda x: fixed_point(x.astype("int64"), multiplier, shift))


def _reinterpret(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    target = call.attrs.dtype
    if "bool" in (target, dtype_of(args[0])):
        return None
    return elementwise(ctx, call, args, lambda x: x if s.kind(x) == target else tirx.reinterpret(target, x))


_FUNCTIONS = {
    name: _function(getattr(tirx, name))
    for name in (
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "cos",
        "cosh",
        "erf",
        "exp",
        "log",
        "log10",
        "log2",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
    )
}
LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    _FUNCTIONS
    | {
        "fast_erf": _FUNCTIONS["erf"],
        "fast_exp": _FUNCTIONS["exp"],
        "fast_tanh": _FUNCTIONS["tanh"],
        "rsqrt": _function(lambda x: s.number(1, s.kind(x)) / tirx.sqrt(x)),
        "sigmoid": _function(_sigmoid),
        "ceil": _whole(tirx.ceil),
        "floor": _whole(tirx.floor),
        "trunc": _whole(tirx.trunc),
        "round": _whole(s.round_away),
        "isnan": _floats(s.is_nan),
        "isinf": _floats(lambda x: s.equal(tirx.abs(x), s.number(float("inf"), s.kind(x)))),
        "isfinite": _floats(lambda x: tirx.abs(x) < s.number(float("inf"), s.kind(x))),
        "abs": _all(s.absolute),
        "negative": _all(s.negative, ("bool", *UNSIGNED)),
        "sign": _all(s.sign, ("bool", *UNSIGNED)),
        "nn.relu": _all(_relu, ("bool", *UNSIGNED)),
        "bitwise_not": _all(lambda x: tirx.Not(x) if s.kind(x) == "bool" else ~x, FLOATS),
        "logical_not": _all(s.is_zero),
        "copy": _all(lambda x: x),
        "annotation.stop_fusion": _all(lambda x: x),
        "device_copy": _all(lambda x: x),
        "on_device": _all(lambda x: x),
        "zeros_like": filled(0),
        "ones_like": filled(1),
        "clip": _clip,
        "cast": _cast,
        "cast_like": _cast,
        "reinterpret": _reinterpret,
        "nn.leaky_relu": _leaky_relu,
        "fixed_point_multiply": _fixed_point_multiply,
    }
)
