"""Helpers for layers of a prequantized graph: channel axes, constants, multipliers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.op.qnn_scale import fixed_point
from relay_hw.quantize.integer_layers import Target
from relay_hw.quantize.number import MAX_SHIFT
from relay_hw.transform.graph import constant, is_op, op_name, shape_of

Array = NDArray[Any]


def original(expr: Expr) -> Expr:
    """The original of a copied node."""
    while isinstance(expr, Call) and is_op(expr, "copy"):
        expr = expr.args[0]
    return expr


def places_of(anchor: Call) -> tuple[int, int] | None:
    """The channel axis of an anchor's result, and that of its weight."""
    shape = shape_of(anchor)
    if shape is None:
        return None
    if op_name(anchor).endswith("dense"):
        return len(shape) - 1, 0
    layout, kernel = anchor.attrs.out_layout or anchor.attrs.data_layout, anchor.attrs.kernel_layout
    if not layout.isalpha() or not kernel.isalpha():
        return None
    is_transposed = op_name(anchor).endswith("conv2d_transpose")
    if is_transposed and anchor.attrs.groups != 1:
        return None
    return layout.index("C"), kernel.index("O")


def spread_to(data: Expr, shape: tuple[int, ...]) -> Expr | None:
    """An operand of an element-wise operator in the result's shape; of those that broadcast, constants only."""
    if shape_of(data) == shape:
        return data
    return constant(np.broadcast_to(data.data, shape).copy()) if isinstance(data, Constant) else None


def fits_int8(integers: Array) -> bool:
    """Whether all of them fit into int8."""
    return not integers.size or (int(integers.min()) >= -128 and int(integers.max()) <= 127)


def input_axis(anchor: Call) -> int:
    return int(anchor.attrs.kernel_layout.index("I"))


def vector_of(value: Array, count: int, axis: int, rank: int) -> Array | None:
    """A constant that varies along `axis` of a tensor of `rank` axes only, as a vector of `count`."""
    if value.ndim == 1 and value.size == count and rank == 0:
        return value
    full = (1,) * (rank - value.ndim) + value.shape
    if value.ndim == 1 and value.size == count and axis != rank - 1:
        full = tuple(count if k == axis else 1 for k in range(rank))  # the vector of a bias_add
    if len(full) != rank or any(size != 1 for k, size in enumerate(full) if k != axis):
        return None
    return np.broadcast_to(value.reshape(-1), (count,)) if value.size in (1, count) else None


def pairs_of(in_scale: Array, out_scale: Array, target: Target, is_fixed: bool) -> list[tuple[int, int]]:
    """Multiplier and shift for each input scale."""
    if is_fixed and target.bits == 31:
        ratio = in_scale.reshape(-1).astype(np.float64) / float(out_scale.reshape(()))
        multipliers, exponents = fixed_point(ratio)
        shifts = 31 - exponents
        if bool(np.all((shifts >= 0) & (shifts <= MAX_SHIFT))):
            return [(int(m), int(s)) for m, s in zip(multipliers, shifts, strict=True)]
    exact = Fraction(float(out_scale.reshape(())))
    return target.pairs([Fraction(float(s)) / exact for s in in_scale.reshape(-1)])


def has_one_divisor(pool: Call) -> bool:
    attrs = pool.attrs
    if is_op(pool, "mean"):
        axes = None if attrs.axis is None else tuple(sorted(axis % 4 for axis in attrs.axis))
        return axes == (2, 3) and bool(attrs.keepdims) and not attrs.exclude
    if is_op(pool, "nn.global_avg_pool2d"):
        return True
    padded = any(attrs.padding) and not attrs.count_include_pad
    return not padded and not attrs.ceil_mode and all(step == 1 for step in attrs.dilation)
