"""Gradients of matrix products and bias. In: a call, its result's adjoint. Out: the arguments' adjoints."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import collapse, in_type, known_type, ops, reshaped, sizes


def _rows(call: Call, value: Expr, of: Expr) -> Expr:
    """All axes but the last merged; `of` has the shape of `value`."""
    shape = sizes(call, of)
    return value if len(shape) == 2 else reshaped(value, (prod(shape[:-1]), shape[-1]))


def dense(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Data and weight each meet the adjoint."""
    op, (x, weight) = ops(), call.args
    to_weight = op.nn.matmul(_rows(call, adjoint, call), _rows(call, x, x), transpose_a=True)
    return in_type(op.nn.matmul(adjoint, weight), x, call), in_type(to_weight, weight, call)


def _swapped(value: Expr, rank: int) -> Expr:
    return ops().transpose(value, (*range(rank - 2), rank - 1, rank - 2))


def matmul(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Data and weight each meet the adjoint."""
    op, (a, b), attrs = ops(), call.args, call.attrs
    rank = a.tensor_type.rank
    to_a = op.nn.matmul(adjoint, b, transpose_b=not attrs.transpose_b)
    to_a = _swapped(to_a, rank) if attrs.transpose_a else to_a
    shape = sizes(call, a)
    rows = _swapped(a, rank) if attrs.transpose_a else a
    if rank != 2:
        depth = shape[-2] if attrs.transpose_a else shape[-1]
        rows = reshaped(rows, (prod(shape) // max(depth, 1), depth))
    left, right = rows, _rows(call, adjoint, call)
    if attrs.transpose_b:
        left, right = right, left
    return in_type(to_a, a, call), in_type(op.nn.matmul(left, right, transpose_a=True), b, call)


def batch_matmul(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each side meets the adjoint; a side that was repeated for every batch gets the sum."""
    op, (a, b), attrs = ops(), call.args, call.attrs
    flip_a, flip_b = attrs.transpose_a, attrs.transpose_b

    def product(left: Expr, right: Expr, flip_left: bool, flip_right: bool) -> Expr:
        return op.nn.batch_matmul(left, right, transpose_a=flip_left, transpose_b=flip_right)

    to_a = product(b, adjoint, flip_b, True) if flip_a else product(adjoint, b, False, not flip_b)
    to_b = product(adjoint, a, True, flip_a) if flip_b else product(a, adjoint, not flip_a, False)
    return _summed(in_type(to_a, a, call), call, a), _summed(in_type(to_b, b, call), call, b)


def _summed(value: Expr, call: Call, arg: Expr) -> Expr:
    have, want = known_type(call), known_type(arg)
    if have is None or want is None:
        return collapse(value, call, arg)
    return ops().sum(value, 0, keepdims=True) if have.shape[0] != want.shape[0] else value


def bias_add(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The bias gets the sum over all axes but its own."""
    return adjoint, ops().sum(adjoint, call.attrs.axis, exclude=True)
