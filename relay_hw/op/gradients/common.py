"""Helpers of gradients: sizes from types, zeros and numbers in a tensor's shape, sums over broadcast axes.

In: expressions, typed where their sizes matter. Out: expressions without types.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Expr, Gradient, Op, Tuple, TupleGetItem
from relay_hw.ir.lazy_import import lazy_import
from relay_hw.ir.types import ANY, TensorType, TupleType, Type


def ops() -> Any:
    """The package of operators, imported lazily, since operators use this package."""
    return lazy_import("relay_hw.op")


def name_of(call: Call) -> str:
    """The operator's name."""
    assert isinstance(call.op, Op)
    return call.op.name


def known_type(expr: Expr) -> TensorType | None:
    """The type of a tensor of static shape; None if unknown."""
    ty = expr.checked_type
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        return None
    return ty


def sizes(call: Call, expr: Expr) -> tuple[int, ...]:
    """The static shape of an argument or of the result. Raises UnsupportedError for a shape known only at run time."""
    ty = expr.tensor_type
    if not all(isinstance(dim, int) for dim in ty.shape):
        raise UnsupportedError(f"the gradient of {name_of(call)} must have static shapes, not {ty}", call.span)
    return ty.static_shape


def parts_of(whole: Expr) -> Sequence[Expr]:
    """The fields of a typed tuple, whether it is written out or not."""
    if isinstance(whole, Tuple):
        return whole.fields
    assert isinstance(whole.type, TupleType)
    return tuple(TupleGetItem(whole, at, checked_type=ty) for at, ty in enumerate(whole.type.fields))


def number(value: float, like: Expr) -> Expr:
    """`value` in the element type of `like`: a scalar where that is known, else in the shape of `like`."""
    op, ty = ops(), like.checked_type
    if isinstance(ty, TensorType):
        return op.const(value, ty.dtype)
    return op.full_like(like, op.cast_like(op.const(value, "float64"), like))


def zeros(like: Expr) -> Expr:
    """Zeros in the type of `like`."""
    ty = known_type(like)
    if ty is None:
        return ops().zeros_like(like)
    return ops().zeros(ty.shape, ty.dtype) if ty.shape else ops().const(0, ty.dtype)


def choose(condition: Expr, value: Expr, otherwise: Expr | None = None, like: Expr | None = None) -> Expr:
    """`value` where the condition holds, elsewhere `otherwise` or 0; `like` has the element type of `value`."""
    op = ops()
    if otherwise is not None:
        return op.where(condition, value, otherwise)
    known = value if like is None else like
    is_typed = isinstance(known.checked_type, TensorType)
    return op.where(condition, value, number(0, known) if is_typed else op.zeros_like(value))


def collapse(value: Expr, result: Expr, arg: Expr) -> Expr:
    """`value`, of the shape of `result`, summed over the axes along which `arg` was broadcast."""
    if _is_same_shape(result.checked_type, arg.checked_type):
        return value
    have, want = known_type(result), known_type(arg)
    if have is None or want is None:
        return ops().collapse_sum_like(value, arg)
    return ops().collapse_sum_to(value, want.shape)


def _is_same_shape(have: Type | None, want: Type | None) -> bool:
    """Whether two shapes are one, type parameters included; two unknown sizes may differ."""
    if not isinstance(have, TensorType) or not isinstance(want, TensorType):
        return False
    return have.shape == want.shape and ANY not in have.shape


def reshape_to(value: Expr, like: Expr) -> Expr:
    """The elements of `value` in the shape of `like`."""
    ty = known_type(like)
    if ty is None:
        return ops().reshape_like(value, like)
    return reshaped(value, ty.static_shape)


def reshaped(value: Expr, shape: Sequence[int]) -> Expr:
    """`value` reshaped to a shape in which 0 means size 0."""
    return ops().reshape(value, tuple(shape), allowzero=True)


def in_type(value: Expr, arg: Expr, result: Expr) -> Expr:
    """`value` in the element type of `arg` where that of `result` differs."""
    have, want = result.checked_type, arg.checked_type
    if isinstance(have, TensorType) and isinstance(want, TensorType):
        return value if have.dtype == want.dtype else ops().cast(value, want.dtype)
    return ops().cast_like(value, arg)


def moved(value: Expr, order: Sequence[int]) -> Expr:
    """`value` with its axes in another order; itself if the order stays."""
    return value if list(order) == list(range(len(order))) else ops().transpose(value, tuple(order))


def inverse(order: Sequence[int]) -> tuple[int, ...]:
    """The inverse permutation of `order`."""
    return tuple(int(axis) for axis in np.argsort(order))


def one_argument(slope: Callable[[Call, Expr, Expr], Expr]) -> Gradient:
    """The gradient of a unary operator from (call, argument, adjoint) -> adjoint of the argument."""
    return lambda call, adjoint: (slope(call, call.args[0], adjoint),)


def nothing(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Zeros for every argument, if there is one."""
    return tuple(zeros(arg) for arg in call.args)


def add_at(like: Expr, shape: Sequence[int], indices: Expr, updates: Expr, axis: int, spread: int) -> Expr:
    """Zeros of `shape` with the slices of `updates` added at `indices`, which stand in the place of `axis`.

    `like` has the element type, `indices` has `spread` axes.
    """
    rank = len(shape)
    front = moved(updates, [*range(axis, axis + spread), *range(axis), *range(axis + spread, rank - 1 + spread)])
    order = [axis, *(other for other in range(rank) if other != axis)]
    dtype = like.tensor_type.dtype
    start = ops().zeros([shape[at] for at in order], dtype)
    total = ops().scatter_nd(start, ops().expand_dims(indices, 0), front, mode="add")
    return moved(total, inverse(order))
