"""Places in tensors: unravel_index and invert_permutation find them, adv_index reads there, and strided_set,
matrix_set_diag and sparse_to_dense write there.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    as_expr,
    broadcast_shapes,
    call,
    rule,
    same_dim,
    same_dtype,
    show,
    tensor_tuple,
)
from relay_hw.op.dynamic_shape import numbers, vector_length
from relay_hw.op.gradients.common import nothing, ops, parts_of, zeros
from relay_hw.op.gradients.selection import added_at, numbered, stored

__all__ = ["adv_index", "invert_permutation", "matrix_set_diag", "sparse_to_dense", "strided_set", "unravel_index"]


@dataclass(frozen=True, slots=True)
class MatrixSetDiagAttrs(Attrs):
    """Diagonals `k1` to `k2`; shorter ones lie at the end of their row of values where they are aligned right."""

    k1: int = 0
    k2: int = 0
    super_diag_right_align: bool = True
    sub_diag_right_align: bool = False


@dataclass(frozen=True, slots=True)
class SparseToDenseAttrs(Attrs):
    output_shape: tuple[int, ...]


def _check_integers(name: str, ty: TensorType) -> None:
    if not ty.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the places of {name} must be integers, not {ty.dtype}")


@rule("unravel_index", 2)
def _unravel_type(attrs: None, places: TensorType, shape: TensorType) -> Type:
    _check_integers("unravel_index", places)
    return TensorType((vector_length("unravel_index", "shape", shape), *places.shape), places.dtype)


def _unravel(attrs: None, values: Sequence[Array], result: Type) -> Array:
    places, shape = np.asarray(values[0]), numbers(values[1])
    count = int(np.prod(shape))
    if places.size and not 0 <= int(places.min()) <= int(places.max()) < count:
        raise EvalError(f"the places of unravel_index must be in [0, {count}), not {places.ravel().tolist()[:8]}")
    return np.stack(np.unravel_index(places.astype(np.int64), shape)).astype(places.dtype)


UNRAVEL_INDEX = Op(
    "unravel_index",
    2,
    _unravel_type,
    _unravel,
    pattern=FusionPattern.INJECTIVE,
    gradient=nothing,
    doc="the coordinates of places in a flat tensor, an axis of coordinates first",
)


def unravel_index(indices: Expr, shape: Expr | Sequence[int]) -> Call:
    """The coordinates in a tensor of `shape` of the places `indices` in it laid flat."""
    return call(UNRAVEL_INDEX, (indices, shape if isinstance(shape, Expr) else Constant(np.array(shape, np.int32))))


@rule("invert_permutation", 1)
def _invert_type(attrs: None, x: TensorType) -> Type:
    _check_integers("invert_permutation", x)
    if x.rank != 1:
        raise TypeCheckError(f"invert_permutation must get a vector, not {show(x)}")
    return x


def _invert(attrs: None, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    if not np.array_equal(np.sort(x), np.arange(len(x))):
        raise EvalError(f"invert_permutation must get the numbers 0 to {len(x) - 1}, each once, not {x.tolist()[:8]}")
    return np.argsort(x).astype(x.dtype)


INVERT_PERMUTATION = Op(
    "invert_permutation",
    1,
    _invert_type,
    _invert,
    gradient=nothing,
    doc="where each number of a permutation stands",
)


def invert_permutation(data: Expr) -> Call:
    """y with y[data[i]] = i."""
    return call(INVERT_PERMUTATION, (data,))


def _adv_type(types: Sequence[Type], attrs: None, solver: Solver) -> Type | None:
    parts = tensor_tuple("adv_index", types)
    if parts is None:
        return None
    data, places = parts[0], parts[1:]
    if not places or len(places) > data.rank:
        raise TypeCheckError(f"adv_index must get data and places for some of its axes, not {len(places)} places")
    for one in places:
        _check_integers("adv_index", one)
    common = broadcast_shapes("adv_index", [one.shape for one in places])
    return TensorType((*common, *data.shape[len(places) :]), data.dtype)


def _adv_index(attrs: None, values: Sequence[Sequence[Array]], result: Type) -> Array:
    data, places = np.asarray(values[0][0]), [np.asarray(one) for one in values[0][1:]]
    for one, size in zip(places, data.shape, strict=False):
        if one.size and not -size <= int(one.min()) <= int(one.max()) < size:
            raise EvalError(f"the places of adv_index must be in [{-size}, {size}), not {one.ravel().tolist()[:8]}")
    return data[tuple(places)]


def _adv_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The same places in the numbers of the data's elements say where each came from."""
    data, *places = parts_of(call.args[0])
    found = added_at(data, adv_index([numbered(data), *places]), adjoint)
    return (TupleExpr([found, *map(zeros, places)]),)


