"""Normalisations: batch, layer, group, instance; softmax; dropout (identity at inference)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Gradient, Op, Solver, Trait, TupleGetItem
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    KEEPS_AXES,
    ON_CHANNELS,
    Array,
    Attrs,
    Ints,
    call,
    check_axis,
    expect,
    ints,
    make_op,
    rule,
    tensor,
)
from relay_hw.op.dense import along
from relay_hw.op.gradients import norm as gradients


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
    """The data's type after every vector parameter was made to fit its axis."""
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


BATCH_NORM = make_op(
    "nn.batch_norm",
    5,
    _batch_norm_type,
    _batch_norm,
    attrs=BatchNormAttrs,
    gradient=gradients.batch_norm,
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
    name: str, attrs_type: type, meaning: AnyValue, gradient: Gradient, traits: frozenset[Trait], doc: str
) -> Op:
    def relation(types: Sequence[Type], attrs: AnyValue, solver: Solver) -> Type | None:
        return _channel_params(name, attrs.axis, ("gamma", "beta"), types, solver)

    return make_op(name, 3, relation, meaning, attrs=attrs_type, gradient=gradient, traits=traits, doc=doc)


LAYER_NORM = _plain_norm(
    "nn.layer_norm", LayerNormAttrs, _layer_norm, gradients.layer_norm, ALONG_AXIS, "standardised along one axis"
)
INSTANCE_NORM = _plain_norm(
    "nn.instance_norm",
    InstanceNormAttrs,
    _instance_norm,
    gradients.instance_norm,
    ON_CHANNELS,
    "standardised per sample and channel",
)
GROUP_NORM = make_op(
    "nn.group_norm",
    3,
    _group_norm_type,
    _group_norm,
    attrs=GroupNormAttrs,
    gradient=gradients.group_norm,
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


@dataclass(frozen=True, slots=True)
class SoftmaxAttrs(Attrs):
    axis: int = -1


def softmax_value(x: Array, axis: int) -> Array:
    """exp(x) / sum(exp(x)) along `axis`, in x's float type; computed in float64, so that every platform agrees.

    float16 stays: ONNX's own tests expect its roundings on the way.
    """
    if x.size == 0:  # numpy finds no largest one
        return x
    wide = x if x.dtype.itemsize == 2 else x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True))
    return (powers / powers.sum(axis=axis, keepdims=True)).astype(x.dtype)


def _log_softmax_value(x: Array, axis: int) -> Array:
    if x.size == 0:
        return x
    wide = x if x.dtype.itemsize == 2 else x.astype(np.float64)
    shifted = wide - wide.max(axis=axis, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(x.dtype)


def _softmax(name: str, function: AnyValue, gradient: Gradient, doc: str) -> Op:
    @rule(name, 1)
    def relation(attrs: SoftmaxAttrs, x: TensorType) -> Type:
        check_axis(name, attrs.axis, x.rank)
        if not x.dtype.startswith(("float", "bfloat")):
            raise TypeCheckError(f"the data of {name} must be floating point, not {x.dtype}")
        return x

    def meaning(attrs: SoftmaxAttrs, values: Sequence[Array], result: Type) -> Array:
        return function(np.asarray(values[0]), attrs.axis)

    return make_op(
        name,
        1,
        relation,
        meaning,
        attrs=SoftmaxAttrs,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        gradient=gradient,
        traits=ALONG_AXIS,
        doc=doc,
    )


SOFTMAX = _softmax("nn.softmax", softmax_value, gradients.softmax, "exp(x) / sum(exp(x)) along an axis")
FAST_SOFTMAX = _softmax(
    "nn.fast_softmax", softmax_value, gradients.softmax, "nn.softmax; an implementation may approximate"
)
LOG_SOFTMAX = _softmax("nn.log_softmax", _log_softmax_value, gradients.log_softmax, "logarithm of nn.softmax")


def softmax(data: Expr, axis: int = -1) -> Call:
    """exp(data) / sum(exp(data)) along `axis`."""
    return call(SOFTMAX, (data,), SoftmaxAttrs(axis))


def fast_softmax(data: Expr, axis: int = -1) -> Call:
    """softmax that an implementation may approximate."""
    return call(FAST_SOFTMAX, (data,), SoftmaxAttrs(axis))


def log_softmax(data: Expr, axis: int = -1) -> Call:
    """The logarithm of softmax."""
    return call(LOG_SOFTMAX, (data,), SoftmaxAttrs(axis))


@dataclass(frozen=True, slots=True)
class DropoutAttrs(Attrs):
    rate: float = 0.5


DROPOUT = make_op(
    "nn.dropout",
    1,
    rule("nn.dropout", 1)(lambda attrs, x: TupleType((x, x))),
    lambda attrs, values, result: (np.asarray(values[0]), np.ones_like(values[0])),
    attrs=DropoutAttrs,
    gradient=gradients.dropout,
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


L2_NORMALIZE = make_op(
    "nn.l2_normalize",
    1,
    rule("nn.l2_normalize", 1)(lambda attrs, x: x),
    _l2_normalize,
    attrs=L2NormalizeAttrs,
    gradient=gradients.l2_normalize,
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


LRN = make_op(
    "nn.lrn",
    1,
    rule("nn.lrn", 1)(lambda attrs, x: x),
    _lrn,
    attrs=LRNAttrs,
    gradient=gradients.lrn,
    traits=KEEPS_AXES,
    doc="x / (bias + alpha / size * sum of squares of the nearest channels)**beta",
)


def lrn(data: Expr, size: int = 5, axis: int = 1, bias: float = 2.0, alpha: float = 1e-4, beta: float = 0.75) -> Call:
    """Local response normalisation across `size` neighbouring channels."""
    return call(LRN, (data,), LRNAttrs(size, axis, bias, alpha, beta))


OPS = (
    BATCH_NORM,
    LAYER_NORM,
    INSTANCE_NORM,
    GROUP_NORM,
    SOFTMAX,
    FAST_SOFTMAX,
    LOG_SOFTMAX,
    DROPOUT,
    L2_NORMALIZE,
    LRN,
)
