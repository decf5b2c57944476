"""Elementwise operators of one argument: arithmetic, rounding, activations, casts."""

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
    KEEPS_AXES,
    PERMUTES,
    Array,
    Attrs,
    call,
    make_op,
    out_type,
    round_half_away,
    rule,
)
from relay_hw.op.gradients import elementwise as gradients

Function = Callable[[Array], AnyValue]


def _unary(name: str, function: Function, doc: str, dtype: str | None = None) -> Op:
    @rule(name, 1)
    def relation(attrs: None, x: TensorType) -> Type:
        return TensorType(x.shape, dtype or x.dtype)

    def meaning(attrs: None, values: Sequence[Array], result: Type) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(np.asarray(values[0]))).astype(out_type(result).dtype, copy=False)

    slope = gradients.unary(name)
    traits = ELEMENTWISE | PERMUTES if name == "copy" else ELEMENTWISE
    return make_op(name, 1, relation, meaning, pattern=FusionPattern.ELEMWISE, gradient=slope, traits=traits, doc=doc)


def _builder(op: Op) -> Callable[[Expr], Call]:
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


UNARY = (
    _unary("abs", np.abs, "|x|"),
    _unary("acos", np.arccos, "arc cosine"),
    _unary("acosh", np.arccosh, "inverse hyperbolic cosine"),
    _unary("asin", np.arcsin, "arc sine"),
    _unary("asinh", np.arcsinh, "inverse hyperbolic sine"),
    _unary("atan", np.arctan, "arc tangent"),
    _unary("atanh", np.arctanh, "inverse hyperbolic tangent"),
    _unary("bitwise_not", np.invert, "bits flipped"),
    _unary("ceil", _whole(np.ceil), "smallest integer not below x"),
    _unary("copy", np.copy, "x itself, in new memory"),
    _unary("cos", np.cos, "cosine"),
    _unary("cosh", np.cosh, "hyperbolic cosine"),
    _unary("erf", _erf, "Gauss error function"),
    _unary("exp", np.exp, "e to the power of x"),
    _unary("fast_erf", _erf, "erf; an implementation may approximate"),
    _unary("fast_exp", np.exp, "exp; an implementation may approximate"),
    _unary("fast_tanh", np.tanh, "tanh; an implementation may approximate"),
    _unary("floor", _whole(np.floor), "largest integer not above x"),
    _unary("isfinite", np.isfinite, "neither infinite nor NaN", "bool"),
    _unary("isinf", np.isinf, "infinite", "bool"),
    _unary("isnan", np.isnan, "not a number", "bool"),
    _unary("log", np.log, "natural logarithm"),
    _unary("log10", np.log10, "decimal logarithm"),
    _unary("log2", np.log2, "binary logarithm"),
    _unary("logical_not", np.logical_not, "true where x is false"),
    _unary("negative", np.negative, "-x"),
    _unary("nn.relu", lambda x: np.maximum(x, x.dtype.type(0)), "max(x, 0)"),
    _unary("round", _whole(round_half_away), "nearest integer, ties away from zero"),
    _unary("rsqrt", lambda x: 1 / np.sqrt(x), "1 / square root"),
    _unary("sigmoid", _sigmoid, "1 / (1 + exp(-x))"),
    _unary("sign", np.sign, "-1, 0 or 1"),
    _unary("sin", np.sin, "sine"),
    _unary("sinh", np.sinh, "hyperbolic sine"),
    _unary("sqrt", np.sqrt, "square root"),
    _unary("tan", np.tan, "tangent"),
    _unary("tanh", np.tanh, "hyperbolic tangent"),
    _unary("trunc", _whole(np.trunc), "x without its fraction"),
    _unary("zeros_like", np.zeros_like, "zeros of x's shape"),
    _unary("ones_like", np.ones_like, "ones of x's shape"),
    _unary("annotation.stop_fusion", np.copy, "x; fusion does not pass it"),
)
_BY_NAME = {op.name: op for op in UNARY}

abs = _builder(_BY_NAME["abs"])
acos = _builder(_BY_NAME["acos"])
acosh = _builder(_BY_NAME["acosh"])
asin = _builder(_BY_NAME["asin"])
asinh = _builder(_BY_NAME["asinh"])
atan = _builder(_BY_NAME["atan"])
atanh = _builder(_BY_NAME["atanh"])
bitwise_not = _builder(_BY_NAME["bitwise_not"])
ceil = _builder(_BY_NAME["ceil"])
copy = _builder(_BY_NAME["copy"])
cos = _builder(_BY_NAME["cos"])
cosh = _builder(_BY_NAME["cosh"])
erf = _builder(_BY_NAME["erf"])
exp = _builder(_BY_NAME["exp"])
fast_erf = _builder(_BY_NAME["fast_erf"])
fast_exp = _builder(_BY_NAME["fast_exp"])
fast_tanh = _builder(_BY_NAME["fast_tanh"])
floor = _builder(_BY_NAME["floor"])
isfinite = _builder(_BY_NAME["isfinite"])
isinf = _builder(_BY_NAME["isinf"])
isnan = _builder(_BY_NAME["isnan"])
log = _builder(_BY_NAME["log"])
log10 = _builder(_BY_NAME["log10"])
log2 = _builder(_BY_NAME["log2"])
logical_not = _builder(_BY_NAME["logical_not"])
negative = _builder(_BY_NAME["negative"])
relu = _builder(_BY_NAME["nn.relu"])
round = _builder(_BY_NAME["round"])
rsqrt = _builder(_BY_NAME["rsqrt"])
sigmoid = _builder(_BY_NAME["sigmoid"])
sign = _builder(_BY_NAME["sign"])
sin = _builder(_BY_NAME["sin"])
sinh = _builder(_BY_NAME["sinh"])
sqrt = _builder(_BY_NAME["sqrt"])
tan = _builder(_BY_NAME["tan"])
tanh = _builder(_BY_NAME["tanh"])
trunc = _builder(_BY_NAME["trunc"])
zeros_like = _builder(_BY_NAME["zeros_like"])
ones_like = _builder(_BY_NAME["ones_like"])
stop_fusion = _builder(_BY_NAME["annotation.stop_fusion"])


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


