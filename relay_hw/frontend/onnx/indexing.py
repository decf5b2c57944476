"""ONNX indexing operators: Slice, Gather and Scatter variants, OneHot, TopK, NonZero."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.op import const
from relay_hw.support.names import one_of

# ONNX's names of the reductions of Relay's scatter operators.
REDUCTIONS = {"none": "update", "add": "add", "mul": "mul", "min": "min", "max": "max"}


def _slice(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    if node.opset < 10:
        begin, end, axes, steps = (node.attr(key) for key in ("starts", "ends", "axes", "steps"))
    else:
        begin, end, axes, steps = (args.ints(index) for index in range(1, 5))
        if _is_open(node, args):
            return _slice_by_value(node, args, rank)
    axes = tuple(range(len(begin or ()))) if axes is None else tuple(axis % rank for axis in axes)
    steps = (1,) * len(axes) if steps is None else tuple(steps)
    shape = args.dims(args[0])
    if not all(isinstance(shape[axis], int) for axis in axes):
        return _slice_by_value(node, args, rank)
    sizes = [size if isinstance(size, int) else 0 for size in shape]
    bounds = [
        slice(b, e, s).indices(sizes[axis]) for b, e, s, axis in zip(begin or (), end or (), steps, axes, strict=True)
    ]
    # A negative stride that runs to the front ends before element 0, which only a number below -size can say.
    ends = [e if e >= 0 else -sizes[axis] - 1 for (_, e, _), axis in zip(bounds, axes, strict=True)]
    return op.strided_slice(args[0], [b for b, _, _ in bounds], ends, steps, axes)


def _is_open(node: Node, args: Arguments) -> bool:
    return any(node.has_input(index) and args.array(index) is None for index in range(1, 5))


def _slice_by_value(node: Node, args: Arguments, rank: int) -> Expr:
    """Slice with dynamic bounds: begin, end and strides of every axis; unnamed axes are taken whole."""
    given: list[Expr | None] = [None] * 4
    if node.opset >= 10:
        given = [args.get(index) for index in range(1, 5)]
    else:
        found = (node.attr(key) for key in ("starts", "ends", "axes"))
        given[:3] = [None if value is None else const(np.array(value, np.int64)) for value in found]
    begin, end, axes, steps = (None if value is None else op.cast(value, "int64") for value in given)
    assert begin is not None and end is not None
    count = args.length(1) if node.opset >= 10 else len(node.attr("starts"))
    steps = const(np.ones(count, np.int64)) if steps is None else steps
    if axes is None:
        return op.dynamic.strided_slice(args[0], begin, end, steps)
    whole = (0, np.iinfo(np.int64).max, 1)
    first, last, step = (
        op.scatter_elements(const(np.full(rank, value, np.int64)), axes, part, 0)
        for value, part in zip(whole, (begin, end, steps), strict=True)
    )
    return op.dynamic.strided_slice(args[0], first, last, step)


def counted_from_front(indices: Expr, size: Expr, args: Arguments) -> Expr:
    """Wrap negative `indices`, which count from the end of `size` elements."""
    zero = args.scalar(0, indices)
    return op.where(op.less(indices, zero), op.add(indices, op.cast(size, args.dtype(indices))), indices)


def _gather(node: Node, args: Arguments) -> Expr:
    axis = node.attr("axis", 0) % args.rank(args[0])
    size, known = args.dims(args[0])[axis], args.array(1)
    if known is not None and isinstance(size, int):
        indices: Expr = const(np.where(known < 0, known + size, known).astype(np.int64))
    else:
        indices = counted_from_front(args[1], op.take(args.sizes(args[0]), const(axis), 0), args)
    return op.take(args[0], indices, axis)


def _gather_elements(node: Node, args: Arguments) -> Expr:
    return op.gather(args[0], node.attr("axis", 0), args[1])


def _coordinates_first(indices: Expr, args: Arguments) -> Expr:
    """ONNX counts the coordinates along the last axis, Relay along the first."""
    rank = args.rank(indices)
    return op.transpose(indices, (rank - 1, *range(rank - 1)))


def _gather_nd(node: Node, args: Arguments) -> Expr:
    return op.gather_nd(args[0], _coordinates_first(args[1], args), node.attr("batch_dims", 0))


def _check_reduction(node: Node, known: Known) -> str | None:
    given = node.attr("reduction", "none")
    return None if given in REDUCTIONS else one_of("reduction", REDUCTIONS, given)


def _scatter_elements(node: Node, args: Arguments) -> Expr:
    mode = REDUCTIONS[node.attr("reduction", "none")]
    return op.scatter_elements(args[0], args[1], args[2], node.attr("axis", 0), mode)


def _scatter_nd(node: Node, args: Arguments) -> Expr:
    mode = REDUCTIONS[node.attr("reduction", "none")]
    return op.scatter_nd(args[0], _coordinates_first(args[1], args), args[2], mode)


def _tensor_scatter(node: Node, args: Arguments) -> Expr:
    """TensorScatter: write rows into a cache at each batch's position; `mode` says whether they wrap."""
    cache, update = args.shape(args[0]), args.shape(args[1])
    axis = node.attr("axis", -2) % len(cache)
    args.reserve((update[axis] + cache[0],), "int64")
    steps = const(np.arange(update[axis], dtype=np.int64).reshape(-1, *(1,) * (len(cache) - 1 - axis)))
    begin = args.get(2)
    starts: Expr = const(np.zeros(cache[0], np.int64)) if begin is None else op.cast(begin, "int64")
    places = op.add(op.reshape(starts, (cache[0], *(1,) * (len(cache) - 1))), steps)
    if node.attr("mode", "linear") == "circular":
        places = op.floor_mod(places, const(np.int64(cache[axis])))
    return op.scatter_elements(args[0], op.broadcast_to(places, update), args[1], axis)


