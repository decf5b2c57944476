"""Normalisations with scale and shift parameters: batch, layer, group, instance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Gradient, Op, Solver, Trait, Tuple
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    ON_CHANNELS,
    Array,
    Attrs,
    call,
    check_axis,
    expect,
    tensor,
)
from relay_hw.op.dense import along
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
    inverse,
    known_type,
    moved,
    number,
    ops,
    reshaped,
)

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm"]


@dataclass(frozen=True, slots=True)
class BatchNormAttrs(Attrs):
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@dataclass(frozen=True, slots=True)
class LayerNormAttrs(Attrs):
    axis: int = -1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@dataclass(frozen=True, slots=True)
class InstanceNormAttrs(Attrs):
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


@dataclass(frozen=True, slots=True)
class GroupNormAttrs(Attrs):
    num_groups: int = 0
    axis: int = 1
    epsilon: float = 1e-5
    center: bool = True
    scale: bool = True


def _channel_params(
    name: str, axis: int, names: Sequence[str], types: Sequence[Type], solver: Solver
) -> TensorType | None:
    """The data's type, after unifying the types of parameter vectors with its channel axis."""
    data = tensor(name, types, 0)
    if data is None:
        return None
    size = data.shape[check_axis(name, axis, data.rank)]
    for what, given in zip(names, types[1:], strict=True):
        expect(name, solver, what, given, TensorType((size,), data.dtype))
    return data


def _batch_norm_type(types: Sequence[Type], attrs: BatchNormAttrs, solver: Solver) -> Type | None:
    names = ("gamma", "beta", "moving_mean", "moving_var")
    data = _channel_params("nn.batch_norm", attrs.axis, names, types, solver)
    if data is None:
        return None
    vector = TensorType((data.shape[attrs.axis],), data.dtype)
    return TupleType((data, vector, vector))


def _affine(attrs: AnyValue, x: Array, axis: int, gamma: Array, beta: Array) -> Array:
    if attrs.scale:
        x = x * along(gamma, axis, x.ndim)
    return x + along(beta, axis, x.ndim) if attrs.center else x


def _batch_norm(attrs: BatchNormAttrs, values: Sequence[Array], result: Type) -> tuple[Array, Array, Array]:
    x, gamma, beta, mean, variance = (np.asarray(value) for value in values)
    scaled = (x - along(mean, attrs.axis, x.ndim)) / along(
        np.sqrt(variance + x.dtype.type(attrs.epsilon)), attrs.axis, x.ndim
    )
    return _affine(attrs, scaled, attrs.axis, gamma, beta), mean, variance


def _along(vector: Expr, axis: int, rank: int) -> Expr:
    """A vector that broadcasts along `axis`."""
    return ops().expand_dims(vector, 1, rank - 1 - axis)


def _affine_expr(attrs: AnyValue, x: Expr, axis: int, rank: int, gamma: Expr, beta: Expr) -> Expr:
    x = x * _along(gamma, axis, rank) if attrs.scale else x
    return x + _along(beta, axis, rank) if attrs.center else x


def _standardized(x: Expr, axes: Sequence[int], epsilon: float, like: Expr) -> Expr:
    op = ops()
    if not axes:
        return x - x
    centered = x - op.mean(x, axes, keepdims=True)
    variance = op.mean(centered * centered, axes, keepdims=True)
    return centered * op.rsqrt(variance + number(epsilon, like))


def _batch_norm_expr(attrs: AnyValue, x: Expr, gamma: Expr, beta: Expr, mean: Expr, variance: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    root = ops().rsqrt(variance + number(attrs.epsilon, x))
    normal = (x - _along(mean, axis, rank)) * _along(root, axis, rank)
    return Tuple([_affine_expr(attrs, normal, axis, rank, gamma, beta), mean, variance])


BATCH_NORM = Op(
    "nn.batch_norm",
    5,
    _batch_norm_type,
    _batch_norm,
    attrs_type=BatchNormAttrs,
    gradient=by_expansion(_batch_norm_expr),
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ALONG_AXIS | ON_CHANNELS,
    doc="(x - mean) / sqrt(variance + epsilon) * gamma + beta, and the mean and variance unchanged",
)


def batch_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    moving_mean: Expr,
    moving_var: Expr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """A tuple: the normalised data, `moving_mean`, `moving_var`."""
    args = (data, gamma, beta, moving_mean, moving_var)
    return call(BATCH_NORM, args, BatchNormAttrs(axis, epsilon, center, scale))


def _standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> Array:
    mean = x.mean(axis=axes, keepdims=True)
    variance = np.square(x - mean).mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + x.dtype.type(epsilon))


def _layer_norm(attrs: LayerNormAttrs, values: Sequence[Array], result: Type) -> Array:
    x, gamma, beta = (np.asarray(value) for value in values)
    return _affine(attrs, _standardize(x, (attrs.axis,), attrs.epsilon), attrs.axis, gamma, beta)


