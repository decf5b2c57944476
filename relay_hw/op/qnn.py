"""The QNN dialect: a quantized tensor q stands for scale * (q - zero_point).

Scales are float32 and zero points int32, one for the tensor or one for each index along an axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    Array,
    Attrs,
    Ints,
    broadcast_shapes,
    call,
    check_axis,
    expect,
    full_padding,
    make_op,
    matmul,
    narrow,
    out_type,
    pad_spatial,
    permutation,
    round_half_away,
    show,
    split_padding,
    spread,
    tensor,
    tensor_tuple,
)
from relay_hw.op.conv import CONV2D, Conv2DAttrs, convolve
from relay_hw.op.dense import DenseAttrs, along, dense_relation
from relay_hw.op.elementwise import fixed_point_multiply_value
from relay_hw.op.transform import ConcatenateAttrs, concatenate_type

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


@dataclass(frozen=True, slots=True)
class BroadcastAttrs(Attrs):
    lhs_axis: int = -1
    rhs_axis: int = -1


def _param(name: str, solver: Solver, what: str, given: Type, dtype: str, size: Dim) -> None:
    """A scale or zero point: a scalar, one number, or one for each of `size` indices."""
    if isinstance(given, TensorType):
        if given.dtype == dtype and (given.rank == 0 or given.shape == (1,)):
            return
        if given.rank > 1:
            raise TypeCheckError(f"the {what} of {name} must be a scalar or a vector, not {show(given)}")
    expect(name, solver, what, given, TensorType((size,), dtype))


def _scale_and_zero(name: str, solver: Solver, what: str, types: Sequence[Type], size: Dim) -> None:
    _param(name, solver, f"{what} scale", types[0], "float32", size)
    _param(name, solver, f"{what} zero point", types[1], "int32", size)


def _axis_size(name: str, axis: int, data: TensorType) -> Dim:
    return data.shape[check_axis(name, axis, data.rank)] if data.rank else 1


def _quantized(name: str, dtype: str) -> None:
    if dtype not in QUANTIZED:
        raise TypeCheckError(f"the quantized element type of {name} must be one of {', '.join(QUANTIZED)}, not {dtype}")


def _fit(value: AnyValue, axis: int, rank: int) -> Array:
    """A scale or zero point, shaped so that it broadcasts along `axis`."""
    value = np.asarray(value)
    return value.reshape(()) if value.size == 1 else along(value, axis, rank)


def _saturate(value: Array, dtype: str) -> Array:
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
    _quantized(name, attrs.out_dtype)
    _scale_and_zero(name, solver, "output", types[1:3], _axis_size(name, attrs.axis, data))
    return TensorType(data.shape, attrs.out_dtype)


def quantize_value(x: Array, scale: AnyValue, zero_point: AnyValue, attrs: QuantizeAttrs) -> Array:
    """clip(round(x / scale) + zero_point); the quotient and its rounding are float32."""
    with np.errstate(all="ignore"):
        quotient = x.astype(np.float32) / _fit(scale, attrs.axis, x.ndim).astype(np.float32)
        rounded = np.rint(quotient) if attrs.rounding == "half_even" else round_half_away(quotient)
    info = np.iinfo(attrs.out_dtype)
    bound = float(2 * (info.max - info.min))
    whole = np.clip(np.nan_to_num(rounded.astype(np.float64)), -bound, bound).astype(np.int64)
    return _saturate(whole + _fit(zero_point, attrs.axis, x.ndim), attrs.out_dtype)


QUANTIZE = make_op(
    "qnn.quantize",
    3,
    _quantize_type,
    lambda attrs, values, result: quantize_value(np.asarray(values[0]), values[1], values[2], attrs),
    attrs=QuantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
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
    _quantized(name, data.dtype)
    _scale_and_zero(name, solver, "input", types[1:3], _axis_size(name, attrs.axis, data))
    return TensorType(data.shape, attrs.out_dtype or "float32")


def dequantize_value(q: Array, scale: AnyValue, zero_point: AnyValue, axis: int, dtype: str = "float32") -> Array:
    """(q - zero_point) * scale in float32."""
    shifted = (q.astype(np.int64) - _fit(zero_point, axis, q.ndim)).astype(np.float32)
    return (shifted * _fit(scale, axis, q.ndim).astype(np.float32)).astype(dtype, copy=False)


DEQUANTIZE = make_op(
    "qnn.dequantize",
    3,
    _dequantize_type,
    lambda attrs, values, result: dequantize_value(
        np.asarray(values[0]), values[1], values[2], attrs.axis, attrs.out_dtype or "float32"
    ),
    attrs=DequantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
    doc="(q - zero_point) * scale",
)


def dequantize(
    data: Expr, input_scale: Expr, input_zero_point: Expr, axis: int = -1, out_dtype: str = "float32"
) -> Call:
    """The float values that quantized `data` stands for."""
    return call(DEQUANTIZE, (data, input_scale, input_zero_point), DequantizeAttrs(out_dtype, axis))


def _requantize_type(types: Sequence[Type], attrs: RequantizeAttrs, solver: Solver) -> Type | None:
    name = "qnn.requantize"
    data = tensor(name, types, 0)
    if data is None:
        return None
    _quantized(name, data.dtype)
    if attrs.rounding not in ("None", "UPWARD", "TONEAREST"):
        raise TypeCheckError(f"rounding of {name} must be UPWARD, TONEAREST or None, not {attrs.rounding}")
    out_dtype = attrs.out_dtype or "int8"
    _quantized(name, out_dtype)
    _scale_and_zero(name, solver, "input", types[1:3], _axis_size(name, attrs.axis, data))
    _scale_and_zero(name, solver, "output", types[3:5], 1)
    return TensorType(data.shape, out_dtype)


def fixed_point(scale: Array) -> tuple[Array, Array]:
    """Q31 multipliers and shifts: scale = multiplier * 2**(shift - 31)."""
    significand, exponent = np.frexp(np.asarray(scale, np.float64))
    multiplier = np.rint(significand * 2**31).astype(np.int64)
    full = multiplier == 2**31
    return np.where(full, 2**30, multiplier), exponent.astype(np.int64) + full


def _nearest_away(x: Array, multiplier: Array, shift: Array) -> Array:
    total = 31 - shift
    product = x.astype(np.int64) * multiplier
    return (product + (np.int64(1) << (total - 1)) - (product < 0)) >> total


def requantize_value(
    q: Array, scales: tuple[AnyValue, AnyValue], zeros: tuple[AnyValue, AnyValue], attrs: RequantizeAttrs
) -> Array:
    """zeros[1] + scales[0] / scales[1] * (q - zeros[0]), exactly in fixed point or in the float type asked for."""
    shifted = q.astype(np.int64) - _fit(zeros[0], attrs.axis, q.ndim)
    ratio = _fit(scales[0], attrs.axis, q.ndim).astype(np.float64) / np.asarray(scales[1], np.float64).reshape(())
    if attrs.compute_dtype.startswith("float"):
        product = shifted.astype(attrs.compute_dtype) * ratio.astype(attrs.compute_dtype)
        rounded = np.floor(product + 0.5) if attrs.rounding != "TONEAREST" else round_half_away(product)
        scaled = rounded.astype(np.int64)
    elif np.all(ratio == 1):
        scaled = shifted
    else:
        multiplier, shift = fixed_point(ratio)
        rescale = _nearest_away if attrs.rounding == "TONEAREST" else fixed_point_multiply_value
        scaled = rescale(shifted, multiplier, shift)
    return _saturate(scaled + np.asarray(zeros[1]).reshape(()), attrs.out_dtype or "int8")


REQUANTIZE = make_op(
    "qnn.requantize",
    5,
    _requantize_type,
    lambda attrs, values, result: requantize_value(
        np.asarray(values[0]), (values[1], values[3]), (values[2], values[4]), attrs
    ),
    attrs=RequantizeAttrs,
    pattern=FusionPattern.ELEMWISE,
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
    """Quantized `data` at another scale and zero point. Rounding None means UPWARD: ties go up."""
    args = (data, input_scale, input_zero_point, output_scale, output_zero_point)
    return call(REQUANTIZE, args, RequantizeAttrs(axis, rounding, compute_dtype, out_dtype))


def _product_params(name: str, types: Sequence[Type], solver: Solver, units: Dim) -> None:
    """Arguments 2 to 5: input and kernel zero points, input and kernel scales."""
    for at, what, dtype, size in (
        (2, "input zero point", "int32", 1),
        (3, "kernel zero point", "int32", units),
        (4, "input scale", "float32", 1),
        (5, "kernel scale", "float32", units),
    ):
        _param(name, solver, what, types[at], dtype, size)


def _conv2d_type(types: Sequence[Type], attrs: Conv2DAttrs, solver: Solver) -> Type | None:
    result = CONV2D.relation(types[:2], attrs, solver)
    if not isinstance(result, TensorType):
        return result
    units = result.shape[(attrs.out_layout or attrs.data_layout).index("C")]
    _product_params("qnn.conv2d", types, solver, units)
    return TensorType(result.shape, attrs.out_dtype or "int32")


def _conv2d(attrs: Conv2DAttrs, values: Sequence[Array], result: Type) -> Array:
    name, data, weight = "qnn.conv2d", np.asarray(values[0]), np.asarray(values[1])
    x = data.astype(np.int64) - np.asarray(values[2]).reshape(())
    w = weight.astype(np.int64) - _fit(values[3], attrs.kernel_layout.index("O"), weight.ndim)
    x = x.transpose(permutation(name, attrs.data_layout, "NCHW"))
    w = w.transpose(permutation(name, attrs.kernel_layout, "OIHW"))
    # Padding with the zero point is padding the difference with 0.
    padded = pad_spatial(x, *split_padding(name, attrs.padding, 2))
    value = convolve(padded, w, attrs.strides, attrs.dilation, attrs.groups, out_type(result).dtype)
    return value.transpose(permutation(name, "NCHW", attrs.out_layout or attrs.data_layout))


QNN_CONV2D = make_op(
    "qnn.conv2d",
    6,
    _conv2d_type,
    _conv2d,
    attrs=Conv2DAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    doc="convolution of (data - zero point) with (weight - zero point) in int32; padding stands for 0",
)


def conv2d(
    data: Expr,
    kernel: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    kernel_size: Ints,
    channels: int,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str = "",
    out_dtype: str = "int32",
) -> Call:
    """int32 convolution of quantized data; its scale is the product of both scales, its zero point 0."""
    attrs = Conv2DAttrs(
        spread(strides, 2), full_padding(padding, 2), spread(dilation, 2), groups, channels, spread(kernel_size, 2),
        data_layout, kernel_layout, out_layout, out_dtype,
    )  # fmt: skip
    args = (data, kernel, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return call(QNN_CONV2D, args, attrs)


def _dense_type(types: Sequence[Type], attrs: DenseAttrs, solver: Solver) -> Type | None:
    result = dense_relation("qnn.dense", types[:2], attrs, solver)
    if result is None:
        return None
    _product_params("qnn.dense", types, solver, result.shape[-1])
    return TensorType(result.shape, attrs.out_dtype or "int32")


def _dense(attrs: DenseAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0]).astype(np.int64) - np.asarray(values[2]).reshape(())
    w = np.asarray(values[1]).astype(np.int64) - _fit(values[3], 0, 2)
    return matmul(x, w.T, out_type(result).dtype)


QNN_DENSE = make_op(
    "qnn.dense",
    6,
    _dense_type,
    _dense,
    attrs=DenseAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    doc="(data - zero point) times the transposed (weight - zero point) in int32",
)


def dense(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    units: int,
    out_dtype: str = "int32",
) -> Call:
    """int32 product of quantized data and weight."""
    args = (data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return call(QNN_DENSE, args, DenseAttrs(units, out_dtype))


def _binary_type(name: str):
    def relation(types: Sequence[Type], attrs: BroadcastAttrs, solver: Solver) -> Type | None:
        lhs, rhs = tensor(name, types, 0), tensor(name, types, 1)
        if lhs is None or rhs is None:
            return None
        _quantized(name, lhs.dtype)
        if lhs.dtype != rhs.dtype:
            raise TypeCheckError(
                f"the element types of {name}'s arguments must be equal, not {lhs.dtype} and {rhs.dtype}"
            )
        _scale_and_zero(name, solver, "left", types[2:4], _axis_size(name, attrs.lhs_axis, lhs))
        _scale_and_zero(name, solver, "right", types[4:6], _axis_size(name, attrs.rhs_axis, rhs))
        _scale_and_zero(name, solver, "output", types[6:8], 1)
        return TensorType(broadcast_shapes(name, (lhs.shape, rhs.shape)), lhs.dtype)

    return relation


def _to_output(q: Array, values: Sequence[AnyValue], at: int, axis: int) -> Array:
    """One side in int32 at the output's scale and zero point."""
    scale, zero, out_scale, out_zero = values[at], values[at + 1], values[6], values[7]
    if np.array_equal(scale, out_scale) and np.array_equal(zero, out_zero):
        return q.astype(np.int64)
    attrs = RequantizeAttrs(axis, "None", "None", "int32")
    return requantize_value(q, (scale, out_scale), (zero, out_zero), attrs).astype(np.int64)


