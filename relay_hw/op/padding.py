"""Padding operators: nn.pad, nn.mirror_pad, and nn.dilate between elements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import dim_add, dim_mul
from relay_hw.ir.expr import Call, Constant, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op.base import (
    KEEPS_AXES,
    MOVES,
    Array,
    Attrs,
    as_expr,
    call,
    freeze,
    rule,
    show_shape,
    tensor,
)
from relay_hw.op.gradients.common import (
    add_at,
    known_type,
    one_argument,
    ops,
    reshaped,
    sizes,
    zeros,
)
from relay_hw.op.gradients.selection import returned

__all__ = ["dilate", "mirror_pad", "pad"]


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


def _pad_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data get what lies inside; the value gets the sum of what lies outside."""
    x, value = call.args
    widths = call.attrs.pad_width
    if call.attrs.pad_mode != "constant":
        return _mirrored(call, x, adjoint, "edge" if call.attrs.pad_mode == "edge" else "reflect"), zeros(value)
    op = ops()
    inner = op.nn.pad(adjoint, [(-a, -b) for a, b in widths], 0)
    kept = op.nn.pad(adjoint, [(-max(a, 0), -max(b, 0)) for a, b in widths], 0)
    rest = op.cast_like(op.sum(adjoint) - op.sum(kept), value)
    return inner, reshaped(rest, sizes(call, value)) if value.tensor_type.rank else rest


def _mirrored(call: Call, x: Expr, g: Expr, mode: str) -> Expr:
    """Padding by copies picks along one axis after the other."""
    if known_type(x) is None:
        return returned(call, 0, g)
    shape = list(sizes(call, x))
    current = list(sizes(call, call))
    for axis, (before, after) in enumerate(call.attrs.pad_width):
        if not (before or after):
            continue
        places = np.arange(shape[axis])[max(-before, 0) : shape[axis] - max(-after, 0)]
        picked = np.pad(places, (max(before, 0), max(after, 0)), mode=mode)  # type: ignore[call-overload]
        current[axis] = shape[axis]
        g = add_at(x, current, Constant(picked.astype(np.int64)), g, axis, 1)
    return g


PAD = Op(
    "nn.pad",
    2,
    _pad_type,
    _pad,
    attrs_type=PadAttrs,
    gradient=_pad_gradient,
    pattern=FusionPattern.INJECTIVE,
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


_mirror_pad_gradient = one_argument(
    lambda call, x, g: _mirrored(call, x, g, "symmetric" if call.attrs.mode.upper() == "SYMMETRIC" else "reflect")
)


MIRROR_PAD = Op(
    "nn.mirror_pad",
    1,
    _mirror_pad_type,
    lambda attrs, values, result: np.pad(
        values[0], attrs.pad_width, mode="symmetric" if attrs.mode.upper() == "SYMMETRIC" else "reflect"
    ),
    attrs_type=MirrorPadAttrs,
    gradient=_mirror_pad_gradient,
    pattern=FusionPattern.INJECTIVE,
    traits=MOVES | KEEPS_AXES,
    doc="padding by elements mirrored at the border, which SYMMETRIC repeats",
)


def mirror_pad(data: Expr, pad_width: Sequence[Sequence[int]], mode: str = "SYMMETRIC") -> Call:
    """`data` extended by its mirror image."""
    return call(MIRROR_PAD, (data,), MirrorPadAttrs(freeze(tuple(pad_width)), mode))


@dataclass(frozen=True, slots=True)
class DilateAttrs(Attrs):
    strides: tuple[int, ...]
    dilation_value: float = 0.0


@rule("nn.dilate", 1)
def _dilate_type(attrs: DilateAttrs, x: TensorType) -> Type:
    if len(attrs.strides) != x.rank or any(step < 1 for step in attrs.strides):
        raise TypeCheckError(
            f"strides of nn.dilate must be at least 1, one for each of {x.rank} axes, not {attrs.strides}"
        )
    sizes_now = [dim if dim == 0 else dim_add(dim_mul(dim_add(dim, -1), step), 1) for dim, step in _steps(attrs, x)]
    return TensorType(sizes_now, x.dtype)


def _steps(attrs: DilateAttrs, x: TensorType) -> list[tuple[Dim, int]]:
    return list(zip(x.shape, attrs.strides, strict=True))


def _dilate(attrs: DilateAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    shape = [max((size - 1) * step + 1, 0) for size, step in zip(x.shape, attrs.strides, strict=True)]
    found = np.full(shape, np.asarray(attrs.dilation_value).astype(x.dtype))
    found[tuple(slice(None, None, step) for step in attrs.strides)] = x
    return found


def _undilated(attrs: DilateAttrs, value: Expr) -> Expr:
    """The elements between which others lie."""
    rank = len(attrs.strides)
    return ops().strided_slice(value, (0,) * rank, (np.iinfo(np.int32).max,) * rank, attrs.strides)


DILATE = Op(
    "nn.dilate",
    1,
    _dilate_type,
    _dilate,
    attrs_type=DilateAttrs,
    pattern=FusionPattern.INJECTIVE,
    gradient=one_argument(lambda call, x, g: _undilated(call.attrs, g)),
    traits=KEEPS_AXES,
    doc="the elements apart by strides, with one value between them",
)


def dilate(data: Expr, strides: Sequence[int], dilation_value: float = 0.0) -> Call:
    """`data` with its elements `strides` apart along each axis and `dilation_value` between them."""
    return call(DILATE, (data,), DilateAttrs(tuple(strides), float(dilation_value)))


OPS = (PAD, MIRROR_PAD, DILATE)
