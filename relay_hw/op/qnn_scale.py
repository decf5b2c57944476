"""The QNN dialect, conversions: quantize, dequantize, requantize.

A quantized tensor q stands for scale * (q - zero_point). Scales are float32 and zero points int32, one for the
tensor or one for each index along an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import Dim, TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    Array,
    Attrs,
    call,
    check_axis,
    expect,
    round_half_away,
    show,
    tensor,
)
from relay_hw.op.dense import along
from relay_hw.op.elementwise import fixed_point_multiply_value
from relay_hw.support.names import one_of

REQUANTIZE_ROUNDINGS = ("None", "UPWARD", "TONEAREST", "TONEAREST_EVEN")
QUANTIZED = ("int8", "uint8", "int16", "uint16", "int32", "int64")


@dataclass(frozen=True, slots=True)
class QuantizeAttrs(Attrs):
    out_dtype: str
    axis: int = -1
    rounding: str = "half_away"


@dataclass(frozen=True, slots=True)
class DequantizeAttrs(Attrs):
    out_dtype: str = "float32"
    axis: int = -1


@dataclass(frozen=True, slots=True)
class RequantizeAttrs(Attrs):
    axis: int = -1
    rounding: str = "None"
    compute_dtype: str = "None"
    out_dtype: str | None = None


def check_param(name: str, solver: Solver, what: str, given: Type, dtype: str, size: Dim) -> None:
    """A scale or zero point: a scalar, one number, or one for each of `size` indices."""
    if isinstance(given, TensorType):
        if given.dtype == dtype and (given.rank == 0 or given.shape == (1,)):
            return
        if given.rank > 1:
            raise TypeCheckError(f"the {what} of {name} must be a scalar or a vector, not {show(given)}")
    expect(name, solver, what, given, TensorType((size,), dtype))


def check_params(name: str, solver: Solver, what: str, types: Sequence[Type], size: Dim) -> None:
    """Raise TypeCheckError unless these are a scale and a zero point for `size` indices."""
    check_param(name, solver, f"{what} scale", types[0], "float32", size)
    check_param(name, solver, f"{what} zero point", types[1], "int32", size)


def axis_size(name: str, axis: int, data: TensorType) -> Dim:
    """The size of the axis that parameters follow; 1 for a scalar."""
    return data.shape[check_axis(name, axis, data.rank)] if data.rank else 1


def check_quantized(name: str, dtype: str) -> None:
    """Raise TypeCheckError unless quantized tensors may have this element type."""
    if dtype not in QUANTIZED:
        raise TypeCheckError(one_of(f"the quantized element type of {name}", QUANTIZED, dtype))


def fit(value: AnyValue, axis: int, rank: int) -> Array:
    """A scale or zero point reshaped to broadcast along `axis`."""
    value = np.asarray(value)
    return value.reshape(()) if value.size == 1 else along(value, axis, rank)


def saturate(value: Array, dtype: str) -> Array:
    """Integers limited to the range of `dtype`."""
    info = np.iinfo(dtype)
    return np.clip(value, info.min, info.max).astype(dtype)


def _quantize_type(types: Sequence[Type], attrs: QuantizeAttrs, solver: Solver) -> Type | None:
    name = "qnn.quantize"
    data = tensor(name, types, 0)
    if data is None:
        return None
    if data.dtype not in ("float32", "float16"):
        raise TypeCheckError(f"the data of {name} must be float32 or float16, not {data.dtype}")
    if attrs.rounding not in ("half_away", "half_even"):
        raise TypeCheckError(f"rounding of {name} must be half_away or half_even, not {attrs.rounding}")
    check_quantized(name, attrs.out_dtype)
    check_params(name, solver, "output", types[1:3], axis_size(name, attrs.axis, data))
    return TensorType(data.shape, attrs.out_dtype)


def quantize_value(x: Array, scale: AnyValue, zero_point: AnyValue, attrs: QuantizeAttrs) -> Array:
    """clip(round(x / scale) + zero_point); the quotient and its rounding are float32."""
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float32) / fit(scale, attrs.axis, x.ndim).astype(np.float32)
        rounded = np.rint(quotient) if attrs.rounding == "half_even" else round_half_away(quotient)
    info = np.iinfo(attrs.out_dtype)
    bound = float(2 * (info.max - info.min))
    whole = np.clip(np.nan_to_num(rounded.astype(np.float64)), -bound, bound).astype(np.int64)
    return saturate(whole + fit(zero_point, attrs.axis, x.ndim), attrs.out_dtype)


QUANTIZE = Op(
    "qnn.quantize",
    3,
    _quantize_type,
    lambda attrs, values, result: quantize_value(np.asarray(values[0]), values[1], values[2], attrs),
    attrs_type=QuantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ALONG_AXIS,
    doc="clip(round(x / scale) + zero_point); ties away from zero, or to even",
)


def quantize(
    data: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    out_dtype: str = "int8",
    rounding: str = "half_away",
) -> Call:
    """Float `data` as integers of type `out_dtype`."""
    return call(QUANTIZE, (data, output_scale, output_zero_point), QuantizeAttrs(out_dtype, axis, rounding))


def _dequantize_type(types: Sequence[Type], attrs: DequantizeAttrs, solver: Solver) -> Type | None:
    name = "qnn.dequantize"
    data = tensor(name, types, 0)
    if data is None:
        return None
    check_quantized(name, data.dtype)
    check_params(name, solver, "input", types[1:3], axis_size(name, attrs.axis, data))
    return TensorType(data.shape, attrs.out_dtype or "float32")


def dequantize_value(q: Array, scale: AnyValue, zero_point: AnyValue, axis: int, dtype: str = "float32") -> Array:
    """(q - zero_point) * scale in float32."""
    shifted = (q.astype(np.int64) - fit(zero_point, axis, q.ndim)).astype(np.float32)
    return (shifted * fit(scale, axis, q.ndim).astype(np.float32)).astype(dtype, copy=False)


DEQUANTIZE = Op(
    "qnn.dequantize",
    3,
    _dequantize_type,
    lambda attrs, values, result: dequantize_value(
        np.asarray(values[0]), values[1], values[2], attrs.axis, attrs.out_dtype or "float32"
    ),
    attrs_type=DequantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ALONG_AXIS,
    doc="(q - zero_point) * scale",
)


def dequantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, out_dtype: str = "float32"
) -> Call:
    """The float values of quantized `data`."""
    return call(DEQUANTIZE, (data, input_scale, input_zero_point), DequantizeAttrs(out_dtype, axis))


def _requantize_type(types: Sequence[Type], attrs: RequantizeAttrs, solver: Solver) -> Type | None:
    name = "qnn.requantize"
    data = tensor(name, types, 0)
    if data is None:
        return None
    check_quantized(name, data.dtype)
    if attrs.rounding not in REQUANTIZE_ROUNDINGS:
        raise TypeCheckError(
            f"rounding of {name} must be UPWARD, TONEAREST, TONEAREST_EVEN or None, not {attrs.rounding}"
        )
    out_dtype = attrs.out_dtype or "int8"
    check_quantized(name, out_dtype)
    check_params(name, solver, "input", types[1:3], axis_size(name, attrs.axis, data))
    check_params(name, solver, "output", types[3:5], 1)
    return TensorType(data.shape, out_dtype)


def fixed_point(scale: Array) -> tuple[Array, Array]:
    """Q31 multipliers and shifts: scale = multiplier * 2**(shift - 31)."""
    significand, exponent = np.frexp(np.asarray(scale, np.float64))
    multiplier = np.rint(significand * 2**31).astype(np.int64)
    full = multiplier == 2**31
    return np.where(full, 2**30, multiplier), exponent.astype(np.int64) + full


def requantize_value(
    q: Array, scales: tuple[AnyValue, AnyValue], zeros: tuple[AnyValue, AnyValue], attrs: RequantizeAttrs
) -> Array:
    """zeros[1] + scales[0] / scales[1] * (q - zeros[0]), exactly in fixed point or in the float type asked for."""
    shifted = q.astype(np.int64) - fit(zeros[0], attrs.axis, q.ndim)
    ratio = fit(scales[0], attrs.axis, q.ndim).astype(np.float64) / np.asarray(scales[1], np.float64).reshape(())
    if attrs.compute_dtype.startswith("float"):
        product = shifted.astype(attrs.compute_dtype) * ratio.astype(attrs.compute_dtype)
        scaled = _rounded(product, attrs.rounding).astype(np.int64)
    elif np.all(ratio == 1):
        scaled = shifted
    else:
        multiplier, shift = fixed_point(ratio)
        away, even = attrs.rounding == "TONEAREST", attrs.rounding == "TONEAREST_EVEN"
        scaled = fixed_point_multiply_value(shifted, multiplier, shift, away, even)
    return saturate(scaled + np.asarray(zeros[1]).reshape(()), attrs.out_dtype or "int8")


def _rounded(value: Array, rounding: str) -> Array:
    if rounding == "TONEAREST_EVEN":
        return np.rint(value)
    return round_half_away(value) if rounding == "TONEAREST" else np.floor(value + 0.5)


REQUANTIZE = Op(
    "qnn.requantize",
    5,
    _requantize_type,
    lambda attrs, values, result: requantize_value(
        np.asarray(values[0]), (values[1], values[3]), (values[2], values[4]), attrs
    ),
    attrs_type=RequantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ALONG_AXIS,
    doc="from one scale and zero point to another by a Q31 multiplication",
)


def requantize(
    data: Expr,
    input_scale: Expr,
    input_zero_point: Expr,
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int = -1,
    rounding: str = "None",
    compute_dtype: str = "None",
    out_dtype: str = "int8",
) -> Call:
    """Quantized `data` at another scale and zero point. Rounding None means UPWARD: ties go up.

    TONEAREST sends ties away from zero, TONEAREST_EVEN to the even neighbour.
    """
    args = (data, input_scale, input_zero_point, output_scale, output_zero_point)
    return call(REQUANTIZE, args, RequantizeAttrs(axis, rounding, compute_dtype, out_dtype))


OPS = (
    QUANTIZE,
    DEQUANTIZE,
    REQUANTIZE,
)
