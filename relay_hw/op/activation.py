"""Activations: relu, hardswish, leaky_relu, prelu.

Where a function has a kink, its gradient is one of the slopes beside it: 0 for relu at 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    ELEMENTWISE,
    ON_CHANNELS,
    Array,
    Attrs,
    call,
    check_axis,
    expect,
    rule,
    tensor,
)
from relay_hw.op.elementwise import unary, unary_builder
from relay_hw.op.gradients.common import (
    choose,
    number,
    ops,
)

__all__ = ["hardswish", "leaky_relu", "prelu", "relu"]

RELU = unary(
    "nn.relu",
    lambda x: np.maximum(x, x.dtype.type(0)),
    "max(x, 0)",
    slope=lambda x, y, g: choose(ops().greater(x, number(0, x)), g, like=x),
)


relu = unary_builder(RELU)


def _hardswish_slope(x: Expr, y: Expr, g: Expr) -> Expr:
    """(2 x + 3) / 6 between -3 and 3."""
    inner = g * (x * number(1 / 3, x) + number(0.5, x))
    is_high, is_low = ops().greater_equal(x, number(3, x)), ops().less_equal(x, number(-3, x))
    return choose(is_high, g, choose(is_low, number(0, x), inner))


HARDSWISH = unary(
    "hardswish",
    lambda x: x * (np.clip(x + x.dtype.type(3), 0, 6) / x.dtype.type(6)),
    "x * min(max(x + 3, 0), 6) / 6",
    slope=_hardswish_slope,
)


hardswish = unary_builder(HARDSWISH)


@dataclass(frozen=True, slots=True)
class LeakyReluAttrs(Attrs):
    alpha: float = 0.25


def _leaky_relu(attrs: LeakyReluAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    return np.where(x > 0, x, x * x.dtype.type(attrs.alpha)).astype(x.dtype, copy=False)


def _leaky_relu_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint where x is positive, alpha times it elsewhere."""
    op, (x,) = ops(), call.args
    return (op.where(op.greater(x, number(0, x)), adjoint, adjoint * number(call.attrs.alpha, x)),)


LEAKY_RELU = Op(
    "nn.leaky_relu",
    1,
    rule("nn.leaky_relu", 1)(lambda attrs, x: x),
    _leaky_relu,
    attrs_type=LeakyReluAttrs,
    gradient=_leaky_relu_gradient,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="x where positive, else alpha * x",
)


def leaky_relu(data: Expr, alpha: float = 0.25) -> Call:
    """`data` where positive, else alpha times it."""
    return call(LEAKY_RELU, (data,), LeakyReluAttrs(alpha))


@dataclass(frozen=True, slots=True)
class PReluAttrs(Attrs):
    axis: int = 1


def _prelu_type(types: AnyValue, attrs: PReluAttrs, solver: AnyValue) -> Type | None:
    data = tensor("nn.prelu", types, 0)
    if data is None:
        return None
    axis = check_axis("nn.prelu", attrs.axis, data.rank)
    expect("nn.prelu", solver, "alpha", types[1], TensorType((data.shape[axis],), data.dtype))
    return data


def _prelu(attrs: PReluAttrs, values: Sequence[Array], result: Type) -> Array:
    x, alpha = (np.asarray(value) for value in values)
    shape = [1] * x.ndim
    shape[attrs.axis] = -1
    return np.where(x > 0, x, x * alpha.reshape(shape))


def _prelu_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The gradient of each channel's slope is a sum over its negative elements."""
    op, (x, alpha) = ops(), call.args
    rank = x.tensor_type.rank
    axis = call.attrs.axis % rank
    is_positive = op.greater(x, number(0, x))
    along = op.expand_dims(alpha, 1, rank - 1 - axis)
    to_alpha = op.sum(op.where(is_positive, number(0, x), adjoint * x), axis, exclude=True)
    return op.where(is_positive, adjoint, adjoint * along), to_alpha


PRELU = Op(
    "nn.prelu",
    2,
    _prelu_type,
    _prelu,
    attrs_type=PReluAttrs,
    gradient=_prelu_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=ALONG_AXIS | ON_CHANNELS,
    doc="x where positive, else alpha[channel] * x",
)


def prelu(data: Expr, alpha: Expr, axis: int = 1) -> Call:
    """`data` where positive, else `alpha` of its channel times it."""
    return call(PRELU, (data, alpha), PReluAttrs(axis))


OPS = (HARDSWISH, RELU, LEAKY_RELU, PRELU)
