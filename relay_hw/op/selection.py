"""Selection operators: argwhere, trilu, reverse_sequence, sequence_mask, unique.

In: types, attributes, arrays. Out: types (`?` for how many are found), arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Tuple, TupleGetItem
from relay_hw.ir.types import ANY, TensorType, TupleType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    PERMUTES,
    Array,
    Attrs,
    call,
    check_axis,
    rule,
    same_dim,
    show,
    show_shape,
)
from relay_hw.op.gradients.accumulate import by_expansion
from relay_hw.op.gradients.common import (
    nothing,
    ops,
    zeros,
)

__all__ = ["argwhere", "reverse_sequence", "sequence_mask", "trilu", "unique"]


@dataclass(frozen=True, slots=True)
class TriluAttrs(Attrs):
    upper: bool = True


@dataclass(frozen=True, slots=True)
class ReverseSequenceAttrs(Attrs):
    seq_axis: int = 1
    batch_axis: int = 0


@dataclass(frozen=True, slots=True)
class UniqueSlicesAttrs(Attrs):
    axis: int | None = None
    sorted: bool = True


ARGWHERE = Op(
    "argwhere",
    1,
    rule("argwhere", 1)(lambda attrs, x: TensorType((ANY, x.rank), "int32")),
    lambda attrs, values, result: np.argwhere(values[0]).reshape(-1, np.ndim(values[0])).astype(np.int32),
    gradient=nothing,
    doc="the indices of the elements that are not zero, one per row",
)


def argwhere(condition: Expr) -> Call:
    """The indices of the elements of `condition` that are true or not zero: as many rows as there are, int32."""
    return call(ARGWHERE, (condition,))


@rule("trilu", 2)
def _trilu_type(attrs: TriluAttrs, x: TensorType, k: TensorType) -> Type:
    if x.rank < 2 or k.rank:
        raise TypeCheckError(
            f"trilu must get data of at least 2 axes and a scalar, not {show_shape(x.shape)} and {show_shape(k.shape)}"
        )
    return x


def _trilu_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """What was kept gets its adjoint."""
    x, k = call.args
    assert x is not None
    return ops().trilu(adjoint, k, call.attrs.upper), zeros(k)


TRILU = Op(
    "trilu",
    2,
    _trilu_type,
    lambda attrs, values, result: (np.triu if attrs.upper else np.tril)(values[0], int(values[1])),
    attrs_type=TriluAttrs,
    gradient=_trilu_gradient,
    pattern=FusionPattern.ELEMWISE,
    traits=KEEPS_AXES,
    doc="the triangle above or below a diagonal, zeros elsewhere",
)


def trilu(data: Expr, k: Expr, upper: bool = True) -> Call:
    """The upper (or lower) triangle of the last two axes, from diagonal `k` on; zeros elsewhere."""
    return call(TRILU, (data, k), TriluAttrs(upper))


@rule("reverse_sequence", 2)
def _reverse_sequence_type(attrs: ReverseSequenceAttrs, x: TensorType, lengths: TensorType) -> Type:
    seq, batch = (check_axis("reverse_sequence", axis, x.rank) for axis in (attrs.seq_axis, attrs.batch_axis))
    if seq == batch or lengths.rank != 1 or not same_dim(lengths.shape[0], x.shape[batch]):
        raise TypeCheckError(
            f"reverse_sequence must have one length for each of axis {batch}, which is not axis {seq}, "
            f"not {show_shape(lengths.shape)} for {show_shape(x.shape)}"
        )
    return x


def _reverse_sequence(attrs: ReverseSequenceAttrs, values: Sequence[Array], result: Type) -> Array:
    x, lengths = np.asarray(values[0]), np.asarray(values[1]).astype(np.int64)
    seq, batch = attrs.seq_axis % x.ndim, attrs.batch_axis % x.ndim
    places = np.arange(x.shape[seq])
    inside = places[None, :] < lengths[:, None]
    order = np.where(inside, lengths[:, None] - 1 - places[None, :], places[None, :])
    shape = [1] * x.ndim
    shape[seq], shape[batch] = x.shape[seq], x.shape[batch]
    grid = (order if batch < seq else order.T).reshape(shape)
    return np.take_along_axis(x, np.broadcast_to(grid, x.shape), seq)


def _reverse_sequence_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Reversing is its own adjoint."""
    lengths = call.args[1]
    return (
        ops().reverse_sequence(adjoint, lengths, call.attrs.seq_axis, call.attrs.batch_axis),
        zeros(lengths),
    )


REVERSE_SEQUENCE = Op(
    "reverse_sequence",
    2,
    _reverse_sequence_type,
    _reverse_sequence,
    attrs_type=ReverseSequenceAttrs,
    gradient=_reverse_sequence_gradient,
    pattern=FusionPattern.INJECTIVE,
    traits=PERMUTES | KEEPS_AXES,
    doc="the first elements of each sequence, up to its length, in reverse order",
)


