"""ONNX operators on shapes: reshape, transpose, join, cut, pad, cast, constants."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from relay_hw import op
from relay_hw.errors import InputError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.op import const, nn

DTYPES = {
    1: "float32", 2: "uint8", 3: "int8", 4: "uint16", 5: "int16", 6: "int32", 7: "int64", 9: "bool", 10: "float16",
    11: "float64", 12: "uint32", 13: "uint64",
}  # fmt: skip


def _reshape(node: Node, args: Arguments) -> Expr:
    codes = args.ints(1) or ()
    return op.reshape(args[0], codes, bool(node.attr("allowzero", 0)))


def _flatten(node: Node, args: Arguments) -> Expr:
    shape = args.shape(args[0])
    axis = node.attr("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    if axis == 1 and len(shape) > 1:
        return nn.batch_flatten(args[0])
    return op.reshape(args[0], (prod(shape[:axis]), prod(shape[axis:])))


def _transpose(node: Node, args: Arguments) -> Expr:
    return op.transpose(args[0], node.attr("perm"))


def _concat(node: Node, args: Arguments) -> Expr:
    return op.concatenate(args.all(), node.attr("axis"))


def _axes(node: Node, args: Arguments) -> tuple[int, ...] | None:
    """Axes: an attribute before opset 13, then input 1."""
    given = node.attr("axes")
    return args.ints(1) if given is None else tuple(given)


def _squeeze(node: Node, args: Arguments) -> Expr:
    return op.squeeze(args[0], _axes(node, args))


def _unsqueeze(node: Node, args: Arguments) -> Expr:
    axes = _axes(node, args) or ()
    rank = args.rank(args[0]) + len(axes)
    value = args[0]
    for axis in sorted(axis % rank for axis in axes):
        value = op.expand_dims(value, axis)
    return value


def _identity(node: Node, args: Arguments) -> Expr:
    return op.copy(args[0])


def _check_constant(node: Node, known: Known) -> str | None:
    plain = {"value", "value_float", "value_floats", "value_int", "value_ints"}
    return None if plain & set(node.attrs) else f"its value must be numbers, not {', '.join(node.attrs) or 'nothing'}"


def _constant(node: Node, args: Arguments) -> Expr:
    (key, value), *_ = node.attrs.items()
    return const(value, {"value_f": "float32", "value_i": "int64"}.get(key[:7]))


def _constant_of_shape(node: Node, args: Arguments) -> Expr:
    value = np.ravel(node.attr("value", np.zeros(1, np.float32)))[0]
    return op.full(const(value), args.ints(0) or ())


def _check_cast(node: Node, known: Known) -> str | None:
    return None if node.attr("to") in DTYPES else f"to must be a numpy element type, not ONNX type {node.attr('to')}"


def _cast(node: Node, args: Arguments) -> Expr:
    return op.cast(args[0], DTYPES[node.attr("to")])


def _cast_like(node: Node, args: Arguments) -> Expr:
    return op.cast(args[0], args.dtype(args[1]))


def _check_pad(node: Node, known: Known) -> str | None:
    mode = node.attr("mode", "constant")
    return None if mode in ("constant", "reflect", "edge") else f"mode must be constant, reflect or edge, not {mode}"


def _pad(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    pads: Sequence[int] = node.attr("pads", ()) if node.opset < 11 else args.ints(1) or ()
    value: Any = node.attr("value", 0.0) if node.opset < 11 else args.array(2)
    axes = args.ints(3) if node.opset >= 18 else None
    axes = tuple(range(rank)) if axes is None else tuple(axis % rank for axis in axes)
    widths = [(0, 0)] * rank
    for number, axis in enumerate(axes):
        widths[axis] = (pads[number], pads[number + len(axes)])
    fill = const(0 if value is None else np.asarray(value).item(), args.dtype(args[0]))
    return nn.pad(args[0], widths, fill, node.attr("mode", "constant"))


def _slice(node: Node, args: Arguments) -> Expr:
    rank = args.rank(args[0])
    if node.opset < 10:
        begin, end, axes, steps = (node.attr(key) for key in ("starts", "ends", "axes", "steps"))
    else:
        begin, end, axes, steps = (args.ints(index) for index in range(1, 5))
    axes = tuple(range(len(begin or ()))) if axes is None else tuple(axis % rank for axis in axes)
    steps = (1,) * len(axes) if steps is None else tuple(steps)
    shape = args.shape(args[0])
    bounds = [
        slice(b, e, s).indices(shape[axis]) for b, e, s, axis in zip(begin or (), end or (), steps, axes, strict=True)
    ]
    # A negative stride that runs to the front ends before element 0, which only a number below -size can say.
    ends = [e if e >= 0 else -shape[axis] - 1 for (_, e, _), axis in zip(bounds, axes, strict=True)]
    return op.strided_slice(args[0], [b for b, _, _ in bounds], ends, steps, axes)


def _gather(node: Node, args: Arguments) -> Expr:
    axis, indices = node.attr("axis", 0), args[1]
    size = args.shape(args[0])[axis]
    known = args.array(1)
    if known is not None:
        indices = const(np.where(known < 0, known + size, known).astype(np.int64))
    else:
        zero, count = args.scalar(0, indices), args.scalar(size, indices)
        indices = op.where(op.less(indices, zero), op.add(indices, count), indices)
    return op.take(args[0], indices, axis)


def _split(node: Node, args: Arguments) -> Sequence[Expr]:
    axis = node.attr("axis", 0)
    size, count = args.shape(args[0])[axis], len(node.outputs)
    given = node.attr("split") or args.ints(1)
    if given is None:
        part = -(-size // count)
        given = [part] * (count - 1) + [size - part * (count - 1)]
    if len(given) != count or sum(given) != size:
        raise InputError(f"split must give {count} parts of {size} in all, not {list(given)}", node.span)
    bounds = tuple(int(sum(given[:number])) for number in range(1, count))
    value = op.split(args[0], bounds, axis)
    return [TupleGetItem(value, number) for number in range(count)]


def _expand(node: Node, args: Arguments) -> Expr:
    shape = args.shape(args[0])
    target = np.broadcast_shapes(shape, args.ints(1) or ())
    return op.broadcast_to(args[0], target)


def _tile(node: Node, args: Arguments) -> Expr:
    return op.tile(args[0], args.ints(1) or ())


def _shape(node: Node, args: Arguments) -> Expr:
    shape = args.shape(args[0])[slice(node.attr("start", 0), node.attr("end"))]
    return const(np.array(shape, np.int64))


def _size(node: Node, args: Arguments) -> Expr:
    return const(np.array(prod(args.shape(args[0])), np.int64))


def _range(node: Node, args: Arguments) -> Expr:
    begin, end, step = (np.asarray(args.array(index)) for index in range(3))
    return const(np.arange(begin.item(), end.item(), step.item()).astype(begin.dtype))


def _blocks(node: Node, args: Arguments) -> tuple[int, int, int, int, int]:
    n, c, h, w = args.shape(args[0])
    return n, c, h, w, node.attr("blocksize")


def _depth_to_space(node: Node, args: Arguments) -> Expr:
    n, c, h, w, b = _blocks(node, args)
    if node.attr("mode", "DCR") == "DCR":
        split = op.transpose(op.reshape(args[0], (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        split = op.transpose(op.reshape(args[0], (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return op.reshape(split, (n, c // b**2, h * b, w * b))


def _space_to_depth(node: Node, args: Arguments) -> Expr:
    n, c, h, w, b = _blocks(node, args)
    split = op.transpose(op.reshape(args[0], (n, c, h // b, b, w // b, b)), (0, 3, 5, 1, 2, 4))
    return op.reshape(split, (n, c * b**2, h // b, w // b))


CONVERTERS = (
    Converter("Cast", _cast, _check_cast),
    Converter("CastLike", _cast_like),
    Converter("Concat", _concat),
    Converter("Constant", _constant, _check_constant),
    Converter("ConstantOfShape", _constant_of_shape, known_inputs(0)),
    Converter("DepthToSpace", _depth_to_space),
    Converter("Expand", _expand, known_inputs(1)),
    Converter("Flatten", _flatten),
    Converter("Gather", _gather),
    Converter("Identity", _identity),
    Converter("Pad", _pad, all_of(_check_pad, known_inputs(1, 2, 3, since=11))),
    Converter("Range", _range, known_inputs(0, 1, 2)),
    Converter("Reshape", _reshape, known_inputs(1)),
    Converter("Shape", _shape),
    Converter("Size", _size),
    Converter("Slice", _slice, known_inputs(1, 2, 3, 4, since=10)),
    Converter("SpaceToDepth", _space_to_depth),
    Converter("Split", _split, known_inputs(1)),
    Converter("Squeeze", _squeeze, known_inputs(1)),
    Converter("Tile", _tile, known_inputs(1)),
    Converter("Transpose", _transpose),
    Converter("Unsqueeze", _unsqueeze, known_inputs(1)),
)
