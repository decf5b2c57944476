"""Operators that pick, join or add elements: concatenate, split, slices, take, pad."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_add
from relay_hw.ir.expr import Call, Expr, FusionPattern, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import ANY, Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    KEEPS_AXES,
    MOVES,
    PERMUTES,
    Array,
    Attrs,
    Ints,
    as_expr,
    call,
    check_axis,
    freeze,
    ints,
    make_op,
    rule,
    same_dim,
    same_dtype,
    show_shape,
    tensor,
    tensor_tuple,
)
from relay_hw.op.gradients import transform as gradients

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


CONCATENATE = make_op(
    "concatenate",
    1,
    _concatenate_type,
    lambda attrs, values, result: np.concatenate(values[0], axis=attrs.axis),
    attrs=ConcatenateAttrs,
    gradient=gradients.concatenate,
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


STACK = make_op(
    "stack",
    1,
    _stack_type,
    lambda attrs, values, result: np.stack(values[0], axis=attrs.axis),
    attrs=StackAttrs,
    gradient=gradients.stack,
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


SPLIT = make_op(
    "split",
    1,
    _split_type,
    _split,
    attrs=SplitAttrs,
    gradient=gradients.split,
    pattern=INJECTIVE,
    traits=ALONG_AXIS,
    doc="a tuple of parts along an axis",
)


def split(data: Expr, indices_or_sections: Ints, axis: int = 0) -> Call:
    """A tuple: `data` cut along `axis` into that many equal sections or at those indices."""
    return call(SPLIT, (data,), SplitAttrs(freeze(indices_or_sections), axis))


@dataclass(frozen=True, slots=True)
class StridedSliceAttrs(Attrs):
    begin: tuple[int, ...]
    end: tuple[int, ...]
    strides: tuple[int, ...] | None
    slice_mode: str = "end"
    axes: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("begin", "end", "strides", "axes"):
            self._set(**{name: ints(getattr(self, name))})


def slices(attrs: StridedSliceAttrs, rank: int) -> tuple[slice, ...]:
    """One Python slice an axis. Raises TypeCheckError if the attributes do not fit."""
    if attrs.slice_mode not in ("end", "size"):
        raise TypeCheckError(f"slice_mode of strided_slice must be end or size, not {attrs.slice_mode}")
    axes = attrs.axes if attrs.axes else tuple(range(len(attrs.begin)))
    if len(attrs.begin) > rank or len(axes) != len(attrs.begin):
        raise TypeCheckError(
            f"begin of strided_slice must have at most {rank} numbers, one an axis, not {len(attrs.begin)}"
        )
    result = [slice(None)] * rank
    for number, axis in enumerate(axes):
        begin = attrs.begin[number]
        end = attrs.end[number] if number < len(attrs.end) else None
        stride = attrs.strides[number % len(attrs.strides)] if attrs.strides and attrs.slice_mode == "end" else 1
        if stride == 0:
            raise TypeCheckError("strides of strided_slice must not be 0")
        if attrs.slice_mode == "size" and end is not None:
            end = None if end < 0 or (begin < 0 <= begin + end) else begin + end
        result[check_axis("strided_slice", axis, rank)] = slice(begin, end, stride)
    return tuple(result)


@rule("strided_slice", 1)
def _strided_slice_type(attrs: StridedSliceAttrs, x: TensorType) -> Type:
    shape: list[Dim] = []
    for dim, part in zip(x.shape, slices(attrs, x.rank), strict=True):
        whole = part == slice(None)
        shape.append(len(range(*part.indices(dim))) if isinstance(dim, int) else dim if whole else ANY)
    return TensorType(shape, x.dtype)


STRIDED_SLICE = make_op(
    "strided_slice",
    1,
    _strided_slice_type,
    lambda attrs, values, result: np.asarray(values[0])[slices(attrs, np.ndim(values[0]))],
    attrs=StridedSliceAttrs,
    gradient=gradients.strided_slice,
    pattern=INJECTIVE,
    traits=MOVES | KEEPS_AXES,
    doc="elements begin, begin + stride, ... before end, along each axis",
)


def strided_slice(
    data: Expr,
    begin: Ints,
    end: Ints,
    strides: Ints | None = None,
    axes: Ints | None = None,
    slice_mode: str = "end",
) -> Call:
    """Part of `data`. With slice_mode="size", `end` holds sizes (-1: to the end) and strides are ignored."""
    attrs = StridedSliceAttrs(ints(begin) or (), ints(end) or (), ints(strides) or (1,), slice_mode, ints(axes))
    return call(STRIDED_SLICE, (data,), attrs)


@dataclass(frozen=True, slots=True)
class TakeAttrs(Attrs):
    batch_dims: int = 0
    axis: int | None = None
    mode: str = "clip"


@rule("take", 2)
def _take_type(attrs: TakeAttrs, x: TensorType, indices: TensorType) -> Type:
    if attrs.mode not in ("clip", "wrap", "fast"):
        raise TypeCheckError(f"mode of take must be clip, wrap or fast, not {attrs.mode}")
    if not indices.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the indices of take must be integers, not {indices.dtype}")
    if attrs.axis is None:
        return TensorType(indices.shape, x.dtype)
    axis = check_axis("take", attrs.axis, x.rank)
    batch = attrs.batch_dims % (indices.rank + 1) if attrs.batch_dims < 0 else attrs.batch_dims
    if batch > axis or batch > indices.rank:
        raise TypeCheckError(f"batch_dims of take must be at most axis {axis}, not {attrs.batch_dims}")
    return TensorType(x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1 :], x.dtype)


def _take(attrs: TakeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, indices = np.asarray(values[0]), np.asarray(values[1]).astype(np.int64)
    mode = "wrap" if attrs.mode == "wrap" else "clip"
    if attrs.axis is None:
        return np.take(x.reshape(-1), indices, mode=mode)
    axis = attrs.axis % x.ndim
    batch = attrs.batch_dims % (indices.ndim + 1)
    if batch == 0:
        return np.take(x, indices, axis=axis, mode=mode)
    parts = [np.take(x[at], indices[at], axis=axis - batch, mode=mode) for at in np.ndindex(*x.shape[:batch])]
    return np.stack(parts).reshape(x.shape[:axis] + indices.shape[batch:] + x.shape[axis + 1 :])


TAKE = make_op(
    "take",
    2,
    _take_type,
    _take,
    attrs=TakeAttrs,
    gradient=gradients.take,
    pattern=INJECTIVE,
    traits=MOVES,
    doc="elements by index along an axis; indices outside are clipped, or wrapped",
)


def take(data: Expr, indices: Expr, axis: int | None = None, batch_dims: int = 0, mode: str = "clip") -> Call:
    """Elements of `data` at `indices` along `axis`; of the flattened data without an axis."""
    return call(TAKE, (data, indices), TakeAttrs(batch_dims, axis, mode))


@dataclass(frozen=True, slots=True)
class PadAttrs(Attrs):
    pad_width: tuple[tuple[int, int], ...]
    pad_mode: str = "constant"


def _pad_type(types: Sequence[Type], attrs: PadAttrs, solver: Solver) -> Type | None:
    x = tensor("nn.pad", types, 0)
    if x is None:
        return None
    if attrs.pad_mode not in ("constant", "edge", "reflect"):
        raise TypeCheckError(f"pad_mode of nn.pad must be constant, edge or reflect, not {attrs.pad_mode}")
    if len(attrs.pad_width) != x.rank or any(len(pair) != 2 for pair in attrs.pad_width):
        raise TypeCheckError(f"pad_width of nn.pad must have one pair for each of {x.rank} axes, not {attrs.pad_width}")
    shape = [dim_add(dim, *pair) for dim, pair in zip(x.shape, attrs.pad_width, strict=True)]
    if any(isinstance(dim, int) and dim < 0 for dim in shape):
        raise TypeCheckError(
            f"pad_width of nn.pad must leave something of {show_shape(x.shape)}, not be {attrs.pad_width}"
        )
    return TensorType(shape, x.dtype)


def _pad(attrs: PadAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    # Negative widths crop.
    x = x[tuple(slice(max(-a, 0), d - max(-b, 0)) for d, (a, b) in zip(x.shape, attrs.pad_width, strict=True))]
    widths = [(max(a, 0), max(b, 0)) for a, b in attrs.pad_width]
    if attrs.pad_mode != "constant":
        return np.pad(x, widths, mode="edge" if attrs.pad_mode == "edge" else "reflect")
    return np.pad(x, widths, constant_values=np.asarray(values[1]).astype(x.dtype).item())


PAD = make_op(
    "nn.pad",
    2,
    _pad_type,
    _pad,
    attrs=PadAttrs,
    gradient=gradients.pad,
    pattern=INJECTIVE,
    traits=KEEPS_AXES,
    doc="elements added before and after along each axis; the second argument is the value",
)


def pad(data: Expr, pad_width: Sequence[Sequence[int]], pad_value: AnyValue = 0, pad_mode: str = "constant") -> Call:
    """`data` with (before, after) elements of `pad_value` added along each axis."""
    return call(PAD, (data, as_expr(pad_value)), PadAttrs(freeze(tuple(pad_width)), pad_mode))


@dataclass(frozen=True, slots=True)
class MirrorPadAttrs(Attrs):
    pad_width: tuple[tuple[int, int], ...]
    mode: str = "SYMMETRIC"


@rule("nn.mirror_pad", 1)
def _mirror_pad_type(attrs: MirrorPadAttrs, x: TensorType) -> Type:
    if attrs.mode.upper() not in ("SYMMETRIC", "REFLECT"):
        raise TypeCheckError(f"mode of nn.mirror_pad must be SYMMETRIC or REFLECT, not {attrs.mode}")
    if len(attrs.pad_width) != x.rank:
        raise TypeCheckError(
            f"pad_width of nn.mirror_pad must have one pair for each of {x.rank} axes, not {attrs.pad_width}"
        )
    widths = zip(x.shape, attrs.pad_width, strict=True)
    return TensorType([dim_add(dim, *pair) for dim, pair in widths], x.dtype)


MIRROR_PAD = make_op(
    "nn.mirror_pad",
    1,
    _mirror_pad_type,
    lambda attrs, values, result: np.pad(
        values[0], attrs.pad_width, mode="symmetric" if attrs.mode.upper() == "SYMMETRIC" else "reflect"
    ),
    attrs=MirrorPadAttrs,
    gradient=gradients.mirror_pad,
    pattern=INJECTIVE,
    traits=MOVES | KEEPS_AXES,
    doc="elements mirrored at the border, which SYMMETRIC repeats",
)


def mirror_pad(data: Expr, pad_width: Sequence[Sequence[int]], mode: str = "SYMMETRIC") -> Call:
    """`data` extended by its mirror image."""
    return call(MIRROR_PAD, (data,), MirrorPadAttrs(freeze(tuple(pad_width)), mode))


@dataclass(frozen=True, slots=True)
class ReverseAttrs(Attrs):
    axis: int | None = None


@rule("reverse", 1)
def _reverse_type(attrs: ReverseAttrs, x: TensorType) -> Type:
    check_axis("reverse", attrs.axis or 0, x.rank)
    return x


REVERSE = make_op(
    "reverse",
    1,
    _reverse_type,
    lambda attrs, values, result: np.flip(values[0], axis=attrs.axis or 0),
    attrs=ReverseAttrs,
    gradient=gradients.reverse,
    pattern=INJECTIVE,
    traits=PERMUTES | KEEPS_AXES,
    doc="elements in reverse order along an axis",
)


def reverse(data: Expr, axis: int) -> Call:
    """`data` in reverse order along `axis`."""
    return call(REVERSE, (data,), ReverseAttrs(axis))


OPS = (
    CONCATENATE,
    STACK,
    SPLIT,
    STRIDED_SLICE,
    TAKE,
    PAD,
    MIRROR_PAD,
    REVERSE,
)