def reverse_sequence(data: Expr, seq_lengths: Expr, seq_axis: int = 1, batch_axis: int = 0) -> Call:
    """`data` whose first `seq_lengths[b]` elements along `seq_axis` are reversed, for every b of `batch_axis`."""
    return call(REVERSE_SEQUENCE, (data, seq_lengths), ReverseSequenceAttrs(seq_axis, batch_axis))


@dataclass(frozen=True, slots=True)
class UniqueAttrs(Attrs):
    sorted: bool = True
    return_counts: bool = False


@rule("onnx.unique", 1)
def _slices_type(attrs: UniqueSlicesAttrs, x: TensorType) -> Type:
    if attrs.axis is None:
        shape = (ANY,)
    else:
        axis = check_axis("onnx.unique", attrs.axis, x.rank)
        shape = (*x.shape[:axis], ANY, *x.shape[axis + 1 :])
    return TupleType([TensorType(shape, x.dtype), *(TensorType((ANY,), "int64") for _ in range(3))])


def _unique_slices(attrs: UniqueSlicesAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    x = np.asarray(values[0])
    found, first, inverse, counts = np.unique(
        x, return_index=True, return_inverse=True, return_counts=True, axis=attrs.axis
    )
    inverse = np.reshape(inverse, -1)
    if not attrs.sorted:
        order = np.argsort(first, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        found = np.take(found, order, axis=0 if attrs.axis is None else attrs.axis)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    return found, first.astype(np.int64), inverse.astype(np.int64), counts.astype(np.int64)


def _slices_expr(attrs: UniqueSlicesAttrs, x: Expr) -> Expr:
    """The elements are those at the first places."""
    found = unique_slices(x, attrs.axis, attrs.sorted)
    first, inverse, counts = (TupleGetItem(found, at) for at in (1, 2, 3))
    return Tuple([ops().take(x, first, attrs.axis), first, inverse, counts])


UNIQUE_SLICES = Op(
    "onnx.unique",
    1,
    _slices_type,
    _unique_slices,
    attrs_type=UniqueSlicesAttrs,
    gradient=by_expansion(_slices_expr),
    doc="unique elements or slices, their first indices, inverse indices and counts",
)


def unique_slices(data: Expr, axis: int | None = None, sorted: bool = True) -> Call:
    """(elements, first places, inverse, counts), sorted or as they come; slices along `axis`, else single elements."""
    return call(UNIQUE_SLICES, (data,), UniqueSlicesAttrs(axis, sorted))


@rule("unique", 1)
def _unique_type(attrs: UniqueAttrs, x: TensorType) -> Type:
    if x.rank != 1:
        raise TypeCheckError(f"unique must get a vector, not {show_shape(x.shape)}")
    places = TensorType(x.shape, "int32")
    fields = [x, places, places, TensorType((1,), "int32")]
    return TupleType([*fields, places] if attrs.return_counts else fields)


def _unique(attrs: UniqueAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    x = np.asarray(values[0])
    found, first, inverse, counts = _unique_slices(UniqueSlicesAttrs(None, attrs.sorted), [x], result)
    behind = (0, len(x) - len(found))
    rows = [np.pad(part, behind).astype(np.int32) for part in (first, counts)]
    fields = np.pad(found, behind), rows[0], inverse.astype(np.int32), np.array([len(found)], np.int32)
    return (*fields, rows[1]) if attrs.return_counts else fields


def _unique_expr(attrs: UniqueAttrs, x: Expr) -> Expr:
    """The elements are those at the first places, as many as there are."""
    op, found = ops(), unique(x, attrs.sorted, attrs.return_counts)
    first, count = TupleGetItem(found, 1), TupleGetItem(found, 3)
    is_element = op.less(op.arange(op.cast(op.ndarray_size(x), "int32"), dtype="int32"), count)
    picked = op.take(x, first, 0)
    rest = [TupleGetItem(found, at) for at in range(1, 5 if attrs.return_counts else 4)]
    return Tuple([op.where(is_element, picked, op.zeros_like(picked)), *rest])


UNIQUE = Op(
    "unique",
    1,
    _unique_type,
    _unique,
    attrs_type=UniqueAttrs,
    gradient=by_expansion(_unique_expr),
    doc="the different elements of a vector, zeros behind them, and how many there are",
)


def unique(data: Expr, is_sorted: bool = True, return_counts: bool = False) -> Call:
    """(elements, first places, inverse, their number) of a vector, and with `return_counts` how often each is there.

    Elements are sorted, or in the order in which they come; all tensors but the number are as long as `data`.
    """
    return call(UNIQUE, (data,), UniqueAttrs(is_sorted, return_counts))


@dataclass(frozen=True, slots=True)
class SequenceMaskAttrs(Attrs):
    mask_value: float = 0.0
    axis: int = 0


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


OPS = (ARGWHERE, TRILU, REVERSE_SEQUENCE, UNIQUE_SLICES, UNIQUE, SEQUENCE_MASK)