ADV_INDEX = Op(
    "adv_index",
    1,
    _adv_type,
    _adv_index,
    pattern=FusionPattern.INJECTIVE,
    gradient=_adv_gradient,
    doc="slices of the data at places that broadcast, a tensor of them for each of the first axes",
)


def adv_index(inputs: Expr | Sequence[Expr]) -> Call:
    """`data[places0, places1, ...]` of `inputs`, which are the data and then the places."""
    return call(ADV_INDEX, (inputs if isinstance(inputs, Expr) else TupleExpr(tuple(inputs)),))


@rule("strided_set", 5)
def _set_type(
    attrs: None, x: TensorType, part: TensorType, begin: TensorType, end: TensorType, strides: TensorType
) -> Type:
    same_dtype("strided_set", x, part)
    ranges = (("begin", begin), ("end", end), ("strides", strides))
    counts = {vector_length("strided_set", what, ty) for what, ty in ranges}
    if len(counts) > 1 or max(counts) > x.rank or part.rank != x.rank:
        raise TypeCheckError(
            f"strided_set must get a part of {x.rank} axes, and begin, end and strides for as many at most, "
            f"not {show(part)} and {', '.join(map(str, sorted(counts)))}"
        )
    return x


def _strided_set(attrs: None, values: Sequence[Array], result: Type) -> Array:
    x, part, ranges = np.array(values[0]), np.asarray(values[1]), [numbers(one) for one in values[2:]]
    if 0 in ranges[2]:
        raise EvalError("strides of strided_set must not be 0")
    place = tuple(slice(b, e, s) for b, e, s in zip(*ranges, strict=True))
    if x[place].shape != part.shape:
        raise EvalError(f"the part of strided_set must have the shape {x[place].shape}, not {part.shape}")
    x[place] = part
    return x


def _set_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The range gives its adjoints to the part, the rest to the data."""
    _, part, *ranges = call.args
    to_data = Call(STRIDED_SET, (adjoint, zeros(part), *ranges))
    to_part = ops().reshape_like(ops().dynamic.strided_slice(adjoint, *ranges), part)
    return to_data, to_part, *map(zeros, ranges)


STRIDED_SET = Op(
    "strided_set",
    5,
    _set_type,
    _strided_set,
    gradient=_set_gradient,
    doc="the data with a strided range replaced",
)


def strided_set(data: Expr, v: Expr, begin: Expr, end: Expr, strides: Expr | None = None) -> Call:
    """`data` with `v` in place of `data[begin:end:strides]`; a stride is 1 where none is given."""
    steps = strides if strides is not None else ops().ones_like(begin)
    return call(STRIDED_SET, (data, v, begin, end, steps))


@rule("matrix_set_diag", 2)
def _diag_type(attrs: MatrixSetDiagAttrs, x: TensorType, diagonal: TensorType) -> Type:
    same_dtype("matrix_set_diag", x, diagonal)
    count = attrs.k2 - attrs.k1 + 1
    wanted = x.rank - 1 if count == 1 else x.rank
    if x.rank < 2 or count < 1 or diagonal.rank != wanted:
        raise TypeCheckError(
            f"matrix_set_diag must get matrices, k1 up to k2, and diagonals of {wanted} axes, "
            f"not {show(x)}, {attrs.k1}, {attrs.k2} and {show(diagonal)}"
        )
    if count > 1 and not same_dim(diagonal.shape[-2], count):
        raise TypeCheckError(f"matrix_set_diag must get {count} diagonals, not {diagonal.shape[-2]}")
    rows, columns = x.shape[-2:]
    if isinstance(rows, int) and isinstance(columns, int):
        longest = max(diagonal_length(rows, columns, k) for k in (attrs.k1, attrs.k2, min(max(attrs.k1, 0), attrs.k2)))
        if not -rows < attrs.k1 <= attrs.k2 < columns or not same_dim(diagonal.shape[-1], longest):
            raise TypeCheckError(
                f"the diagonals of matrix_set_diag must lie in the matrix and hold {longest} elements, "
                f"not be {attrs.k1} to {attrs.k2} of {show(diagonal)}"
            )
    return x


def diagonal_length(rows: int, columns: int, k: int) -> int:
    """The elements of diagonal `k`, which is `k` columns right of the main one."""
    return max(min(columns - max(k, 0), rows + min(k, 0)), 0)


def _matrix_set_diag(attrs: MatrixSetDiagAttrs, values: Sequence[Array], result: Type) -> Array:
    x, diagonal = np.array(values[0]), np.asarray(values[1])
    rows = diagonal[..., None, :] if attrs.k1 == attrs.k2 else diagonal
    for k in range(attrs.k1, attrs.k2 + 1):
        length = diagonal_length(x.shape[-2], x.shape[-1], k)
        is_right = attrs.super_diag_right_align if k >= 0 else attrs.sub_diag_right_align
        start = rows.shape[-1] - length if is_right else 0
        at = np.arange(length)
        x[..., at + max(-k, 0), at + max(k, 0)] = rows[..., attrs.k2 - k, start : start + length]
    return x


def _diag_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The diagonals get the adjoints there, the matrices the rest."""
    x, diagonal = call.args
    nowhere = ops().full_like(ops().cast(x, "int64"), ops().const(-1, "int64"))
    which = Call(MATRIX_SET_DIAG, (nowhere, numbered(diagonal)), call.attrs)
    to_data = Call(MATRIX_SET_DIAG, (adjoint, zeros(diagonal)), call.attrs)
    return to_data, stored(which, adjoint, diagonal)


