"""Operators that sort or accumulate along an axis: sort, argsort, topk, searchsorted, cumsum; sorting is stable.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op, TupleGetItem
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    KEEPS_SCALE,
    Array,
    Attrs,
    call,
    check_axis,
    out_type,
    product,
    rule,
    same_dim,
    same_dtype,
)
from relay_hw.op.gradients.common import (
    nothing,
    one_argument,
    ops,
    zeros,
)
from relay_hw.support.names import one_of

__all__ = ["argsort", "cumsum", "searchsorted", "sort", "topk"]

RETURNS = ("both", "values", "indices")


@dataclass(frozen=True, slots=True)
class ArgsortAttrs(Attrs):
    axis: int = -1
    is_ascend: bool = True
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class TopkAttrs(Attrs):
    k: int | None
    axis: int = -1
    ret_type: str = "both"
    is_ascend: bool = False
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class SearchSortedAttrs(Attrs):
    right: bool = False
    dtype: str | None = "int32"


@dataclass(frozen=True, slots=True)
class ScanAttrs(Attrs):
    axis: int | None = None
    dtype: str | None = None
    exclusive: bool = False


def order_of(x: Array, axis: int, is_ascend: bool) -> Array:
    """The indices of the elements in stable order."""
    if is_ascend:
        return np.argsort(x, axis=axis, kind="stable")
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(x.shape[axis] - 1 - turned, axis)


@rule("sort", 1)
def _sort_type(attrs: ArgsortAttrs, x: TensorType) -> Type:
    check_axis("sort", attrs.axis, x.rank)
    return x


def _sort(attrs: ArgsortAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    return np.take_along_axis(x, order_of(x, attrs.axis, attrs.is_ascend), attrs.axis)


def _sort_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each adjoint goes back to where its element came from."""
    x, attrs = call.args[0], call.attrs
    return (_returned(x, ops().argsort(x, attrs.axis, attrs.is_ascend), adjoint, attrs.axis),)


def _returned(x: Expr, places: Expr, adjoint: Expr, axis: int) -> Expr:
    return ops().scatter_elements(zeros(x), places, adjoint, axis, "add")


SORT = Op(
    "sort",
    1,
    _sort_type,
    _sort,
    attrs_type=ArgsortAttrs,
    gradient=_sort_gradient,
    traits=KEEPS_SCALE | KEEPS_AXES,
    doc="the elements of an axis, sorted",
)


def sort(data: Expr, axis: int = -1, is_ascend: bool = True) -> Call:
    """The elements along `axis` in ascending or descending order."""
    return call(SORT, (data,), ArgsortAttrs(axis, is_ascend))


@rule("argsort", 1)
def _argsort_type(attrs: ArgsortAttrs, x: TensorType) -> Type:
    check_axis("argsort", attrs.axis, x.rank)
    return TensorType(x.shape, attrs.dtype or "int32", x.layout)


ARGSORT = Op(
    "argsort",
    1,
    _argsort_type,
    lambda attrs, values, result: order_of(np.asarray(values[0]), attrs.axis, attrs.is_ascend).astype(
        out_type(result).dtype
    ),
    attrs_type=ArgsortAttrs,
    gradient=nothing,
    traits=KEEPS_AXES,
    doc="the indices that sort an axis",
)


def argsort(data: Expr, axis: int = -1, is_ascend: bool = True, dtype: str = "int32") -> Call:
    """The indices that `sort` takes the elements from."""
    return call(ARGSORT, (data,), ArgsortAttrs(axis, is_ascend, dtype))


@rule("topk", 1)
def _topk_type(attrs: TopkAttrs, x: TensorType) -> Type:
    axis = check_axis("topk", attrs.axis, x.rank)
    if attrs.ret_type not in RETURNS:
        raise TypeCheckError(one_of("ret_type of topk", RETURNS, attrs.ret_type))
    size = x.shape[axis]
    count = size if attrs.k is None or attrs.k < 1 else attrs.k
    if isinstance(size, int) and isinstance(count, int) and count > size:
        raise TypeCheckError(f"k of topk must be at most the {size} elements of axis {axis}, not {count}")
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    values, indices = TensorType(shape, x.dtype), TensorType(shape, attrs.dtype or "int32")
    return {"values": values, "indices": indices}.get(attrs.ret_type, TupleType([values, indices]))


def _topk(attrs: TopkAttrs, values: Sequence[Array], result: Type) -> object:
    x = np.asarray(values[0])
    places = order_of(x, attrs.axis, attrs.is_ascend)
    if attrs.k is not None and attrs.k > 0:
        places = np.take(places, np.arange(attrs.k), axis=attrs.axis)
    found = np.take_along_axis(x, places, attrs.axis), places.astype(attrs.dtype or "int32")
    return found if attrs.ret_type == "both" else found[attrs.ret_type == "indices"]


