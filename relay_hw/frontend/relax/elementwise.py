"""Relax's elementwise operators, comparisons, reductions and creation of tensors, as Relay."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

import numpy as np

from relay_hw import op
from relay_hw.frontend.relax.site import Converter, Refusal, Site, Table
from relay_hw.ir.expr import Call, Constant, Expr

_SAME_UNARY = (
    *(
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atanh",
        "ceil",
        "cos",
        "cosh",
        "erf",
        "exp",
        "floor",
        "isfinite",
    ),
    *("isinf", "isnan", "log", "negative", "logical_not", "bitwise_not", "rsqrt", "sigmoid", "sign", "sin", "sinh"),
    *("sqrt", "tan", "tanh", "trunc", "zeros_like_", "nn.relu"),
)
_SAME_BINARY = (
    *("add", "subtract", "multiply", "floor_divide", "floor_mod", "power", "maximum", "minimum", "equal", "not_equal"),
    *("less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
)


def scalar(value: float, dtype: str) -> Constant:
    """A number as a constant of rank 0."""
    return Constant(np.asarray(value, dtype))


def _operator(name: str) -> Callable[..., Call]:
    return getattr(op.nn, name.removeprefix("nn.")) if name.startswith("nn.") else getattr(op, name)


def _unary(name: str) -> Converter:
    build = _operator(name)
    return lambda s: build(s[0])


def _binary(name: str) -> Converter:
    build = _operator(name)
    return lambda s: build(s[0], s[1])


def _divide(s: Site) -> Expr:
    return op.divide(s[0], s[1]) if s.is_float(0) else op.trunc_divide(s[0], s[1])


def _mod(s: Site) -> Expr:
    return op.trunc_mod(s[0], s[1])


def _round(s: Site) -> Expr:
    """Round ties to even; Relay's round rounds them away from zero."""
    if not s.is_float(0):
        return s[0]
    dtype, low = s.type(0).dtype, op.floor(s[0])
    is_tie = op.equal(op.subtract(s[0], low), scalar(0.5, dtype))
    even = op.add(low, op.floor_mod(low, scalar(2, dtype)))
    return op.where(is_tie, even, op.round(s[0]))


def _clip(s: Site) -> Expr:
    return op.clip(s[0], s.number(1), s.number(2))


def _log_add_exp(s: Site) -> Expr:
    top = op.maximum(s[0], s[1])
    return op.add(top, op.log(op.add(op.exp(op.subtract(s[0], top)), op.exp(op.subtract(s[1], top)))))


def _axes(s: Site) -> tuple[int, ...] | None:
    axis = s.attr("axis")
    return None if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)


def _reduce(name: str) -> Converter:
    build = _operator(name)
    return lambda s: build(s[0], axis=_axes(s), keepdims=bool(s.attr("keepdims")))


def _arg_reduce(name: str) -> Converter:
    build = _operator(name)

    def convert(s: Site) -> Expr:
        return op.cast(build(s[0], axis=_axes(s), keepdims=bool(s.attr("keepdims"))), s.result.dtype)

    return convert


def _scan(name: str) -> Converter:
    build = _operator(name)

    def convert(s: Site) -> Expr:
        return build(s[0], axis=s.attr("axis"), dtype=s.result.dtype, exclusive=bool(s.attr("exclusive")))

    return convert


def _full(s: Site) -> Expr:
    return op.full(op.cast(s[1], s.result.dtype), s.sizes(0), s.result.dtype)


def _full_like(s: Site) -> Expr:
    return op.full(op.cast(s[1], s.result.dtype), s.shape(0), s.result.dtype)


def _filled(value: int) -> Converter:
    return lambda s: op.full(scalar(value, s.result.dtype), s.sizes(0), s.result.dtype)


def _filled_like(value: int) -> Converter:
    return lambda s: op.full(scalar(value, s.result.dtype), s.shape(0), s.result.dtype)


def _arange(s: Site) -> Expr:
    return Constant(np.arange(s.number(0), s.number(1), s.number(2)).astype(s.result.dtype))


def _eye(s: Site) -> Expr:
    return Constant(np.eye(int(s.number(0)), int(s.number(1)), int(s.number(2))).astype(s.result.dtype))


def _quantize(s: Site) -> Expr:
    if s.result.dtype not in ("int8", "uint8", "int32", "int16", "uint16"):
        raise Refusal(f"its result must be integers, not {s.result.dtype}")
    scale, zero = op.cast(s[1], "float32"), op.cast(s[2], "int32")
    return op.qnn.quantize(s[0], scale, zero, axis=s.attr("axis"), out_dtype=s.result.dtype, rounding="half_even")


def _dequantize(s: Site) -> Expr:
    return op.qnn.dequantize(s[0], op.cast(s[1], "float32"), op.cast(s[2], "int32"), axis=s.attr("axis"))


CONVERTERS: Table = MappingProxyType(
    {name: _unary(name) for name in _SAME_UNARY if not name.endswith("_")}
    | {name: _binary(name) for name in _SAME_BINARY}
    | {name: _reduce(name) for name in ("sum", "mean", "max", "min", "prod", "variance", "std")}
    | {name: _arg_reduce(name) for name in ("argmax", "argmin")}
    | {name: _scan(name) for name in ("cumsum", "cumprod")}
    | {
        "divide": _divide,
        "mod": _mod,
        "round": _round,
        "clip": _clip,
        "log_add_exp": _log_add_exp,
        "square": lambda s: op.multiply(s[0], s[0]),
        "ewise_fma": lambda s: op.add(op.multiply(s[0], s[1]), s[2]),
        "astype": lambda s: op.cast(s[0], s.result.dtype),
        "where": lambda s: op.where(s[0], s[1], s[2]),
        "full": _full,
        "full_like": _full_like,
        "zeros": _filled(0),
        "ones": _filled(1),
        "zeros_like": _filled_like(0),
        "ones_like": _filled_like(1),
        "arange": _arange,
        "eye": _eye,
        "quantize": _quantize,
        "dequantize": _dequantize,
    }
)
