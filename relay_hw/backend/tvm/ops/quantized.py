"""Quantized operators: `fixed.*` and `qnn.*`, exact in 64 bits and in sums that are exact.

Scales and zero points must be constants; else the call stays on numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from relay_hw.backend.flat import FlatCall
from relay_hw.backend.tvm import scalars as s
from relay_hw.backend.tvm.api import te
from relay_hw.backend.tvm.ops import linear
from relay_hw.backend.tvm.ops.base import Arg, Context, Lowering, dtype_of, literal, reshape, shape_of, tensor
from relay_hw.backend.tvm.ops.elementwise import fixed_point
from relay_hw.op.base import permutation
from relay_hw.op.qnn_scale import fit
from relay_hw.op.qnn_scale import fixed_point as split_scale

SHORT = ("int8", "uint8", "int16", "uint16", "int32")


def _requantize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a, out = call.attrs, tensor(call.type)
    axis = a.axis % len(out.static_shape)
    table = np.empty((2, out.static_shape[axis]), np.int64)
    table[0], table[1] = a.multiplier, a.shift

    def compute(acc: Any, bias: Any, numbers: Any) -> Any:
        def element(*index: Any) -> Any:
            c = index[axis]
            total = s.add(acc(*index), bias(c)).astype("int64")
            scaled = s.rounded_shift(total * numbers(0, c), numbers(1, c), a.rounding)
            return s.saturated(scaled, a.zero_point, a.a_min, a.a_max, "int8")

        return te.compute(acc.shape, element, name="requantize")

    return ctx.te(compute, args[0], args[1], literal(table, "int64"))


def _fixed_add(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a = call.attrs

    def compute(y: Any, r: Any) -> Any:
        def element(*index: Any) -> Any:
            left = (y(*index).astype("int64") - a.y_zero_point) * s.number(a.y_multiplier, "int64")
            right = (r(*index).astype("int64") - a.r_zero_point) * s.number(a.r_multiplier, "int64")
            total = s.rounded_shift(left + right, s.number(a.shift, "int64"), a.rounding)
            return s.saturated(total, a.zero_point, a.a_min, a.a_max, "int8")

        return te.compute(y.shape, element, name="fixed_add")

    return ctx.te(compute, *args)


def _fixed_mul(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    a = call.attrs

    def compute(y: Any, r: Any) -> Any:
        def element(*index: Any) -> Any:
            there = [at if int(size) != 1 else 0 for at, size in zip(index, r.shape, strict=True)]
            left = (y(*index).astype("int64") - a.y_zero_point) * s.number(a.multiplier, "int64")
            total = left * (r(*there).astype("int64") - a.r_zero_point)
            scaled = s.rounded_shift(total, s.number(a.shift, "int64"), a.rounding)
            return s.saturated(scaled, a.zero_point, a.a_min, a.a_max, "int8")

        return te.compute(y.shape, element, name="fixed_mul")

    return ctx.te(compute, *args)


def _fixed_table(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    def compute(data: Any, table: Any) -> Any:
        return te.compute(data.shape, lambda *index: table(data(*index).astype("int32") + 128), name="fixed_table")

    return ctx.te(compute, *args)


def _fixed_transpose(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    weight = ctx.constant(call.args[1])
    if weight is None or not ctx.machine.is_cpu:
        return None
    a, axes = call.attrs, permutation(call.op.name, call.attrs.kernel_layout, "IOHW")
    plain = linear.plain_weight(weight, axes, a.groups, True)
    sums = linear.find_sums(args, plain.shape[1], prod(plain.shape[2:]), plain, abs(a.input_zero_point))
    if sums is None:
        return None
    c = replace(linear.geometry(call, 2, True, plain.shape[2:], sums), offset=a.input_zero_point)
    return linear.on_cpu(ctx, c, args, linear.Kernel.known(plain), tensor(call.type).static_shape)


def _constants(ctx: Context, call: FlatCall, places: Sequence[int]) -> list[Any] | None:
    found = [ctx.constant(call.args[at]) for at in places]
    return None if any(value is None for value in found) else found


def _qnn_conv2d(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    known = _constants(ctx, call, (1, 2, 3))
    if known is None or not ctx.machine.is_cpu:
        return None
    a, (weight, zero, kernel_zero) = call.attrs, known
    axes = permutation(call.op.name, a.kernel_layout, "OIHW")
    whole = weight.astype(np.int64) - fit(kernel_zero, a.kernel_layout.index("O"), weight.ndim)
    plain = np.ascontiguousarray(whole.transpose(axes)).astype(_shortest(whole))
    offset = int(np.asarray(zero).reshape(()))
    sums = linear.find_sums(args[:2], plain.shape[1], prod(plain.shape[2:]), plain, abs(offset))
    if sums is None:
        return None
    c = replace(linear.geometry(call, 2, False, plain.shape[2:], sums), offset=offset)
    return linear.on_cpu(ctx, c, args[:2], linear.Kernel.known(plain), tensor(call.type).static_shape)


def _shortest(values: Any) -> str:
    """The shortest integer type that holds the values."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    return next(
        kind for kind in ("int8", "int16", "int32", "int64") if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max
    )


