"""Operators on sequences and grids: sequence_mask, sliding_window, slice_like, meshgrid.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    Array,
    Attrs,
    call,
    check_axes,
    check_axis,
    rule,
    same_dim,
    same_dtype,
    show,
    show_shape,
    tensor_tuple,
    window_size,
)
from relay_hw.op.gradients.common import ops, parts_of, zeros
from relay_hw.op.gradients.selection import returned

__all__ = ["meshgrid", "sequence_mask", "slice_like", "sliding_window"]


@dataclass(frozen=True, slots=True)
class SequenceMaskAttrs(Attrs):
    mask_value: float = 0.0
    axis: int = 0


@dataclass(frozen=True, slots=True)
class SlidingWindowAttrs(Attrs):
    axis: int
    window_shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SliceLikeAttrs(Attrs):
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class MeshgridAttrs(Attrs):
    indexing: str = "ij"


@rule("sequence_mask", 2)
def _mask_type(attrs: SequenceMaskAttrs, x: TensorType, lengths: TensorType) -> Type:
    if x.rank < 2 or attrs.axis not in (0, 1):
        raise TypeCheckError(
            f"sequence_mask must get data of 2 axes or more and axis 0 or 1, not {show(x)} and {attrs.axis}"
        )
    if lengths.rank != 1 or not same_dim(lengths.shape[0], x.shape[1 - attrs.axis]):
        raise TypeCheckError(
            f"lengths of sequence_mask must be one for each of axis {1 - attrs.axis}, not {show_shape(lengths.shape)}"
        )
    return x


def _mask(attrs: SequenceMaskAttrs, values: Sequence[Array], result: Type) -> Array:
    x, lengths = np.asarray(values[0]), np.asarray(values[1])
    places = np.arange(x.shape[attrs.axis])
    is_inside = places[:, None] < lengths[None, :] if attrs.axis == 0 else places[None, :] < lengths[:, None]
    whole = is_inside.reshape(*is_inside.shape, *(1,) * (x.ndim - 2))
    return np.where(whole, x, np.asarray(attrs.mask_value).astype(x.dtype))


def _mask_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """What was kept gets its adjoint."""
    lengths = call.args[1]
    return ops().sequence_mask(adjoint, lengths, 0.0, call.attrs.axis), zeros(lengths)


SEQUENCE_MASK = Op(
    "sequence_mask",
    2,
    _mask_type,
    _mask,
    attrs_type=SequenceMaskAttrs,
    pattern=FusionPattern.INJECTIVE,
    gradient=_mask_gradient,
    traits=KEEPS_AXES,
    doc="each sequence up to its length, and one value behind",
)


def sequence_mask(data: Expr, valid_length: Expr, mask_value: float = 0.0, axis: int = 0) -> Call:
    """`data` with `mask_value` from place `valid_length[b]` of `axis` on; b counts along the other of axes 0 and 1."""
    return call(SEQUENCE_MASK, (data, valid_length), SequenceMaskAttrs(float(mask_value), axis))


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


def _meshgrid_type(types: Sequence[Type], attrs: MeshgridAttrs, solver: Solver) -> Type | None:
    parts = tensor_tuple("meshgrid", types)
    if parts is None:
        return None
    if attrs.indexing not in ("ij", "xy") or not parts or any(part.rank > 1 for part in parts):
        raise TypeCheckError(
            f"meshgrid must get vectors and indexing ij or xy, not {', '.join(map(show, parts))} and {attrs.indexing}"
        )
    dtype = same_dtype("meshgrid", *parts)
    shape = [part.shape[0] if part.rank else 1 for part in parts]
    if attrs.indexing == "xy" and len(shape) > 1:
        shape[:2] = shape[1], shape[0]
    return TupleType([TensorType(shape, dtype)] * len(parts))


def _meshgrid_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each vector gets the sums over the axes of the others."""
    parts = parts_of(call.args[0])
    found: list[Expr] = []
    for number, part in enumerate(parts):
        axis = 1 - number if call.attrs.indexing == "xy" and number < 2 <= len(parts) else number
        total = ops().sum(adjoint[number], axis, exclude=True)
        found.append(ops().reshape_like(total, part))
    return (TupleExpr(found),)


MESHGRID = Op(
    "meshgrid",
    1,
    _meshgrid_type,
    lambda attrs, values, result: tuple(
        np.ascontiguousarray(part) for part in np.meshgrid(*values[0], indexing=attrs.indexing)
    ),
    attrs_type=MeshgridAttrs,
    gradient=_meshgrid_gradient,
    doc="each vector repeated along the axes of the others",
)


def meshgrid(data: Expr | Sequence[Expr], indexing: str = "ij") -> Call:
    """A tuple of grids, one for each vector of `data`; `xy` lets the first two vectors change places."""
    return call(MESHGRID, (data if isinstance(data, Expr) else TupleExpr(tuple(data)),), MeshgridAttrs(indexing))


OPS = (SEQUENCE_MASK, SLIDING_WINDOW, SLICE_LIKE, MESHGRID)
