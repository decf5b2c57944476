"""Relay's `dyn.` operators, whose sizes, axes or indices are run-time values.

In: types, attributes, arrays. Out: types whose unknown sizes are `?`, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import ANY, Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    MOVES,
    RESHAPES,
    Array,
    Attrs,
    as_expr,
    call,
    check_axis,
    out_type,
    rule,
    same_dtype,
    show_shape,
)
from relay_hw.op.gather import OneHotAttrs
from relay_hw.op.gradients.common import (
    in_type,
    ops,
    zeros,
)
from relay_hw.op.shape import reshape_dims
from relay_hw.op.sort import RETURNS, TopkAttrs, order_of
from relay_hw.support.names import one_of

INJECTIVE = FusionPattern.INJECTIVE

# The axes that numpy 2 can hold.
_MOST_NUMBERS = 64


@dataclass(frozen=True, slots=True)
class DynReshapeAttrs(Attrs):
    newshape: tuple[int, ...] | None = None
    allowzero: int = 0


@dataclass(frozen=True, slots=True)
class DynExpandDimsAttrs(Attrs):
    num_newaxis: int = 1


@dataclass(frozen=True, slots=True)
class DynInitAttrs(Attrs):
    shape: tuple[int, ...] | None = None
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class DynStridedSliceAttrs(Attrs):
    begin: tuple[int, ...] | None = None
    end: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class DynPadAttrs(Attrs):
    pad_mode: str = "constant"


def vector_length(name: str, what: str, ty: TensorType) -> int:
    """The length of a vector of integers. Raises TypeCheckError if the type does not say it."""
    if ty.rank != 1 or not isinstance(ty.shape[0], int) or not ty.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the {what} of {name} must be integers along one axis of known size, not {ty}")
    if ty.shape[0] > _MOST_NUMBERS:
        raise TypeCheckError(f"the {what} of {name} must be at most {_MOST_NUMBERS} numbers, not {ty.shape[0]:,}")
    return ty.shape[0]


def numbers(value: AnyValue) -> tuple[int, ...]:
    """An array of integers as Python numbers."""
    return tuple(int(item) for item in np.ravel(value))


@rule("dyn.reshape", 2)
def _reshape_type(attrs: DynReshapeAttrs, x: TensorType, newshape: TensorType) -> Type:
    return TensorType([ANY] * vector_length("dyn.reshape", "newshape", newshape), x.dtype)


def _checked(name: str, values: AnyValue, shape: Sequence[Dim]) -> Array:
    try:
        return np.reshape(values, shape)  # type: ignore[arg-type]
    except ValueError:
        raise EvalError(f"{name} must keep the elements of {np.shape(values)}, not give {tuple(shape)}") from None


def _reshape(attrs: DynReshapeAttrs, values: Sequence[Array], result: Type) -> Array:
    shape = np.shape(values[0])
    try:
        dims = reshape_dims(shape, numbers(values[1]), bool(attrs.allowzero))
    except TypeCheckError as error:
        raise EvalError(error.message) from None
    return _checked("dyn.reshape", values[0], dims)


def _reshape_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint in the data's shape; the shape argument gets none."""
    x, sizes = call.args
    return ops().reshape_like(adjoint, x), zeros(sizes)


RESHAPE = Op(
    "dyn.reshape",
    2,
    _reshape_type,
    _reshape,
    attrs_type=DynReshapeAttrs,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="reshape to run-time sizes",
)


def reshape(data: Expr, newshape: Expr, allowzero: bool = False) -> Call:
    """`data` in the shape that `newshape` gives, with the codes of reshape."""
    return call(RESHAPE, (data, newshape), DynReshapeAttrs(None, int(allowzero)))


@rule("dyn.squeeze", 2)
def _squeeze_type(attrs: None, x: TensorType, axes: TensorType) -> Type:
    count = vector_length("dyn.squeeze", "axes", axes)
    if count > x.rank:
        raise TypeCheckError(f"the axes of dyn.squeeze must be at most {x.rank}, not {count}")
    return TensorType([ANY] * (x.rank - count), x.dtype)


def _squeeze(attrs: None, values: Sequence[Array], result: Type) -> Array:
    x, axes = np.asarray(values[0]), numbers(values[1])
    try:
        return np.squeeze(x, axes)
    except ValueError as error:
        raise EvalError(f"the axes of dyn.squeeze must have size 1, not be {axes} of {x.shape}: {error}") from None