def _one_hot(node: Node, args: Arguments) -> Expr:
    indices, axis = op.cast(args[0], "int64"), node.attr("axis", -1)
    off, on = (op.take(args[2], const(at), 0) for at in (0, 1))
    depth = args.array(1)
    if depth is not None:
        size: Expr = const(np.int64(np.ravel(depth)[0]))
        indices = counted_from_front(indices, size, args)
        return op.one_hot(indices, on, off, int(np.ravel(depth)[0]), axis, args.dtype(args[2]))
    size = op.reshape(op.cast(args[1], "int64"), ())
    return op.dynamic.one_hot(counted_from_front(indices, size, args), on, off, size, axis, args.dtype(args[2]))


def _top_k(node: Node, args: Arguments) -> Sequence[Expr]:
    axis, ascend = node.attr("axis", -1), not node.attr("largest", 1)
    count = node.attr("k") if node.opset < 10 else args.ints(1)
    if count is None:
        # Relay takes all elements if asked for none.
        one = args.scalar(1, args[1])
        value = op.dynamic.topk(args[0], op.maximum(args[1], one), axis, "both", ascend, "int64")
        return [_first(args, TupleGetItem(value, part), axis) for part in range(2)]
    number = count if isinstance(count, int) else count[0]
    if number == 0:
        parts = op.strided_slice(args[0], (0,), (0,), (1,), (axis % args.rank(args[0]),))
        return [parts, op.cast(parts, "int64")]
    value = op.topk(args[0], number, axis, "both", ascend, "int64")
    return [TupleGetItem(value, 0), TupleGetItem(value, 1)]


def _first(args: Arguments, value: Expr, axis: int) -> Expr:
    """The first elements along an axis; input 1 is their number."""
    before, rank = axis % args.rank(args[0]), args.rank(args[0])
    end = np.full(rank, np.iinfo(np.int64).max)
    sides = [const(end[:before]), op.cast(op.reshape(args[1], (1,)), "int64"), const(end[before + 1 :])]
    last = op.concatenate([side for side in sides if args.type(side).shape != (0,)], 0)
    ones = const(np.ones(rank, np.int64))
    return op.dynamic.strided_slice(value, const(np.zeros(rank, np.int64)), last, ones)


def _non_zero(node: Node, args: Arguments) -> Expr:
    return op.transpose(op.cast(op.argwhere(args[0]), "int64"), (1, 0))


def _compress(node: Node, args: Arguments) -> Expr:
    places = op.squeeze(op.argwhere(args[1]), (1,))
    axis = node.attr("axis")
    return op.take(args[0], places, None if axis is None else axis % args.rank(args[0]))


def _unique(node: Node, args: Arguments) -> Sequence[Expr]:
    value = op.selection.unique_slices(args[0], node.attr("axis"), bool(node.attr("sorted", 1)))
    return [TupleGetItem(value, number) for number in range(4)]


def _reverse_sequence(node: Node, args: Arguments) -> Expr:
    return op.reverse_sequence(args[0], args[1], node.attr("time_axis", 0), node.attr("batch_axis", 1))


def _trilu(node: Node, args: Arguments) -> Expr:
    offset: Expr = const(np.int64(0)) if args.get(1) is None else op.reshape(args[1], ())
    return op.trilu(args[0], offset, bool(node.attr("upper", 1)))


def _eye_like(node: Node, args: Arguments) -> Expr:
    from relay_hw.frontend.onnx.cast import DTYPES

    rows, columns = args.shape(args[0])
    dtype = DTYPES[node.attr("dtype")] if node.attr("dtype") else args.dtype(args[0])
    args.reserve((rows, columns), dtype)
    return const(np.eye(rows, columns, node.attr("k", 0), dtype))


CONVERTERS = (
    Converter("Compress", _compress),
    Converter("EyeLike", _eye_like),
    Converter("Gather", _gather),
    Converter("GatherElements", _gather_elements),
    Converter("GatherND", _gather_nd),
    Converter("NonZero", _non_zero),
    Converter("OneHot", _one_hot),
    Converter("ReverseSequence", _reverse_sequence),
    Converter("Scatter", _scatter_elements),
    Converter("ScatterElements", _scatter_elements, _check_reduction),
    Converter("ScatterND", _scatter_nd, _check_reduction),
    Converter("Slice", _slice),
    Converter("TensorScatter", _tensor_scatter),
    Converter("TopK", _top_k),
    Converter("Trilu", _trilu),
    Converter("Unique", _unique),
)
