"""Lowering of the QNN dialect to plain integer operators, bit for bit.

In: a typed module. Out: the same without `qnn.*`, but for those whose scales are no constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Function, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.op import get
from relay_hw.op.base import split_padding
from relay_hw.op.qnn_floats import FLOATS
from relay_hw.op.qnn_scale import fixed_point
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dtype_of,
    is_external,
    is_op,
    make,
    op_name,
    shape_of,
    typed_call,
    typed_tuple,
)
from relay_hw.transform.rewrite_rules import Rule, Uses, apply_rules

Array = NDArray[Any]
_NARROW = ("int8", "uint8", "int16", "uint16")


class QnnCanonicalizeOps(FunctionPass):
    """`qnn.CanonicalizeOps` of Relay: each operator of the dialect becomes the integer arithmetic that defines it."""

    name = "qnn-canonicalize-ops"
    opt_level = 1
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, QNN_RULES)


# Pieces


def _cast(expr: Expr, dtype: str) -> Expr:
    return expr if dtype_of(expr) == dtype else make("cast", (expr,), dtype=dtype)


def _number(value: Any, dtype: str) -> Expr:
    return constant(np.asarray(value, dtype))


def _fit(param: Expr, axis: int, rank: int, dtype: str) -> Expr:
    """A scale or zero point in `dtype`, shaped so that it broadcasts along `axis`."""
    shape = shape_of(param)
    value = constant_value(param)
    is_single = shape is not None and int(np.prod(shape)) == 1
    target = () if is_single else (-1,) + (1,) * (rank - axis % rank - 1)
    if value is not None:
        return constant(value.astype(dtype).reshape(target))
    if is_single:
        return _cast(make("reshape", (param,), newshape=()) if shape else param, dtype)
    after = len(target) - 1
    return _cast(make("expand_dims", (param,), axis=1, num_newaxis=after) if after else param, dtype)


def _is_zero(param: Expr) -> bool:
    value = constant_value(param)
    return value is not None and not value.any()


def _minus(data: Expr, zero: Expr, axis: int, dtype: str) -> Expr:
    """data - zero in `dtype`."""
    wide = _cast(data, dtype)
    if _is_zero(zero):
        return wide
    return make("subtract", (wide, _fit(zero, axis, wide.tensor_type.rank, dtype)))


def _saturate(value: Expr, dtype: str) -> Expr:
    info = np.iinfo(dtype)
    if dtype_of(value) != dtype and dtype != "int64":
        value = make("clip", (value,), a_min=float(info.min), a_max=float(info.max))
    return _cast(value, dtype)


# Conversions


def _quantize(call: Call, uses: Uses) -> Expr | None:
    data, scale, zero = call.args
    attrs = call.attrs
    if attrs.rounding != "half_away" or attrs.out_dtype not in _NARROW or dtype_of(data) != "float32":
        return None
    rank = data.tensor_type.rank
    rounded = make("round", (make("divide", (data, _fit(scale, attrs.axis, rank, "float32"))),))
    if not _is_zero(zero):
        rounded = make("add", (rounded, _fit(zero, attrs.axis, rank, "float32")))
    info = np.iinfo(attrs.out_dtype)
    limited = make("clip", (rounded,), a_min=float(info.min), a_max=float(info.max))
    return make("cast", (limited,), dtype=attrs.out_dtype, span=call.span)


def _dequantize(call: Call, uses: Uses) -> Expr | None:
    data, scale, zero = call.args
    wide = "int32" if dtype_of(data) in _NARROW else "int64"
    shifted = _cast(_minus(data, zero, call.attrs.axis, wide), "float32")
    factor = _fit(scale, call.attrs.axis, data.tensor_type.rank, "float32")
    return _cast(make("multiply", (shifted, factor), span=call.span), call.attrs.out_dtype or "float32")


def _requantize(call: Call, uses: Uses) -> Expr | None:
    data, in_scale, in_zero, out_scale, out_zero = call.args
    attrs = call.attrs
    scales = constant_value(in_scale), constant_value(out_scale)
    if scales[0] is None or scales[1] is None or dtype_of(data) == "int64" or attrs.rounding == "TONEAREST_EVEN":
        return None
    rank = data.tensor_type.rank
    shifted = _minus(data, in_zero, attrs.axis, "int64")
    ratio = scales[0].astype(np.float64) / scales[1].astype(np.float64).reshape(())
    ratio = ratio.reshape((-1,) + (1,) * (rank - attrs.axis % rank - 1) if ratio.size > 1 else ())
    scaled = _scaled(shifted, ratio, attrs.compute_dtype, attrs.rounding == "TONEAREST")
    if scaled is None:
        return None
    if not _is_zero(out_zero):
        scaled = make("add", (scaled, _fit(out_zero, 0, 1, "int64")))
    return _saturate(scaled, attrs.out_dtype or "int8")


def _scaled(data: Expr, ratio: Array, compute: str, away: bool) -> Expr | None:
    """int64 `data` times `ratio`, rounded."""
    if compute.startswith("float"):
        product = make("multiply", (_cast(data, compute), constant(ratio.astype(compute))))
        if away:
            return _cast(make("round", (product,)), "int64")
        return _cast(make("floor", (make("add", (product, _number(0.5, compute))),)), "int64")
    if bool(np.all(ratio == 1)):
        return data
    multiplier, shift = fixed_point(ratio)
    if multiplier.ndim == 0 and not away:
        return make("fixed_point_multiply", (data,), multiplier=int(multiplier), shift=int(shift))
    return _shifted(data, multiplier, shift, away)


def _shifted(data: Expr, multiplier: Array, shift: Array, away: bool) -> Expr | None:
    """(data * multiplier + half) >> right, ties up or away from zero; one multiplier and shift for each channel."""
    left, right = np.maximum(shift - 31, 0), np.maximum(31 - shift, 0)
    if bool(np.any((right == 0) | (right > 62))):
        return None
    product = make("multiply", (data, constant((multiplier << left).astype(np.int64))))
    moved = make("add", (product, constant((np.int64(1) << (right - 1)).astype(np.int64))))
    if away:
        is_negative = make("less", (product, _number(0, "int64")))
        moved = make("subtract", (moved, _cast(is_negative, "int64")))
    return make("right_shift", (moved, constant(right.astype(np.int64))))


# Layers


def _conv2d(call: Call, uses: Uses) -> Expr | None:
    data, weight, zero, weight_zero = call.args[:4]
    attrs = call.attrs
    plain = {name: getattr(attrs, name) for name in ("strides", "dilation", "groups", "channels", "kernel_size")}
    plain |= {name: getattr(attrs, name) for name in ("data_layout", "kernel_layout", "out_layout")}
    out = attrs.out_dtype or "int32"
    value, kernel_value = constant_value(zero), constant_value(weight)
    is_narrow = _is_zero(weight_zero) and dtype_of(data) == dtype_of(weight)
    if is_narrow and _is_zero(zero):
        return make("nn.conv2d", (data, weight), padding=attrs.padding, out_dtype=out, span=call.span, **plain)
    if is_narrow and value is not None and kernel_value is not None and _holds(dtype_of(data), value):
        # Padding represents the zero point; its contribution to each sum is a constant per output channel.
        padded = _padded(data, attrs, value)
        product = make("nn.conv2d", (padded, weight), padding=(0, 0, 0, 0), out_dtype=out, span=call.span, **plain)
        sums = _output_sums(kernel_value, attrs.kernel_layout.index("O")) * int(value.reshape(()))
        layout = attrs.out_layout or attrs.data_layout
        return make("subtract", (product, _channel(sums, layout.index("C"), len(layout), out)), span=call.span)
    sides = _minus(data, zero, 0, "int32"), _minus(weight, weight_zero, attrs.kernel_layout.index("O"), "int32")
    return make("nn.conv2d", sides, padding=attrs.padding, out_dtype=out, span=call.span, **plain)


def _holds(dtype: str, value: Array) -> bool:
    info = np.iinfo(dtype)
    return bool(np.all((value >= info.min) & (value <= info.max)))


def _padded(data: Expr, attrs: Any, zero: Array) -> Expr:
    if not any(attrs.padding):
        return data
    before, after = split_padding("qnn.conv2d", attrs.padding, 2)
    spatial = dict(zip("HW", zip(before, after, strict=True), strict=True))
    width = tuple(spatial.get(letter, (0, 0)) for letter in attrs.data_layout)
    value = constant(zero.reshape(()).astype(dtype_of(data)))
    return make("nn.pad", (data, value), pad_width=width, pad_mode="constant")


def _output_sums(weight: Array, axis: int) -> Array:
    others = tuple(index for index in range(weight.ndim) if index != axis)
    return weight.astype(np.int64).sum(axis=others)


def _channel(values: Array, axis: int, rank: int, dtype: str) -> Expr:
    return constant(values.astype(dtype).reshape((-1,) + (1,) * (rank - axis - 1)))


def _dense(call: Call, uses: Uses) -> Expr | None:
    data, weight, zero, weight_zero = call.args[:4]
    units, out = call.attrs.units, call.attrs.out_dtype or "int32"
    value, kernel_value = constant_value(zero), constant_value(weight)
    is_narrow = _is_zero(weight_zero) and dtype_of(data) == dtype_of(weight)
    if is_narrow and (_is_zero(zero) or (value is not None and kernel_value is not None)):
        product = make("nn.dense", (data, weight), units=units, out_dtype=out, span=call.span)
        if _is_zero(zero) or value is None or kernel_value is None:
            return product
        sums = _output_sums(kernel_value, 0) * int(value.reshape(()))
        return make("subtract", (product, constant(sums.astype(out))), span=call.span)
    sides = _minus(data, zero, 0, "int32"), _minus(weight, weight_zero, 0, "int32")
    return make("nn.dense", sides, units=units, out_dtype=out, span=call.span)


# Arithmetic


def _aligned(data: Expr, scale: Expr, zero: Expr, out: Sequence[Expr], axis: int) -> Expr | None:
    """`data` in int64 at the output's scale and zero point."""
    values = [constant_value(part) for part in (scale, zero, *out)]
    if any(value is None for value in values):
        return None
    if np.array_equal(values[0], values[2]) and np.array_equal(values[1], values[3]):  # type: ignore[arg-type]
        return _cast(data, "int64")
    args = (data, scale, zero, *out)
    both = make("qnn.requantize", args, axis=axis, rounding="None", compute_dtype="None", out_dtype="int32")
    return _cast(both, "int64")


