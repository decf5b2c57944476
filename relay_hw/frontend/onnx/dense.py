"""ONNX matrix products: Gemm and MatMul."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.node import Arguments, Converter, Node
from relay_hw.ir.expr import Expr
from relay_hw.ir.types import Any as AnyDim
from relay_hw.ir.types import Dim
from relay_hw.op import const, nn
from relay_hw.op.base import broadcast_shapes


def _scaled(value: Expr, factor: float, args: Arguments) -> Expr:
    return value if factor == 1 else op.multiply(value, args.scalar(factor, value))


def _gemm(node: Node, args: Arguments) -> Expr:
    for index in (0, 1):
        if args.rank(args[index]) != 2:
            raise InputError(f"input {index} of Gemm must have 2 axes, not {args.rank(args[index])}", node.span)
    data = op.transpose(args[0], (1, 0)) if node.attr("transA", 0) else args[0]
    weight = args[1] if node.attr("transB", 0) else op.transpose(args[1], (1, 0))
    units = args.shape(weight)[0]
    value = _scaled(nn.dense(data, weight, units), node.attr("alpha", 1.0), args)
    bias = args.get(2)
    if bias is None or node.attr("beta", 1.0) == 0:
        return value
    bias = _scaled(bias, node.attr("beta", 1.0), args)
    return nn.bias_add(value, bias) if args.shape(bias) == (units,) else op.add(value, bias)


def _batched(node: Node, args: Arguments, left: Expr, right: Expr) -> Expr:
    a, b = args.dims(left), args.dims(right)
    if a[:-2] == b[:-2] and not args.is_static(left) and not any(isinstance(dim, AnyDim) for dim in a[:-2]):
        return _batched_alike(args, left, right)
    if not (args.is_static(left) and args.is_static(right)):
        return _batched_by_value(args, left, right)
    a, b = args.shape(left), args.shape(right)
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise InputError(f"the batch axes of MatMul must broadcast, not be {a[:-2]} and {b[:-2]}", node.span) from None

    def flat(value: Expr, shape: tuple[int, ...]) -> Expr:
        wide = value if shape[:-2] == batch else op.broadcast_to(value, (*batch, *shape[-2:]))
        return op.reshape(wide, (prod(batch), *shape[-2:]))

    value = nn.batch_matmul(flat(left, a), flat(right, b), transpose_b=False)
    return op.reshape(value, (*batch, a[-2], b[-1]))


def _batched_by_value(args: Arguments, left: Expr, right: Expr) -> Expr:
    """MatMul with dynamic batch axes: both sides are broadcast to sizes computed at run time."""
    a, b = args.dims(left), args.dims(right)
    rank = max(len(a), len(b)) - 2
    sides = [_in_front(args.sizes(side, 0, len(dims) - 2), len(dims) - 2, rank)
             for side, dims in ((left, a), (right, b))]  # fmt: skip
    one, rest = const(np.int64(1)), const(np.array([-1], np.int64))
    batch = op.where(op.equal(sides[0], one), sides[1], sides[0])

    def flat(side: Expr, dims: Sequence[Dim]) -> Expr:
        inner = args.sizes(side, len(dims) - 2, len(dims))
        wide = op.dynamic.broadcast_to(side, op.concatenate([batch, inner], 0))
        return op.dynamic.reshape(wide, op.concatenate([rest, inner], 0))

    value = nn.batch_matmul(flat(left, a), flat(right, b), transpose_b=False)
    rows, columns = args.sizes(left, len(a) - 2, len(a) - 1), args.sizes(right, len(b) - 1, len(b))
    made = op.dynamic.reshape(value, op.concatenate([batch, rows, columns], 0))
    return args.assume(made, (*broadcast_shapes("MatMul", (a[:-2], b[:-2])), a[-2], b[-1]))


def _in_front(sizes: Expr, count: int, rank: int) -> Expr:
    """Prepend ones to `count` sizes, up to `rank`."""
    if count == rank:
        return sizes
    ones = const(np.ones(rank - count, np.int64))
    return op.concatenate([ones, sizes], 0) if count else ones


def _batched_alike(args: Arguments, left: Expr, right: Expr) -> Expr:
    """MatMul with equal dynamic batch axes: merged by a reshape, and split again by the left side's sizes."""
    batch = args.rank(left) - 2
    first, second = left, right
    for _ in range(batch - 1):
        # -3 merges the first two axes, -2 keeps the rest.
        first, second = op.reshape(first, (-3, -2)), op.reshape(second, (-3, -2))
    value = nn.batch_matmul(first, second, transpose_b=False)
    return value if batch == 1 else op.reshape_like(value, left, 0, 1, 0, batch)


def _matmul(node: Node, args: Arguments) -> Expr:
    left, right = args[0], args[1]
    if not args.rank(left) or not args.rank(right):
        raise InputError("the inputs of MatMul must have at least 1 axis, not be scalars", node.span)
    if args.rank(right) == 1:
        value = nn.dense(left, op.expand_dims(right, 0), 1)
        return op.squeeze(value, (args.rank(left) - 1,))
    if args.rank(right) == 2:
        return nn.dense(left, op.transpose(right, (1, 0)), args.shape(right)[1])
    if args.rank(left) == 1:
        value = _batched(node, args, op.expand_dims(left, 0), right)
        return op.squeeze(value, (args.rank(value) - 2,))
    return _batched(node, args, left, right)


CONVERTERS = (Converter("Gemm", _gemm), Converter("MatMul", _matmul))
