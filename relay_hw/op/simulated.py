"""Simulated quantization in floating point: rounds values to integer grids or small formats.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes. Derivatives pass straight through the rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    KEEPS_AXES,
    Array,
    Attrs,
    call,
    check_axis,
    rule,
)
from relay_hw.op.gradients.common import (
    choose,
    ops,
    zeros,
)
from relay_hw.op.number_formats import FORMATS, to_format
from relay_hw.support.names import one_of

KINDS = (0, 1, 2, 3)  # identity, input, weight, activation

ROUNDINGS = ("round", "floor", "ceil", "trunc", "half_even", "passthrough")


@dataclass(frozen=True, slots=True)
class SimulatedQuantizeAttrs(Attrs):
    kind: int
    sign: bool = True
    rounding: str = "round"


@dataclass(frozen=True, slots=True)
class SimulatedFormatAttrs(Attrs):
    format: str
    scale: float = 1.0
    axis: int = 1


@rule("relay.op.annotation.simulated_quantize", 4)
def _quantize_type(
    attrs: SimulatedQuantizeAttrs, x: TensorType, scale: TensorType, low: TensorType, high: TensorType
) -> Type:
    name = "relay.op.annotation.simulated_quantize"
    if not x.dtype.startswith("float"):
        raise TypeCheckError(f"the data of {name} must be of floats, not {x.dtype}")
    if attrs.kind not in KINDS or attrs.rounding not in ROUNDINGS:
        known = f"{', '.join(map(str, KINDS))} and {', '.join(ROUNDINGS)}"
        raise TypeCheckError(
            f"kind and rounding of {name} must be among {known}, not {attrs.kind} and {attrs.rounding}"
        )
    if scale.rank > x.rank or low.rank or high.rank:
        raise TypeCheckError(f"dom_scale of {name} must be a scalar or have the data's axes, and its limits be scalars")
    return x


def _round(x: Array, rounding: str) -> Array:
    match rounding:
        case "floor":
            return np.floor(x)
        case "ceil":
            return np.ceil(x)
        case "trunc":
            return np.trunc(x)
        case "half_even":
            return np.rint(x)
        case "passthrough":
            return x
        case _:
            return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def _quantize(attrs: SimulatedQuantizeAttrs, values: Sequence[Array], result: Type) -> Array:
    x, scale, low, high = (np.asarray(value) for value in values)
    if attrs.kind == 0:
        return x
    clipped = np.minimum(np.maximum(x / scale, low), high)
    return (_round(clipped, attrs.rounding) * scale).astype(x.dtype)


def _quantize_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint where the data lies within the limits; scale and limits get none."""
    x, scale, low, high = call.args
    if call.attrs.kind == 0:
        return adjoint, zeros(scale), zeros(low), zeros(high)
    op = ops()
    is_inside = op.logical_and(op.greater_equal(x, low * scale), op.less_equal(x, high * scale))
    return choose(is_inside, adjoint, like=x), zeros(scale), zeros(low), zeros(high)


def _same_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint as it is."""
    return (adjoint,)


SIMULATED_QUANTIZE = Op(
    "relay.op.annotation.simulated_quantize",
    4,
    _quantize_type,
    _quantize,
    attrs_type=SimulatedQuantizeAttrs,
    gradient=_quantize_gradient,
    pattern=FusionPattern.OPAQUE,
    traits=KEEPS_AXES,
    doc="round(clip(data / dom_scale, clip_min, clip_max)) * dom_scale; data itself for kind 0",
)


@rule("simulated.format", 1)
def _format_type(attrs: SimulatedFormatAttrs, x: TensorType) -> Type:
    name = "simulated.format"
    if not x.dtype.startswith("float"):
        raise TypeCheckError(f"the data of {name} must be of floats, not {x.dtype}")
    if attrs.format not in FORMATS:
        raise TypeCheckError(one_of(f"format of {name}", FORMATS, attrs.format))
    if not attrs.scale > 0:
        raise TypeCheckError(f"scale of {name} must be positive, not {attrs.scale}")
    if x.rank:
        check_axis(name, attrs.axis, x.rank)
    return x


def _format(attrs: SimulatedFormatAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0])
    return to_format(x, attrs.format, attrs.scale, attrs.axis) if x.ndim else x


SIMULATED_FORMAT = Op(
    "simulated.format",
    1,
    _format_type,
    _format,
    attrs_type=SimulatedFormatAttrs,
    gradient=_same_gradient,
    pattern=FusionPattern.OPAQUE,
    traits=ALONG_AXIS,
    doc="data rounded to a small floating-point format",
)


def simulated_quantize(
    data: Expr,
    dom_scale: Expr,
    clip_min: Expr,
    clip_max: Expr,
    kind: int,
    sign: bool = True,
    rounding: str = "round",
) -> Call:
    """`data` rounded to multiples of `dom_scale` from `clip_min` to `clip_max` times it."""
    args = (data, dom_scale, clip_min, clip_max)
    return call(SIMULATED_QUANTIZE, args, SimulatedQuantizeAttrs(kind, sign, rounding))


def simulated_format(data: Expr, format: str, scale: float = 1.0, axis: int = 1) -> Call:
    """`data` rounded to `format` after division by scale, or in blocks of 32 numbers along `axis`."""
    return call(SIMULATED_FORMAT, (data,), SimulatedFormatAttrs(format, scale, axis))


OPS = (SIMULATED_QUANTIZE, SIMULATED_FORMAT)
