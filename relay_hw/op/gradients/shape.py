"""Gradients of operators that keep the elements, repeat them, or make them of one value.

In: a call, its result's adjoint. Out: the arguments' adjoints.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import (
    collapse,
    in_type,
    inverse,
    one_argument,
    ops,
    reshape_to,
    reshaped,
    sizes,
    zeros,
)

# The same elements in another shape go back into the shape that they had.
reshape = one_argument(lambda call, x, g: reshape_to(g, x))


def reshape_like(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """What gives only its shape gets no adjoint."""
    x, like = call.args
    return reshape_to(adjoint, x), zeros(like)


def _transpose(call: Call, x: Expr, g: Expr) -> Expr:
    axes, rank = call.attrs.axes, x.tensor_type.rank
    return ops().transpose(g, inverse([axis % rank for axis in axes])) if axes else ops().transpose(g)


transpose = one_argument(_transpose)
layout_transform = one_argument(
    lambda call, x, g: ops().layout_transform(g, call.attrs.dst_layout, call.attrs.src_layout)
)
broadcast_to = one_argument(lambda call, x, g: collapse(in_type(g, x, call), call, x))


def broadcast_to_like(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The repetitions add up."""
    x, like = call.args
    return collapse(adjoint, call, x), zeros(like)


collapse_sum_to = one_argument(lambda call, x, g: ops().broadcast_to(g, sizes(call, x)))


def collapse_sum_like(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Every summand gets the adjoint of the sum."""
    x, like = call.args
    return ops().broadcast_to_like(adjoint, x), zeros(like)


def _tile(call: Call, x: Expr, g: Expr) -> Expr:
    shape, reps = sizes(call, x), call.attrs.reps
    rank = max(len(shape), len(reps))
    dims = (1,) * (rank - len(shape)) + shape
    counts = (1,) * (rank - len(reps)) + tuple(reps)
    parts = reshaped(g, [size for pair in zip(counts, dims, strict=True) for size in pair])
    return reshaped(ops().sum(parts, range_of(0, 2 * rank, 2)) if rank else parts, shape)


def range_of(start: int, stop: int, step: int = 1) -> tuple[int, ...]:
    """Axes as a tuple."""
    return tuple(range(start, stop, step))


tile = one_argument(_tile)


def _repeat(call: Call, x: Expr, g: Expr) -> Expr:
    shape, repeats = sizes(call, x), call.attrs.repeats
    if call.attrs.axis is None:
        return reshaped(ops().sum(reshaped(g, (-1, repeats)) if repeats else g, -1), shape)
    axis = call.attrs.axis % len(shape)
    return ops().sum(reshaped(g, (*shape[: axis + 1], repeats, *shape[axis + 1 :])), axis + 1)


repeat = one_argument(_repeat)


def _upsampling(call: Call, x: Expr, g: Expr) -> Expr:
    shape = list(sizes(call, x))
    counts = call.attrs.factors()
    parts: list[int] = []
    summed: list[int] = []
    for axis, size in enumerate(shape):
        parts.append(size)
        if axis in counts:
            summed.append(len(parts))
            parts.append(counts[axis])
    return ops().sum(reshaped(g, parts), tuple(summed))


upsampling = one_argument(_upsampling)


def full(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value gets the sum."""
    value = call.args[0]
    return (in_type(ops().sum(adjoint), value, call),)


def full_like(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value gets the sum, what gives only its shape nothing."""
    like, value = call.args
    return zeros(like), in_type(ops().sum(adjoint), value, call)


def nothing(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Zeros for every argument, if there is one."""
    return tuple(zeros(arg) for arg in call.args)
