"""Operators that create constant tensors: full, zeros, ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ELEMENTWISE,
    Attrs,
    Ints,
    as_expr,
    call,
    ints,
    rule,
    show_shape,
)
from relay_hw.op.gradients.common import (
    in_type,
    nothing,
    ops,
)
from relay_hw.op.gradients.common import zeros as zeros_of

__all__ = ["full", "full_like", "ones", "zeros"]


@dataclass(frozen=True, slots=True)
class InitOpAttrs(Attrs):
    shape: tuple[int, ...]
    dtype: str | None = None

    def __post_init__(self) -> None:
        self._set(shape=ints(self.shape), dtype=self.dtype or None)


def _sizes(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    if any(size < 0 for size in shape):
        raise TypeCheckError(f"the sizes of {name} must be at least 0, not {shape}")
    return shape


@rule("full", 1)
def _full_type(attrs: InitOpAttrs, value: TensorType) -> Type:
    if value.rank:
        raise TypeCheckError(f"the fill value of full must be a scalar, not {show_shape(value.shape)}")
    return TensorType(_sizes("full", attrs.shape), attrs.dtype or value.dtype)


def _full_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value gets the sum."""
    value = call.args[0]
    return (in_type(ops().sum(adjoint), value, call),)


FULL = Op(
    "full",
    1,
    _full_type,
    lambda attrs, values, result: np.full(attrs.shape, values[0], attrs.dtype or np.asarray(values[0]).dtype),
    attrs_type=InitOpAttrs,
    gradient=_full_gradient,
    pattern=FusionPattern.ELEMWISE,
    doc="a tensor of one value",
)


def full(fill_value: AnyValue, shape: Ints = (), dtype: str | None = None) -> Call:
    """A tensor of `shape` filled with `fill_value`."""
    return call(FULL, (as_expr(fill_value),), InitOpAttrs(ints(shape) or (), dtype))


def _init_relation(name: str) -> AnyValue:
    return rule(name, 0)(lambda attrs: TensorType(_sizes(name, attrs.shape), attrs.dtype or "float32"))


ZEROS = Op(
    "zeros",
    0,
    _init_relation("zeros"),
    lambda attrs, values, result: np.zeros(attrs.shape, attrs.dtype or "float32"),
    attrs_type=InitOpAttrs,
    gradient=nothing,
    pattern=FusionPattern.ELEMWISE,
    doc="a tensor of zeros",
)

ONES = Op(
    "ones",
    0,
    _init_relation("ones"),
    lambda attrs, values, result: np.ones(attrs.shape, attrs.dtype or "float32"),
    attrs_type=InitOpAttrs,
    gradient=nothing,
    pattern=FusionPattern.ELEMWISE,
    doc="a tensor of ones",
)


def zeros(shape: Ints, dtype: str = "float32") -> Call:
    """A tensor of zeros."""
    return call(ZEROS, (), InitOpAttrs(ints(shape) or (), dtype))


def ones(shape: Ints, dtype: str = "float32") -> Call:
    """A tensor of ones."""
    return call(ONES, (), InitOpAttrs(ints(shape) or (), dtype))


@rule("full_like", 2)
def _full_like_type(attrs: None, like: TensorType, value: TensorType) -> Type:
    if value.rank:
        raise TypeCheckError(f"the fill value of full_like must be a scalar, not {show_shape(value.shape)}")
    return like


def _full_like_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value's adjoint is the sum; the shape argument gets none."""
    like, value = call.args
    return zeros_of(like), in_type(ops().sum(adjoint), value, call)


FULL_LIKE = Op(
    "full_like",
    2,
    _full_like_type,
    lambda attrs, values, result: np.full_like(values[0], values[1]),
    gradient=_full_like_gradient,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="one value in the shape and element type of the first argument",
)


def full_like(data: Expr, fill_value: AnyValue) -> Call:
    """`fill_value` in the shape of `data`."""
    return call(FULL_LIKE, (data, as_expr(fill_value)))


OPS = (
    FULL,
    ZEROS,
    ONES,
    FULL_LIKE,
)
