"""Operators that repeat elements, and their adjoints: broadcast_to, tile, repeat, meshgrid, collapse_sum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    ELEMENTWISE,
    MOVES,
    Array,
    Attrs,
    Ints,
    broadcast_shapes,
    call,
    check_axis,
    ints,
    product,
    rule,
    same_dtype,
    show,
    show_shape,
    static,
    tensor_tuple,
)
from relay_hw.op.create import InitOpAttrs
from relay_hw.op.gradients.common import (
    collapse,
    in_type,
    known_type,
    one_argument,
    ops,
    parts_of,
    reshaped,
    sizes,
    zeros,
)
from relay_hw.op.gradients.selection import returned

__all__ = ["broadcast_to", "broadcast_to_like", "collapse_sum_like", "collapse_sum_to", "meshgrid", "repeat", "tile"]


def check_broadcast(name: str, source: Sequence[Dim], target: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return `target` if `source` broadcasts to it. Raises TypeCheckError otherwise."""
    if len(source) > len(target) or any(
        static(dim) and dim != 1 and static(goal) and dim != goal
        for dim, goal in zip(reversed(source), reversed(target), strict=False)
    ):
        raise TypeCheckError(
            f"the shape of {name} must be one to which {show_shape(source)} broadcasts, not {show_shape(target)}"
        )
    return tuple(target)


_broadcast_to_gradient = one_argument(lambda call, x, g: collapse(in_type(g, x, call), call, x))

BROADCAST_TO = Op(
    "broadcast_to",
    1,
    rule("broadcast_to", 1)(
        lambda attrs, x: TensorType(check_broadcast("broadcast_to", x.shape, attrs.shape), x.dtype)
    ),
    lambda attrs, values, result: np.broadcast_to(values[0], attrs.shape),
    attrs_type=InitOpAttrs,
    gradient=_broadcast_to_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="axes of size 1 repeated until the shape is the one given",
)


def broadcast_to(data: Expr, shape: Ints) -> Call:
    """`data` repeated along axes of size 1 to `shape`."""
    return call(BROADCAST_TO, (data,), InitOpAttrs(ints(shape) or ()))


def _broadcast_to_like_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The repetitions add up."""
    x, like = call.args
    return collapse(adjoint, call, x), zeros(like)


BROADCAST_TO_LIKE = Op(
    "broadcast_to_like",
    2,
    rule("broadcast_to_like", 2)(
        lambda attrs, x, like: TensorType(check_broadcast("broadcast_to_like", x.shape, like.shape), x.dtype)
    ),
    lambda attrs, values, result: np.broadcast_to(values[0], np.shape(values[1])),
    gradient=_broadcast_to_like_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=ELEMENTWISE | MOVES,
    doc="broadcast_to the shape of the second argument",
)


def broadcast_to_like(data: Expr, broadcast_type: Expr) -> Call:
    """`data` repeated to the shape of `broadcast_type`."""
    return call(BROADCAST_TO_LIKE, (data, broadcast_type))


def _collapse(x: Array, shape: Sequence[int]) -> Array:
    lead = x.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(lead + axis for axis, dim in enumerate(shape) if dim == 1)
    return np.sum(x, axis=axes, dtype=x.dtype).reshape(shape) if axes else x


@one_argument
def _collapse_sum_to_gradient(call: Call, x: Expr, g: Expr) -> Expr:
    ty = known_type(x)
    return ops().broadcast_to_like(g, x) if ty is None else ops().broadcast_to(g, ty.static_shape)


COLLAPSE_SUM_TO = Op(
    "collapse_sum_to",
    1,
    rule("collapse_sum_to", 1)(
        lambda attrs, x: TensorType(
            attrs.shape if check_broadcast("collapse_sum_to", attrs.shape, x.shape) is not None else (), x.dtype
        )
    ),
    lambda attrs, values, result: _collapse(np.asarray(values[0]), attrs.shape),
    attrs_type=InitOpAttrs,
    gradient=_collapse_sum_to_gradient,
    pattern=FusionPattern.COMM_REDUCE,
    doc="sum over the axes that broadcast_to would have repeated",
)


def collapse_sum_to(data: Expr, shape: Ints) -> Call:
    """`data` summed down to `shape`: the adjoint of broadcast_to."""
    return call(COLLAPSE_SUM_TO, (data,), InitOpAttrs(ints(shape) or ()))


@rule("collapse_sum_like", 2)
def _collapse_like_type(attrs: None, x: TensorType, like: TensorType) -> Type:
    broadcast_shapes("collapse_sum_like", (x.shape, like.shape))
    return TensorType(like.shape, x.dtype)


def _collapse_sum_like_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Every summand gets the adjoint of the sum."""
    x, like = call.args
    return ops().broadcast_to_like(adjoint, x), zeros(like)


