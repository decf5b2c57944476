"""Gradients of normalisations. In: a call, its result's adjoint. Out: the arguments' adjoints.

Softmax has its own; the others are written out in simpler operators, whose gradients are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from relay_hw.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import inverse, moved, number, one_argument, ops, reshaped


def _softmax(call: Call, x: Expr, g: Expr) -> Expr:
    weighted = g * call
    return weighted - call * ops().sum(weighted, call.attrs.axis, keepdims=True)


def _log_softmax(call: Call, x: Expr, g: Expr) -> Expr:
    return g - ops().exp(call) * ops().sum(g, call.attrs.axis, keepdims=True)


softmax = one_argument(_softmax)
log_softmax = one_argument(_log_softmax)


def dropout(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Inference keeps everything; the mask is constant."""
    return (adjoint.fields[0] if isinstance(adjoint, Tuple) else TupleGetItem(adjoint, 0),)


def _along(vector: Expr, axis: int, rank: int) -> Expr:
    """A vector that broadcasts along `axis`."""
    return ops().expand_dims(vector, 1, rank - 1 - axis)


def _affine(attrs: Any, x: Expr, axis: int, rank: int, gamma: Expr, beta: Expr) -> Expr:
    x = x * _along(gamma, axis, rank) if attrs.scale else x
    return x + _along(beta, axis, rank) if attrs.center else x


def _standardized(x: Expr, axes: Sequence[int], epsilon: float, like: Expr) -> Expr:
    op = ops()
    if not axes:
        return x - x
    centered = x - op.mean(x, axes, keepdims=True)
    variance = op.mean(centered * centered, axes, keepdims=True)
    return centered * op.rsqrt(variance + number(epsilon, like))


def _batch_norm(attrs: Any, x: Expr, gamma: Expr, beta: Expr, mean: Expr, variance: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    root = ops().rsqrt(variance + number(attrs.epsilon, x))
    normal = (x - _along(mean, axis, rank)) * _along(root, axis, rank)
    return Tuple([_affine(attrs, normal, axis, rank, gamma, beta), mean, variance])


def _layer_norm(attrs: Any, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    return _affine(attrs, _standardized(x, (axis,), attrs.epsilon, x), axis, rank, gamma, beta)


def _instance_norm(attrs: Any, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    axes = tuple(other for other in range(1, rank) if other != axis)
    return _affine(attrs, _standardized(x, axes, attrs.epsilon, x), axis, rank, gamma, beta)


def _group_norm(attrs: Any, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    shape = x.tensor_type.static_shape
    rank = len(shape)
    axis = attrs.axis % rank
    # As numpy.moveaxis(x, axis, 1).
    rest = [other for other in range(rank) if other != axis]
    order = [*rest[:1], axis, *rest[1:]]
    ordered = [shape[at] for at in order]
    grouped = reshaped(moved(x, order), (ordered[0], attrs.num_groups, -1))
    normal = reshaped(_standardized(grouped, (2,), attrs.epsilon, x), ordered)
    return _affine(attrs, moved(normal, inverse(order)), axis, rank, gamma, beta)


def _l2_normalize(attrs: Any, x: Expr) -> Expr:
    op = ops()
    axes = tuple(range(x.tensor_type.rank)) if attrs.axis is None else attrs.axis
    squares = x * x
    total = op.sum(squares, axes, keepdims=True) if axes else squares
    return x * op.rsqrt(op.maximum(total, number(attrs.eps, x)))


def _lrn(attrs: Any, x: Expr) -> Expr:
    op = ops()
    shape = x.tensor_type.static_shape
    rank, axis, half = len(shape), attrs.axis % len(shape), attrs.size // 2
    order = [*(other for other in range(rank) if other != axis), axis]
    places = np.arange(shape[axis])
    near = (np.abs(places[:, None] - places) <= half).astype(x.tensor_type.dtype)
    sums = moved(op.nn.dense(moved(x * x, order), Constant(near), units=shape[axis]), inverse(order))
    scale = number(attrs.bias, x) + number(attrs.alpha / attrs.size, x) * sums
    return x * op.power(scale, number(-attrs.beta, x))


batch_norm = by_expansion(_batch_norm)
layer_norm = by_expansion(_layer_norm)
instance_norm = by_expansion(_instance_norm)
group_norm = by_expansion(_group_norm)
l2_normalize = by_expansion(_l2_normalize)
lrn = by_expansion(_lrn)
