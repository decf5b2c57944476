"""Makes fixed-point operators from exact scale factors, with the nearest multiplier and shift for each.

In: int8 or int32 expressions and fractions. Out: typed calls of `fixed.*`, and paddings that stand for 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.base import split_padding
from relay_hw.quantize.affine import Grid
from relay_hw.quantize.number import normalise, normalise_together
from relay_hw.span import Span
from relay_hw.transform.graph import constant, is_op, make, op_name, remake, shape_of

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Target:
    """Quantization of a layer's result: grid, integer bounds, rounding."""

    grid: Grid
    low: int
    high: int
    rounding: str
    bits: int
    span: Span | None = None

    def pairs(self, factors: Sequence[Fraction]) -> list[tuple[int, int]]:
        """Multiplier and shift of each factor."""
        return [normalise(factor, self.bits) for factor in factors]


def wrap32(values: Array) -> Array:
    """int64 numbers modulo 2**32, as int32."""
    return values.astype(np.int64).astype(np.uint64).astype(np.uint32).view(np.int32).copy()


def requantize(acc: Expr, bias: Array, pairs: Sequence[tuple[int, int]], axis: int, target: Target) -> Call:
    """Requantize int32 `acc` plus `bias` by a (multiplier, shift) for each index of `axis` to the target."""
    pairs = list(pairs)
    if len(set(pairs)) == 1:
        pairs = pairs[:1]
    return make(
        "fixed.requantize",
        (acc, constant(wrap32(bias))),
        multiplier=tuple(m for m, _ in pairs),
        shift=tuple(s for _, s in pairs),
        zero_point=target.grid.zero,
        rounding=target.rounding,
        a_min=target.low,
        a_max=target.high,
        axis=axis,
        multiplier_bits=target.bits,
        span=target.span,
    )


def add(sides: Sequence[Expr], grids: Sequence[Grid], target: Target) -> Call:
    """The sum of two int8 tensors of one shape, rounded once."""
    factors = [grid.scale / target.grid.scale for grid in grids]
    (left, right), shift = normalise_together(factors, target.bits)
    return _add(sides, grids, (left, right), shift, target)


def rescale(data: Expr, grid: Grid, target: Target) -> Call:
    """Requantize int8 `data` to another scale: a sum whose second operand has multiplier 0."""
    multiplier, shift = normalise(grid.scale / target.grid.scale, target.bits)
    return _add((data, data), (grid, grid), (multiplier, 0), shift, target)


def _add(
    sides: Sequence[Expr], grids: Sequence[Grid], multipliers: tuple[int, int], shift: int, target: Target
) -> Call:
    return make(
        "fixed.add",
        tuple(sides),
        y_multiplier=multipliers[0],
        r_multiplier=multipliers[1],
        shift=shift,
        y_zero_point=grids[0].zero,
        r_zero_point=grids[1].zero,
        zero_point=target.grid.zero,
        rounding=target.rounding,
        a_min=target.low,
        a_max=target.high,
        multiplier_bits=target.bits,
        span=target.span,
    )


def average(pool: Call, data: Expr, grid: Grid, target: Target) -> Call:
    """The mean of windows (or of whole channels) as their sum, rounded once."""
    shape = shape_of(pool.args[0])
    assert shape is not None
    size, strides, padding, layout = _windows(pool, shape)
    if any(padding) and grid.zero:
        data, padding = pad(data, padding, layout, grid.zero, pool.span), (0, 0, 0, 0)
    acc = make(
        "fixed.sum_pool2d", (data,), pool_size=size, strides=strides, padding=padding, layout=layout, span=pool.span
    )
    count, axis = size[0] * size[1], layout.index("C")
    bias = np.full(shape[axis], -grid.zero * count, np.int64)
    return requantize(acc, bias, target.pairs([grid.scale / (target.grid.scale * count)]), axis, target)


def _windows(pool: Call, shape: tuple[int, ...]) -> tuple[tuple[int, int], tuple[int, int], tuple[int, ...], str]:
    if is_op(pool, "mean"):
        return (shape[2], shape[3]), (1, 1), (0, 0, 0, 0), "NCHW"
    layout = str(pool.attrs.layout)
    if is_op(pool, "nn.global_avg_pool2d"):
        return (shape[layout.index("H")], shape[layout.index("W")]), (1, 1), (0, 0, 0, 0), layout
    before, after = split_padding(op_name(pool), pool.attrs.padding, 2)
    height, width = pool.attrs.pool_size
    return (height, width), (pool.attrs.strides[0], pool.attrs.strides[1]), (*before, *after), layout


def convolution(anchor: Call, data: Expr, weight: Array, zero: int) -> Expr:
    """int32 convolution of int8 `data` and `weight`; padding is `zero`. `anchor`: nn.conv2d or qnn.conv2d."""
    names = ("strides", "padding", "dilation", "groups", "channels", "kernel_size", "data_layout", "kernel_layout")
    attrs = {name: getattr(anchor.attrs, name) for name in names} | {"out_layout": anchor.attrs.out_layout}
    before, after = split_padding("nn.conv2d", attrs["padding"], 2)
    if zero and any((*before, *after)):
        data = pad(data, (*before, *after), attrs["data_layout"], zero, anchor.span)
        attrs["padding"] = (0, 0, 0, 0)
    return make("nn.conv2d", (data, constant(weight)), out_dtype="int32", span=anchor.span, **attrs)


def transposed(anchor: Call, data: Expr, weight: Array, zero: int) -> Expr:
    """int32 transposed convolution; positions between the data add 0."""
    names = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "output_padding")
    attrs = {name: getattr(anchor.attrs, name) for name in names}
    args = (data, constant(weight))
    return make("fixed.conv2d_transpose", args, **attrs, input_zero_point=zero, span=anchor.span)


def pad(data: Expr, padding: Sequence[int], layout: str, value: int, span: Span | None) -> Call:
    """`data` padded by (top, left, bottom, right)."""
    top, left, bottom, right = padding
    widths = {"H": (top, bottom), "W": (left, right)}
    pad_width = tuple(widths.get(letter, (0, 0)) for letter in layout)
    return make("nn.pad", (data, constant(np.int8(value))), pad_width=pad_width, pad_mode="constant", span=span)


def bounded(data: Expr, low: int, high: int, may_change: bool, span: Span | None) -> Expr:
    """`data` clipped to [low, high]: inside its layer if `may_change` says that it has no other reader."""
    if (low, high) == (-128, 127):
        return data
    if may_change and isinstance(data, Call) and op_name(data) in ("fixed.requantize", "fixed.add"):
        a = data.attrs
        limits = (min(max(bound, low), high) for bound in (a.a_min, a.a_max))
        a_min, a_max = limits
        return remake(data, data.args, replace(a, a_min=a_min, a_max=a_max))
    return make("clip", (data,), a_min=low, a_max=high, span=span)
