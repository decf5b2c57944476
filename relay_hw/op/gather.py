"""Operators with index arrays: gather, scatter, one_hot; negative indices count from the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError, UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    MOVES,
    Array,
    Attrs,
    call,
    check_axis,
    out_type,
    rule,
    same_dim,
    same_dtype,
    show_shape,
)
from relay_hw.op.gradients.common import (
    known_type,
    name_of,
    ops,
    sizes,
    zeros,
)
from relay_hw.op.gradients.selection import returned
from relay_hw.support.names import one_of

__all__ = ["gather", "gather_nd", "one_hot", "scatter_elements", "scatter_nd"]

_UPDATES: dict[str, Callable[..., None]] = {
    "add": np.add.at,
    "mul": np.multiply.at,
    "min": np.minimum.at,
    "max": np.maximum.at,
}

MODES = ("update", *_UPDATES)


@dataclass(frozen=True, slots=True)
class GatherAttrs(Attrs):
    axis: int | None = None


@dataclass(frozen=True, slots=True)
class GatherNDAttrs(Attrs):
    batch_dims: int = 0
    index_rank: int | None = None


@dataclass(frozen=True, slots=True)
class ScatterElementsAttrs(Attrs):
    axis: int = 0
    reduction: str = "update"


@dataclass(frozen=True, slots=True)
class ScatterNDAttrs(Attrs):
    mode: str = "update"


@dataclass(frozen=True, slots=True)
class OneHotAttrs(Attrs):
    depth: int = 1
    axis: int = -1
    dtype: str | None = None


def _check_indices(name: str, indices: TensorType) -> None:
    if not indices.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the indices of {name} must be integers, not {indices.dtype}")


def _check_mode(name: str, mode: str) -> None:
    if mode not in MODES:
        raise TypeCheckError(one_of(f"the mode of {name}", MODES, mode))


def _inside(name: str, indices: Array, size: int) -> Array:
    """Indices counted from the front. Raises EvalError for one outside of [-size, size)."""
    if indices.size and (indices.min() < -size or indices.max() >= size):
        worst = int(indices.max()) if indices.max() >= size else int(indices.min())
        raise EvalError(f"the indices of {name} must be in [{-size}, {size}), not {worst}")
    return np.where(indices < 0, indices + size, indices).astype(np.int64)


def _store(mode: str, target: Array, place: tuple[Array, ...], updates: Array) -> Array:
    if mode == "update":
        target[place] = updates
    else:
        with np.errstate(all="ignore"):
            _UPDATES[mode](target, place, updates)
    return target


def _check_elementwise(name: str, axis: int | None, x: TensorType, indices: TensorType) -> None:
    _check_indices(name, indices)
    at = check_axis(name, axis or 0, x.rank)
    others = [other for other in range(x.rank) if other != at]
    if indices.rank != x.rank or not all(same_dim(x.shape[other], indices.shape[other]) for other in others):
        raise TypeCheckError(
            f"the indices of {name} must have the shape {show_shape(x.shape)} but for axis {at}, "
            f"not {show_shape(indices.shape)}"
        )


def _grid(indices: Array, axis: int) -> tuple[Array, ...]:
    """The index of every element, with `indices` in place of `axis`."""
    grid: list[Array] = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
    grid[axis] = indices
    return tuple(grid)


@rule("gather", 2)
def _gather_type(attrs: GatherAttrs, x: TensorType, indices: TensorType) -> Type:
    _check_elementwise("gather", attrs.axis, x, indices)
    return TensorType(indices.shape, x.dtype)


def _gather(attrs: GatherAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    axis = (attrs.axis or 0) % x.ndim
    return x[_grid(_inside("gather", np.asarray(values[1]), x.shape[axis]), axis)]


def _gather_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints go to the elements that were gathered."""
    x, indices = call.args
    return ops().scatter_elements(zeros(x), indices, adjoint, call.attrs.axis, "add"), zeros(indices)


GATHER = Op(
    "gather",
    2,
    _gather_type,
    _gather,
    attrs_type=GatherAttrs,
    gradient=_gather_gradient,
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES,
    doc="for every index the element at that position of the axis, with the other coordinates unchanged",
)


def gather(data: Expr, axis: int, indices: Expr) -> Call:
    """`data[.., indices[.., i, ..], ..]` for every place i of `axis`."""
    return call(GATHER, (data, indices), GatherAttrs(axis))


@rule("scatter_elements", 3)
def _scatter_elements_type(
    attrs: ScatterElementsAttrs, x: TensorType, indices: TensorType, updates: TensorType
) -> Type:
    _check_mode("scatter_elements", attrs.reduction)
    _check_elementwise("scatter_elements", attrs.axis, x, indices)
    same_dtype("scatter_elements", x, updates)
    if updates.rank != indices.rank or not all(map(same_dim, updates.shape, indices.shape)):
        raise TypeCheckError(
            f"the updates of scatter_elements must have the indices' shape {show_shape(indices.shape)}, "
            f"not {show_shape(updates.shape)}"
        )
    return x


