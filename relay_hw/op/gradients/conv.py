"""Gradients of convolutions and of their transposes, each made of the other one.

In: a call, its result's adjoint. Out: the arguments' adjoints. The weight's is a convolution of the data with the
adjoint, batch and channels having changed places, strides and dilation too.
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
class _Plain:
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
    def of(call: Call, weight_letters: str) -> _Plain:
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
        return _Plain(rank, *orders, data_shape, weight_shape, out_shape, before, after, attrs)

    @property
    def geometry(self) -> dict[str, Any]:
        attrs = self.attrs
        return {
            "strides": attrs.strides,
            "padding": (*self.before, *self.after),
            "dilation": attrs.dilation,
            "groups": attrs.groups,
        }


def conv(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data's adjoint is a transposed convolution with the weight."""
    p = _Plain.of(call, "OI")
    x, w = call.args
    g = moved(adjoint, p.out_order)
    parts = zip(
        p.data_shape[2:], p.out_shape[2:], p.weight_shape[2:], p.attrs.strides, p.attrs.dilation, p.before, p.after,
        strict=True,
    )  # fmt: skip
    rest = tuple(n - ((o - 1) * s + (k - 1) * d + 1 - b - a) for n, o, k, s, d, b, a in parts)
    transpose = getattr(ops().nn, f"conv{p.rank}d_transpose")
    to_x = transpose(g, moved(w, p.weight_order), output_padding=rest, **p.geometry)
    to_w = _to_weight(p, moved(x, p.data_order), p.data_shape, g, p.out_shape)
    return _back(to_x, p.data_order, x, call), _back(to_w, p.weight_order, w, call)


def conv_transpose(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The data's adjoint is the convolution that the call transposed."""
    p = _Plain.of(call, "IO")
    x, w = call.args
    g = moved(adjoint, p.out_order)
    convolution = getattr(ops().nn, f"conv{p.rank}d")
    to_x = convolution(g, moved(w, p.weight_order), **p.geometry)
    # An output padding of a stride or more gives the convolution windows that nothing came from.
    more = any(extra >= stride for extra, stride in zip(p.attrs.output_padding, p.attrs.strides, strict=True))
    to_x = _cut(to_x, p.data_shape) if more else to_x
    to_w = _to_weight(p, g, p.out_shape, moved(x, p.data_order), p.data_shape)
    return _back(to_x, p.data_order, x, call), _back(to_w, p.weight_order, w, call)


def _back(value: Expr, order: Sequence[int], arg: Expr, call: Call) -> Expr:
    return in_type(moved(value, inverse(order)), arg, call)


def _to_weight(p: _Plain, wide: Expr, wide_shape: Sequence[int], small: Expr, small_shape: Sequence[int]) -> Expr:
    """Each weight sums the products of the `wide` elements with the `small` ones that it brings together."""
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
    # Data that the stride leaves over would meet weights that there are not.
    shape = (inner, small_shape[1], *p.weight_shape[2:])
    return ops().transpose(_cut(found, shape) if _is_left_over(p, wide_shape, small_shape) else found, swap)


def _cut(value: Expr, shape: Sequence[int]) -> Expr:
    """The first elements along every axis."""
    return ops().strided_slice(value, (0,) * len(shape), shape)


def _is_left_over(p: _Plain, wide_shape: Sequence[int], small_shape: Sequence[int]) -> bool:
    parts = zip(
        wide_shape[2:], small_shape[2:], p.weight_shape[2:], p.attrs.strides, p.attrs.dilation, p.before, p.after,
        strict=True,
    )  # fmt: skip
    return any((n + b + a - (o - 1) * s - 1) // d + 1 != k for n, o, k, s, d, b, a in parts)