MATRIX_SET_DIAG = Op(
    "matrix_set_diag",
    2,
    _diag_type,
    _matrix_set_diag,
    attrs_type=MatrixSetDiagAttrs,
    gradient=_diag_gradient,
    doc="matrices with some diagonals replaced",
)


def matrix_set_diag(data: Expr, diagonal: Expr, k: int | tuple[int, int] = 0, align: str = "RIGHT_LEFT") -> Call:
    """`data` with diagonals `k` (or k[0] to k[1], highest first in `diagonal`) replaced.

    `align` is where shorter ones lie in their row of values: the upper ones, then the lower ones.
    """
    first, last = (k, k) if isinstance(k, int) else k
    upper, lower = (word == "RIGHT" for word in align.split("_"))
    return call(MATRIX_SET_DIAG, (data, diagonal), MatrixSetDiagAttrs(first, last, upper, lower))


@rule("sparse_to_dense", 3)
def _dense_type(attrs: SparseToDenseAttrs, places: TensorType, values: TensorType, default: TensorType) -> Type:
    _check_integers("sparse_to_dense", places)
    same_dtype("sparse_to_dense", values, default)
    rank = len(attrs.output_shape)
    is_row = places.rank == 2 and same_dim(places.shape[1], rank)
    if not (is_row or (places.rank < 2 and rank == 1)) or values.rank > 1 or default.rank:
        raise TypeCheckError(
            f"sparse_to_dense must get rows of {rank} coordinates, their values and one more value, "
            f"not {show(places)}, {show(values)} and {show(default)}"
        )
    if any(size < 0 for size in attrs.output_shape):
        raise TypeCheckError(f"output_shape of sparse_to_dense must be at least 0, not {attrs.output_shape}")
    return TensorType(attrs.output_shape, values.dtype)


def _sparse_to_dense(attrs: SparseToDenseAttrs, values: Sequence[Array], result: Type) -> Array:
    shape, given = attrs.output_shape, np.asarray(values[1])
    rows = np.asarray(values[0]).reshape(-1, len(shape))
    if rows.size and (int(rows.min()) < 0 or np.any(rows >= np.array(shape))):
        raise EvalError(f"the places of sparse_to_dense must lie in {shape}, not {rows.tolist()[:8]}")
    found = np.full(shape, values[2], given.dtype)
    found[tuple(rows.T)] = given
    return found


def _dense_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each value gets the adjoint at its place, the default the sum of the rest."""
    places, values, default = call.args
    op = ops()
    which = Call(SPARSE_TO_DENSE, (places, numbered(values), op.const(-1, "int64")), call.attrs)
    rest = op.where(op.less(which, op.const(0, "int64")), adjoint, op.zeros_like(adjoint))
    return zeros(places), stored(which, adjoint, values), op.reshape_like(op.sum(rest), default)


SPARSE_TO_DENSE = Op(
    "sparse_to_dense",
    3,
    _dense_type,
    _sparse_to_dense,
    attrs_type=SparseToDenseAttrs,
    gradient=_dense_gradient,
    doc="a tensor of one value but at listed places",
)


def sparse_to_dense(
    sparse_indices: Expr, output_shape: Sequence[int], sparse_values: Expr, default_value: Expr | float = 0
) -> Call:
    """A tensor of `output_shape` with `sparse_values` at the rows of `sparse_indices`, else `default_value`."""
    args = (sparse_indices, sparse_values, as_expr(default_value))
    return call(SPARSE_TO_DENSE, args, SparseToDenseAttrs(tuple(output_shape)))


OPS = (UNRAVEL_INDEX, INVERT_PERMUTATION, ADV_INDEX, STRIDED_SET, MATRIX_SET_DIAG, SPARSE_TO_DENSE)