def _instance_norm(attrs: InstanceNormAttrs, values: Sequence[Array], result: Type) -> Array:
    x, gamma, beta = (np.asarray(value) for value in values)
    axes = tuple(axis for axis in range(1, x.ndim) if axis != attrs.axis % x.ndim)
    return _affine(attrs, _standardize(x, axes, attrs.epsilon), attrs.axis, gamma, beta)


def _group_norm(attrs: GroupNormAttrs, values: Sequence[Array], result: Type) -> Array:
    x, gamma, beta = (np.asarray(value) for value in values)
    axis = attrs.axis % x.ndim
    moved = np.moveaxis(x, axis, 1)
    grouped = moved.reshape(moved.shape[0], attrs.num_groups, -1)
    normal = np.moveaxis(_standardize(grouped, (2,), attrs.epsilon).reshape(moved.shape), 1, axis)
    return _affine(attrs, normal, axis, gamma, beta)


def _group_norm_type(types: Sequence[Type], attrs: GroupNormAttrs, solver: Solver) -> Type | None:
    data = _channel_params("nn.group_norm", attrs.axis, ("gamma", "beta"), types, solver)
    if data is not None:
        size = data.shape[attrs.axis]
        if attrs.num_groups < 1 or (isinstance(size, int) and size % attrs.num_groups):
            raise TypeCheckError(f"num_groups of nn.group_norm must divide {size}, not be {attrs.num_groups}")
    return data


def _plain_norm(
    name: str, attrs_type: type, reference: AnyValue, gradient: Gradient, traits: frozenset[Trait], doc: str
) -> Op:
    def relation(types: Sequence[Type], attrs: AnyValue, solver: Solver) -> Type | None:
        return _channel_params(name, attrs.axis, ("gamma", "beta"), types, solver)

    return Op(name, 3, relation, reference, attrs_type=attrs_type, gradient=gradient, traits=traits, doc=doc)


def _layer_norm_expr(attrs: AnyValue, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    return _affine_expr(attrs, _standardized(x, (axis,), attrs.epsilon, x), axis, rank, gamma, beta)


def _instance_norm_expr(attrs: AnyValue, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    rank = x.tensor_type.rank
    axis = attrs.axis % rank
    axes = tuple(other for other in range(1, rank) if other != axis)
    return _affine_expr(attrs, _standardized(x, axes, attrs.epsilon, x), axis, rank, gamma, beta)


def _group_norm_expr(attrs: AnyValue, x: Expr, gamma: Expr, beta: Expr) -> Expr:
    shape = x.tensor_type.shape
    rank = len(shape)
    axis = attrs.axis % rank
    # As numpy.moveaxis(x, axis, 1).
    rest = [other for other in range(rank) if other != axis]
    order = [*rest[:1], axis, *rest[1:]]
    plain, ordered = moved(x, order), [shape[at] for at in order]
    if known_type(x) is None:
        grouped = ops().reshape(plain, (0, attrs.num_groups, -1))
    else:
        grouped = reshaped(plain, (ordered[0], attrs.num_groups, -1))
    standard = _standardized(grouped, (2,), attrs.epsilon, x)
    normal = ops().reshape_like(standard, plain) if known_type(x) is None else reshaped(standard, ordered)
    return _affine_expr(attrs, moved(normal, inverse(order)), axis, rank, gamma, beta)


LAYER_NORM = _plain_norm(
    "nn.layer_norm",
    LayerNormAttrs,
    _layer_norm,
    by_expansion(_layer_norm_expr),
    ALONG_AXIS,
    "standardised along one axis",
)

INSTANCE_NORM = _plain_norm(
    "nn.instance_norm",
    InstanceNormAttrs,
    _instance_norm,
    by_expansion(_instance_norm_expr),
    ON_CHANNELS,
    "standardised per sample and channel",
)

GROUP_NORM = Op(
    "nn.group_norm",
    3,
    _group_norm_type,
    _group_norm,
    attrs_type=GroupNormAttrs,
    gradient=by_expansion(_group_norm_expr),
    traits=ON_CHANNELS,
    doc="standardised per group of channels",
)


def layer_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = -1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """`data` standardised along `axis`, times gamma plus beta."""
    return call(LAYER_NORM, (data, gamma, beta), LayerNormAttrs(axis, epsilon, center, scale))


def instance_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """`data` standardised per sample and channel, times gamma plus beta."""
    return call(INSTANCE_NORM, (data, gamma, beta), InstanceNormAttrs(axis, epsilon, center, scale))


def group_norm(
    data: Expr,
    gamma: Expr,
    beta: Expr,
    num_groups: int,
    axis: int = 1,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Call:
    """`data` standardised per sample and group of channels, times gamma plus beta."""
    return call(GROUP_NORM, (data, gamma, beta), GroupNormAttrs(num_groups, axis, epsilon, center, scale))


OPS = (
    BATCH_NORM,
    LAYER_NORM,
    INSTANCE_NORM,
    GROUP_NORM,
)
