"""ONNX shape operators: reshape, transpose, concatenate, pad, tile, constants; sizes may be dynamic."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from relay_hw import op
from relay_hw.analysis.folding import range_length
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.frontend.onnx.sizes import reshape_codes
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.ir.types import ANY, TensorType
from relay_hw.op import const, nn
from relay_hw.op.base import broadcast_shapes

PAD_MODES = ("constant", "reflect", "edge", "wrap")


def _reshape(node: Node, args: Arguments) -> Expr:
    codes, open_codes = args.ints(1), args.open_ints(1)
    keep_zero = bool(node.attr("allowzero", 0))
    if codes is None and open_codes is not None:
        codes = reshape_codes(args.dims(args[0]), open_codes, keep_zero)
    if codes is not None and (min(codes, default=0) < -1 or codes.count(-1) > 1):
        # -2, -3 and -4 are special codes of Relay.
        raise InputError(f"sizes of Reshape must be at least 0, one of them perhaps -1, not {list(codes)}", node.span)
    if codes is not None:
        return op.reshape(args[0], codes, keep_zero)
    args.length(1)
    value = op.dynamic.reshape(args[0], args[1], keep_zero)
    if open_codes is None:
        return value
    data = args.dims(args[0])
    known = [data[axis] if dim == 0 and not keep_zero else dim for axis, dim in enumerate(open_codes)]
    return args.assume(value, [ANY if dim == -1 else dim for dim in known])


def _flatten(node: Node, args: Arguments) -> Expr:
    shape = args.dims(args[0])
    axis = node.attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if axis == 1 and len(shape) > 1:
        return nn.batch_flatten(args[0])
    static = [size for size in shape if isinstance(size, int)]
    if len(static) == len(shape):
        return op.reshape(args[0], (prod(static[:axis]), prod(static[axis:])))
    sides = (args.sizes(args[0], 0, axis), args.sizes(args[0], axis, len(shape)))
    return op.dynamic.reshape(args[0], op.concatenate([op.prod(side, 0, True) for side in sides], 0))


def _transpose(node: Node, args: Arguments) -> Expr:
    return op.transpose(args[0], node.attr("perm"))


def _concat(node: Node, args: Arguments) -> Expr:
    return op.concatenate(args.all(), node.attr("axis"))


def _squeeze(node: Node, args: Arguments) -> Expr:
    given = node.attr("axes")
    axes = args.ints(1) if given is None else tuple(given)
    if axes == () or (axes is None and node.has_input(1) and args.length(1) == 0):
        raise UnsupportedError("axes must be left out or not be empty: some take none for all, some for no axes")
    if axes is None and node.has_input(1):
        return op.dynamic.squeeze(args[0], args[1])
    if axes is None and not args.is_static(args[0]):
        raise UnsupportedError("axes must be given where a size of the data is not known")
    return op.squeeze(args[0], axes)


def _unsqueeze(node: Node, args: Arguments) -> Expr:
    given = node.attr("axes")
    axes = args.ints(1) if given is None else tuple(given)
    if axes is None:
        return _unsqueeze_by_value(args)
    rank = args.rank(args[0]) + len(axes)
    value = args[0]
    for axis in sorted(axis % rank for axis in axes):
        value = op.expand_dims(value, axis)
    return value


def _unsqueeze_by_value(args: Arguments) -> Expr:
    count = args.length(1)
    zero, rank = args.scalar(0, args[1]), args.scalar(args.rank(args[0]) + count, args[1])
    order = op.sort(op.where(op.less(args[1], zero), op.add(args[1], rank), args[1]))
    value = args[0]
    for number in range(count):
        value = op.dynamic.expand_dims(value, op.take(order, const(number), 0))
    return value


def _identity(node: Node, args: Arguments) -> Expr:
    # Lists and options are immutable.
    return op.copy(args[0]) if isinstance(args.any_type(args[0]), TensorType) else args[0]


def _check_constant(node: Node, known: Known) -> str | None:
    plain = {"value", "value_float", "value_floats", "value_int", "value_ints"}
    return None if plain & set(node.attrs) else f"its value must be numbers, not {', '.join(node.attrs) or 'nothing'}"


def _constant(node: Node, args: Arguments) -> Expr:
    (key, value), *_ = node.attrs.items()
    return const(value, {"value_f": "float32", "value_i": "int64"}.get(key[:7]))


def _constant_of_shape(node: Node, args: Arguments) -> Expr:
    value = const(np.ravel(node.attr("value", np.zeros(1, np.float32)))[0])
    sizes, dims = args.ints(0), args.open_ints(0)
    if sizes is not None:
        return op.full(value, sizes)
    made = op.dynamic.full(value, args[0])
    return made if dims is None else args.assume(made, dims)


def _check_pad(node: Node, known: Known) -> str | None:
    mode = node.attr("mode", "constant")
    return None if mode in PAD_MODES else f"mode must be {', '.join(PAD_MODES[:-1])} or {PAD_MODES[-1]}, not {mode}"


def _pad(node: Node, args: Arguments) -> Expr:
    rank, mode = args.rank(args[0]), node.attr("mode", "constant")
    fill: Expr = args.scalar(node.attr("value", 0.0), args[0])
    if node.opset >= 11 and node.has_input(2):
        known = args.array(2)
        fill = op.reshape(args[2], ()) if known is None else args.scalar(np.asarray(known).item(), args[0])
    pads = node.attr("pads", ()) if node.opset < 11 else args.ints(1)
    axes = args.ints(3) if node.opset >= 18 and node.has_input(3) else tuple(range(rank))
    if pads is None or axes is None or mode == "wrap":
        return op.dynamic.pad(args[0], _pad_widths(args, rank, pads is None or axes is None, pads, axes), fill, mode)
    widths = [(0, 0)] * rank
    for number, axis in enumerate(axes):
        widths[axis % rank] = (pads[number], pads[number + len(axes)])
    return nn.pad(args[0], widths, fill, mode)


def _pad_widths(args: Arguments, rank: int, by_value: bool, pads: Any, axes: Any) -> Expr:
    """The pad widths as a pair per axis; axes that are not named get zeros."""
    if not by_value:
        widths = np.zeros((rank, 2), np.int64)
        widths[[axis % rank for axis in axes]] = np.reshape(pads, (2, -1)).T
        return const(widths)
    given = op.cast(args[1] if pads is None else const(np.array(pads, np.int64)), "int64")
    count = args.length(1) // 2
    pairs = op.transpose(op.reshape(given, (2, count)), (1, 0))
    if axes is not None and list(axes) == list(range(rank)):
        return pairs
    places = op.cast(args[3] if axes is None else const(np.array(axes, np.int64)), "int64")
    columns = op.broadcast_to(op.expand_dims(places, 1), (count, 2))
    return op.scatter_elements(op.zeros((rank, 2), "int64"), columns, pairs, 0)


def _split(node: Node, args: Arguments) -> Sequence[Expr]:
    axis, count = node.attr("axis", 0), len(node.outputs)
    axis = axis % args.rank(args[0])
    given = node.attr("split") or args.ints(1)
    size = args.dims(args[0])[axis]
    if given is None and node.has_input(1):
        return _split_by_value(args, axis, count)
    if given is None:
        if not isinstance(size, int):
            raise UnsupportedError(f"split must be given where the size of axis {axis} is not known")
        part = -(-size // count)
        given = [part] * (count - 1) + [size - part * (count - 1)]
    if len(given) != count or (isinstance(size, int) and sum(given) != size):
        raise InputError(f"split must give {count} parts of {size} in all, not {list(given)}", node.span)
    bounds = tuple(accumulate(map(int, given[:-1])))
    value = op.split(args[0], bounds, axis)
    return [TupleGetItem(value, number) for number in range(count)]


def _split_by_value(args: Arguments, axis: int, count: int) -> Sequence[Expr]:
    """Split by dynamic sizes: each part is a slice between two cumulative sums."""
    ends = op.cumsum(op.cast(args[1], "int64"), 0)
    bounds = op.concatenate([const(np.zeros(1, np.int64)), ends], 0)
    lead, last = np.zeros(axis, np.int64), np.full(axis, np.iinfo(np.int64).max)
    parts: list[Expr] = []
    for number in range(count):
        begin, end = (op.take(bounds, const(np.array([at], np.int64)), 0) for at in (number, number + 1))
        if axis:
            begin, end = op.concatenate([const(lead), begin], 0), op.concatenate([const(last), end], 0)
        parts.append(op.dynamic.strided_slice(args[0], begin, end, const(np.ones(axis + 1, np.int64))))
    return parts


def _expand(node: Node, args: Arguments) -> Expr:
    wanted, shape = args.ints(1), args.dims(args[0])
    if wanted is not None and all(isinstance(size, int) for size in shape):
        return op.broadcast_to(args[0], np.broadcast_shapes(args.shape(args[0]), wanted))
    count = len(wanted) if wanted is not None else args.length(1)
    sizes: Expr = const(np.array(wanted, np.int64)) if wanted is not None else op.cast(args[1], "int64")
    # A size of 1 keeps the data's own: the two shapes broadcast.
    rank = max(count, len(shape))
    sides = [_extended(sizes, count, rank), _extended(args.sizes(args[0]), len(shape), rank)]
    one = const(np.int64(1))
    value = op.dynamic.broadcast_to(args[0], op.where(op.equal(sides[0], one), sides[1], sides[0]))
    dims = wanted if wanted is not None else args.open_ints(1)
    return value if dims is None else args.assume(value, broadcast_shapes("Expand", (shape, dims)))


def _extended(sizes: Expr, count: int, rank: int) -> Expr:
    """Sizes with ones prepended up to `count`."""
    if count == rank:
        return sizes
    ones = const(np.ones(rank - count, np.int64))
    return op.concatenate([ones, sizes], 0) if count else ones


def _tile(node: Node, args: Arguments) -> Expr:
    counts = args.ints(1)
    return op.dynamic.tile(args[0], args[1]) if counts is None else op.tile(args[0], counts)


def _shape(node: Node, args: Arguments) -> Expr:
    begin, end, _ = slice(node.attr("start", 0), node.attr("end")).indices(args.rank(args[0]))
    return args.sizes(args[0], begin, max(begin, end))


def _size(node: Node, args: Arguments) -> Expr:
    if not args.is_static(args[0]):
        return op.ndarray_size(args[0], "int64")
    return const(np.array(prod(args.shape(args[0])), np.int64))


def _range(node: Node, args: Arguments) -> Expr:
    values = [args.array(index) for index in range(3)]
    if all(value is not None for value in values):
        begin, end, step = (np.asarray(value) for value in values)
        args.reserve((range_length(begin.item(), end.item(), step.item()),), str(begin.dtype))
        return const(np.arange(begin.item(), end.item(), step.item()).astype(begin.dtype))
    start, stop, step = (op.reshape(args[index], ()) for index in range(3))
    return op.arange(start, stop, step)


def _depth_to_space(node: Node, args: Arguments) -> Expr:
    return nn.depth_to_space(args[0], node.attr("blocksize"), "NCHW", node.attr("mode", "DCR"))


def _space_to_depth(node: Node, args: Arguments) -> Expr:
    return nn.space_to_depth(args[0], node.attr("blocksize"), "NCHW", node.attr("mode", "DCR"))


def _check_blocks(node: Node, known: Known) -> str | None:
    mode = node.attr("mode", "DCR")
    return None if mode in ("DCR", "CRD") else f"mode must be DCR or CRD, not {mode}"


CONVERTERS = (
    Converter("Concat", _concat),
    Converter("Constant", _constant, _check_constant),
    Converter("ConstantOfShape", _constant_of_shape),
    Converter("DepthToSpace", _depth_to_space, _check_blocks),
    Converter("Expand", _expand),
    Converter("Flatten", _flatten),
    Converter("Identity", _identity),
    Converter("Pad", _pad, _check_pad),
    Converter("Range", _range),
    Converter("Reshape", _reshape),
    Converter("Shape", _shape),
    Converter("Size", _size),
    Converter("SpaceToDepth", _space_to_depth, _check_blocks),
    Converter("Split", _split),
    Converter("Squeeze", _squeeze),
    Converter("Tile", _tile),
    Converter("Transpose", _transpose),
    Converter("Unsqueeze", _unsqueeze),
)
