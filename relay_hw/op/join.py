"""Operators that join, split or reverse tensors along an axis: concatenate, stack, split, reverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_add
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver, Tuple, TupleGetItem
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import ANY, Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    KEEPS_AXES,
    PERMUTES,
    Array,
    Attrs,
    Ints,
    call,
    check_axis,
    freeze,
    rule,
    same_dim,
    same_dtype,
    show_shape,
    tensor_tuple,
)
from relay_hw.op.gradients.common import (
    one_argument,
    ops,
    parts_of,
)
from relay_hw.op.gradients.selection import places_of, size_of

__all__ = ["concatenate", "reverse", "split", "stack"]

INJECTIVE = FusionPattern.INJECTIVE


@dataclass(frozen=True, slots=True)
class AxisAttrs(Attrs):
    axis: int = 0


@dataclass(frozen=True, slots=True)
class ConcatenateAttrs(AxisAttrs):
    pass


@dataclass(frozen=True, slots=True)
class StackAttrs(AxisAttrs):
    pass


def concatenate_type(name: str, axis: int, parts: Sequence[TensorType]) -> TensorType:
    """The type of the parts joined along `axis`. Raises TypeCheckError if they do not fit."""
    if not parts:
        raise TypeCheckError(f"{name} must get at least one tensor, not an empty tuple")
    first = parts[0]
    axis = check_axis(name, axis, first.rank)
    same_dtype(name, *parts)
    for part in parts[1:]:
        others = [at for at in range(first.rank) if at != axis]
        if part.rank != first.rank or not all(same_dim(part.shape[at], first.shape[at]) for at in others):
            raise TypeCheckError(
                f"the shapes of {name} must agree but for axis {axis}, "
                f"not be {show_shape(first.shape)} and {show_shape(part.shape)}"
            )
    sizes = [part.shape[axis] for part in parts]
    return TensorType(first.shape[:axis] + (dim_add(*sizes),) + first.shape[axis + 1 :], first.dtype)


def _concatenate_type(types: Sequence[Type], attrs: ConcatenateAttrs, solver: Solver) -> Type | None:
    parts = tensor_tuple("concatenate", types)
    return None if parts is None else concatenate_type("concatenate", attrs.axis, parts)


def _part_types(call: Call) -> tuple[TensorType, ...]:
    ty = call.args[0].type
    assert isinstance(ty, TupleType)
    parts = tuple(part for part in ty.fields if isinstance(part, TensorType))
    return parts


def _sections(parts: Sequence[Expr], adjoint: Expr, axis: int) -> Expr:
    """The section of each part, one behind the other, by sizes that run time knows."""
    op = ops()
    begin, found = op.const(0, "int64"), []
    for part in parts:
        size = size_of(part, axis)
        found.append(op.reshape_like(op.take(adjoint, begin + places_of(size), axis), part))
        begin = begin + size
    return Tuple(found)


def _concatenate_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each part gets its section."""
    parts = _part_types(call)
    axis = call.attrs.axis % parts[0].rank
    if not all(isinstance(dim, int) for part in parts for dim in part.shape):
        return (_sections(parts_of(call.args[0]), adjoint, axis),)
    ends = tuple(accumulate(part.static_shape[axis] for part in parts))
    return (ops().split(adjoint, ends[:-1], axis),)


CONCATENATE = Op(
    "concatenate",
    1,
    _concatenate_type,
    lambda attrs, values, result: np.concatenate(values[0], axis=attrs.axis),
    attrs_type=ConcatenateAttrs,
    gradient=_concatenate_gradient,
    pattern=INJECTIVE,
    traits=ALONG_AXIS,
    doc="the tensors of a tuple joined along an axis",
)


def _tuple(data: Expr | Sequence[Expr]) -> Expr:
    return data if isinstance(data, Expr) else TupleExpr(tuple(data))


def concatenate(data: Expr | Sequence[Expr], axis: int) -> Call:
    """The tensors of `data` (a tuple, or a sequence that becomes one) joined along `axis`."""
    return call(CONCATENATE, (_tuple(data),), ConcatenateAttrs(axis))


def _stack_type(types: Sequence[Type], attrs: StackAttrs, solver: Solver) -> Type | None:
    parts = tensor_tuple("stack", types)
    if parts is None:
        return None
    if not parts:
        raise TypeCheckError("stack must get at least one tensor, not an empty tuple")
    first = parts[0]
    same_dtype("stack", *parts)
    for part in parts[1:]:
        if part.rank != first.rank or not all(map(same_dim, part.shape, first.shape)):
            raise TypeCheckError(
                f"the shapes of stack must be equal, not {show_shape(first.shape)} and {show_shape(part.shape)}"
            )
    axis = check_axis("stack", attrs.axis, first.rank + 1)
    return TensorType(first.shape[:axis] + (len(parts),) + first.shape[axis:], first.dtype)


