"""Float normalisations: batch, layer, instance and group norm, softmax, l2_normalize, lrn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.ops.base import Arg, Context, Lowering, dtype_of, literal, reshape, shape_of
from relay_hw.backend.tvm.ops.reduce import folded, plain

SINGLE = ("float32", "float64")


def _kept(tensor: Any, axes: Sequence[int], index: Sequence[Any]) -> Any:
    """The element of a reduction with its axes kept."""
    return tensor(*(0 if at in axes else place for at, place in enumerate(index)))


def _affine(a: Any, value: Any, channel: Any, gamma: Any, beta: Any) -> Any:
    value = value * gamma(channel) if a.scale else value
    return value + beta(channel) if a.center else value


def standardized(x: Any, axes: Sequence[int], epsilon: float, finish: Callable[..., Any]) -> Any:
    """TE: (x - mean) / sqrt(variance + epsilon) over `axes`; `finish(value, index)`."""
    shape = [int(size) for size in x.shape]
    count = s.number(prod(shape[axis] for axis in axes), str(x.dtype))
    mean = folded(x, axes, True, te.sum, plain, lambda total: total / count)

    def square(_x: Any, index: Sequence[Any]) -> Any:
        difference = x(*index) - _kept(mean, axes, index)
        return difference * difference

    def scale(total: Any) -> Any:
        return tirx.sqrt(total / count + s.number(epsilon, s.kind(total)))

    deviation = folded(x, axes, True, te.sum, square, scale)

    def element(*index: Any) -> Any:
        return finish((x(*index) - _kept(mean, axes, index)) / _kept(deviation, axes, index), index)

    return te.compute(shape, element, name="normal")


def _norm(axes_of: Callable[[int, int], Sequence[int]]) -> Lowering:
    """`axes_of(axis, rank)`: over which axes the data is standardised."""

    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        a, rank = call.attrs, len(shape_of(args[0]))
        axis = a.axis % rank
        axes = axes_of(axis, rank)
        if dtype_of(args[0]) not in SINGLE or not axes:
            return None

        def build(x: Any, gamma: Any, beta: Any) -> Any:
            return standardized(x, axes, a.epsilon, lambda value, i: _affine(a, value, i[axis], gamma, beta))

        return ctx.te(build, *args)

    return lower


def _group_norm(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])
    if dtype_of(args[0]) not in SINGLE or a.axis % len(shape) != 1:
        return None
    each = shape[1] // a.num_groups
    grouped = reshape(ctx, args[0], (shape[0], a.num_groups, each, *shape[2:]))
    axes = tuple(range(2, len(shape) + 1))

    def build(x: Any, gamma: Any, beta: Any) -> Any:
        return standardized(x, axes, a.epsilon, lambda value, i: _affine(a, value, i[1] * each + i[2], gamma, beta))

    return reshape(ctx, ctx.emit(ctx.te(build, grouped, *args[1:])), shape)


def _batch_norm(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])
    if dtype_of(args[0]) not in SINGLE:
        return None
    axis = a.axis % len(shape)

    def build(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        def element(*i: Any) -> Any:
            c = i[axis]
            value = x(*i)
            deviation = tirx.sqrt(variance(c) + s.number(a.epsilon, s.kind(value)))
            return _affine(a, (value - mean(c)) / deviation, c, gamma, beta)

        return te.compute(shape, element, name="batch_norm")

    return ctx.te(build, *args), args[3], args[4]


def _softmax(logarithm: bool) -> Lowering:
    def lower(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
        shape = shape_of(args[0])
        axes = (call.attrs.axis % len(shape),)
        if dtype_of(args[0]) not in SINGLE:
            return None

        def build(x: Any) -> Any:
            top = folded(x, axes, True, s.extreme(True, not ctx.machine.is_cpu), plain)
            if logarithm:
                total = folded(x, axes, True, te.sum, lambda _x, i: tirx.exp(x(*i) - _kept(top, axes, i)))
                return te.compute(shape, lambda *i: x(*i) - _kept(top, axes, i) - tirx.log(_kept(total, axes, i)))
            power = te.compute(shape, lambda *i: tirx.exp(x(*i) - _kept(top, axes, i)), name="power")
            total = folded(power, axes, True, te.sum, plain)
            return te.compute(shape, lambda *i: power(*i) / _kept(total, axes, i), name="softmax")

        return ctx.te(build, args[0])

    return lower


def _l2_normalize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, given = shape_of(args[0]), call.attrs.axis
    axes = tuple(range(len(shape))) if given is None else tuple(axis % len(shape) for axis in given)
    if dtype_of(args[0]) not in SINGLE or not axes:
        return None

    def build(x: Any) -> Any:
        def length(total: Any) -> Any:
            return tirx.sqrt(s.maximum(total, s.number(call.attrs.eps, s.kind(total))))

        divisor = folded(x, axes, True, te.sum, lambda _x, i: x(*i) * x(*i), length)
        return te.compute(shape, lambda *i: x(*i) / _kept(divisor, axes, i), name="l2_normalize")

    return ctx.te(build, args[0])


def _lrn(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, shape = call.attrs, shape_of(args[0])
    if dtype_of(args[0]) not in SINGLE:
        return None
    axis, half = a.axis % len(shape), a.size // 2

    def build(x: Any) -> Any:
        near = te.reduce_axis((0, 2 * half + 1), "near")

        def square(*i: Any) -> Any:
            at = i[axis] + near - half
            inside = tirx.all(at >= 0, at < shape[axis])
            value = x(*i[:axis], at, *i[axis + 1 :])
            return te.sum(tirx.if_then_else(inside, value * value, s.number(0, s.kind(value))), axis=[near])

        total = te.compute(shape, square, name="fold")

        def element(*i: Any) -> Any:
            value = x(*i)
            bias, power = (s.number(v, s.kind(value)) for v in (a.bias, a.beta))
            return value / tirx.pow(bias + s.times(total(*i), a.alpha / a.size), power)

        return te.compute(shape, element, name="lrn")

    return ctx.te(build, args[0])


def _dropout(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, dtype = shape_of(args[0]), dtype_of(args[0])
    return args[0], literal(np.ones(shape), dtype)


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "nn.batch_norm": _batch_norm,
        "nn.layer_norm": _norm(lambda axis, rank: (axis,)),
        "nn.instance_norm": _norm(lambda axis, rank: [at for at in range(1, rank) if at != axis]),
        "nn.group_norm": _group_norm,
        "nn.softmax": _softmax(False),
        "nn.fast_softmax": _softmax(False),
        "nn.log_softmax": _softmax(True),
        "nn.l2_normalize": _l2_normalize,
        "nn.lrn": _lrn,
        "nn.dropout": _dropout,
    }
)
