"""The QNN dialect, arithmetic on quantized tensors: conv2d, dense, add, subtract, mul, concatenate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver, TypeRelation
from relay_hw.ir.expr import Tuple as TupleExpr
from relay_hw.ir.types import Dim, TensorType, TupleType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    ANCHOR,
    Array,
    Attrs,
    Ints,
    broadcast_shapes,
    call,
    full_padding,
    matmul,
    narrow,
    out_type,
    pad_spatial,
    permutation,
    split_padding,
    spread,
    tensor,
    tensor_tuple,
)
from relay_hw.op.conv import CONV2D, Conv2DAttrs, convolve
from relay_hw.op.conv_transpose import Conv2DTransposeAttrs
from relay_hw.op.dense import DenseAttrs, dense_relation
from relay_hw.op.join import ConcatenateAttrs, concatenate_type
from relay_hw.op.qnn_scale import (
    RequantizeAttrs,
    axis_size,
    check_param,
    check_params,
    check_quantized,
    fit,
    requantize_value,
    saturate,
)


@dataclass(frozen=True, slots=True)
class BroadcastAttrs(Attrs):
    lhs_axis: int = -1
    rhs_axis: int = -1


def product_params(name: str, types: Sequence[Type], solver: Solver, units: Dim) -> None:
    """Arguments 2 to 5: input and kernel zero points, input and kernel scales."""
    for at, what, dtype, size in (
        (2, "input zero point", "int32", 1),
        (3, "kernel zero point", "int32", units),
        (4, "input scale", "float32", 1),
        (5, "kernel scale", "float32", units),
    ):
        check_param(name, solver, what, types[at], dtype, size)


def image_relation(name: str, relation: TypeRelation) -> TypeRelation:
    """`relation` of data and weight, the first of six arguments; the others are the parameters of both."""

    def whole(types: Sequence[Type], attrs: Conv2DAttrs | Conv2DTransposeAttrs, solver: Solver) -> Type | None:
        result = relation(types[:2], attrs, solver)
        if not isinstance(result, TensorType):
            return result
        product_params(name, types, solver, result.shape[(attrs.out_layout or attrs.data_layout).index("C")])
        return TensorType(result.shape, attrs.out_dtype or "int32")

    return whole


def differences(values: Sequence[Array], axis: int) -> tuple[Array, Array]:
    """Data and weight less their zero points; a weight may have one for each index along `axis`."""
    data, weight = (np.asarray(value) for value in values[:2])
    x = data.astype(np.int64) - np.asarray(values[2]).reshape(())
    return x, weight.astype(np.int64) - fit(values[3], axis, weight.ndim)


def _conv2d(attrs: Conv2DAttrs, values: Sequence[Array], result: Type) -> Array:
    name = "qnn.conv2d"
    x, w = differences(values, attrs.kernel_layout.index("O"))
    x = x.transpose(permutation(name, attrs.data_layout, "NCHW"))
    w = w.transpose(permutation(name, attrs.kernel_layout, "OIHW"))
    # Padding with the zero point is padding the difference with 0.
    padded = pad_spatial(x, *split_padding(name, attrs.padding, 2))
    value = convolve(padded, w, attrs.strides, attrs.dilation, attrs.groups, out_type(result).dtype)
    return value.transpose(permutation(name, "NCHW", attrs.out_layout or attrs.data_layout))


QNN_CONV2D = Op(
    "qnn.conv2d",
    6,
    image_relation("qnn.conv2d", CONV2D.relation),
    _conv2d,
    attrs_type=Conv2DAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="convolution of (data - zero point) with (weight - zero point) in int32; padding represents 0",
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
    product_params("qnn.dense", types, solver, result.shape[-1])
    return TensorType(result.shape, attrs.out_dtype or "int32")


def _dense(attrs: DenseAttrs, values: Sequence[Array], result: Type) -> Array:
    x, w = differences(values, 0)
    return matmul(x, w.T, out_type(result).dtype)


QNN_DENSE = Op(
    "qnn.dense",
    6,
    _dense_type,
    _dense,
    attrs_type=DenseAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
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
        check_quantized(name, lhs.dtype)
        if lhs.dtype != rhs.dtype:
            raise TypeCheckError(
                f"the element types of {name}'s arguments must be equal, not {lhs.dtype} and {rhs.dtype}"
            )
        check_params(name, solver, "left", types[2:4], axis_size(name, attrs.lhs_axis, lhs))
        check_params(name, solver, "right", types[4:6], axis_size(name, attrs.rhs_axis, rhs))
        check_params(name, solver, "output", types[6:8], 1)
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
    def reference(attrs: BroadcastAttrs, values: Sequence[Array], result: Type) -> Array:
        lhs = _to_output(np.asarray(values[0]), values, 2, attrs.lhs_axis)
        rhs = _to_output(np.asarray(values[1]), values, 4, attrs.rhs_axis)
        zero = np.asarray(values[7]).astype(np.int64).reshape(())
        return saturate(lhs + sign * rhs - sign * zero, out_type(result).dtype)

    relation = _binary_type(name)
    return Op(name, 8, relation, reference, attrs_type=BroadcastAttrs, pattern=FusionPattern.BROADCAST, doc=doc)


def _mul(attrs: BroadcastAttrs, values: Sequence[Array], result: Type) -> Array:
    lhs, rhs = np.asarray(values[0]), np.asarray(values[1])
    left = lhs.astype(np.int64) - fit(values[3], attrs.lhs_axis, lhs.ndim)
    right = rhs.astype(np.int64) - fit(values[5], attrs.rhs_axis, rhs.ndim)
    product = narrow(left * right, "int32")
    scale = np.asarray(values[2], np.float32).reshape(()) * np.asarray(values[4], np.float32).reshape(())
    record = RequantizeAttrs(-1, "None", "None", out_type(result).dtype)
    return requantize_value(product, (scale, values[6]), (np.int32(0), values[7]), record)


QNN_ADD = _binary("qnn.add", 1, "sum of two quantized tensors, quantized")


QNN_SUBTRACT = _binary("qnn.subtract", -1, "difference of two quantized tensors, quantized")


QNN_MUL = Op(
    "qnn.mul",
    8,
    _binary_type("qnn.mul"),
    _mul,
    attrs_type=BroadcastAttrs,
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
    check_params(name, solver, "output", types[3:5], 1)
    return concatenate_type(name, attrs.axis, parts)


def _concatenate(attrs: ConcatenateAttrs, values: Sequence[AnyValue], result: Type) -> Array:
    record = RequantizeAttrs(-1, "None", "None", out_type(result).dtype)
    parts = [
        requantize_value(np.asarray(q), (scale, values[3]), (zero, values[4]), record)
        for q, scale, zero in zip(values[0], values[1], values[2], strict=True)
    ]
    return np.concatenate(parts, axis=attrs.axis)


QNN_CONCATENATE = Op(
    "qnn.concatenate",
    5,
    _concatenate_type,
    _concatenate,
    attrs_type=ConcatenateAttrs,
    pattern=FusionPattern.INJECTIVE,
    traits=ALONG_AXIS,
    doc="quantized tensors requantized to one scale and zero point and concatenated",
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


OPS = (
    QNN_CONV2D,
    QNN_DENSE,
    QNN_ADD,
    QNN_SUBTRACT,
    QNN_MUL,
    QNN_CONCATENATE,
)
