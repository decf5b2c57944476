"""Unary elementwise operators: arithmetic, rounding, clipping."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ELEMENTWISE,
    PERMUTES,
    Array,
    Attrs,
    call,
    out_type,
    round_half_away,
    rule,
)
from relay_hw.op.gradients.common import (
    choose,
    number,
    ops,
    zeros,
)

__all__ = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "bitwise_not",
    "ceil",
    "clip",
    "copy",
    "cos",
    "cosh",
    "erf",
    "exp",
    "fast_erf",
    "fast_exp",
    "fast_tanh",
    "fixed_point_multiply",
    "floor",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log2",
    "log10",
    "logical_not",
    "negative",
    "ones_like",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "zeros_like",
]

Function = Callable[[Array], AnyValue]
# (argument, result, adjoint of the result) -> adjoint of the argument
Slope = Callable[[Expr, Expr, Expr], Expr]


def unary(name: str, function: Function, doc: str, dtype: str | None = None, *, slope: Slope | None = None) -> Op:
    """A unary operator from its function on arrays; `slope` is None if its result is not real."""

    @rule(name, 1)
    def relation(attrs: None, x: TensorType) -> Type:
        return TensorType(x.shape, dtype or x.dtype)

    def reference(attrs: None, values: Sequence[Array], result: Type) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.asarray(values[0]))).astype(out_type(result).dtype, copy=False)

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        assert slope is not None
        return (slope(call.args[0], call, adjoint),)

    traits = ELEMENTWISE | PERMUTES if name == "copy" else ELEMENTWISE
    return Op(
        name,
        1,
        relation,
        reference,
        pattern=FusionPattern.ELEMWISE,
        gradient=gradient if slope else None,
        traits=traits,
        doc=doc,
    )


def unary_builder(op: Op) -> Callable[[Expr], Call]:
    """A function that calls an operator of one argument."""

    def build(data: Expr) -> Call:
        return call(op, (data,))

    build.__doc__ = op.doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


_erf = np.frompyfunc(math.erf, 1, 1)


def _whole(function: Function) -> Function:
    """Rounding leaves integers alone."""
    return lambda x: function(x) if x.dtype.kind == "f" else x


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _flat(x: Expr, y: Expr, g: Expr) -> Expr:
    return zeros(x)


def same(x: Expr, y: Expr, g: Expr) -> Expr:
    return g


def _over_root(sign: float, root: Callable[[Expr, Expr], Expr]) -> Slope:
    """g * sign / sqrt(root(x * x, 1))"""
    return lambda x, y, g: g * number(sign, x) * ops().rsqrt(root(x * x, number(1, x)))


def _erf_slope(x: Expr, y: Expr, g: Expr) -> Expr:
    return g * number(2 / math.sqrt(math.pi), x) * ops().exp(-(x * x))


def _acosh_slope(x: Expr, y: Expr, g: Expr) -> Expr:
    one, op = number(1, x), ops()
    return g * op.rsqrt(x - one) * op.rsqrt(x + one)


UNARY = (
    unary("abs", np.abs, "|x|", slope=lambda x, y, g: g * ops().sign(x)),
    unary("acos", np.arccos, "arc cosine", slope=_over_root(-1, lambda square, one: one - square)),
    unary("acosh", np.arccosh, "inverse hyperbolic cosine", slope=_acosh_slope),
    unary("asin", np.arcsin, "arc sine", slope=_over_root(1, lambda square, one: one - square)),
    unary("asinh", np.arcsinh, "inverse hyperbolic sine", slope=_over_root(1, lambda square, one: square + one)),
    unary("atan", np.arctan, "arc tangent", slope=lambda x, y, g: g / (x * x + number(1, x))),
    unary("atanh", np.arctanh, "inverse hyperbolic tangent", slope=lambda x, y, g: g / (number(1, x) - x * x)),
    unary("bitwise_not", np.invert, "bits flipped"),
    unary("ceil", _whole(np.ceil), "smallest integer not below x", slope=_flat),
    unary("copy", np.copy, "x itself, in new memory", slope=same),
    unary("cos", np.cos, "cosine", slope=lambda x, y, g: -(g * ops().sin(x))),
    unary("cosh", np.cosh, "hyperbolic cosine", slope=lambda x, y, g: g * ops().sinh(x)),
    unary("erf", _erf, "Gauss error function", slope=_erf_slope),
    unary("exp", np.exp, "e to the power of x", slope=lambda x, y, g: g * y),
    unary("fast_erf", _erf, "erf; an implementation may approximate", slope=_erf_slope),
    unary("fast_exp", np.exp, "exp; an implementation may approximate", slope=lambda x, y, g: g * y),
    unary(
        "fast_tanh",
        np.tanh,
        "tanh; an implementation may approximate",
        slope=lambda x, y, g: g * (number(1, x) - y * y),
    ),
    unary("floor", _whole(np.floor), "largest integer not above x", slope=_flat),
    unary("isfinite", np.isfinite, "neither infinite nor NaN", "bool"),
    unary("isinf", np.isinf, "infinite", "bool"),
    unary("isnan", np.isnan, "not a number", "bool"),
    unary("log", np.log, "natural logarithm", slope=lambda x, y, g: g / x),
    unary("log10", np.log10, "decimal logarithm", slope=lambda x, y, g: g / (x * number(math.log(10), x))),
    unary("log2", np.log2, "binary logarithm", slope=lambda x, y, g: g / (x * number(math.log(2), x))),
    unary("logical_not", np.logical_not, "true where x is false"),
    unary("negative", np.negative, "-x", slope=lambda x, y, g: -g),
    unary("round", _whole(round_half_away), "nearest integer, ties away from zero", slope=_flat),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), "1 / square root", slope=lambda x, y, g: g * number(-0.5, x) * y / x),
    unary("sigmoid", _sigmoid, "1 / (1 + exp(-x))", slope=lambda x, y, g: g * y * (number(1, x) - y)),
    unary("sign", np.sign, "-1, 0 or 1", slope=_flat),
    unary("sin", np.sin, "sine", slope=lambda x, y, g: g * ops().cos(x)),
    unary("sinh", np.sinh, "hyperbolic sine", slope=lambda x, y, g: g * ops().cosh(x)),
    unary("sqrt", np.sqrt, "square root", slope=lambda x, y, g: g * number(0.5, x) / y),
    unary("tan", np.tan, "tangent", slope=lambda x, y, g: g * (number(1, x) + y * y)),
    unary("tanh", np.tanh, "hyperbolic tangent", slope=lambda x, y, g: g * (number(1, x) - y * y)),
    unary("trunc", _whole(np.trunc), "x without its fraction", slope=_flat),
    unary("zeros_like", np.zeros_like, "zeros of x's shape", slope=_flat),
    unary("ones_like", np.ones_like, "ones of x's shape", slope=_flat),
)

_BY_NAME = {op.name: op for op in UNARY}

abs = unary_builder(_BY_NAME["abs"])

acos = unary_builder(_BY_NAME["acos"])

acosh = unary_builder(_BY_NAME["acosh"])

asin = unary_builder(_BY_NAME["asin"])

asinh = unary_builder(_BY_NAME["asinh"])

atan = unary_builder(_BY_NAME["atan"])

atanh = unary_builder(_BY_NAME["atanh"])

bitwise_not = unary_builder(_BY_NAME["bitwise_not"])

ceil = unary_builder(_BY_NAME["ceil"])

copy = unary_builder(_BY_NAME["copy"])

cos = unary_builder(_BY_NAME["cos"])

cosh = unary_builder(_BY_NAME["cosh"])

erf = unary_builder(_BY_NAME["erf"])

exp = unary_builder(_BY_NAME["exp"])

fast_erf = unary_builder(_BY_NAME["fast_erf"])

fast_exp = unary_builder(_BY_NAME["fast_exp"])

fast_tanh = unary_builder(_BY_NAME["fast_tanh"])

floor = unary_builder(_BY_NAME["floor"])

isfinite = unary_builder(_BY_NAME["isfinite"])

isinf = unary_builder(_BY_NAME["isinf"])

isnan = unary_builder(_BY_NAME["isnan"])

log = unary_builder(_BY_NAME["log"])

log10 = unary_builder(_BY_NAME["log10"])

log2 = unary_builder(_BY_NAME["log2"])

logical_not = unary_builder(_BY_NAME["logical_not"])

negative = unary_builder(_BY_NAME["negative"])

round = unary_builder(_BY_NAME["round"])

rsqrt = unary_builder(_BY_NAME["rsqrt"])

sigmoid = unary_builder(_BY_NAME["sigmoid"])

sign = unary_builder(_BY_NAME["sign"])

sin = unary_builder(_BY_NAME["sin"])

sinh = unary_builder(_BY_NAME["sinh"])

sqrt = unary_builder(_BY_NAME["sqrt"])

tan = unary_builder(_BY_NAME["tan"])

tanh = unary_builder(_BY_NAME["tanh"])

trunc = unary_builder(_BY_NAME["trunc"])

zeros_like = unary_builder(_BY_NAME["zeros_like"])

ones_like = unary_builder(_BY_NAME["ones_like"])


@dataclass(frozen=True, slots=True)
class ClipAttrs(Attrs):
    a_min: float
    a_max: float


@rule("clip", 1)
def _clip_type(attrs: ClipAttrs, x: TensorType) -> Type:
    if attrs.a_min > attrs.a_max:
        raise TypeCheckError(f"a_min of clip must be at most a_max, not {attrs.a_min} with a_max {attrs.a_max}")
    return x


def clip_value(x: Array, a_min: float, a_max: float) -> Array:
    """x limited to [a_min, a_max] in its own element type; limits outside an integer type change nothing."""
    if x.dtype.kind in "iu":
        info = np.iinfo(x.dtype)
        a_min, a_max = max(math.ceil(a_min), info.min), min(math.floor(a_max), info.max)
    return np.minimum(np.maximum(x, x.dtype.type(a_min)), x.dtype.type(a_max))


def _clip_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint passes where the data is within the limits, inclusively."""
    op, (x,) = ops(), call.args
    low, high = number(call.attrs.a_min, x), number(call.attrs.a_max, x)
    is_inside = op.logical_and(op.greater_equal(x, low), op.less_equal(x, high))
    return (choose(is_inside, adjoint, like=x),)


