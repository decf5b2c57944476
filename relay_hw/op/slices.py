"""Operators that pick elements by range or by index: strided_slice, slice_like, sliding_window, take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    MOVES,
    Array,
    Attrs,
    Ints,
    call,
    check_axes,
    check_axis,
    ints,
    rule,
    show,
    show_shape,
    window_size,
)
from relay_hw.op.gradients.common import (
    add_at,
    known_type,
    one_argument,
    ops,
    reshaped,
    sizes,
    zeros,
)
from relay_hw.op.gradients.selection import returned

__all__ = ["slice_like", "sliding_window", "strided_slice", "take"]


@dataclass(frozen=True, slots=True)
class StridedSliceAttrs(Attrs):
    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...] | None
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("begin", "end", "strides", "axes"):
            self._set(**{name: ints(getattr(self, name))})


def slices(attrs: StridedSliceAttrs, rank: int) -> tuple[slice, ...]:
    """One Python slice per axis. Raises TypeCheckError if the attributes do not fit."""
    if attrs.slice_mode not in ("end", "size"):
        raise TypeCheckError(f"slice_mode of strided_slice must be end or size, not {attrs.slice_mode}")
    axes = attrs.axes if attrs.axes else tuple(range(len(attrs.begin)))
    if len(attrs.begin) > rank or len(axes) != len(attrs.begin):
        raise TypeCheckError(
            f"begin of strided_slice must have at most {rank} numbers, one an axis, not {len(attrs.begin)}"
        )
    result = [slice(None)] * rank
    for number, axis in enumerate(axes):
        begin = attrs.begin[number]
        end = attrs.end[number] if number < len(attrs.end) else None
        stride = attrs.strides[number % len(attrs.strides)] if attrs.strides and attrs.slice_mode == "end" else 1
        if stride == 0:
            raise TypeCheckError("strides of strided_slice must not be 0")
        if attrs.slice_mode == "size" and end is not None:
            end = None if end < 0 or (begin < 0 <= begin + end) else begin + end
        result[check_axis("strided_slice", axis, rank)] = slice(begin, end, stride)
    return tuple(result)


@rule("strided_slice", 1)
def _strided_slice_type(attrs: StridedSliceAttrs, x: TensorType) -> Type:
    shape: list[Dim] = []
    for dim, part in zip(x.shape, slices(attrs, x.rank), strict=True):
        whole = part == slice(None)
        shape.append(len(range(*part.indices(dim))) if isinstance(dim, int) else dim if whole else ANY)
    return TensorType(shape, x.dtype)


def _strided_slice_slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return returned(call, 0, g)
    shape = sizes(call, x)
    widths: list[tuple[int, int]] = []
    current = list(sizes(call, call))
    if not prod(current):
        return zeros(x)
    for axis, part in enumerate(slices(call.attrs, len(shape))):
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


STRIDED_SLICE = Op(
    "strided_slice",
    1,
    _strided_slice_type,
    lambda attrs, values, result: np.asarray(values[0])[slices(attrs, np.ndim(values[0]))],
    attrs_type=StridedSliceAttrs,
    gradient=one_argument(_strided_slice_slope),
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES | KEEPS_AXES,
    doc="elements begin, begin + stride, ... before end, along each axis",
)


def strided_slice(
    data: Expr,
    begin: Ints,
    end: Ints,
    strides: Ints | None = None,
    axes: Ints | None = None,
    slice_mode: str = "end",
) -> Call:
    """Part of `data`. With slice_mode="size", `end` holds sizes (-1: to the end) and strides are ignored."""
    attrs = StridedSliceAttrs(ints(begin) or (), ints(end) or (), ints(strides) or (1,), slice_mode, ints(axes))
    return call(STRIDED_SLICE, (data,), attrs)


@dataclass(frozen=True, slots=True)
class TakeAttrs(Attrs):
    batch_dims: int = 0
    axis: int | None = None
    mode: str = "clip"


@rule("take", 2)
def _take_type(attrs: TakeAttrs, x: TensorType, indices: TensorType) -> Type:
    if attrs.mode not in ("clip", "wrap", "fast"):
        raise TypeCheckError(f"mode of take must be clip, wrap or fast, not {attrs.mode}")
    if not indices.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the indices of take must be integers, not {indices.dtype}")
    if attrs.axis is None:
        return TensorType(indices.shape, x.dtype)
    axis = check_axis("take", attrs.axis, x.rank)
    batch = attrs.batch_dims % (indices.rank + 1) if attrs.batch_dims < 0 else attrs.batch_dims
    if batch > axis or batch > indices.rank:
        raise TypeCheckError(f"batch_dims of take must be at most axis {axis}, not {attrs.batch_dims}")
    return TensorType(x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1 :], x.dtype)


def _take(attrs: TakeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, indices = np.asarray(values[0]), np.asarray(values[1]).astype(np.int64)
    mode = "wrap" if attrs.mode == "wrap" else "clip"
    if attrs.axis is None:
        return np.take(x.reshape(-1), indices, mode=mode)
    axis = attrs.axis % x.ndim
    batch = attrs.batch_dims % (indices.ndim + 1)
    if batch == 0:
        return np.take(x, indices, axis=axis, mode=mode)
    parts = [np.take(x[at], indices[at], axis=axis - batch, mode=mode) for at in np.ndindex(*x.shape[:batch])]
    return np.stack(parts).reshape(x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1 :])


def _take_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data get the adjoints, added at the indices; the indices get none."""
    x, indices = call.args
    if known_type(x) is None or known_type(indices) is None:
        return returned(call, 0, adjoint), zeros(indices)
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