CLIP = make_op(
    "clip",
    1,
    _clip_type,
    lambda attrs, values, result: clip_value(np.asarray(values[0]), attrs.a_min, attrs.a_max),
    attrs=ClipAttrs,
    gradient=gradients.clip,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="x limited to [a_min, a_max]",
)


def clip(a: Expr, a_min: float, a_max: float) -> Call:
    """`a` limited to [a_min, a_max]."""
    return call(CLIP, (a,), ClipAttrs(a_min, a_max))


@dataclass(frozen=True, slots=True)
class CastAttrs(Attrs):
    dtype: str


def cast_value(x: Array, dtype: str) -> Array:
    """Floats lose their fraction, integers wrap, anything but zero is true."""
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype, copy=False)


CAST = make_op(
    "cast",
    1,
    rule("cast", 1)(lambda attrs, x: TensorType(x.shape, attrs.dtype)),
    lambda attrs, values, result: cast_value(values[0], attrs.dtype),
    attrs=CastAttrs,
    gradient=gradients.cast,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="x in another element type",
)


def cast(data: Expr, dtype: str) -> Call:
    """`data` in element type `dtype`."""
    return call(CAST, (data,), CastAttrs(str(np.dtype(dtype))))


@rule("reinterpret", 1)
def _reinterpret_type(attrs: CastAttrs, x: TensorType) -> Type:
    if np.dtype(attrs.dtype).itemsize != np.dtype(x.dtype).itemsize:
        raise TypeCheckError(f"reinterpret must keep the number of bits, not go from {x.dtype} to {attrs.dtype}")
    return TensorType(x.shape, attrs.dtype)


REINTERPRET = make_op(
    "reinterpret",
    1,
    _reinterpret_type,
    lambda attrs, values, result: np.ascontiguousarray(values[0]).view(attrs.dtype).reshape(np.shape(values[0])),
    attrs=CastAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="the same bits read as another element type",
)


def reinterpret(data: Expr, dtype: str) -> Call:
    """The bits of `data` read as `dtype`."""
    return call(REINTERPRET, (data,), CastAttrs(dtype))


CAST_LIKE = make_op(
    "cast_like",
    2,
    rule("cast_like", 2)(lambda attrs, x, like: TensorType(x.shape, like.dtype)),
    lambda attrs, values, result: cast_value(values[0], str(np.asarray(values[1]).dtype)),
    gradient=gradients.cast,
    pattern=FusionPattern.ELEMWISE,
    traits=KEEPS_AXES,
    doc="x in the element type of the second argument",
)


def cast_like(data: Expr, dtype_like: Expr) -> Call:
    """`data` in the element type of `dtype_like`."""
    return call(CAST_LIKE, (data, dtype_like))


@dataclass(frozen=True, slots=True)
class LeakyReluAttrs(Attrs):
    alpha: float = 0.25


def _leaky_relu(attrs: LeakyReluAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    return np.where(x > 0, x, x * x.dtype.type(attrs.alpha)).astype(x.dtype, copy=False)


LEAKY_RELU = make_op(
    "nn.leaky_relu",
    1,
    rule("nn.leaky_relu", 1)(lambda attrs, x: x),
    _leaky_relu,
    attrs=LeakyReluAttrs,
    gradient=gradients.leaky_relu,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="x where positive, else alpha * x",
)


def leaky_relu(data: Expr, alpha: float = 0.25) -> Call:
    """`data` where positive, else alpha times it."""
    return call(LEAKY_RELU, (data,), LeakyReluAttrs(alpha))


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


FIXED_POINT_MULTIPLY = make_op(
    "fixed_point_multiply",
    1,
    rule("fixed_point_multiply", 1)(lambda attrs, x: x),
    lambda attrs, values, result: fixed_point_multiply_value(values[0], attrs.multiplier, attrs.shift).astype(
        out_type(result).dtype
    ),
    attrs=FixedPointMultiplyAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="Q31 product, rounded to nearest with ties up, shifted",
)


def fixed_point_multiply(data: Expr, multiplier: int, shift: int) -> Call:
    """`data` times multiplier * 2**(shift - 31), rounded to nearest with ties up."""
    return call(FIXED_POINT_MULTIPLY, (data,), FixedPointMultiplyAttrs(multiplier, shift))


OPS = UNARY + (CLIP, CAST, REINTERPRET, CAST_LIKE, LEAKY_RELU, FIXED_POINT_MULTIPLY)