def _topk_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of the chosen elements go back to them; the others have none."""
    x, attrs = call.args[0], call.attrs
    if attrs.ret_type == "indices":
        return (zeros(x),)
    places = ops().topk(x, attrs.k, attrs.axis, "indices", attrs.is_ascend)
    values = TupleGetItem(adjoint, 0) if attrs.ret_type == "both" else adjoint
    return (_returned(x, places, values, attrs.axis),)


TOPK = Op("topk", 1, _topk_type, _topk, attrs_type=TopkAttrs, gradient=_topk_gradient, doc="the k largest or smallest")


def topk(
    data: Expr, k: int | None = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False, dtype: str = "int32"
) -> Call:
    """The `k` largest (or smallest) elements along `axis` and their places, as `ret_type` says; all for k below 1."""
    return call(TOPK, (data,), TopkAttrs(k, axis, ret_type, is_ascend, dtype))


@rule("searchsorted", 2)
def _searchsorted_type(attrs: SearchSortedAttrs, sequence: TensorType, values: TensorType) -> Type:
    same_dtype("searchsorted", sequence, values)
    rows = sequence.shape[:-1]
    if sequence.rank < 1 or (rows and (values.rank != sequence.rank or not all(map(same_dim, rows, values.shape)))):
        raise TypeCheckError(f"the values of searchsorted must have the rows of {sequence}, not be {values}")
    return TensorType(values.shape, attrs.dtype or "int32")


def _searchsorted(attrs: SearchSortedAttrs, values: Sequence[Array], result: Type) -> Array:
    sequence, wanted = np.asarray(values[0]), np.asarray(values[1])
    side = "right" if attrs.right else "left"
    if sequence.ndim == 1:
        found = np.searchsorted(sequence, wanted, side=side)
    else:
        rows = zip(sequence.reshape(-1, sequence.shape[-1]), wanted.reshape(-1, wanted.shape[-1]), strict=True)
        found = np.array([np.searchsorted(row, part, side=side) for row, part in rows]).reshape(wanted.shape)
    return np.asarray(found).astype(out_type(result).dtype)


SEARCHSORTED = Op(
    "searchsorted",
    2,
    _searchsorted_type,
    _searchsorted,
    attrs_type=SearchSortedAttrs,
    gradient=nothing,
    doc="insertion indices of values in a sorted sequence",
)


def searchsorted(sorted_sequence: Expr, values: Expr, right: bool = False, dtype: str = "int32") -> Call:
    """For each value the first index (the last for `right`) at which inserting it keeps the sequence sorted."""
    return call(SEARCHSORTED, (sorted_sequence, values), SearchSortedAttrs(right, dtype))


@rule("cumsum", 1)
def _cumsum_type(attrs: ScanAttrs, x: TensorType) -> Type:
    dtype = attrs.dtype or ("int32" if x.dtype == "bool" else x.dtype)
    if attrs.axis is None:
        return TensorType((product(x.shape),), dtype)
    check_axis("cumsum", attrs.axis, x.rank)
    return TensorType(x.shape, dtype, x.layout)


def _cumsum(attrs: ScanAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0]).astype(out_type(result).dtype)
    axis = 0 if attrs.axis is None else attrs.axis
    x = x.reshape(-1) if attrs.axis is None else x
    total = np.cumsum(x, axis=axis, dtype=x.dtype)
    return total - x if attrs.exclusive and x.dtype.kind != "f" else _shifted(total, axis) if attrs.exclusive else total


def _shifted(total: Array, axis: int) -> Array:
    """Exclusive sums: zero first, exact for floats too."""
    zero = np.zeros_like(np.take(total, [0], axis=axis)) if total.shape[axis] else total
    kept = np.take(total, np.arange(max(total.shape[axis] - 1, 0)), axis=axis)
    return np.concatenate([zero, kept], axis=axis)


def _cumsum_slope(call: Call, x: Expr, g: Expr) -> Expr:
    axis = 0 if call.attrs.axis is None else call.attrs.axis
    sums = ops().reverse(ops().cumsum(ops().reverse(g, axis), axis, None, call.attrs.exclusive), axis)
    return ops().cast_like(sums if call.attrs.axis is not None else ops().reshape_like(sums, x), x)


CUMSUM = Op(
    "cumsum",
    1,
    _cumsum_type,
    _cumsum,
    attrs_type=ScanAttrs,
    gradient=one_argument(_cumsum_slope),
    traits=KEEPS_AXES,
    doc="cumulative sums along an axis",
)


def cumsum(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> Call:
    """Cumulative sums along `axis`, of all elements without it; `exclusive` leaves out each element itself."""
    return call(CUMSUM, (data,), ScanAttrs(axis, dtype, exclusive))


OPS = (SORT, ARGSORT, TOPK, SEARCHSORTED, CUMSUM)