def _binary(name: str, sign: int, doc: str) -> Op:
    def meaning(attrs: BroadcastAttrs, values: Sequence[Array], result: Type) -> Array:
        lhs = _to_output(np.asarray(values[0]), values, 2, attrs.lhs_axis)
        rhs = _to_output(np.asarray(values[1]), values, 4, attrs.rhs_axis)
        zero = np.asarray(values[7]).astype(np.int64).reshape(())
        return _saturate(lhs + sign * rhs - sign * zero, out_type(result).dtype)

    relation = _binary_type(name)
    return make_op(name, 8, relation, meaning, attrs=BroadcastAttrs, pattern=FusionPattern.BROADCAST, doc=doc)


def _mul(attrs: BroadcastAttrs, values: Sequence[Array], result: Type) -> Array:
    lhs, rhs = np.asarray(values[0]), np.asarray(values[1])
    left = lhs.astype(np.int64) - _fit(values[3], attrs.lhs_axis, lhs.ndim)
    right = rhs.astype(np.int64) - _fit(values[5], attrs.rhs_axis, rhs.ndim)
    product = narrow(left * right, "int32")
    scale = np.asarray(values[2], np.float32).reshape(()) * np.asarray(values[4], np.float32).reshape(())
    record = RequantizeAttrs(-1, "None", "None", out_type(result).dtype)
    return requantize_value(product, (scale, values[6]), (np.int32(0), values[7]), record)