def _sum(call: Call, uses: Uses) -> Expr | None:
    left, right, left_scale, left_zero, right_scale, right_zero, *out = call.args
    a = _aligned(left, left_scale, left_zero, out, call.attrs.lhs_axis)
    b = _aligned(right, right_scale, right_zero, out, call.attrs.rhs_axis)
    if a is None or b is None:
        return None
    is_add = is_op(call, "qnn.add")
    total = make("add" if is_add else "subtract", (a, b), span=call.span)
    if not _is_zero(out[1]):
        total = make("subtract" if is_add else "add", (total, _fit(out[1], 0, 1, "int64")))
    return _saturate(total, dtype_of(call))


def _product(call: Call, uses: Uses) -> Expr | None:
    left, right, left_scale, left_zero, right_scale, right_zero, *out = call.args
    scales = constant_value(left_scale), constant_value(right_scale)
    if scales[0] is None or scales[1] is None or scales[0].size > 1 or scales[1].size > 1:
        return None
    a = _minus(left, left_zero, call.attrs.lhs_axis, "int32")
    b = _minus(right, right_zero, call.attrs.rhs_axis, "int32")
    scale = constant(np.asarray(scales[0].reshape(()) * scales[1].reshape(()), np.float32))
    args = (make("multiply", (a, b)), scale, _number(0, "int32"), *out)
    return make(
        "qnn.requantize", args, axis=-1, rounding="None", compute_dtype="None", out_dtype=dtype_of(call), span=call.span
    )


