"""Relay's `dyn.` operators that make shapes: sizes, axes and repetitions are run-time values.

In: types, attributes, arrays. Out: types whose unknown sizes are `?`, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import ANY, Dim, TensorType, Type
from relay_hw.op.base import (
    MOVES,
    RESHAPES,
    Array,
    Attrs,
    as_expr,
    call,
    out_type,
    rule,
    show_shape,
)
from relay_hw.op.gradients.common import in_type, nothing, ops
from relay_hw.op.gradients.common import zeros as zeros_of
from relay_hw.op.gradients.selection import returned
from relay_hw.op.shape import reshape_dims

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
    return ops().reshape_like(adjoint, x), zeros_of(sizes)


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
    return ops().collapse_sum_like(adjoint, x), zeros_of(sizes)


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
    return in_type(ops().sum(adjoint), value, call), zeros_of(sizes)


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
    gradient=lambda call, adjoint: (returned(call, 0, adjoint), zeros_of(call.args[1])),
    pattern=FusionPattern.BROADCAST,
    traits=MOVES,
    doc="the tensor repeated by run-time counts",
)


def tile(data: Expr, reps: Expr) -> Call:
    """`data` repeated `reps` times along each axis."""
    return call(TILE, (data, reps))


def _init(name: str, value: int) -> Op:
    @rule(name, 1)
    def relation(attrs: DynInitAttrs, shape: TensorType) -> Type:
        return TensorType([ANY] * vector_length(name, "shape", shape), attrs.dtype or "float32")

    def reference(attrs: DynInitAttrs, values: Sequence[Array], result: Type) -> Array:
        return np.full(_sizes(name, values[0]), value, out_type(result).dtype)

    doc = f"a tensor of {value}s of a run-time shape"
    return Op(name, 1, relation, reference, attrs_type=DynInitAttrs, gradient=nothing, doc=doc)


ZEROS, ONES = _init("dyn.zeros", 0), _init("dyn.ones", 1)


def zeros(shape: Expr, dtype: str) -> Call:
    """Zeros in the shape that the vector `shape` says."""
    return call(ZEROS, (shape,), DynInitAttrs(dtype=dtype))


def ones(shape: Expr, dtype: str) -> Call:
    """Ones in the shape that the vector `shape` says."""
    return call(ONES, (shape,), DynInitAttrs(dtype=dtype))


OPS = (RESHAPE, SQUEEZE, EXPAND_DIMS, BROADCAST_TO, FULL, TILE, ZEROS, ONES)
