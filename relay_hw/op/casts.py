"""Operators that change the element type: cast, cast_like, reinterpret."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ELEMENTWISE,
    KEEPS_AXES,
    Array,
    Attrs,
    call,
    rule,
)
from relay_hw.op.gradients.common import (
    in_type,
    zeros,
)

__all__ = ["cast", "cast_like", "reinterpret"]


@dataclass(frozen=True, slots=True)
class CastAttrs(Attrs):
    dtype: str


def cast_value(x: Array, dtype: str) -> Array:
    """Cast like Relay: floats are truncated, integers wrap, anything but zero is true."""
    with np.errstate(all="ignore"):
        return np.asarray(x).astype(dtype, copy=False)


def _cast_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint in the argument's element type; the second argument of `cast_like` gets none."""
    return (in_type(adjoint, call.args[0], call), *(zeros(like) for like in call.args[1:]))


CAST = Op(
    "cast",
    1,
    rule("cast", 1)(lambda attrs, x: TensorType(x.shape, attrs.dtype)),
    lambda attrs, values, result: cast_value(values[0], attrs.dtype),
    attrs_type=CastAttrs,
    gradient=_cast_gradient,
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


REINTERPRET = Op(
    "reinterpret",
    1,
    _reinterpret_type,
    lambda attrs, values, result: np.ascontiguousarray(values[0]).view(attrs.dtype).reshape(np.shape(values[0])),
    attrs_type=CastAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="the same bits read as another element type",
)


def reinterpret(data: Expr, dtype: str) -> Call:
    """The bits of `data` read as `dtype`."""
    return call(REINTERPRET, (data,), CastAttrs(dtype))


CAST_LIKE = Op(
    "cast_like",
    2,
    rule("cast_like", 2)(lambda attrs, x, like: TensorType(x.shape, like.dtype)),
    lambda attrs, values, result: cast_value(values[0], str(np.asarray(values[1]).dtype)),
    gradient=_cast_gradient,
    pattern=FusionPattern.ELEMWISE,
    traits=KEEPS_AXES,
    doc="x in the element type of the second argument",
)


def cast_like(data: Expr, dtype_like: Expr) -> Call:
    """`data` in the element type of `dtype_like`."""
    return call(CAST_LIKE, (data, dtype_like))


OPS = (CAST, REINTERPRET, CAST_LIKE)
