"""Exact fixed-point operators with an int8 result: sums, additions and products are scaled, a table is looked up.

Quantization emits them, integer accelerators run them. Every number is explicit and integer: multipliers, shifts, zero
points, one rounding.
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
    ELEMENTWISE,
    Array,
    Attrs,
    Ints,
    call,
    check_axis,
    expect,
    ints,
    rule,
    same_dim,
    show,
    show_shape,
    tensor,
)
from relay_hw.op.dense import along
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
    """Raises TypeCheckError unless an attribute is between two numbers, both included."""
    if not low <= given <= high:
        raise TypeCheckError(f"{what} of {name} must be in [{low}, {high}], not {given}")


def _check_output(name: str, attrs: RequantizeAttrs | AddAttrs | MulAttrs) -> None:
    if attrs.rounding not in ROUNDINGS:
        raise TypeCheckError(one_of(f"rounding of {name}", ROUNDINGS, attrs.rounding))
    check_range(name, "multiplier_bits", attrs.multiplier_bits, 1, 31)
    check_range(name, "a_min", attrs.a_min, -128, 127)
    check_range(name, "a_max", attrs.a_max, attrs.a_min, 127)
    check_range(name, "zero_point", attrs.zero_point, -128, 127)


def _check_operands(name: str, attrs: AddAttrs | MulAttrs, y: TensorType, r: TensorType) -> None:
    for ty in (y, r):
        if ty.dtype != "int8":
            raise TypeCheckError(f"the arguments of {name} must be int8, not {ty.dtype}")
    _check_output(name, attrs)
    check_range(name, "y_zero_point", attrs.y_zero_point, -128, 127)
    check_range(name, "r_zero_point", attrs.r_zero_point, -128, 127)
    check_range(name, "shift", attrs.shift, 0, 62)


def _to_int8(attrs: RequantizeAttrs | AddAttrs | MulAttrs, total: Array, shift: AnyValue) -> Array:
    """`total` rounded, about the zero point, clipped."""
    scaled = round_shift(total, shift, attrs.rounding) + attrs.zero_point
    return np.clip(scaled, attrs.a_min, attrs.a_max).astype(np.int8)


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
    return _to_int8(attrs, wrapped * multiplier, shift)


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
    _check_operands(name, attrs, y, r)
    if y.rank != r.rank or not all(map(same_dim, y.shape, r.shape)):
        raise TypeCheckError(f"the arguments of {name} must have one shape, not {show(y)} and {show(r)}")
    for what in ("y_multiplier", "r_multiplier"):
        check_range(name, what, getattr(attrs, what), 0, 2**attrs.multiplier_bits - 1)
    return y


def _add(attrs: AddAttrs, values: Sequence[Array], result: Type) -> Array:
    y, r = (np.asarray(value).astype(np.int64) for value in values)
    total = (y - attrs.y_zero_point) * attrs.y_multiplier + (r - attrs.r_zero_point) * attrs.r_multiplier
    return _to_int8(attrs, total, attrs.shift)


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
    _check_operands(name, attrs, y, r)
    factors = [(first, *y.shape[1:2], *[1] * (y.rank - 2)) for first in (1, *y.shape[:1])]
    if y.rank != r.rank or not any(all(map(same_dim, shape, r.shape)) for shape in (y.shape, *factors)):
        raise TypeCheckError(
            f"the second argument of {name} must have the shape of the first one or a number for each channel, "
            f"not {show(r)} beside {show(y)}"
        )
    check_range(name, "multiplier_bits", attrs.multiplier_bits, 1, MUL_MULTIPLIER_BITS)
    check_range(name, "multiplier", attrs.multiplier, 0, 2**attrs.multiplier_bits - 1)
    return y


def _mul(attrs: MulAttrs, values: Sequence[Array], result: Type) -> Array:
    y, r = (np.asarray(value).astype(np.int64) for value in values)
    total = (y - attrs.y_zero_point) * attrs.multiplier * (r - attrs.r_zero_point)
    return _to_int8(attrs, total, attrs.shift)


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


OPS = (REQUANTIZE, ADD, MUL, TABLE)