def _qnn_dense(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    """As a convolution of one pixel, which knows zero points."""
    known = _constants(ctx, call, (1, 2, 3))
    out = tensor(call.type)
    if known is None or not ctx.machine.is_cpu or len(out.static_shape) < 2:
        return None
    weight, zero, kernel_zero = known
    whole = weight.astype(np.int64) - fit(kernel_zero, 0, 2)
    plain = whole.astype(_shortest(whole))
    offset = int(np.asarray(zero).reshape(()))
    sums = linear.find_sums(args[:2], plain.shape[1], 1, plain, abs(offset))
    if sums is None:
        return None
    rows = prod(out.static_shape[:-1])
    c = linear.Convolution((1,), (1,), (0,), (0,), (1,), 1, (0, 2, 1), (0, 2, 1), sums, out.dtype, offset)
    data = reshape(ctx, args[0], (1, rows, plain.shape[1]))
    result = (1, rows, plain.shape[0])
    packed = linear.Kernel.known(plain.reshape(*plain.shape, 1))
    value = linear.on_cpu(ctx, c, [data], packed, result)
    return reshape(ctx, ctx.emit(value), out.static_shape)


def _row(value: Any, dtype: str) -> Any:
    """A scale or zero point as a vector."""
    return np.asarray(value, dtype).reshape(-1)


def _quantize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    known = _constants(ctx, call, (1, 2))
    if known is None or dtype_of(args[0]) != "float32" or call.attrs.out_dtype not in SHORT:
        return None
    a, shape = call.attrs, shape_of(args[0])
    info = np.iinfo(a.out_dtype)
    bound = float(2 * (int(info.max) - int(info.min)))
    scales, zeros = _row(known[0], "float32"), _row(known[1], "int64")

    def compute(x: Any, scale: Any, zero: Any) -> Any:
        def element(*index: Any) -> Any:
            quotient = x(*index) / scale(_place(index, a.axis, len(scales)))
            rounded = s.round_even(quotient) if a.rounding == "half_even" else s.round_away(quotient)
            # NaN becomes 0.
            number = s.bind(lambda v: s.select(s.is_nan(v), s.number(0, "float32"), v), rounded).astype("float64")
            whole = s.limited(number, -bound, bound).astype("int64")
            return s.saturated(
                whole, zero(_place(index, a.axis, len(zeros))), int(info.min), int(info.max), a.out_dtype
            )

        return te.compute(shape, element, name="quantize")

    return ctx.te(compute, args[0], literal(scales, "float32"), literal(zeros, "int64"))


def _place(index: Sequence[Any], axis: int, size: int) -> Any:
    return 0 if size == 1 else index[axis % len(index)]


def _dequantize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    known = _constants(ctx, call, (1, 2))
    if known is None or dtype_of(args[0]) == "int64":
        return None
    scales, zeros, out = _row(known[0], "float32"), _row(known[1], "int64"), tensor(call.type)
    axis = call.attrs.axis

    def compute(q: Any, scale: Any, zero: Any) -> Any:
        def element(*index: Any) -> Any:
            shifted = (q(*index).astype("int64") - zero(_place(index, axis, len(zeros)))).astype("float32")
            return (shifted * scale(_place(index, axis, len(scales)))).astype(out.dtype)

        return te.compute(out.static_shape, element, name="dequantize")

    return ctx.te(compute, args[0], literal(scales, "float32"), literal(zeros, "int64"))


def _rescaled(value: Any, index: Sequence[Any], axis: int, tables: Sequence[Any], rounding: str) -> Any:
    """int64 (value - zero) times a ratio in Q31. `tables`: zeros, multipliers, shifts."""
    zero, multiplier, shift = (table(_place(index, axis, int(table.shape[0]))) for table in tables)
    away, even = rounding == "TONEAREST", rounding == "TONEAREST_EVEN"
    return fixed_point(value.astype("int64") - zero, multiplier, shift, away, even)


def _tables(scale: Any, out_scale: Any, zero: Any) -> list[Any] | None:
    """Zero points, multipliers and shifts; None if the ratio is 1 everywhere, which is no multiplication."""
    ratio = _row(scale, "float32").astype(np.float64) / np.asarray(out_scale, np.float64).reshape(())
    multipliers, shifts = split_scale(ratio)
    if np.all(ratio == 1):
        # 2**30 * 2**(1 - 31) is 1, and a shift by 30 of a multiple of 2**30 rounds nothing.
        multipliers, shifts = np.full_like(multipliers, 1 << 30), np.full_like(shifts, 1)
    return [literal(values, "int64") for values in (_row(zero, "int64"), multipliers, shifts)]


def _qnn_requantize(ctx: Context, call: FlatCall, args: Sequence[Arg]) -> Arg | None:
    known, a, out = _constants(ctx, call, (1, 2, 3, 4)), call.attrs, tensor(call.type)
    if known is None or a.compute_dtype.startswith("float") or not {dtype_of(args[0]), out.dtype} <= set(SHORT):
        return None
    scale, zero, out_scale, out_zero = known
    info, offset = np.iinfo(out.dtype), int(np.asarray(out_zero).reshape(()))

    def compute(q: Any, *tables: Any) -> Any:
        def element(*index: Any) -> Any:
            scaled = _rescaled(q(*index), index, a.axis, tables, a.rounding)
            return s.saturated(scaled, offset, int(info.min), int(info.max), out.dtype)

        return te.compute(out.static_shape, element, name="qnn_requantize")

    return ctx.te(compute, args[0], *(_tables(scale, out_scale, zero) or ()))


LOWERINGS: Mapping[str, Lowering] = MappingProxyType(
    {
        "fixed.requantize": _requantize,
        "fixed.add": _fixed_add,
        "fixed.mul": _fixed_mul,
        "fixed.table": _fixed_table,
        "fixed.conv2d_transpose": _fixed_transpose,
        "qnn.conv2d": _qnn_conv2d,
        "qnn.dense": _qnn_dense,
        "qnn.quantize": _quantize,
        "qnn.dequantize": _dequantize,
        "qnn.requantize": _qnn_requantize,
    }
)
