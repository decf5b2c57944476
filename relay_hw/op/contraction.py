"""General contractions: cumprod, det, and reductions whose axes are run-time values.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import ANY, TensorType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    Array,
    Attrs,
    call,
    check_axis,
    out_type,
    product,
    rule,
    same_dim,
    show_shape,
)
from relay_hw.op.dynamic_shape import numbers, vector_length
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import in_type, number, one_argument, ops, zeros
from relay_hw.op.gradients.selection import at_axis, places_of, size_of
from relay_hw.op.sort import ScanAttrs
from relay_hw.support.names import one_of

__all__ = ["cumprod"]


@dataclass(frozen=True, slots=True)
class DynReduceAttrs(Attrs):
    kind: str = "sum"
    keepdims: bool = True


@dataclass(frozen=True, slots=True)
class DynScanAttrs(Attrs):
    kind: str = "sum"
    exclusive: bool = False
    reverse: bool = False


@rule("cumprod", 1)
def _cumprod_type(attrs: ScanAttrs, x: TensorType) -> Type:
    dtype = attrs.dtype or ("int32" if x.dtype == "bool" else x.dtype)
    if attrs.axis is None:
        return TensorType((product(x.shape),), dtype)
    check_axis("cumprod", attrs.axis, x.rank)
    return TensorType(x.shape, dtype, x.layout)


def _running(x: Array, axis: int, kind: str, exclusive: bool, reverse: bool) -> Array:
    """Cumulative sums or products; exclusive ones begin with the neutral element and drop the last."""
    x = np.flip(x, axis) if reverse else x
    total = (np.cumsum if kind == "sum" else np.cumprod)(x, axis=axis, dtype=x.dtype)
    if exclusive and total.shape[axis]:
        first = np.full_like(np.take(total, [0], axis=axis), kind == "prod")
        total = np.concatenate([first, np.take(total, np.arange(total.shape[axis] - 1), axis=axis)], axis=axis)
    return np.flip(total, axis) if reverse else total


def _cumprod(attrs: ScanAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0]).astype(out_type(result).dtype)
    x = x.reshape(-1) if attrs.axis is None else x
    return _running(x, attrs.axis or 0, "prod", attrs.exclusive, False)


def _cumprod_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """The product before an element times the sum of the adjoints behind it, each times the product up to it.

    Nothing is divided, so zeros among the elements do no harm.
    """
    op, attrs = ops(), call.attrs
    axis, ty = attrs.axis, x.tensor_type
    flat, rank = (op.reshape(x, (-1,)), 1) if axis is None else (x, ty.rank)
    axis = 0 if axis is None else axis % rank
    wide = in_type(flat, call, x)
    # A new axis, behind the other, counts results; of each row only what stands behind its element is kept.
    places = places_of(_length(x, attrs.axis))
    element, result = (_along(places, at, axis, rank + 1) for at in (axis, axis + 1))
    factors = op.where(op.less(element, result), op.expand_dims(wide, axis), number(1, call))
    products = cumprod(factors, axis + 1, None, attrs.exclusive)
    is_behind = op.less(element, result) if attrs.exclusive else op.less_equal(element, result)
    shares = op.where(is_behind, products * op.expand_dims(g, axis), number(0, call))
    slope = cumprod(wide, axis, None, True) * op.sum(shares, axis + 1)
    return in_type(op.reshape_like(slope, x), x, call)


def _length(x: Expr, axis: int | None) -> Expr:
    return ops().ndarray_size(x, "int64") if axis is None else size_of(x, axis)


def _along(places: Expr, at: int, axis: int, rank: int) -> Expr:
    """A vector along one of `rank` axes."""
    return ops().expand_dims(ops().expand_dims(places, 0, at), at + 1, rank - at - 1)


CUMPROD = Op(
    "cumprod",
    1,
    _cumprod_type,
    _cumprod,
    attrs_type=ScanAttrs,
    gradient=one_argument(_cumprod_slope),
    traits=KEEPS_AXES,
    doc="cumulative products along an axis",
)


def cumprod(data: Expr, axis: int | None = None, dtype: str | None = None, exclusive: bool = False) -> Call:
    """Cumulative products along `axis`, of all elements without it; `exclusive` leaves out each element itself."""
    return call(CUMPROD, (data,), ScanAttrs(axis, dtype, exclusive))


@rule("onnx.cumulative", 2)
def _cumulative_type(attrs: DynScanAttrs, x: TensorType, axis: TensorType) -> Type:
    if attrs.kind not in ("sum", "prod"):
        raise TypeCheckError(f"the kind of onnx.cumulative must be sum or prod, not {attrs.kind}")
    return x


def _cumulative(attrs: DynScanAttrs, values: Sequence[Array], result: Type) -> Array:
    x, axis = np.asarray(values[0]), numbers(values[1])[0]
    if not -x.ndim <= axis < x.ndim:
        raise EvalError(f"the axis of onnx.cumulative must be in [{-x.ndim}, {x.ndim}), not {axis}")
    return _running(x, axis % x.ndim, attrs.kind, attrs.exclusive, attrs.reverse)


def _cumulative_expr(attrs: DynScanAttrs, x: Expr, axis: Expr) -> Expr:
    op = ops()

    def along(at: int) -> Expr:
        value = op.reverse(x, at) if attrs.reverse else x
        total = (op.cumsum if attrs.kind == "sum" else cumprod)(value, at, None, attrs.exclusive)
        return op.reverse(total, at) if attrs.reverse else total

    return at_axis(axis, x.tensor_type.rank, along)


CUMULATIVE = Op(
    "onnx.cumulative",
    2,
    _cumulative_type,
    _cumulative,
    attrs_type=DynScanAttrs,
    gradient=by_expansion(_cumulative_expr),
    doc="cumulative sums or products along a run-time axis",
)


def cumulative(data: Expr, axis: Expr, kind: str = "sum", exclusive: bool = False, reverse: bool = False) -> Call:
    """Exclusive cumulative sums or products (`kind`) along `axis`, from the end with `reverse`."""
    return call(CUMULATIVE, (data, axis), DynScanAttrs(kind, exclusive, reverse))


def _least(x: Array) -> AnyValue:
    return False if x.dtype == bool else -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min


def _most(x: Array) -> AnyValue:
    return True if x.dtype == bool else np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).max


def _log_sum_exp(x: Array, axes: tuple[int, ...]) -> Array:
    top = np.max(x, axis=axes, keepdims=True, initial=_least(x))
    top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
    return np.log(np.sum(np.exp(x - top), axis=axes, keepdims=True)) + top


_REDUCERS: Mapping[str, Callable[[Array, tuple[int, ...]], AnyValue]] = {
    "sum": lambda x, axes: np.sum(x, axis=axes, keepdims=True, dtype=x.dtype),
    "prod": lambda x, axes: np.prod(x, axis=axes, keepdims=True, dtype=x.dtype),
    "mean": lambda x, axes: np.mean(x, axis=axes, keepdims=True),
    "max": lambda x, axes: np.max(x, axis=axes, keepdims=True, initial=_least(x)),
    "min": lambda x, axes: np.min(x, axis=axes, keepdims=True, initial=_most(x)),
    "logsumexp": _log_sum_exp,
}


@rule("onnx.reduce", 2)
def _reduce_type(attrs: DynReduceAttrs, x: TensorType, axes: TensorType) -> Type:
    if attrs.kind not in _REDUCERS:
        raise TypeCheckError(one_of("the kind of onnx.reduce", _REDUCERS, attrs.kind))
    if attrs.keepdims:
        return TensorType([ANY] * x.rank, x.dtype)
    return TensorType([ANY] * (x.rank - vector_length("onnx.reduce", "axes", axes)), x.dtype)


def _reduce(attrs: DynReduceAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    axes = tuple(axis % x.ndim for axis in numbers(values[1]) if -x.ndim <= axis < x.ndim)
    if len(set(axes)) != np.size(values[1]):
        raise EvalError(f"the axes of onnx.reduce must differ and be in [{-x.ndim}, {x.ndim}), not {values[1]}")
    with np.errstate(all="ignore"):
        value = np.asarray(_REDUCERS[attrs.kind](x, axes)).astype(x.dtype, copy=False)
    return value if attrs.keepdims else value.squeeze(axes)


def _reduce_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """By the kind: a copy, a share, what was chosen, the product of the others, or the share of the exponentials."""
    (x, axes), kind = call.args, call.attrs.kind
    if kind == "prod":
        return _product_gradient(call, adjoint)
    op = ops()
    value = reduce(x, axes, kind)
    g = op.reshape_like(adjoint, value)
    if kind in ("max", "min"):
        chosen = op.cast_like(op.equal(x, value), x)
        slope = chosen * (g / reduce(chosen, axes, "sum"))
    elif kind == "logsumexp":
        slope = op.exp(x - value) * g
    else:
        count = reduce(op.ones_like(x), axes, "sum")
        slope = op.broadcast_to_like(g / count if kind == "mean" else g, x)
    return op.reshape_like(slope, x), zeros(axes)


def _product_expr(attrs: DynReduceAttrs, x: Expr, axes: Expr) -> Expr:
    """One axis after the other; what stays is the same along all axes of the product."""
    op, rank = ops(), x.tensor_type.rank
    for axis in range(rank):
        is_in = op.any(op.equal(op.floor_mod(op.cast(axes, "int64"), op.const(rank, "int64")), op.const(axis, "int64")))
        x = op.where(is_in, op.broadcast_to_like(op.prod(x, axis, keepdims=True), x), x)
    return reduce(x, axes, "mean", attrs.keepdims)


_product_gradient = by_expansion(_product_expr)

REDUCE = Op(
    "onnx.reduce",
    2,
    _reduce_type,
    _reduce,
    attrs_type=DynReduceAttrs,
    gradient=_reduce_gradient,
    doc="a reduction over run-time axes",
)


def reduce(data: Expr, axes: Expr, kind: str, keepdims: bool = True) -> Call:
    """`data` reduced over `axes`; `kind` is sum, prod, mean, max, min or logsumexp."""
    return call(REDUCE, (data, axes), DynReduceAttrs(kind, keepdims))


@rule("onnx.det", 1)
def _det_type(attrs: None, x: TensorType) -> Type:
    if x.rank < 2 or not same_dim(x.shape[-1], x.shape[-2]):
        raise TypeCheckError(f"the data of onnx.det must be square matrices, not {show_shape(x.shape)}")
    return TensorType(x.shape[:-2], x.dtype)


def _det_slope(call: Call, x: Expr, g: Expr) -> Expr:
    """Cofactors, so that singular matrices have derivatives too."""
    op, rank = ops(), x.tensor_type.rank
    count = size_of(x, -1)
    rows = op.expand_dims(places_of(count), 1)
    # Row i: all numbers but i.
    others = op.expand_dims(places_of(count - op.const(1, "int64")), 0)
    others = others + op.cast(op.greater_equal(others, rows), "int64")
    minors = op.take(op.take(x, others, rank - 2), others, rank)
    lead = range(rank - 2)
    minors = op.transpose(minors, (*lead, rank - 2, rank, rank - 1, rank + 1))
    is_odd = op.floor_mod(rows + op.expand_dims(places_of(count), 0), op.const(2, "int64"))
    sign = op.cast_like(op.const(1, "int64") - op.const(2, "int64") * is_odd, x)
    return op.reshape_like(det(minors) * sign * op.expand_dims(g, rank - 2, 2), x)


DET = Op(
    "onnx.det",
    1,
    _det_type,
    lambda attrs, values, result: np.asarray(np.linalg.det(values[0])).astype(out_type(result).dtype),
    gradient=one_argument(_det_slope),
    doc="the determinant of the matrices of the last two axes",
)


def det(data: Expr) -> Call:
    """Determinants of the last two axes."""
    return call(DET, (data,))


OPS = (CUMPROD, CUMULATIVE, REDUCE, DET)
