"""Exact integer operators with int32 sums: pools that add and transposed convolutions of int8 data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ANCHOR,
    POOLS,
    Array,
    Attrs,
    Ints,
    call,
    full_padding,
    permutation,
    rule,
    show_shape,
    spread,
    tensor,
)
from relay_hw.op.conv_transpose import Conv2DTransposeAttrs, transpose_relation, transpose_sums
from relay_hw.op.fixed_scale import check_range
from relay_hw.op.pool import MaxPool2DAttrs, Windows, window_sums


@dataclass(frozen=True, slots=True)
class SumPool2DAttrs(Attrs):
    pool_size: tuple[int, ...]
    strides: tuple[int, ...] = (1, 1)
    padding: tuple[int, ...] = (0, 0, 0, 0)
    layout: str = "NCHW"


def _windows(attrs: SumPool2DAttrs) -> Windows:
    record = MaxPool2DAttrs(attrs.pool_size, attrs.strides, (1, 1), attrs.padding)
    return Windows.of("fixed.sum_pool2d", record, 2)


@rule("fixed.sum_pool2d", 1)
def _sum_pool_type(attrs: SumPool2DAttrs, x: TensorType) -> Type:
    name = "fixed.sum_pool2d"
    if x.dtype != "int8":
        raise TypeCheckError(f"the data of {name} must be int8, not {x.dtype}")
    if x.rank != 4:
        raise TypeCheckError(f"the data of {name} must have 4 axes, not {show_shape(x.shape)}")
    plain = [x.shape[axis] for axis in permutation(name, attrs.layout, "NCHW")]
    sizes = _windows(attrs).sizes(plain[2:], False)
    if any(isinstance(size, int) and size < 1 for size in sizes):
        raise TypeCheckError(f"the window of {name} must fit into the padded data, not into {show_shape(plain[2:])}")
    result = (*plain[:2], *sizes)
    return TensorType([result[axis] for axis in permutation(name, "NCHW", attrs.layout)], "int32")


def _sum_pool(attrs: SumPool2DAttrs, values: Sequence[Array], result: Type) -> Array:
    name = "fixed.sum_pool2d"
    x = np.asarray(values[0]).transpose(permutation(name, attrs.layout, "NCHW"))
    windows = _windows(attrs)
    out = [int(size) for size in windows.sizes(x.shape[2:], False)]  # type: ignore[arg-type]
    return window_sums(x, windows, out, "int32").transpose(permutation(name, "NCHW", attrs.layout))


SUM_POOL2D = Op(
    "fixed.sum_pool2d",
    1,
    _sum_pool_type,
    _sum_pool,
    attrs_type=SumPool2DAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=POOLS,
    doc="int32 sums of int8 windows; padding adds 0",
)


def sum_pool2d(
    data: Expr, pool_size: Ints, strides: Ints = (1, 1), padding: Ints = (0, 0, 0, 0), layout: str = "NCHW"
) -> Call:
    """int32 sums of the windows of int8 `data`; padding is (top, left, bottom, right) or shorter."""
    attrs = SumPool2DAttrs(spread(pool_size, 2), spread(strides, 2), full_padding(padding, 2), layout)
    return call(SUM_POOL2D, (data,), attrs)


@dataclass(frozen=True, slots=True)
class FixedConv2DTransposeAttrs(Conv2DTransposeAttrs):
    out_dtype: str | None = "int32"
    input_zero_point: int = 0


def _conv2d_transpose_type(types: Sequence[Type], attrs: FixedConv2DTransposeAttrs, solver: Solver) -> Type | None:
    name = "fixed.conv2d_transpose"
    x = tensor(name, types, 0)
    if x is not None and x.dtype != "int8":
        raise TypeCheckError(f"the data of {name} must be int8, not {x.dtype}")
    if attrs.out_dtype != "int32":
        raise TypeCheckError(f"out_dtype of {name} must be int32, not {attrs.out_dtype}")
    check_range(name, "input_zero_point", attrs.input_zero_point, -128, 127)
    return transpose_relation(name, 2)(types, attrs, solver)


def _conv2d_transpose(attrs: FixedConv2DTransposeAttrs, values: Sequence[Array], result: Type) -> Array:
    x = np.asarray(values[0]).astype(np.int16) - attrs.input_zero_point
    return transpose_sums("fixed.conv2d_transpose", 2, attrs, (x, values[1]), "int32")


CONV2D_TRANSPOSE = Op(
    "fixed.conv2d_transpose",
    2,
    _conv2d_transpose_type,
    _conv2d_transpose,
    attrs_type=FixedConv2DTransposeAttrs,
    pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
    traits=ANCHOR,
    doc="int32 transposed convolution of (data - input_zero_point); what lies between and around the data adds 0",
)


def conv2d_transpose(
    data: Expr,
    weight: Expr,
    strides: Ints = (1, 1),
    padding: Ints = (0, 0),
    dilation: Ints = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    output_padding: Ints = (0, 0),
    input_zero_point: int = 0,
) -> Call:
    """int32 transposed convolution of int8 `data` less its zero point; the weight is [in, out / groups, kh, kw]."""
    attrs = FixedConv2DTransposeAttrs(
        None, None, spread(strides, 2), spread(output_padding, 2), full_padding(padding, 2), spread(dilation, 2),
        groups, data_layout, kernel_layout, "", "int32", input_zero_point,
    )  # fmt: skip
    return call(CONV2D_TRANSPOSE, (data, weight), attrs)


OPS = (SUM_POOL2D, CONV2D_TRANSPOSE)