QNN_ADD = _binary("qnn.add", 1, "sum of two quantized tensors, quantized")
QNN_SUBTRACT = _binary("qnn.subtract", -1, "difference of two quantized tensors, quantized")
QNN_MUL = make_op(
    "qnn.mul",
    8,
    _binary_type("qnn.mul"),
    _mul,
    attrs=BroadcastAttrs,
    pattern=FusionPattern.BROADCAST,
    doc="product of two quantized tensors, quantized",
)


def _build_binary(op: Op):
    def build(
        lhs: Expr,
        rhs: Expr,
        lhs_scale: Expr,
        lhs_zero_point: Expr,
        rhs_scale: Expr,
        rhs_zero_point: Expr,
        output_scale: Expr,
        output_zero_point: Expr,
        lhs_axis: int = -1,
        rhs_axis: int = -1,
    ) -> Call:
        args = (lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point)
        return call(op, args, BroadcastAttrs(lhs_axis, rhs_axis))

    build.__doc__ = op.doc
    build.__name__ = op.name.rsplit(".", 1)[-1]
    return build


add = _build_binary(QNN_ADD)
subtract = _build_binary(QNN_SUBTRACT)
mul = _build_binary(QNN_MUL)


def _concatenate_type(types: Sequence[Type], attrs: ConcatenateAttrs, solver: Solver) -> Type | None:
    name = "qnn.concatenate"
    parts = tensor_tuple(name, types)
    if parts is None:
        return None
    for at, what, dtype in ((1, "input scales", "float32"), (2, "input zero points", "int32")):
        given = types[at]
        if isinstance(given, TupleType) and len(given.fields) != len(parts):
            raise TypeCheckError(f"the {what} of {name} must be {len(parts)}, not {len(given.fields)}")
        solver.unify(given, TupleType([TensorType((), dtype)] * len(parts)))
    _scale_and_zero(name, solver, "output", types[3:5], 1)
    return concatenate_type(name, attrs.axis, parts)