SQUEEZE = Op(
    "dyn.squeeze",
    2,
    _squeeze_type,
    _squeeze,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="run-time axes of size 1 removed",
)


def squeeze(data: Expr, axes: Expr) -> Call:
    """`data` without the axes that the vector `axes` names."""
    return call(SQUEEZE, (data, axes))


@rule("dyn.expand_dims", 2)
def _expand_dims_type(attrs: DynExpandDimsAttrs, x: TensorType, axis: TensorType) -> Type:
    if axis.rank:
        raise TypeCheckError(f"the axis of dyn.expand_dims must be a scalar, not {show_shape(axis.shape)}")
    return TensorType([ANY] * (x.rank + attrs.num_newaxis), x.dtype)


def _expand_dims(attrs: DynExpandDimsAttrs, values: Sequence[Array], result: Type) -> Array:
    x, axis = np.asarray(values[0]), int(values[1])
    if not -x.ndim - 1 <= axis <= x.ndim:
        raise EvalError(f"the axis of dyn.expand_dims must be in [{-x.ndim - 1}, {x.ndim}], not {axis}")
    axis %= x.ndim + 1
    return x.reshape(x.shape[:axis] + (1,) * attrs.num_newaxis + x.shape[axis:])


EXPAND_DIMS = Op(
    "dyn.expand_dims",
    2,
    _expand_dims_type,
    _expand_dims,
    attrs_type=DynExpandDimsAttrs,
    gradient=_reshape_gradient,
    pattern=INJECTIVE,
    traits=RESHAPES,
    doc="new axes of size 1 before a run-time axis",
)


def expand_dims(data: Expr, axis: Expr, num_newaxis: int = 1) -> Call:
    """`data` with `num_newaxis` axes of size 1 before the scalar `axis`."""
    return call(EXPAND_DIMS, (data, axis), DynExpandDimsAttrs(num_newaxis))


@rule("dyn.broadcast_to", 2)
def _broadcast_type(attrs: DynInitAttrs, x: TensorType, shape: TensorType) -> Type:
    rank = vector_length("dyn.broadcast_to", "shape", shape)
    if rank < x.rank:
        raise TypeCheckError(f"the shape of dyn.broadcast_to must have at least {x.rank} sizes, not {rank}")
    return TensorType([ANY] * rank, x.dtype)


def _broadcast(attrs: DynInitAttrs, values: Sequence[Array], result: Type) -> Array:
    try:
        return np.broadcast_to(values[0], numbers(values[1]))
    except ValueError:
        shapes = f"{np.shape(values[0])} broadcasts, not {numbers(values[1])}"
        raise EvalError(f"the shape of dyn.broadcast_to must be one to which {shapes}") from None


def _broadcast_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The repetitions add up."""
    x, sizes = call.args
    return ops().collapse_sum_like(adjoint, x), zeros(sizes)


BROADCAST_TO = Op(
    "dyn.broadcast_to",
    2,
    _broadcast_type,
    _broadcast,
    attrs_type=DynInitAttrs,
    gradient=_broadcast_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="broadcast_to run-time sizes",
)


def broadcast_to(data: Expr, shape: Expr) -> Call:
    """`data` repeated along axes of size 1 to the sizes in `shape`."""
    return call(BROADCAST_TO, (data, shape), DynInitAttrs())


def _sizes(name: str, value: AnyValue) -> tuple[int, ...]:
    sizes = numbers(value)
    if any(size < 0 for size in sizes):
        raise EvalError(f"the sizes of {name} must be at least 0, not {sizes}")
    return sizes


@rule("dyn.full", 2)
def _full_type(attrs: DynInitAttrs, value: TensorType, shape: TensorType) -> Type:
    if value.rank:
        raise TypeCheckError(f"the fill value of dyn.full must be a scalar, not {show_shape(value.shape)}")
    return TensorType([ANY] * vector_length("dyn.full", "shape", shape), attrs.dtype or value.dtype)


def _full_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value gets the sum."""
    value, sizes = call.args
    return in_type(ops().sum(adjoint), value, call), zeros(sizes)


FULL = Op(
    "dyn.full",
    2,
    _full_type,
    lambda attrs, values, result: np.full(_sizes("dyn.full", values[1]), values[0], out_type(result).dtype),
    attrs_type=DynInitAttrs,
    gradient=_full_gradient,
    doc="one value in a run-time shape",
)


