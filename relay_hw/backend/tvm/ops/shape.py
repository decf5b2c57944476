"""Data-movement operators: reshape, layout, slice, concatenate, pad, take; and constant tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import relax_op as rx
from relay_hw.backend.tvm.api import te, tirx
from relay_hw.backend.tvm.ops.base import (
    Arg,
    Context,
    Lowering,
    dtype_of,
    elementwise,
    filled,
    injective,
    literal,
    shape_of,
    tensor,
)
from relay_hw.ir.types import TupleType
from relay_hw.op.layout import Layout, layout_axes
from relay_hw.op.shape import transpose_axes
from relay_hw.op.slices import slices


def _to_result_shape(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    """Reshape, flatten, squeeze, expand: inference has found the new shape already."""
    want = tensor(call.type).static_shape
    if want == shape_of(args[0]):
        return elementwise(ctx, call, args[:1], lambda x: x)
    return rx.reshape(args[0], want)


def _transpose(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return rx.permute_dims(args[0], list(transpose_axes(call.attrs.axes, len(shape_of(args[0])))))


def _rearranged(ctx: Context, value: Any, parts: Sequence[int], order: Sequence[int], shape: Sequence[int]) -> Any:
    """`value` as `parts`, its axes in `order`, as `shape`."""
    split = ctx.emit(rx.reshape(value, tuple(parts)))
    return rx.reshape(ctx.emit(rx.permute_dims(split, list(order))), tuple(shape))


def _layout_transform(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    src, dst = Layout.parse(call.attrs.src_layout), Layout.parse(call.attrs.dst_layout)
    shape, parts = shape_of(args[0]), []
    # Axes that both sides split, or neither, need no more than a change of order.
    for (letter, factor), size in zip(src.parts, shape, strict=True):
        inner = dst.factor(letter) if not factor else 1
        if src.factor(letter.upper()) not in (1, dst.factor(letter.upper())):
            return None
        split = inner > 1 and src.factor(letter) == 1
        parts += [(letter, size // inner), (letter.lower(), inner)] if split else [(letter, size)]
    names = [letter for letter, _ in parts]
    if dst.text == src.text or any(letter not in names for letter, _ in dst.parts):
        return _merged(ctx, call, args, src, dst)
    order = [names.index(letter) for letter, _ in dst.parts]
    if len(order) != len(parts):
        return None
    return _rearranged(ctx, args[0], [size for _, size in parts], order, tensor(call.type).static_shape)


def _merged(ctx: Context, call: FlatCall, args: Sequence[Arg], src: Layout, dst: Layout) -> Arg | None:
    """To a layout with whole axes."""
    if any(factor for _, factor in dst.parts):
        return None
    layout_axes(src, dst)
    names = [letter for letter, _ in src.parts]
    order = [names.index(name) for letter, _ in dst.parts for name in (letter, letter.lower()) if name in names]
    return _rearranged(ctx, args[0], shape_of(args[0]), order, tensor(call.type).static_shape)


def _sub_pixel(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    """nn.depth_to_space and nn.space_to_depth of NCHW."""
    a, shape = call.attrs, shape_of(args[0])
    if a.layout != "NCHW":
        return None
    b, (n, c, h, w) = a.block_size, shape
    if call.op.name == "nn.depth_to_space":
        depth = c // (b * b)
        parts = (n, b, b, depth, h, w) if a.mode == "DCR" else (n, depth, b, b, h, w)
        order = (0, 3, 4, 1, 5, 2) if a.mode == "DCR" else (0, 1, 4, 2, 5, 3)
    else:
        parts = (n, c, h // b, b, w // b, b)
        order = (0, 3, 5, 1, 2, 4) if a.mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return _rearranged(ctx, args[0], parts, order, tensor(call.type).static_shape)


def _broadcast_to(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    if dtype_of(args[0]) != tensor(call.type).dtype:
        return None
    return elementwise(ctx, call, args[:1], lambda x: x)


def _tile(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = shape_of(args[0])

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        own = index[len(index) - len(shape) :]
        return tensors[0](*(tirx.floormod(at, size) for at, size in zip(own, shape, strict=True)))

    return injective(ctx, call, args, place)


def _repeat(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, count = shape_of(args[0]), call.attrs.repeats
    value, axis = args[0], call.attrs.axis
    if axis is None:
        value, axis = ctx.emit(rx.reshape(value, (prod(shape),))), 0
    axis %= len(shape_of(value))

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        own = list(index)
        own[axis] = tirx.floordiv(own[axis], count)
        return tensors[0](*own)

    return injective(ctx, call, [value], place)


def _upsampling(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    factors = call.attrs.factors()

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        return tensors[0](*(tirx.floordiv(at, factors.get(axis, 1)) for axis, at in enumerate(index)))

    return injective(ctx, call, args, place)


def _reverse(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = shape_of(args[0])
    axis = (call.attrs.axis or 0) % len(shape)

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        return tensors[0](*(shape[axis] - 1 - at if own == axis else at for own, at in enumerate(index)))

    return injective(ctx, call, args, place)


def _strided_slice(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = shape_of(args[0])
    bounds = [part.indices(size) for part, size in zip(slices(call.attrs, len(shape)), shape, strict=True)]

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        return tensors[0](*(begin + at * step for at, (begin, _, step) in zip(index, bounds, strict=True)))

    return injective(ctx, call, args, place)


def _split(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    assert isinstance(call.type, TupleType)
    shape = shape_of(args[0])
    axis = call.attrs.axis % len(shape)
    parts = [tensor(ty).static_shape for ty in call.type.fields]
    begins = [0, *accumulate(part[axis] for part in parts)]

    def part_of(part: Sequence[int], begin: int) -> Any:
        def build(x: Any) -> Any:
            return te.compute(part, lambda *i: x(*i[:axis], i[axis] + begin, *i[axis + 1 :]), name="split")

        return ctx.te(build, args[0])

    return tuple(part_of(part, begin) for part, begin in zip(parts, begins, strict=False))


def _concatenate(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    rank = len(shape_of(args[0][0]))
    if len(args[0]) == 1:
        return elementwise(ctx, call, args[0], lambda x: x)
    return rx.concat(list(args[0]), axis=call.attrs.axis % rank)


def _stack(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = shape_of(args[0][0])
    axis = call.attrs.axis % (len(shape) + 1)
    wide = [ctx.emit(rx.reshape(part, (*shape[:axis], 1, *shape[axis:]))) for part in args[0]]
    return rx.concat(wide, axis=axis) if len(wide) > 1 else wide[0]


def _pad(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, widths, mode = shape_of(args[0]), call.attrs.pad_width, call.attrs.pad_mode
    given = ctx.constant(call.args[1])
    if mode != "constant":
        if mode != "edge" or min(min(pair) for pair in widths) < 0:
            return None
        return _indexed(
            ctx, call, args, [np.clip(np.arange(-b, n + a), 0, n - 1) for n, (b, a) in zip(shape, widths, strict=True)]
        )
    if given is None:
        return None
    fill = np.asarray(given).astype(dtype_of(args[0])).item()

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        own, inside = [], []
        for at, size, (before, after) in zip(index, shape, widths, strict=True):
            own.append(at - before)
            inside += ([at >= before] if before > 0 else []) + ([at < size + before] if after > 0 else [])
        value = tensors[0](*own)
        return tirx.if_then_else(tirx.all(*inside), value, s.number(fill, s.kind(value))) if inside else value

    return injective(ctx, call, args[:1], place)


def _mirror_pad(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    mode = "symmetric" if call.attrs.mode.upper() == "SYMMETRIC" else "reflect"
    pairs = zip(shape_of(args[0]), call.attrs.pad_width, strict=True)
    return _indexed(ctx, call, args, [np.pad(np.arange(n), pair, mode=mode) for n, pair in pairs])


def _indexed(ctx: Context, call: FlatCall, args: Sequence[Arg], tables: Sequence[Any]) -> Any:
    """Each axis read by a table of places."""

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        return tensors[0](*(table(at) for table, at in zip(tensors[1:], index, strict=True)))

    return injective(ctx, call, [args[0], *(literal(table, "int64") for table in tables)], place)


def _limited(at: Any, size: int) -> Any:
    return tirx.min(tirx.max(at, s.number(0, "int64")), s.number(size - 1, "int64"))


def _take(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, data, indices = call.attrs, args[0], args[1]
    if dtype_of(indices) == "uint64" or a.batch_dims % (len(shape_of(indices)) + 1):
        return None
    if a.axis is None:
        data = ctx.emit(rx.reshape(data, (prod(shape_of(data)),)))
    shape = shape_of(data)
    axis, rank = (a.axis or 0) % len(shape), len(shape_of(indices))

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        at = tensors[1](*index[axis : axis + rank]).astype("int64")
        size = s.number(shape[axis], "int64")
        at = tirx.floormod(at, size) if a.mode == "wrap" else _limited(at, shape[axis])
        return tensors[0](*index[:axis], at, *index[axis + rank :])

    return injective(ctx, call, [data, indices], place)


def _in_range(ctx: Context, call: FlatCall, sizes: Sequence[int]) -> bool:
    """Whether the indices are known, and numpy would not refuse them."""
    known = ctx.constant(call.args[1])
    if known is None:
        return False
    rows = known if len(sizes) != 1 or call.op.name == "gather_nd" else known[None]
    return all(
        not row.size or (-size <= row.min() and row.max() < size) for row, size in zip(rows, sizes, strict=False)
    )


def _gather(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape = shape_of(args[0])
    axis = (call.attrs.axis or 0) % len(shape)
    if not _in_range(ctx, call, [shape[axis]]):
        return None
    places = literal(np.asarray(ctx.constant(call.args[1])) % shape[axis], "int64")

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        return tensors[0](*index[:axis], tensors[1](*index), *index[axis + 1 :])

    return injective(ctx, call, [args[0], places], place)


def _gather_nd(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    shape, (count, *rest) = shape_of(args[0]), shape_of(args[1])
    if call.attrs.batch_dims or not _in_range(ctx, call, shape[:count]):
        return None
    sizes = np.reshape(shape[:count], (count, *([1] * len(rest))))
    places = literal(np.asarray(ctx.constant(call.args[1])) % sizes, "int64")

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        own = [tensors[1](axis, *index[: len(rest)]) for axis in range(count)]
        return tensors[0](*own, *index[len(rest) :])

    return injective(ctx, call, [args[0], places], place)


def _one_hot(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    rank = len(tensor(call.type).static_shape)
    axis = call.attrs.axis % rank
    if any(shape_of(arg) for arg in args[1:]) or dtype_of(args[0]) == "uint64":
        return None

    def place(tensors: Sequence[Any], index: Sequence[Any]) -> Any:
        at = tensors[0](*index[:axis], *index[axis + 1 :]).astype("int64")
        hot = s.equal(at, tirx.Cast("int64", index[axis]))
        return s.select(hot, tensors[1](), tensors[2]())

    return injective(ctx, call, args, place)


def _full(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    value, want = args[-1], tensor(call.type).dtype
    if shape_of(value) or dtype_of(value) != want:
        return None
    return injective(ctx, call, [value], lambda tensors, index: tensors[0]())


def _shape_of(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return literal(shape_of(args[0]), tensor(call.type).dtype)


def _ndarray_size(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    return literal(prod(shape_of(args[0])), tensor(call.type).dtype)


_SHAPES: tuple[str, ...] = (
    "reshape", "contrib_reverse_reshape", "reshape_like", "expand_dims", "squeeze", "nn.batch_flatten"
)  # fmt: skip
_OTHERS: dict[str, Callable[..., Any]] = {
    "transpose": _transpose,
    "layout_transform": _layout_transform,
    "nn.depth_to_space": _sub_pixel,
    "nn.space_to_depth": _sub_pixel,
    "broadcast_to": _broadcast_to,
    "broadcast_to_like": _broadcast_to,
    "tile": _tile,
    "repeat": _repeat,
    "nn.upsampling": _upsampling,
    "reverse": _reverse,
    "strided_slice": _strided_slice,
    "split": _split,
    "concatenate": _concatenate,
    "stack": _stack,
    "nn.pad": _pad,
    "nn.mirror_pad": _mirror_pad,
    "take": _take,
    "gather": _gather,
    "gather_nd": _gather_nd,
    "one_hot": _one_hot,
    "full": _full,
    "full_like": _full,
    "zeros": filled(0),
    "ones": filled(1),
    "shape_of": _shape_of,
    "ndarray_size": _ndarray_size,
}
LOWERINGS: Mapping[str, Lowering] = MappingProxyType({name: _to_result_shape for name in _SHAPES} | _OTHERS)
