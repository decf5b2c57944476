"""Normalisations without parameters: l2_normalize, lrn; and dropout, the identity in inference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.ir.expr import Call, Expr, Op, Tuple, TupleGetItem
from relay_hw.ir.types import TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    Array,
    Attrs,
    Ints,
    call,
    ints,
    rule,
)
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
    inverse,
    moved,
    number,
    ops,
)
from relay_hw.op.gradients.selection import places_of, size_of

__all__ = ["dropout", "dropout_raw", "l2_normalize", "lrn"]


@dataclass(frozen=True, slots=True)
class DropoutAttrs(Attrs):
    rate: float = 0.5


def _dropout_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Inference keeps everything; the mask is constant."""
    return (adjoint.fields[0] if isinstance(adjoint, Tuple) else TupleGetItem(adjoint, 0),)


DROPOUT = Op(
    "nn.dropout",
    1,
    rule("nn.dropout", 1)(lambda attrs, x: TupleType((x, x))),
    lambda attrs, values, result: (np.asarray(values[0]), np.ones_like(values[0])),
    attrs_type=DropoutAttrs,
    gradient=_dropout_gradient,
    traits=KEEPS_AXES,
    doc="the data, which inference does not change, and a mask of ones",
)


def dropout_raw(data: Expr, rate: float = 0.5) -> Call:
    """A tuple: `data` and its mask; inference keeps everything."""
    return call(DROPOUT, (data,), DropoutAttrs(rate))


def dropout(data: Expr, rate: float = 0.5) -> TupleGetItem:
    """`data`; inference keeps everything."""
    return TupleGetItem(dropout_raw(data, rate), 0)


@dataclass(frozen=True, slots=True)
class L2NormalizeAttrs(Attrs):
    eps: float
    axis: tuple[int, ...] | None

    def __post_init__(self) -> None:
        self._set(axis=ints(self.axis))


def _l2_normalize(attrs: L2NormalizeAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    total = np.square(x).sum(axis=attrs.axis, keepdims=True)
    return x / np.sqrt(np.maximum(total, x.dtype.type(attrs.eps)))


def _l2_normalize_expr(attrs: AnyValue, x: Expr) -> Expr:
    op = ops()
    axes = tuple(range(x.tensor_type.rank)) if attrs.axis is None else attrs.axis
    squares = x * x
    total = op.sum(squares, axes, keepdims=True) if axes else squares
    return x * op.rsqrt(op.maximum(total, number(attrs.eps, x)))


L2_NORMALIZE = Op(
    "nn.l2_normalize",
    1,
    rule("nn.l2_normalize", 1)(lambda attrs, x: x),
    _l2_normalize,
    attrs_type=L2NormalizeAttrs,
    gradient=by_expansion(_l2_normalize_expr),
    traits=KEEPS_AXES,
    doc="x / sqrt(max(sum(x**2), eps))",
)


def l2_normalize(data: Expr, eps: float, axis: Ints | None = None) -> Call:
    """`data` divided by its length along `axis`."""
    return call(L2_NORMALIZE, (data,), L2NormalizeAttrs(eps, ints(axis)))


@dataclass(frozen=True, slots=True)
class LRNAttrs(Attrs):
    size: int = 5
    axis: int = 1
    bias: float = 2.0
    alpha: float = 1e-4
    beta: float = 0.75


def _lrn(attrs: LRNAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.moveaxis(np.asarray(values[0]), attrs.axis, 0)
    squares, half = np.square(x), attrs.size // 2
    total = np.zeros_like(x)
    for channel in range(x.shape[0]):
        total[channel] = squares[max(channel - half, 0) : channel + half + 1].sum(axis=0)
    scale = x.dtype.type(attrs.bias) + x.dtype.type(attrs.alpha / attrs.size) * total
    return np.moveaxis(x / np.power(scale, x.dtype.type(attrs.beta)), 0, attrs.axis)


def _lrn_expr(attrs: AnyValue, x: Expr) -> Expr:
    op = ops()
    rank, half = x.tensor_type.rank, attrs.size // 2
    axis = attrs.axis % rank
    order = [*(other for other in range(rank) if other != axis), axis]
    places = places_of(size_of(x, axis))
    away = op.abs(op.expand_dims(places, 1) - op.expand_dims(places, 0))
    near = op.cast_like(op.less_equal(away, op.const(half, "int64")), x)
    sums = moved(op.nn.dense(moved(x * x, order), near), inverse(order))
    scale = number(attrs.bias, x) + number(attrs.alpha / attrs.size, x) * sums
    return x * op.power(scale, number(-attrs.beta, x))


LRN = Op(
    "nn.lrn",
    1,
    rule("nn.lrn", 1)(lambda attrs, x: x),
    _lrn,
    attrs_type=LRNAttrs,
    gradient=by_expansion(_lrn_expr),
    traits=KEEPS_AXES,
    doc="x / (bias + alpha / size * sum of squares of the nearest channels)**beta",
)


def lrn(data: Expr, size: int = 5, axis: int = 1, bias: float = 2.0, alpha: float = 1e-4, beta: float = 0.75) -> Call:
    """Local response normalisation across `size` neighbouring channels."""
    return call(LRN, (data,), LRNAttrs(size, axis, bias, alpha, beta))


OPS = (DROPOUT, L2_NORMALIZE, LRN)