def full(fill_value: AnyValue, shape: Expr, dtype: str | None = None) -> Call:
    """A tensor of `fill_value` with the sizes in `shape`."""
    return call(FULL, (as_expr(fill_value), shape), DynInitAttrs(None, dtype))


@rule("dyn.tile", 2)
def _tile_type(attrs: None, x: TensorType, reps: TensorType) -> Type:
    return TensorType([ANY] * max(x.rank, vector_length("dyn.tile", "reps", reps)), x.dtype)


TILE = Op(
    "dyn.tile",
    2,
    _tile_type,
    lambda attrs, values, result: np.tile(values[0], _sizes("dyn.tile", values[1])),
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="the tensor repeated by run-time counts",
)


def tile(data: Expr, reps: Expr) -> Call:
    """`data` repeated `reps` times along each axis."""
    return call(TILE, (data, reps))


@rule("dyn.strided_slice", 4)
def _strided_slice_type(
    attrs: DynStridedSliceAttrs, x: TensorType, begin: TensorType, end: TensorType, strides: TensorType
) -> Type:
    counts = [
        vector_length("dyn.strided_slice", what, ty)
        for what, ty in (("begin", begin), ("end", end), ("strides", strides))
    ]
    if len(set(counts)) > 1 or counts[0] > x.rank:
        raise TypeCheckError(
            f"begin, end and strides of dyn.strided_slice must have one number for each of at most {x.rank} axes, "
            f"not {', '.join(map(str, counts))}"
        )
    if attrs.slice_mode not in ("end", "size"):
        raise TypeCheckError(f"slice_mode of dyn.strided_slice must be end or size, not {attrs.slice_mode}")
    return TensorType([ANY] * counts[0] + list(x.shape[counts[0] :]), x.dtype)


def _strided_slice(attrs: DynStridedSliceAttrs, values: Sequence[Array], result: Type) -> Array:
    x, (begin, end, strides) = np.asarray(values[0]), map(numbers, values[1:])
    if 0 in strides:
        raise EvalError("strides of dyn.strided_slice must not be 0")
    if attrs.slice_mode == "size":
        ends = [None if e < 0 or (b < 0 <= b + e) else b + e for b, e in zip(begin, end, strict=True)]
        return x[tuple(slice(b, e) for b, e in zip(begin, ends, strict=True))]
    return x[tuple(slice(b, e, s) for b, e, s in zip(begin, end, strides, strict=True))]


STRIDED_SLICE = Op(
    "dyn.strided_slice",
    4,
    _strided_slice_type,
    _strided_slice,
    attrs_type=DynStridedSliceAttrs,
    pattern=INJECTIVE,
    traits=MOVES | KEEPS_AXES,
    doc="strided_slice whose begin, end and strides are run-time values",
)


def strided_slice(data: Expr, begin: Expr, end: Expr, strides: Expr, slice_mode: str = "end") -> Call:
    """Elements begin, begin + stride, ... before end of the first axes; numbers clip as those of Python's slices."""
    return call(STRIDED_SLICE, (data, begin, end, strides), DynStridedSliceAttrs(slice_mode=slice_mode))


@rule("dyn.topk", 2)
def _topk_type(attrs: TopkAttrs, x: TensorType, k: TensorType) -> Type:
    axis = check_axis("dyn.topk", attrs.axis, x.rank)
    if attrs.ret_type not in RETURNS:
        raise TypeCheckError(one_of("ret_type of dyn.topk", RETURNS, attrs.ret_type))
    shape = (*x.shape[:axis], ANY, *x.shape[axis + 1 :])
    values, indices = TensorType(shape, x.dtype), TensorType(shape, attrs.dtype or "int32")
    return {"values": values, "indices": indices}.get(attrs.ret_type, TupleType([values, indices]))


def _topk(attrs: TopkAttrs, values: Sequence[Array], result: Type) -> object:
    x, count = np.asarray(values[0]), numbers(values[1])[0]
    if count > x.shape[attrs.axis]:
        raise EvalError(f"k of dyn.topk must be at most the {x.shape[attrs.axis]} elements there are, not {count}")
    places = order_of(x, attrs.axis, attrs.is_ascend)
    places = np.take(places, np.arange(count), axis=attrs.axis) if count >= 1 else places
    found = np.take_along_axis(x, places, attrs.axis), places.astype(attrs.dtype or "int32")
    return found if attrs.ret_type == "both" else found[attrs.ret_type == "indices"]


