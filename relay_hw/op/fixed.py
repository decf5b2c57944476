"""Exact fixed-point operators `fixed.*`, which quantization emits and integer accelerators run.

Every number is explicit and integer: multipliers, shifts, zero points, one rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op, Solver
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    ANCHOR,
    ELEMENTWISE,
    POOLS,
    Array,
    Attrs,
    Ints,
    call,
    check_axis,
    expect,
    full_padding,
    ints,
    permutation,
    rule,
    same_dim,
    show,
    show_shape,
    spread,
    tensor,
)
from relay_hw.op.conv_transpose import Conv2DTransposeAttrs, transpose_relation, transpose_sums
from relay_hw.op.dense import along
from relay_hw.op.pool import MaxPool2DAttrs, Windows, window_sums
from relay_hw.rounding import ROUNDINGS
from relay_hw.support.names import one_of


def round_shift(value: Array, shift: AnyValue, rounding: str) -> Array:
    """value / 2**shift rounded to an integer, in int64; |value| <= 2**62 and 0 <= shift <= 62."""
    value, shift = np.asarray(value, np.int64), np.asarray(shift, np.int64)
    below = value >> shift
    rest = value - (below << shift)
    half = np.where(shift > 0, np.left_shift(np.int64(1), np.maximum(shift - 1, 0)), np.int64(1))
    if rounding == "floor":
        return below
    if rounding == "half_up":
        up = rest >= half
    elif rounding == "half_even":
        up = (rest > half) | ((rest == half) & (below % 2 != 0))
    else:
        up = (rest > half) | ((rest == half) & (value >= 0))
    return below + (up & (shift > 0))


def check_range(name: str, what: str, given: int, low: int, high: int) -> None:
    """Raise TypeCheckError unless `low <= given <= high`; `what` of operator `name` is the number's name."""
    if not low <= given <= high:
        raise TypeCheckError(f"{what} of {name} must be in [{low}, {high}], not {given}")


def _check_output(name: str, attrs: RequantizeAttrs | AddAttrs | MulAttrs) -> None:
    if attrs.rounding not in ROUNDINGS:
        raise TypeCheckError(one_of(f"rounding of {name}", ROUNDINGS, attrs.rounding))
    check_range(name, "multiplier_bits", attrs.multiplier_bits, 1, 31)
    check_range(name, "a_min", attrs.a_min, -128, 127)
    check_range(name, "a_max", attrs.a_max, attrs.a_min, 127)
    check_range(name, "zero_point", attrs.zero_point, -128, 127)


@dataclass(frozen=True, slots=True)
class RequantizeAttrs(Attrs):
    multiplier: tuple[int, ...]
    shift: tuple[int, ...]
    zero_point: int = 0
    rounding: str = "half_up"
    a_min: int = -128
    a_max: int = 127
    axis: int = 1
    multiplier_bits: int = 31

    def __post_init__(self) -> None:
        Attrs.__post_init__(self)
        self._set(multiplier=ints(self.multiplier), shift=ints(self.shift))


def _requantize_type(types: Sequence[Type], attrs: RequantizeAttrs, solver: Solver) -> Type | None:
    name = "fixed.requantize"
    acc = tensor(name, types, 0)
    if acc is None:
        return None
    if acc.dtype != "int32":
        raise TypeCheckError(f"the data of {name} must be int32, not {acc.dtype}")
    size = acc.shape[check_axis(name, attrs.axis, acc.rank)]
    _check_output(name, attrs)
    if len(attrs.multiplier) != len(attrs.shift) or len(attrs.multiplier) not in (1, size):
        raise TypeCheckError(
            f"multiplier and shift of {name} must both have 1 or {size} numbers, "
            f"not {len(attrs.multiplier)} and {len(attrs.shift)}"
        )
    for multiplier, shift in zip(attrs.multiplier, attrs.shift, strict=True):
        check_range(name, "multiplier", multiplier, 0, 2**attrs.multiplier_bits - 1)
        check_range(name, "shift", shift, 0, 62)
    expect(name, solver, "bias", types[1], TensorType((size,), "int32"))
    return TensorType(acc.shape, "int8")


