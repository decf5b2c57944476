"""General contractions: einsum, cumprod, det, and reductions whose axes are run-time values.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    ANCHOR,
    KEEPS_AXES,
    Array,
    Attrs,
    call,
    check_axis,
    out_type,
    product,
    rule,
    same_dim,
    same_dtype,
    show_shape,
    tensor_tuple,
)
from relay_hw.op.dynamic_shape import numbers, vector_length
from relay_hw.op.sort import ScanAttrs
from relay_hw.support.names import one_of

__all__ = ["cumprod", "einsum"]


@dataclass(frozen=True, slots=True)
class EinsumAttrs(Attrs):
    equation: str = ""


@dataclass(frozen=True, slots=True)
class DynReduceAttrs(Attrs):
    kind: str = "sum"
    keepdims: bool = True


@dataclass(frozen=True, slots=True)
class DynScanAttrs(Attrs):
    kind: str = "sum"
    exclusive: bool = False
    reverse: bool = False


def _terms(equation: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each argument and of the result, with ellipses expanded to unused capital letters."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    sides = left.split(",")
    if len(sides) != len(ranks):
        raise TypeCheckError(f"the equation of einsum must have {len(ranks)} terms, not {equation!r}")
    spare = [letter for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if letter not in text]
    wide = max((rank - len(side) + 3 for side, rank in zip(sides, ranks, strict=True) if "..." in side), default=0)
    dots = "".join(spare[:wide])
    found: list[str] = []
    for side, rank in zip(sides, ranks, strict=True):
        count = rank - len(side) + 3 if "..." in side else 0
        term = side.replace("...", dots[len(dots) - count :] if count > 0 else "")
        if len(term) != rank or not (term.isalpha() or not term):
            raise TypeCheckError(f"a term of einsum must name {rank} axes, not {side!r}")
        found.append(term)
    if not arrow:
        letters = "".join(found)
        right = "..." * bool(dots) + "".join(sorted(x for x in set(letters) - set(dots) if letters.count(x) == 1))
    return found, right.replace("...", dots)


def _einsum_type(types: Sequence[Type], attrs: EinsumAttrs, solver: Solver) -> Type | None:
    parts = tensor_tuple("einsum", types)
    if parts is None:
        return None
    dtype = same_dtype("einsum", *parts)
    terms, result = _terms(attrs.equation, [part.rank for part in parts])
    sizes: dict[str, Dim] = {}
    for term, part in zip(terms, parts, strict=True):
        for letter, dim in zip(term, part.shape, strict=True):
            known = sizes.get(letter, dim)
            if not same_dim(known, dim) and 1 not in (known, dim):
                raise TypeCheckError(f"axes {letter} of einsum must have one size, not {known} and {dim}")
            sizes[letter] = dim if known == 1 or not isinstance(known, int) else known
    if any(letter not in sizes for letter in result) or len(set(result)) != len(result):
        raise TypeCheckError(f"the result of einsum must name axes of its terms once each, not be {attrs.equation!r}")
    return TensorType([sizes[letter] for letter in result], dtype)


def _einsum(attrs: EinsumAttrs, values: Sequence[AnyValue], result: Type) -> Array:
    # numpy's einsum does not know bfloat16.
    parts = [np.asarray(part, np.float32 if part.dtype.kind == "V" else None) for part in values[0]]
    return np.asarray(np.einsum(attrs.equation.replace(" ", ""), *parts)).astype(out_type(result).dtype)


EINSUM = Op(
    "einsum",
    1,
    _einsum_type,
    _einsum,
    attrs_type=EinsumAttrs,
    traits=ANCHOR,
    doc="products summed by Einstein's convention",
)


def einsum(data: Expr | Sequence[Expr], equation: str) -> Call:
    """The sum of products of the tensors of `data` that `equation` writes in numpy's notation."""
    return call(EINSUM, (data if isinstance(data, Expr) else TupleExpr(tuple(data)),), EinsumAttrs(equation))


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


CUMPROD = Op(
    "cumprod",
    1,
    _cumprod_type,
    _cumprod,
    attrs_type=ScanAttrs,
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


CUMULATIVE = Op(
    "onnx.cumulative",
    2,
    _cumulative_type,
    _cumulative,
    attrs_type=DynScanAttrs,
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


REDUCE = Op("onnx.reduce", 2, _reduce_type, _reduce, attrs_type=DynReduceAttrs, doc="a reduction over run-time axes")


def reduce(data: Expr, axes: Expr, kind: str, keepdims: bool = True) -> Call:
    """`data` reduced over `axes`; `kind` is sum, prod, mean, max, min or logsumexp."""
    return call(REDUCE, (data, axes), DynReduceAttrs(kind, keepdims))


@rule("onnx.det", 1)
def _det_type(attrs: None, x: TensorType) -> Type:
    if x.rank < 2 or not same_dim(x.shape[-1], x.shape[-2]):
        raise TypeCheckError(f"the data of onnx.det must be square matrices, not {show_shape(x.shape)}")
    return TensorType(x.shape[:-2], x.dtype)


DET = Op(
    "onnx.det",
    1,
    _det_type,
    lambda attrs, values, result: np.asarray(np.linalg.det(values[0])).astype(out_type(result).dtype),
    doc="the determinant of the matrices of the last two axes",
)


def det(data: Expr) -> Call:
    """Determinants of the last two axes."""
    return call(DET, (data,))


OPS = (EINSUM, CUMPROD, CUMULATIVE, REDUCE, DET)