CLIP = Op(
    "clip",
    1,
    _clip_type,
    lambda attrs, values, result: clip_value(np.asarray(values[0]), attrs.a_min, attrs.a_max),
    attrs_type=ClipAttrs,
    gradient=_clip_gradient,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="x limited to [a_min, a_max]",
)


def clip(a: Expr, a_min: float, a_max: float) -> Call:
    """`a` limited to [a_min, a_max]."""
    return call(CLIP, (a,), ClipAttrs(a_min, a_max))


@dataclass(frozen=True, slots=True)
class FixedPointMultiplyAttrs(Attrs):
    multiplier: int
    shift: int


def fixed_point_multiply_value(
    x: Array, multiplier: AnyValue, shift: AnyValue, away: bool = False, even: bool = False
) -> Array:
    """x * multiplier * 2**(shift - 31) to the nearest integer in int64; ties go up, away from zero, or to even.

    |x| is below 2**32 and multiplier at most 2**31, so that their product and half a unit fit.
    """
    left = np.maximum(np.asarray(shift, np.int64) - 31, 0)
    right = np.maximum(31 - np.asarray(shift, np.int64), 0)
    product = (x.astype(np.int64) << left) * np.asarray(multiplier, np.int64)
    # A product shifted by 63 or more is less than half a unit.
    near = np.clip(right, 1, 62)
    half = np.int64(1) << (near - 1)
    scaled = (product + half - (product < 0) * np.int64(away)) >> near
    if even:
        scaled = scaled - (((scaled << near) - product == half) & (scaled & 1 == 1))
    return np.where(right == 0, product, np.where(right > 62, 0, scaled))


FIXED_POINT_MULTIPLY = Op(
    "fixed_point_multiply",
    1,
    rule("fixed_point_multiply", 1)(lambda attrs, x: x),
    lambda attrs, values, result: fixed_point_multiply_value(values[0], attrs.multiplier, attrs.shift).astype(
        out_type(result).dtype
    ),
    attrs_type=FixedPointMultiplyAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="Q31 product, rounded to nearest with ties up, shifted",
)


def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> Call:
    """`data` times multiplier * 2**(shift - 31), rounded to nearest with ties up."""
    return call(FIXED_POINT_MULTIPLY, (data,), FixedPointMultiplyAttrs(multiplier, shift))


OPS = UNARY + (CLIP, FIXED_POINT_MULTIPLY)
