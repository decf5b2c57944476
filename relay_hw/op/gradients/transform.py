"""Gradients of operators that pick, join or add elements. In: a call, its result's adjoint. Out: the adjoints.

What was picked by an index gets its adjoint added at that index, as often as it was picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod

import numpy as np

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem
from relay_hw.ir.late import late
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.op.gradients.common import inverse, moved, name_of, one_argument, ops, reshaped, sizes, zeros


def _part_types(call: Call) -> tuple[TensorType, ...]:
    ty = call.args[0].type
    assert isinstance(ty, TupleType)
    parts = tuple(part for part in ty.fields if isinstance(part, TensorType))
    if not all(isinstance(dim, int) for part in parts for dim in part.shape):
        raise UnsupportedError(f"the gradient of {name_of(call)} must have static shapes, not {ty}", call.span)
    return parts


def concatenate(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each part gets its section."""
    parts = _part_types(call)
    axis = call.attrs.axis % parts[0].rank
    ends = tuple(accumulate(part.static_shape[axis] for part in parts))
    return (ops().split(adjoint, ends[:-1], axis),)


def stack(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each part gets its slice."""
    parts = _part_types(call)
    axis = call.attrs.axis % (parts[0].rank + 1)
    sections = ops().split(adjoint, len(parts), axis)
    return (Tuple([ops().squeeze(TupleGetItem(sections, number), axis) for number in range(len(parts))]),)


def split(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of the parts, joined."""
    return (ops().concatenate(adjoint, call.attrs.axis),)


def _strided_slice(call: Call, x: Expr, g: Expr) -> Expr:
    shape = sizes(call, x)
    widths: list[tuple[int, int]] = []
    current = list(sizes(call, call))
    if not prod(current):
        return zeros(x)
    for axis, part in enumerate(late("relay_hw.op.transform").slices(call.attrs, len(shape))):
        places = range(*part.indices(shape[axis]))
        if places.step < 0:
            places, g = places[::-1], ops().reverse(g, axis)
        if places.step > 1:
            g = _spaced(g, current, axis, places.step)
        widths.append((places.start, shape[axis] - places.start - current[axis]))
    return ops().nn.pad(g, widths, 0) if any(map(any, widths)) else g


def _spaced(g: Expr, shape: list[int], axis: int, step: int) -> Expr:
    """step - 1 zeros behind each element along `axis`."""
    widths = [(0, 0)] * (len(shape) + 1)
    widths[axis + 1] = (0, step - 1)
    wide = ops().nn.pad(ops().expand_dims(g, axis + 1), widths, 0)
    shape[axis] *= step
    return reshaped(wide, shape)


strided_slice = one_argument(_strided_slice)
reverse = one_argument(lambda call, x, g: ops().reverse(g, call.attrs.axis or 0))


def add_at(like: Expr, shape: Sequence[int], indices: Expr, updates: Expr, axis: int, spread: int) -> Expr:
    """Zeros of `shape` with the slices of `updates` added at `indices`, which stand in the place of `axis`.

    `like` has the element type, `indices` has `spread` axes.
    """
    rank = len(shape)
    front = moved(updates, [*range(axis, axis + spread), *range(axis), *range(axis + spread, rank - 1 + spread)])
    order = [axis, *(other for other in range(rank) if other != axis)]
    dtype = like.tensor_type.dtype
    start = ops().zeros([shape[at] for at in order], dtype)
    total = ops().scatter_nd(start, ops().expand_dims(indices, 0), front, mode="add")
    return moved(total, inverse(order))


def take(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data get the adjoints added where they were taken, the indices nothing."""
    x, indices = call.args
    shape, index_shape = sizes(call, x), sizes(call, indices)
    attrs = call.attrs
    if attrs.axis is None:
        flat = _inside(indices, prod(shape), attrs.mode)
        return reshaped(add_at(x, (prod(shape),), flat, adjoint, 0, len(index_shape)), shape), zeros(indices)
    axis, batch = attrs.axis % len(shape), attrs.batch_dims % (len(index_shape) + 1)
    inner = _inside(indices, shape[axis], attrs.mode)
    if not batch:
        return add_at(x, shape, inner, adjoint, axis, len(index_shape)), zeros(indices)
    return _take_batched(x, (shape, index_shape), inner, adjoint, axis, batch), zeros(indices)


def _inside(indices: Expr, size: int, mode: str) -> Expr:
    op, dtype = ops(), indices.tensor_type.dtype
    wide = indices if dtype == "int64" else op.cast(indices, "int64")
    if mode == "wrap":
        return op.floor_mod(wide, op.const(size, "int64"))
    return op.clip(wide, 0, size - 1)


def _take_batched(
    x: Expr, shapes: tuple[Sequence[int], Sequence[int]], indices: Expr, g: Expr, axis: int, batch: int
) -> Expr:
    """Batches and `axis` merged into one axis, whose indices count through all batches; `shapes`: of x and indices."""
    shape, index_shape = shapes
    lead, middle, behind = tuple(shape[:batch]), tuple(shape[batch:axis]), tuple(shape[axis + 1 :])
    count, size, picked = prod(lead), shape[axis], prod(index_shape[batch:])
    starts = Constant(np.arange(count, dtype=np.int64)[:, None] * size)
    flat = reshaped(reshaped(indices, (count, picked)) + starts, (count * picked,))
    merged = ops().transpose(reshaped(g, (count, prod(middle), picked, prod(behind))), (0, 2, 1, 3))
    updates = reshaped(merged, (count * picked, prod(middle), prod(behind)))
    total = add_at(x, (count * size, prod(middle), prod(behind)), flat, updates, 0, 1)
    back = ops().transpose(reshaped(total, (count, size, prod(middle), prod(behind))), (0, 2, 1, 3))
    return reshaped(back, (*lead, *middle, size, *behind))


def pad(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data get what lies inside; the value gets the sum of what lies outside."""
    x, value = call.args
    widths = call.attrs.pad_width
    if call.attrs.pad_mode != "constant":
        return _mirrored(call, x, adjoint, "edge" if call.attrs.pad_mode == "edge" else "reflect"), zeros(value)
    op = ops()
    inner = op.nn.pad(adjoint, [(-a, -b) for a, b in widths], 0)
    kept = op.nn.pad(adjoint, [(-max(a, 0), -max(b, 0)) for a, b in widths], 0)
    rest = op.cast_like(op.sum(adjoint) - op.sum(kept), value)
    return inner, reshaped(rest, sizes(call, value)) if value.tensor_type.rank else rest


mirror_pad = one_argument(
    lambda call, x, g: _mirrored(call, x, g, "symmetric" if call.attrs.mode.upper() == "SYMMETRIC" else "reflect")
)


def _mirrored(call: Call, x: Expr, g: Expr, mode: str) -> Expr:
    """Padding by copies picks along one axis after the other."""
    shape = list(sizes(call, x))
    current = list(sizes(call, call))
    for axis, (before, after) in enumerate(call.attrs.pad_width):
        if not (before or after):
            continue
        places = np.arange(shape[axis])[max(-before, 0) : shape[axis] - max(-after, 0)]
        picked = np.pad(places, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]
        current[axis] = shape[axis]
        g = add_at(x, current, Constant(picked.astype(np.int64)), g, axis, 1)
    return g


def gather(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints go to the elements that were gathered."""
    x, indices = call.args
    return ops().scatter_elements(zeros(x), indices, adjoint, call.attrs.axis, "add"), zeros(indices)


def gather_nd(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints go to the slices that were gathered."""
    x, indices = call.args
    batch = call.attrs.batch_dims
    if not batch:
        return ops().scatter_nd(zeros(x), indices, adjoint, mode="add"), zeros(indices)
    shape, index_shape = sizes(call, x), sizes(call, indices)
    dtype = indices.tensor_type.dtype
    grids = np.indices(index_shape[1:])[:batch].astype(dtype)
    whole = ops().concatenate([Constant(grids), indices], 0)
    return ops().scatter_nd(ops().zeros(shape, x.tensor_type.dtype), whole, adjoint, mode="add"), zeros(indices)


def scatter_elements(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The updates get what lies where they went; replaced data get nothing."""
    _data, indices, updates = call.args
    attrs = call.attrs
    _check_mode(call, attrs.reduction)
    to_data = adjoint
    if attrs.reduction == "update":
        to_data = ops().scatter_elements(adjoint, indices, zeros(updates), attrs.axis, "update")
    return to_data, zeros(indices), ops().gather(adjoint, attrs.axis, indices)


def scatter_nd(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The updates get what lies where they went; replaced data get nothing."""
    _data, indices, updates = call.args
    _check_mode(call, call.attrs.mode)
    to_data = adjoint
    if call.attrs.mode == "update":
        to_data = ops().scatter_nd(adjoint, indices, zeros(updates), mode="update")
    return to_data, zeros(indices), ops().gather_nd(adjoint, indices)


def _check_mode(call: Call, mode: str) -> None:
    if mode not in ("add", "update"):
        raise UnsupportedError(f"the gradient of {name_of(call)} must be of mode add or update, not {mode}", call.span)


def one_hot(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The two values get the sums of the places that they fill."""
    op, (indices, on, off), attrs = ops(), call.args, call.attrs
    hit = op.one_hot(indices, op.const(True), op.const(False), attrs.depth, attrs.axis, "bool")
    zero = op.const(0, call.tensor_type.dtype)
    to_on, to_off = op.sum(op.where(hit, adjoint, zero)), op.sum(op.where(hit, zero, adjoint))
    return zeros(indices), op.cast_like(to_on, on), op.cast_like(to_off, off)
