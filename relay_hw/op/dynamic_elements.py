"""Relay's `dyn.` operators that choose and place elements: places, counts and widths are run-time values.

In: types, attributes, arrays. Out: types whose unknown sizes are `?`, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, TupleGetItem
from relay_hw.ir.types import ANY, TensorType, TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    MOVES,
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
from relay_hw.op.dynamic_shape import full, numbers, vector_length
from relay_hw.op.gather import OneHotAttrs
from relay_hw.op.gradients.common import in_type, number, ops, zeros
from relay_hw.op.gradients.selection import added_at, numbered, returned
from relay_hw.op.sort import RETURNS, TopkAttrs, order_of
from relay_hw.support.names import one_of

INJECTIVE = FusionPattern.INJECTIVE


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
    gradient=lambda call, adjoint: (returned(call, 0, adjoint), *map(zeros, call.args[1:])),
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


def _topk_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of the chosen elements go back to them."""
    (x, k), attrs = call.args, call.attrs
    if attrs.ret_type == "indices":
        return zeros(x), zeros(k)
    places = topk(x, k, attrs.axis, "indices", attrs.is_ascend)
    values = TupleGetItem(adjoint, 0) if attrs.ret_type == "both" else adjoint
    return ops().scatter_elements(zeros(x), places, values, attrs.axis, "add"), zeros(k)


TOPK = Op(
    "dyn.topk",
    2,
    _topk_type,
    _topk,
    attrs_type=TopkAttrs,
    gradient=_topk_gradient,
    doc="topk whose k is a run-time value",
)


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


def _pad_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data get what lies inside; the value gets the sum of what was added."""
    x, widths, value = call.args
    op = ops()
    # What is added has the number behind the last element's.
    behind = op.ndarray_size(x, "int64")
    places = pad(numbered(x), widths, behind, call.attrs.pad_mode)
    start = full(number(0, x), op.reshape(op.add(behind, op.const(1, "int64")), (1,)))
    total = added_at(start, places, adjoint)
    to_x = op.reshape_like(op.strided_slice(total, (0,), (-1,)), x)
    if call.attrs.pad_mode != "constant":
        return to_x, zeros(widths), zeros(value)
    return to_x, zeros(widths), op.cast_like(op.reshape_like(op.take(total, behind, 0), value), value)


PAD = Op(
    "dyn.nn.pad",
    3,
    _pad_type,
    _pad,
    attrs_type=DynPadAttrs,
    gradient=_pad_gradient,
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


def _one_hot_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The two values share the adjoint, by where they stand."""
    indices, on, off, depth = call.args
    op, attrs = ops(), call.attrs
    is_on = one_hot(indices, op.const(True), op.const(False), depth, attrs.axis, "bool")
    nothing = op.zeros_like(adjoint)
    to_on, to_off = op.sum(op.where(is_on, adjoint, nothing)), op.sum(op.where(is_on, nothing, adjoint))
    return zeros(indices), in_type(to_on, on, call), in_type(to_off, off, call), zeros(depth)


ONE_HOT = Op(
    "dyn.one_hot",
    4,
    _one_hot_type,
    _one_hot,
    attrs_type=OneHotAttrs,
    gradient=_one_hot_gradient,
    doc="one_hot whose depth is a run-time value",
)


def one_hot(indices: Expr, on_value: Expr, off_value: Expr, depth: Expr, axis: int, dtype: str) -> Call:
    """`on_value` where the place on the new `axis` equals the index, else `off_value`."""
    return call(ONE_HOT, (indices, on_value, off_value, depth), OneHotAttrs(1, axis, dtype))


OPS = (STRIDED_SLICE, TOPK, PAD, ONE_HOT)