COLLAPSE_SUM_LIKE = Op(
    "collapse_sum_like",
    2,
    _collapse_like_type,
    lambda attrs, values, result: _collapse(np.asarray(values[0]), np.shape(values[1])),
    gradient=_collapse_sum_like_gradient,
    pattern=FusionPattern.COMM_REDUCE,
    doc="collapse_sum_to the shape of the second argument",
)


def collapse_sum_like(data: Expr, collapse_type: Expr) -> Call:
    """`data` summed down to the shape of `collapse_type`."""
    return call(COLLAPSE_SUM_LIKE, (data, collapse_type))


@dataclass(frozen=True, slots=True)
class TileAttrs(Attrs):
    reps: tuple[int, ...]

    def __post_init__(self) -> None:
        self._set(reps=ints(self.reps))


@rule("tile", 1)
def _tile_type(attrs: TileAttrs, x: TensorType) -> Type:
    rank = max(len(attrs.reps), x.rank)
    shape = (1,) * (rank - x.rank) + x.shape
    reps = (1,) * (rank - len(attrs.reps)) + attrs.reps
    return TensorType([product(pair) for pair in zip(shape, reps, strict=True)], x.dtype)


def _tile_slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return returned(call, 0, g)
    shape, reps = sizes(call, x), call.attrs.reps
    rank = max(len(shape), len(reps))
    dims = (1,) * (rank - len(shape)) + shape
    counts = (1,) * (rank - len(reps)) + tuple(reps)
    parts = reshaped(g, [size for pair in zip(counts, dims, strict=True) for size in pair])
    return reshaped(ops().sum(parts, tuple(range(0, 2 * rank, 2))) if rank else parts, shape)


TILE = Op(
    "tile",
    1,
    _tile_type,
    lambda attrs, values, result: np.tile(values[0], attrs.reps),
    attrs_type=TileAttrs,
    gradient=one_argument(_tile_slope),
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="the tensor repeated as a whole along each axis",
)


def tile(data: Expr, reps: Ints) -> Call:
    """`data` repeated `reps` times along each axis."""
    return call(TILE, (data,), TileAttrs(ints(reps) or ()))


@dataclass(frozen=True, slots=True)
class RepeatAttrs(Attrs):
    repeats: int
    axis: int | None = None


@rule("repeat", 1)
def _repeat_type(attrs: RepeatAttrs, x: TensorType) -> Type:
    if attrs.axis is None:
        return TensorType((product((product(x.shape), attrs.repeats)),), x.dtype)
    axis = check_axis("repeat", attrs.axis, x.rank)
    return TensorType(x.shape[:axis] + (product((x.shape[axis], attrs.repeats)),) + x.shape[axis + 1 :], x.dtype)


def _repeat_slope(call: Call, x: Expr, g: Expr) -> Expr:
    if known_type(x) is None:
        return returned(call, 0, g)
    shape, repeats = sizes(call, x), call.attrs.repeats
    if call.attrs.axis is None:
        return reshaped(ops().sum(reshaped(g, (-1, repeats)) if repeats else g, -1), shape)
    axis = call.attrs.axis % len(shape)
    return ops().sum(reshaped(g, (*shape[: axis + 1], repeats, *shape[axis + 1 :])), axis + 1)


REPEAT = Op(
    "repeat",
    1,
    _repeat_type,
    lambda attrs, values, result: np.repeat(values[0], attrs.repeats, axis=attrs.axis),
    attrs_type=RepeatAttrs,
    gradient=one_argument(_repeat_slope),
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="every element repeated along an axis",
)


def repeat(data: Expr, repeats: int, axis: int | None = None) -> Call:
    """Every element of `data` repeated `repeats` times along `axis`."""
    return call(REPEAT, (data,), RepeatAttrs(repeats, axis))


@dataclass(frozen=True, slots=True)
class MeshgridAttrs(Attrs):
    indexing: str = "ij"


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


OPS = (
    BROADCAST_TO,
    BROADCAST_TO_LIKE,
    COLLAPSE_SUM_TO,
    COLLAPSE_SUM_LIKE,
    TILE,
    REPEAT,
    MESHGRID,
)