TOPK = Op("dyn.topk", 2, _topk_type, _topk, attrs_type=TopkAttrs, doc="topk whose k is a run-time value")


def topk(
    data: Expr, k: Expr, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Call:
    """The `k` largest (or smallest) elements along `axis` and their places, as `ret_type` says."""
    return call(TOPK, (data, k), TopkAttrs(None, axis, ret_type, is_ascend, dtype))


@rule("dyn.nn.pad", 3)
def _pad_type(attrs: DynPadAttrs, x: TensorType, widths: TensorType, value: TensorType) -> Type:
    if widths.rank != 2 or widths.shape[0] not in (x.rank, ANY) or widths.shape[1] not in (2, ANY):
        raise TypeCheckError(f"pad_width of dyn.nn.pad must be {x.rank} pairs, not {show_shape(widths.shape)}")
    if attrs.pad_mode not in ("constant", "edge", "reflect", "wrap"):
        raise TypeCheckError(f"pad_mode of dyn.nn.pad must be constant, edge, reflect or wrap, not {attrs.pad_mode}")
    return TensorType([ANY] * x.rank, x.dtype)


def _pad(attrs: DynPadAttrs, values: Sequence[Array], result: Type) -> Array:
    x, widths = np.asarray(values[0]), [numbers(pair) for pair in np.asarray(values[1])]
    # Negative widths crop.
    x = x[tuple(slice(max(-a, 0), d - max(-b, 0)) for d, (a, b) in zip(x.shape, widths, strict=True))]
    grown = [(max(a, 0), max(b, 0)) for a, b in widths]
    if attrs.pad_mode != "constant":
        return np.pad(x, grown, mode=attrs.pad_mode)  # type: ignore[call-overload]
    return np.pad(x, grown, constant_values=np.asarray(values[2]).astype(x.dtype).item())


PAD = Op(
    "dyn.nn.pad",
    3,
    _pad_type,
    _pad,
    attrs_type=DynPadAttrs,
    pattern=INJECTIVE,
    traits=KEEPS_AXES,
    doc="nn.pad by run-time widths",
)


def pad(data: Expr, pad_width: Expr, pad_value: AnyValue = 0, pad_mode: str = "constant") -> Call:
    """`data` with (before, after) elements of `pad_value` added along each axis, as the rows of `pad_width` say."""
    return call(PAD, (data, pad_width, as_expr(pad_value)), DynPadAttrs(pad_mode))


@rule("dyn.one_hot", 4)
def _one_hot_type(attrs: OneHotAttrs, indices: TensorType, on: TensorType, off: TensorType, depth: TensorType) -> Type:
    if on.rank or off.rank:
        raise TypeCheckError(f"the values of dyn.one_hot must be scalars, not {on} and {off}")
    axis = check_axis("dyn.one_hot", attrs.axis, indices.rank + 1)
    dtype = attrs.dtype or same_dtype("dyn.one_hot", on, off)
    return TensorType(indices.shape[:axis] + (ANY,) + indices.shape[axis:], dtype)


def _one_hot(attrs: OneHotAttrs, values: Sequence[Array], result: Type) -> Array:
    indices, depth = np.asarray(values[0]), numbers(values[3])[0]
    axis = attrs.axis % (indices.ndim + 1)
    places = np.arange(depth).reshape(-1, *(1,) * (indices.ndim - axis))
    return np.where(np.expand_dims(indices, axis) == places, values[1], values[2]).astype(out_type(result).dtype)


ONE_HOT = Op(
    "dyn.one_hot", 4, _one_hot_type, _one_hot, attrs_type=OneHotAttrs, doc="one_hot whose depth is a run-time value"
)


def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: Expr, axis: int, dtype: str) -> Call:
    """`on_value` where the place on the new `axis` equals the index, else `off_value`."""
    return call(ONE_HOT, (indices, on_value, off_value, depth), OneHotAttrs(1, axis, dtype))


OPS = (
    RESHAPE,
    SQUEEZE,
    EXPAND_DIMS,
    BROADCAST_TO,
    FULL,
    TILE,
    STRIDED_SLICE,
    TOPK,
    PAD,
    ONE_HOT,
)
