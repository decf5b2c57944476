"""The QNN dialect, more products: batch_matmul and conv2d_transpose.

In: types, attributes, arrays. Out: types, arrays, `Call` nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import ANCHOR, Array, Ints, call, full_padding, out_type, spread, tensors
from relay_hw.op.conv_transpose import Conv2DTransposeAttrs, transpose_relation, transpose_sums
from relay_hw.op.dense import BATCH_MATMUL, BatchMatmulAttrs, batch_matmul_type
from relay_hw.op.qnn_arith import differences, image_relation, product_params


def _batch_type(types: Sequence[Type], attrs: BatchMatmulAttrs, solver: Solver) -> Type | None:
    known = tensors("qnn.batch_matmul", types[:2], 2)
    if known is None:
        return None
    product_params("qnn.batch_matmul", types, solver, 1)
    return TensorType(batch_matmul_type("qnn.batch_matmul", attrs, *known).shape, attrs.out_dtype or "int32")


def _batch(attrs: BatchMatmulAttrs, values: Sequence[Array], result: Type) -> Array:
    return BATCH_MATMUL.reference(attrs, differences(values, 0), result)


QNN_BATCH_MATMUL = Op(
    "qnn.batch_matmul",
    6,
    _batch_type,
    _batch,
    attrs_type=BatchMatmulAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="matrix products of (x - zero point) and (y - zero point) along the first axis, in int32",
)


def batch_matmul(
    x: Expr,
    y: Expr,
    x_zero_point: Expr,
    y_zero_point: Expr,
    x_scale: Expr,
    y_scale: Expr,
    out_dtype: str = "int32",
) -> Call:
    """int32 products of quantized matrices along the first axis; `y` is transposed."""
    args = (x, y, x_zero_point, y_zero_point, x_scale, y_scale)
    return call(QNN_BATCH_MATMUL, args, BatchMatmulAttrs(out_dtype, False, True))


_TRANSPOSE = "qnn.conv2d_transpose"


def _transpose(attrs: Conv2DTransposeAttrs, values: Sequence[Array], result: Type) -> Array:
    sides = differences(values, attrs.kernel_layout.index("O"))
    return transpose_sums(_TRANSPOSE, 2, attrs, sides, out_type(result).dtype)


QNN_CONV2D_TRANSPOSE = Op(
    _TRANSPOSE,
    6,
    image_relation(_TRANSPOSE, transpose_relation(_TRANSPOSE, 2)),
    _transpose,
    attrs_type=Conv2DTransposeAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="transposed convolution of (data - zero point) with (weight - zero point) in int32",
)


def conv2d_transpose(
    data: Expr,
    weight: Expr,
    input_zero_point: Expr,
    kernel_zero_point: Expr,
    input_scale: Expr,
    kernel_scale: Expr,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    channels: int | None = None,
    kernel_size: Ints | None = None,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str = "",
    output_padding: Ints = (0, 0),
    out_dtype: str = "int32",
) -> Call:
    """int32 transposed convolution of quantized data; its scale is the product of both scales, its zero point 0."""
    attrs = Conv2DTransposeAttrs(
        channels, None if kernel_size is None else spread(kernel_size, 2), spread(strides, 2),
        spread(output_padding, 2), full_padding(padding, 2), spread(dilation, 2), groups, data_layout, kernel_layout,
        out_layout, out_dtype,
    )  # fmt: skip
    args = (data, weight, input_zero_point, kernel_zero_point, input_scale, kernel_scale)
    return call(QNN_CONV2D_TRANSPOSE, args, attrs)


OPS = (QNN_BATCH_MATMUL, QNN_CONV2D_TRANSPOSE)