def _concatenate(attrs: ConcatenateAttrs, values: Sequence[AnyValue], result: Type) -> Array:
    record = RequantizeAttrs(-1, "None", "None", out_type(result).dtype)
    parts = [
        requantize_value(np.asarray(q), (scale, values[3]), (zero, values[4]), record)
        for q, scale, zero in zip(values[0], values[1], values[2], strict=True)
    ]
    return np.concatenate(parts, axis=attrs.axis)


QNN_CONCATENATE = make_op(
    "qnn.concatenate",
    5,
    _concatenate_type,
    _concatenate,
    attrs=ConcatenateAttrs,
    pattern=FusionPattern.INJECTIVE,
    doc="quantized tensors brought to one scale and zero point and joined",
)


def concatenate(
    data: Expr | Sequence[Expr],
    input_scales: Expr | Sequence[Expr],
    input_zero_points: Expr | Sequence[Expr],
    output_scale: Expr,
    output_zero_point: Expr,
    axis: int,
) -> Call:
    """Quantized tensors joined along `axis` at the output's scale and zero point."""
    groups = (data, input_scales, input_zero_points)
    tuples = [group if isinstance(group, Expr) else TupleExpr(tuple(group)) for group in groups]
    return call(QNN_CONCATENATE, (*tuples, output_scale, output_zero_point), ConcatenateAttrs(axis))


OPS = (QUANTIZE, DEQUANTIZE, REQUANTIZE, QNN_CONV2D, QNN_DENSE, QNN_ADD, QNN_SUBTRACT, QNN_MUL, QNN_CONCATENATE)