def _concatenate(call: Call, uses: Uses) -> Expr | None:
    parts, scales, zeros, *out = call.args
    if not all(isinstance(group, Tuple) for group in (parts, scales, zeros)):
        return None
    done: list[Expr] = []
    for data, scale, zero in zip(parts.fields, scales.fields, zeros.fields, strict=True):  # type: ignore[attr-defined]
        args = (data, scale, zero, *out)
        record: dict[str, Any] = {"axis": -1, "rounding": "None", "compute_dtype": "None", "out_dtype": dtype_of(call)}
        done.append(make("qnn.requantize", args, **record))
    return make("concatenate", (typed_tuple(done),), axis=call.attrs.axis, span=call.span)


def _batch_matmul(call: Call, uses: Uses) -> Expr:
    x, y, x_zero, y_zero = call.args[:4]
    sides = _minus(x, x_zero, 0, "int32"), _minus(y, y_zero, 0, "int32")
    flips = {name: getattr(call.attrs, name) for name in ("transpose_a", "transpose_b")}
    return make("nn.batch_matmul", sides, out_dtype=dtype_of(call), span=call.span, **flips)


def _conv2d_transpose(call: Call, uses: Uses) -> Expr:
    data, weight, zero, weight_zero = call.args[:4]
    sides = _minus(data, zero, 0, "int32"), _minus(weight, weight_zero, call.attrs.kernel_layout.index("O"), "int32")
    attrs = replace(call.attrs, out_dtype=dtype_of(call))
    return typed_call(get("nn.conv2d_transpose"), sides, attrs, call.span)


def _by_floats(call: Call, uses: Uses) -> Expr:
    """dequantize, the operator on real numbers, quantize."""
    data, scale, zero, *out = call.args
    real = make("qnn.dequantize", (data, scale, zero), axis=-1, out_dtype="float32")
    value = typed_call(FLOATS[op_name(call)], (real,), call.attrs, call.span)
    return make("qnn.quantize", (value, *out), axis=-1, out_dtype=dtype_of(call), rounding="half_away")


QNN_RULES = (
    Rule("quantize", ("qnn.quantize",), _quantize),
    Rule("dequantize", ("qnn.dequantize",), _dequantize),
    Rule("requantize", ("qnn.requantize",), _requantize),
    Rule("conv2d", ("qnn.conv2d",), _conv2d),
    Rule("dense", ("qnn.dense",), _dense),
    Rule("sum", ("qnn.add", "qnn.subtract"), _sum),
    Rule("product", ("qnn.mul",), _product),
    Rule("concatenate", ("qnn.concatenate",), _concatenate),
    Rule("batch matmul", ("qnn.batch_matmul",), _batch_matmul),
    Rule("conv2d transpose", ("qnn.conv2d_transpose",), _conv2d_transpose),
    Rule("by floats", tuple(FLOATS), _by_floats),
)
