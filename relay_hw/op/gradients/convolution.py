"""Shared helpers of the gradients of convolutions and transposed convolutions, each made of the other.

In: a call, its result's adjoint. Out: the weight's adjoint, which is a convolution of the data with the adjoint, batch
and channels having changed places, strides and dilation too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.base import permutation, split_padding
from relay_hw.op.gradients.common import in_type, inverse, moved, name_of, ops, reshaped, sizes

SPATIAL = {1: "W", 2: "HW", 3: "DHW"}


@dataclass(frozen=True, slots=True)
class ConvCall:
    """A call whose data are NC + spatial and whose weight is OI (or IO) + spatial."""

    rank: int
    data_order: tuple[int, ...]
    weight_order: tuple[int, ...]
    out_order: tuple[int, ...]
    data_shape: tuple[int, ...]
    weight_shape: tuple[int, ...]
    out_shape: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    attrs: Any

    @staticmethod
    def of(call: Call, weight_letters: str) -> ConvCall:
        name, attrs = name_of(call), call.attrs
        x, w = call.args
        rank = x.tensor_type.rank - 2
        plain = "NC" + SPATIAL[rank]
        data_order = permutation(name, attrs.data_layout, plain)
        weight_order = permutation(name, attrs.kernel_layout, weight_letters + SPATIAL[rank])
        out_order = permutation(name, attrs.out_layout or attrs.data_layout, plain)
        data_shape = tuple(sizes(call, x)[axis] for axis in data_order)
        weight_shape = tuple(sizes(call, w)[axis] for axis in weight_order)
        out_shape = tuple(sizes(call, call)[axis] for axis in out_order)
        before, after = split_padding(name, attrs.padding, rank)
        orders = (data_order, weight_order, out_order)
        return ConvCall(rank, *orders, data_shape, weight_shape, out_shape, before, after, attrs)

    @property
    def geometry(self) -> dict[str, Any]:
        attrs = self.attrs
        return {
            "strides": attrs.strides,
            "padding": (*self.before, *self.after),
            "dilation": attrs.dilation,
            "groups": attrs.groups,
        }


def back(value: Expr, order: Sequence[int], arg: Expr, call: Call) -> Expr:
    return in_type(moved(value, inverse(order)), arg, call)


def to_weight(p: ConvCall, wide: Expr, wide_shape: Sequence[int], small: Expr, small_shape: Sequence[int]) -> Expr:
    """The weight's adjoint: each weight sums the products of the `wide` and `small` elements that it connects."""
    batch, channels, groups = wide_shape[0], wide_shape[1], p.attrs.groups
    spatial = tuple(range(3, 3 + p.rank))
    inner = channels // groups
    grouped = ops().transpose(reshaped(wide, (batch, groups, inner, *wide_shape[2:])), (2, 1, 0, *spatial))
    data = reshaped(grouped, (inner, groups * batch, *wide_shape[2:]))
    swap = (1, 0, *range(2, 2 + p.rank))
    convolution = getattr(ops().nn, f"conv{p.rank}d")
    found = convolution(
        data,
        ops().transpose(small, swap),
        strides=p.attrs.dilation,
        padding=(*p.before, *p.after),
        dilation=p.attrs.strides,
        groups=groups,
    )
    # Data that the stride leaves over would need weights that do not exist.
    shape = (inner, small_shape[1], *p.weight_shape[2:])
    return ops().transpose(first(found, shape) if _is_left_over(p, wide_shape, small_shape) else found, swap)


def first(value: Expr, shape: Sequence[int]) -> Expr:
    """The first elements along every axis."""
    return ops().strided_slice(value, (0,) * len(shape), shape)


def _is_left_over(p: ConvCall, wide_shape: Sequence[int], small_shape: Sequence[int]) -> bool:
    parts = zip(
        wide_shape[2:], small_shape[2:], p.weight_shape[2:], p.attrs.strides, p.attrs.dilation, p.before, p.after,
        strict=True,
    )  # fmt: skip
    return any((n + b + a - (o - 1) * s - 1) // d + 1 != k for n, o, k, s, d, b, a in parts)