TAKE = Op(
    "take",
    2,
    _take_type,
    _take,
    attrs_type=TakeAttrs,
    gradient=_take_gradient,
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES,
    doc="elements by index along an axis; indices outside are clipped, or wrapped",
)


def take(data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Call:
    """Elements of `data` at `indices` along `axis`; of the flattened data without an axis."""
    return call(TAKE, (data, indices), TakeAttrs(batch_dims, axis, mode))


@dataclass(frozen=True, slots=True)
class SlidingWindowAttrs(Attrs):
    axis: int
    window_shape: tuple[int, ...]
    strides: tuple[int, ...]


def _windows(attrs: SlidingWindowAttrs, x: TensorType) -> tuple[Dim, ...]:
    """How many windows fit along each axis from `axis` on. Raises TypeCheckError."""
    axis = check_axis("sliding_window", attrs.axis, x.rank)
    rest, shape, strides = x.shape[axis:], attrs.window_shape, attrs.strides
    is_fit = len(shape) == len(strides) == len(rest) and min(*shape, *strides, 1) > 0
    if not is_fit or any(isinstance(dim, int) and size > dim for size, dim in zip(shape, rest, strict=True)):
        raise TypeCheckError(
            f"the windows of sliding_window must have a size and a stride for each of {show_shape(rest)}, "
            f"not {shape} and {strides}"
        )
    return tuple(window_size(dim, size, step, 0, 0) for dim, size, step in zip(rest, shape, strides, strict=True))


@rule("sliding_window", 1)
def _window_type(attrs: SlidingWindowAttrs, x: TensorType) -> Type:
    counts = _windows(attrs, x)
    return TensorType((*x.shape[: attrs.axis % x.rank], *counts, *attrs.window_shape), x.dtype)


def _sliding_window(attrs: SlidingWindowAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    axes = tuple(range(attrs.axis % x.ndim, x.ndim))
    found = np.lib.stride_tricks.sliding_window_view(x, attrs.window_shape, axes)
    steps = [slice(None)] * axes[0] + [slice(None, None, step) for step in attrs.strides]
    return found[tuple(steps)].copy()


SLIDING_WINDOW = Op(
    "sliding_window",
    1,
    _window_type,
    _sliding_window,
    attrs_type=SlidingWindowAttrs,
    gradient=lambda call, adjoint: (returned(call, 0, adjoint),),
    doc="every window of the last axes, each as axes of its own",
)


def sliding_window(data: Expr, axis: int, window_shape: Sequence[int], strides: Sequence[int]) -> Call:
    """The windows of the axes from `axis` on: their places take those axes' position, their elements come last."""
    return call(SLIDING_WINDOW, (data,), SlidingWindowAttrs(axis, tuple(window_shape), tuple(strides)))


@dataclass(frozen=True, slots=True)
class SliceLikeAttrs(Attrs):
    axes: tuple[int, ...] | None = None


@rule("slice_like", 2)
def _like_type(attrs: SliceLikeAttrs, x: TensorType, like: TensorType) -> Type:
    axes = check_axes("slice_like", attrs.axes or tuple(range(x.rank)), x.rank)
    if any(axis >= like.rank for axis in axes) or (not attrs.axes and x.rank != like.rank):
        raise TypeCheckError(f"slice_like must have axes of both {show(x)} and {show(like)}, not {axes}")
    shape = list(x.shape)
    for axis in axes:
        size, most = like.shape[axis], shape[axis]
        if isinstance(size, int) and isinstance(most, int) and size > most:
            raise TypeCheckError(f"axis {axis} of slice_like must be at most {most} long, not {size}")
        shape[axis] = size
    return TensorType(shape, x.dtype)


def _like(attrs: SliceLikeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, shape = np.asarray(values[0]), np.shape(values[1])
    axes = {axis % x.ndim for axis in attrs.axes or range(x.ndim)}
    return x[tuple(slice(shape[axis] if axis in axes else None) for axis in range(x.ndim))]


SLICE_LIKE = Op(
    "slice_like",
    2,
    _like_type,
    _like,
    attrs_type=SliceLikeAttrs,
    pattern=FusionPattern.INJECTIVE,
    gradient=lambda call, adjoint: (returned(call, 0, adjoint), zeros(call.args[1])),
    doc="the first elements along axes, as many as another tensor has",
)


def slice_like(data: Expr, shape_like: Expr, axes: Sequence[int] | None = None) -> Call:
    """`data` cut to the sizes of `shape_like` along `axes`, or along all."""
    return call(SLICE_LIKE, (data, shape_like), SliceLikeAttrs(tuple(axes) if axes else None))


OPS = (STRIDED_SLICE, TAKE, SLIDING_WINDOW, SLICE_LIKE)