def _requantize(attrs: RequantizeAttrs, values: Sequence[Array], result: Type) -> Array:
    acc = np.asarray(values[0])
    rank = acc.ndim
    total = acc.astype(np.int64) + along(values[1], attrs.axis, rank).astype(np.int64)
    wrapped = total.astype(np.int32).astype(np.int64)
    multiplier = along(np.array(attrs.multiplier, np.int64), attrs.axis, rank)
    shift = along(np.array(attrs.shift, np.int64), attrs.axis, rank)
    scaled = round_shift(wrapped * multiplier, shift, attrs.rounding) + attrs.zero_point
    return np.clip(scaled, attrs.a_min, attrs.a_max).astype(np.int8)


REQUANTIZE = Op(
    "fixed.requantize",
    2,
    _requantize_type,
    _requantize,
    attrs_type=RequantizeAttrs,
    pattern=FusionPattern.BROADCAST,
    traits=ALONG_AXIS,
    doc="clip(((wrap32(acc + bias) * multiplier) rounded >> shift) + zero_point, a_min, a_max) as int8",
)


def requantize(
    data: Expr,
    bias: Expr,
    multiplier: Ints,
    shift: Ints,
    zero_point: int = 0,
    rounding: str = "half_up",
    a_min: int = -128,
    a_max: int = 127,
    axis: int = 1,
    multiplier_bits: int = 31,
) -> Call:
    """int32 `data` plus `bias` per channel, scaled to int8; multiplier and shift are for all or for each channel."""
    attrs = RequantizeAttrs(
        ints(multiplier) or (), ints(shift) or (), zero_point, rounding, a_min, a_max, axis, multiplier_bits
    )
    return call(REQUANTIZE, (data, bias), attrs)


@dataclass(frozen=True, slots=True)
class AddAttrs(Attrs):
    y_multiplier: int
    r_multiplier: int
    shift: int
    y_zero_point: int = 0
    r_zero_point: int = 0
    zero_point: int = 0
    rounding: str = "half_up"
    a_min: int = -128
    a_max: int = 127
    multiplier_bits: int = 31


@rule("fixed.add", 2)
def _add_type(attrs: AddAttrs, y: TensorType, r: TensorType) -> Type:
    name = "fixed.add"
    for ty in (y, r):
        if ty.dtype != "int8":
            raise TypeCheckError(f"the arguments of {name} must be int8, not {ty.dtype}")
    if y.rank != r.rank or not all(map(same_dim, y.shape, r.shape)):
        raise TypeCheckError(f"the arguments of {name} must have one shape, not {show(y)} and {show(r)}")
    _check_output(name, attrs)
    for what in ("y_multiplier", "r_multiplier"):
        check_range(name, what, getattr(attrs, what), 0, 2**attrs.multiplier_bits - 1)
    for what in ("y_zero_point", "r_zero_point"):
        check_range(name, what, getattr(attrs, what), -128, 127)
    check_range(name, "shift", attrs.shift, 0, 62)
    return y


def _add(attrs: AddAttrs, values: Sequence[Array], result: Type) -> Array:
    y, r = (np.asarray(value).astype(np.int64) for value in values)
    total = (y - attrs.y_zero_point) * attrs.y_multiplier + (r - attrs.r_zero_point) * attrs.r_multiplier
    scaled = round_shift(total, attrs.shift, attrs.rounding) + attrs.zero_point
    return np.clip(scaled, attrs.a_min, attrs.a_max).astype(np.int8)


ADD = Op(
    "fixed.add",
    2,
    _add_type,
    _add,
    attrs_type=AddAttrs,
    pattern=FusionPattern.ELEMWISE,
    traits=ELEMENTWISE,
    doc="clip((((y - y_zero_point) * y_multiplier + (r - r_zero_point) * r_multiplier) rounded >> shift) + zero_point)",
)


def add(
    lhs: Expr,
    rhs: Expr,
    y_multiplier: int,
    r_multiplier: int,
    shift: int,
    y_zero_point: int = 0,
    r_zero_point: int = 0,
    zero_point: int = 0,
    rounding: str = "half_up",
    a_min: int = -128,
    a_max: int = 127,
    multiplier_bits: int = 31,
) -> Call:
    """Two int8 tensors of one shape, each with its scale, added and scaled to int8."""
    attrs = AddAttrs(
        y_multiplier, r_multiplier, shift, y_zero_point, r_zero_point, zero_point, rounding, a_min, a_max,
        multiplier_bits,
    )  # fmt: skip
    return call(ADD, (lhs, rhs), attrs)