def _scatter_elements(attrs: ScatterElementsAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.array(values[0])
    axis = attrs.axis % x.ndim
    place = _grid(_inside("scatter_elements", np.asarray(values[1]), x.shape[axis]), axis)
    return _store(attrs.reduction, x, place, np.asarray(values[2]))


def _scatter_elements_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The updates get the adjoints at their indices; replaced data get none."""
    _data, indices, updates = call.args
    attrs = call.attrs
    _check_gradient_mode(call, attrs.reduction)
    to_data = adjoint
    if attrs.reduction == "update":
        to_data = ops().scatter_elements(adjoint, indices, zeros(updates), attrs.axis, "update")
    return to_data, zeros(indices), _like(ops().gather(adjoint, attrs.axis, indices), updates)


def _like(value: Expr, updates: Expr) -> Expr:
    """`value` in the sizes that the updates' type names, where it names them by parameters."""
    return value if known_type(updates) is not None else ops().reshape_like(value, updates)


def _check_gradient_mode(call: Call, mode: str) -> None:
    if mode not in ("add", "update"):
        raise UnsupportedError(f"the gradient of {name_of(call)} must be of mode add or update, not {mode}", call.span)


SCATTER_ELEMENTS = Op(
    "scatter_elements",
    3,
    _scatter_elements_type,
    _scatter_elements,
    attrs_type=ScatterElementsAttrs,
    gradient=_scatter_elements_gradient,
    traits=KEEPS_AXES,
    doc="the data with updates written, added, ... where gather would read",
)


def scatter_elements(data: Expr, indices: Expr, updates: Expr, axis: int = 0, reduction: str = "update") -> Call:
    """`data` with `updates` stored at `indices` along `axis`; `reduction` is one of update, add, mul, min, max."""
    return call(SCATTER_ELEMENTS, (data, indices, updates), ScatterElementsAttrs(axis, reduction))


def _index_count(name: str, x: TensorType, indices: TensorType, batch: int) -> int:
    _check_indices(name, indices)
    count = indices.shape[0] if indices.rank else None
    if not isinstance(count, int) or not 0 <= count + batch <= x.rank or not 0 <= batch < indices.rank:
        raise TypeCheckError(
            f"the first axis of {name}'s indices must have a size of at most the data's {x.rank} axes, "
            f"not {show_shape(indices.shape)} with {batch} batch axes"
        )
    return count


@rule("gather_nd", 2)
def _gather_nd_type(attrs: GatherNDAttrs, x: TensorType, indices: TensorType) -> Type:
    count = _index_count("gather_nd", x, indices, attrs.batch_dims)
    return TensorType(indices.shape[1:] + x.shape[attrs.batch_dims + count :], x.dtype)


def _gather_nd(attrs: GatherNDAttrs, values: Sequence[Array], result: Type) -> Array:
    x, indices = np.asarray(values[0]), np.asarray(values[1])
    batch = attrs.batch_dims
    grids = tuple(np.indices(indices.shape[1:], sparse=True)[:batch])
    return x[grids + _places("gather_nd", x.shape[batch:], indices)] if batch or len(indices) else _spread(x, indices)


def _spread(x: Array, indices: Array) -> Array:
    return np.broadcast_to(x, indices.shape[1:] + x.shape).copy()


def _places(name: str, shape: Sequence[int], indices: Array) -> tuple[Array, ...]:
    return tuple(_inside(name, part, size) for part, size in zip(indices, shape, strict=False))


def _gather_nd_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Adjoints go to the slices that were gathered."""
    x, indices = call.args
    batch = call.attrs.batch_dims
    if not batch:
        return ops().scatter_nd(zeros(x), indices, adjoint, mode="add"), zeros(indices)
    if known_type(x) is None or known_type(indices) is None:
        return returned(call, 0, adjoint), zeros(indices)
    shape, index_shape = sizes(call, x), sizes(call, indices)
    dtype = indices.tensor_type.dtype
    grids = np.indices(index_shape[1:])[:batch].astype(dtype)
    whole = ops().concatenate([Constant(grids), indices], 0)
    return ops().scatter_nd(ops().zeros(shape, x.tensor_type.dtype), whole, adjoint, mode="add"), zeros(indices)


GATHER_ND = Op(
    "gather_nd",
    2,
    _gather_nd_type,
    _gather_nd,
    attrs_type=GatherNDAttrs,
    gradient=_gather_nd_gradient,
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES,
    doc="slices of the data at indices whose first axis holds the coordinates",
)


def gather_nd(data: Expr, indices: Expr, batch_dims: int = 0, index_rank: int | None = None) -> Call:
    """`data[indices[0], indices[1], ...]`; the first `batch_dims` axes of the rest run with those of `data`."""
    return call(GATHER_ND, (data, indices), GatherNDAttrs(batch_dims, index_rank))


@rule("scatter_nd", 3)
def _scatter_nd_type(attrs: ScatterNDAttrs, x: TensorType, indices: TensorType, updates: TensorType) -> Type:
    _check_mode("scatter_nd", attrs.mode)
    same_dtype("scatter_nd", x, updates)
    wanted = indices.shape[1:] + x.shape[_index_count("scatter_nd", x, indices, 0) :]
    if updates.rank != len(wanted) or not all(map(same_dim, updates.shape, wanted)):
        raise TypeCheckError(
            f"the updates of scatter_nd must have the shape {show_shape(wanted)}, not {show_shape(updates.shape)}"
        )
    return x


def _scatter_nd(attrs: ScatterNDAttrs, values: Sequence[Array], result: Type) -> Array:
    x, indices = np.array(values[0]), np.asarray(values[1])
    return _store(attrs.mode, x, _places("scatter_nd", x.shape, indices), np.asarray(values[2]))


def _scatter_nd_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The updates get the adjoints at their indices; replaced data get none."""
    _data, indices, updates = call.args
    _check_gradient_mode(call, call.attrs.mode)
    to_data = adjoint
    if call.attrs.mode == "update":
        to_data = ops().scatter_nd(adjoint, indices, zeros(updates), mode="update")
    return to_data, zeros(indices), _like(ops().gather_nd(adjoint, indices), updates)


SCATTER_ND = Op(
    "scatter_nd",
    3,
    _scatter_nd_type,
    _scatter_nd,
    attrs_type=ScatterNDAttrs,
    gradient=_scatter_nd_gradient,
    doc="the data with updates written, added, ... where gather_nd would read",
)


def scatter_nd(data: Expr, indices: Expr, updates: Expr, mode: str = "update") -> Call:
    """`data` with `updates` stored at `indices`; `mode` is one of update, add, mul, min, max."""
    return call(SCATTER_ND, (data, indices, updates), ScatterNDAttrs(mode))


@rule("one_hot", 3)
def _one_hot_type(attrs: OneHotAttrs, indices: TensorType, on: TensorType, off: TensorType) -> Type:
    _check_indices("one_hot", indices)
    if on.rank or off.rank:
        raise TypeCheckError(
            f"the values of one_hot must be scalars, not {show_shape(on.shape)} and {show_shape(off.shape)}"
        )
    if attrs.depth < 1:
        raise TypeCheckError(f"the depth of one_hot must be at least 1, not {attrs.depth}")
    axis = check_axis("one_hot", attrs.axis, indices.rank + 1)
    dtype = attrs.dtype or same_dtype("one_hot", on, off)
    return TensorType(indices.shape[:axis] + (attrs.depth,) + indices.shape[axis:], dtype)


def _one_hot(attrs: OneHotAttrs, values: Sequence[Array], result: Type) -> Array:
    indices = np.asarray(values[0])
    axis = attrs.axis % (indices.ndim + 1)
    places = np.arange(attrs.depth).reshape(-1, *(1,) * (indices.ndim - axis))
    hit = np.expand_dims(indices, axis) == places
    return np.where(hit, values[1], values[2]).astype(out_type(result).dtype)


def _one_hot_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The two values get the sums of the places that they fill."""
    op, (indices, on, off), attrs = ops(), call.args, call.attrs
    hit = op.one_hot(indices, op.const(True), op.const(False), attrs.depth, attrs.axis, "bool")
    zero = op.const(0, call.tensor_type.dtype)
    to_on, to_off = op.sum(op.where(hit, adjoint, zero)), op.sum(op.where(hit, zero, adjoint))
    return zeros(indices), op.cast_like(to_on, on), op.cast_like(to_off, off)


ONE_HOT = Op(
    "one_hot",
    3,
    _one_hot_type,
    _one_hot,
    attrs_type=OneHotAttrs,
    gradient=_one_hot_gradient,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    doc="along a new axis, one value at the index and the other value elsewhere",
)


def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: int, axis: int, dtype: str) -> Call:
    """`on_value` where the place on the new `axis` equals the index, else `off_value`; indices outside hit nothing."""
    return call(ONE_HOT, (indices, on_value, off_value), OneHotAttrs(depth, axis, dtype))


OPS = (GATHER, SCATTER_ELEMENTS, GATHER_ND, SCATTER_ND, ONE_HOT)