def _stack_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each part gets its slice."""
    parts = _part_types(call)
    axis = call.attrs.axis % (parts[0].rank + 1)
    if not all(isinstance(dim, int) for part in parts for dim in part.shape):
        slices = [ops().take(adjoint, ops().const(number, "int64"), axis) for number in range(len(parts))]
        return (Tuple(slices),)
    sections = ops().split(adjoint, len(parts), axis)
    return (Tuple([ops().squeeze(TupleGetItem(sections, number), axis) for number in range(len(parts))]),)


STACK = Op(
    "stack",
    1,
    _stack_type,
    lambda attrs, values, result: np.stack(values[0], axis=attrs.axis),
    attrs_type=StackAttrs,
    gradient=_stack_gradient,
    pattern=INJECTIVE,
    doc="the tensors of a tuple joined along a new axis",
)


def stack(data: Expr | Sequence[Expr], axis: int) -> Call:
    """The equally shaped tensors of `data` joined along a new axis."""
    return call(STACK, (_tuple(data),), StackAttrs(axis))


@dataclass(frozen=True, slots=True)
class SplitAttrs(Attrs):
    indices_or_sections: int | tuple[int, ...]
    axis: int = 0


def _split_bounds(attrs: SplitAttrs, size: int) -> list[int]:
    given = attrs.indices_or_sections
    if not isinstance(given, int):
        if any(a > b for a, b in zip((0, *given), (*given, size), strict=True)):
            raise TypeCheckError(f"the indices of split must rise within [0, {size}], not be {given}")
        return [0, *given, size]
    if given <= 0 or size % given:
        raise TypeCheckError(f"the sections of split must divide axis size {size}, not be {given}")
    return [size // given * part for part in range(given + 1)]


@rule("split", 1)
def _split_type(attrs: SplitAttrs, x: TensorType) -> Type:
    axis = check_axis("split", attrs.axis, x.rank)
    size = x.shape[axis]
    if isinstance(size, int):
        bounds = _split_bounds(attrs, size)
        sizes: list[Dim] = [end - begin for begin, end in pairwise(bounds)]
    else:
        given = attrs.indices_or_sections
        sizes = [ANY] * (given if isinstance(given, int) else len(given) + 1)
    return TupleType([TensorType(x.shape[:axis] + (part,) + x.shape[axis + 1 :], x.dtype) for part in sizes])


def _split(attrs: SplitAttrs, values: Sequence[Array], result: Type) -> tuple[Array, ...]:
    x = np.asarray(values[0])
    return tuple(np.split(x, _split_bounds(attrs, x.shape[attrs.axis])[1:-1], axis=attrs.axis))


def _split_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoints of the parts, joined."""
    return (ops().concatenate(adjoint, call.attrs.axis),)


SPLIT = Op(
    "split",
    1,
    _split_type,
    _split,
    attrs_type=SplitAttrs,
    gradient=_split_gradient,
    pattern=INJECTIVE,
    traits=ALONG_AXIS,
    doc="a tuple of parts along an axis",
)


def split(data: Expr, indices_or_sections: Ints, axis: int = 0) -> Call:
    """A tuple: `data` cut along `axis` into that many equal sections or at those indices."""
    return call(SPLIT, (data,), SplitAttrs(freeze(indices_or_sections), axis))


@dataclass(frozen=True, slots=True)
class ReverseAttrs(Attrs):
    axis: int | None = None


@rule("reverse", 1)
def _reverse_type(attrs: ReverseAttrs, x: TensorType) -> Type:
    check_axis("reverse", attrs.axis or 0, x.rank)
    return x


REVERSE = Op(
    "reverse",
    1,
    _reverse_type,
    lambda attrs, values, result: np.flip(values[0], axis=attrs.axis or 0),
    attrs_type=ReverseAttrs,
    gradient=one_argument(lambda call, x, g: ops().reverse(g, call.attrs.axis or 0)),
    pattern=INJECTIVE,
    traits=PERMUTES | KEEPS_AXES,
    doc="elements in reverse order along an axis",
)


def reverse(data: Expr, axis: int) -> Call:
    """`data` in reverse order along `axis`."""
    return call(REVERSE, (data,), ReverseAttrs(axis))


OPS = (CONCATENATE, STACK, SPLIT, REVERSE)