@dataclass(frozen=True, slots=True)
class MulAttrs(Attrs):
    multiplier: int
    shift: int
    y_zero_point: int = 0
    r_zero_point: int = 0
    zero_point: int = 0
    rounding: str = "half_up"
    a_min: int = -128
    a_max: int = 127
    multiplier_bits: int = 22


# Bits of a multiplier whose product with a number of 9 bits fits 32 bits.
MUL_MULTIPLIER_BITS = 22


@rule("fixed.mul", 2)
def _mul_type(attrs: MulAttrs, y: TensorType, r: TensorType) -> Type:
    name = "fixed.mul"
    for ty in (y, r):
        if ty.dtype != "int8":
            raise TypeCheckError(f"the arguments of {name} must be int8, not {ty.dtype}")
    one = (1, *y.shape[1:2], *[1] * (y.rank - 2))
    if y.rank != r.rank or not (all(map(same_dim, y.shape, r.shape)) or all(map(same_dim, one, r.shape))):
        raise TypeCheckError(
            f"the second argument of {name} must have the shape of the first one or a number for each channel, "
            f"not {show(r)} beside {show(y)}"
        )
    _check_output(name, attrs)
    check_range(name, "multiplier_bits", attrs.multiplier_bits, 1, MUL_MULTIPLIER_BITS)
    check_range(name, "multiplier", attrs.multiplier, 0, 2**attrs.multiplier_bits - 1)
    for what in ("y_zero_point", "r_zero_point"):
        check_range(name, what, getattr(attrs, what), -128, 127)
    check_range(name, "shift", attrs.shift, 0, 62)
    return y


def _mul(attrs: MulAttrs, values: Sequence[Array], result: Type) -> Array:
    y, r = (np.asarray(value).astype(np.int64) for value in values)
    total = (y - attrs.y_zero_point) * attrs.multiplier * (r - attrs.r_zero_point)
    scaled = round_shift(total, attrs.shift, attrs.rounding) + attrs.zero_point
    return np.clip(scaled, attrs.a_min, attrs.a_max).astype(np.int8)


MUL = Op(
    "fixed.mul",
    2,
    _mul_type,
    _mul,
    attrs_type=MulAttrs,
    pattern=FusionPattern.BROADCAST,
    traits=ELEMENTWISE,
    doc="clip(((y - y_zero_point) * multiplier * (r - r_zero_point) rounded >> shift) + zero_point)",
)


def mul(lhs: Expr, rhs: Expr, **numbers: AnyValue) -> Call:
    """int8 `lhs` times int8 `rhs` of its shape, or with one number for each channel, scaled to int8.

    `numbers`: fields of MulAttrs by name.
    """
    return call(MUL, (lhs, rhs), MulAttrs(**numbers))


@rule("fixed.table", 2)
def _table_type(attrs: Attrs | None, data: TensorType, table: TensorType) -> Type:
    for what, ty in (("data", data), ("table", table)):
        if ty.dtype != "int8":
            raise TypeCheckError(f"the {what} of fixed.table must be int8, not {ty.dtype}")
    if table.shape != (256,):
        raise TypeCheckError(f"the table of fixed.table must have 256 numbers, not {show_shape(table.shape)}")
    return data


def _table(attrs: Attrs | None, values: Sequence[Array], result: Type) -> Array:
    return np.asarray(values[1])[np.asarray(values[0]).astype(np.int64) + 128]


TABLE = Op(
    "fixed.table",
    2,
    _table_type,
    _table,
    pattern=FusionPattern.ELEMWISE,
    doc="table[data + 128]: any function of one int8 number",
)


def table(data: Expr, table: Expr) -> Call:
    """What `table`, int8 [256] with the result for -128 first, has for each number of int8 `data`."""
    return call(TABLE, (data, table))


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


OPS = (REQUANTIZE, ADD, MUL, TABLE, SUM_POOL2D, CONV2D_TRANSPOSE)
