"""Gradients of pooling. In: a call, its result's adjoint. Out: the argument's adjoint.

Means spread their adjoint with a transposed convolution of ones; a maximum gives it to the first largest element.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.ir.late import late
from relay_hw.op.base import permutation
from relay_hw.op.gradients.common import inverse, moved, name_of, one_argument, ops, reshaped, sizes
from relay_hw.op.gradients.conv import SPATIAL


def _orders(call: Call, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    attrs, plain = call.attrs, "NC" + SPATIAL[rank]
    return (
        permutation(name_of(call), attrs.layout, plain),
        permutation(name_of(call), attrs.out_layout or attrs.layout, plain),
    )


def _plain(call: Call) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Rank, order of data and of result, shape of data and of result as NC + spatial."""
    x = call.args[0]
    rank = x.tensor_type.rank - 2
    inward, outward = _orders(call, rank)
    shape, out = sizes(call, x), sizes(call, call)
    return rank, inward, outward, tuple(shape[axis] for axis in inward), tuple(out[axis] for axis in outward)


def _largest(call: Call, x: Expr, g: Expr) -> Expr:
    """`argmax` names the elements, counted through the spatial axes."""
    op = ops()
    _rank, inward, outward, shape, out = _plain(call)
    places = late("relay_hw.op.pool").ARGMAX_OF[name_of(call)]
    lead, area, count = shape[:2], prod(shape[2:]), prod(out[2:])
    picked = reshaped(moved(Call(places, (x,), call.attrs), outward), (*lead, count))
    updates = reshaped(moved(g, outward), (*lead, count))
    behind = int(_has_empty_window(call, shape, out))
    start = op.zeros((*lead, area + behind), x.tensor_type.dtype)
    flat = op.scatter_elements(start, picked, updates, 2, "add")
    flat = op.strided_slice(flat, (0,), (area,), axes=(2,)) if behind else flat
    return moved(reshaped(flat, shape), inverse(inward))


def _has_empty_window(call: Call, shape: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Whether a window lies in the padding alone; its element is the one behind the last."""
    if not hasattr(call.attrs, "pool_size"):
        return False
    pool = late("relay_hw.op.pool")
    windows = pool.Windows.of(name_of(call), call.attrs, len(shape) - 2)
    return not pool.window_sums(np.ones(shape[2:], np.int64), windows, out[2:], "int64").all()


def _spread(g: Expr, channels: int, kernel: tuple[int, ...], dtype: str, **geometry: Any) -> Expr:
    """The transpose of summing windows, channel by channel."""
    ones = ops().ones((channels, 1, *kernel), dtype)
    transpose = getattr(ops().nn, f"conv{len(kernel)}d_transpose")
    return transpose(g, ones, groups=channels, **geometry)


def _mean(call: Call, x: Expr, g: Expr) -> Expr:
    pool = late("relay_hw.op.pool")
    rank, inward, outward, shape, out = _plain(call)
    dtype = x.tensor_type.dtype
    w = pool.Windows.of(name_of(call), call.attrs, rank)
    count = pool.window_counts(call.attrs, shape[2:], w, out[2:]).astype(dtype)
    hang = w.overhang(shape[2:], out[2:])
    parts = zip(shape[2:], out[2:], w.kernel, w.strides, w.dilation, w.before, w.after, hang, strict=True)
    rest = tuple(n + b + a + h - ((o - 1) * s + (k - 1) * d + 1) for n, o, k, s, d, b, a, h in parts)
    after = tuple(a + h for a, h in zip(w.after, hang, strict=True))
    found = _spread(
        moved(g, outward) / Constant(count),
        shape[1],
        w.kernel,
        dtype,
        strides=w.strides,
        padding=(*w.before, *after),
        dilation=w.dilation,
        output_padding=rest,
    )
    return moved(found, inverse(inward))


def _global_mean(call: Call, x: Expr, g: Expr) -> Expr:
    _, inward, outward, shape, _ = _plain(call)
    dtype = x.tensor_type.dtype
    share = moved(g, outward) * ops().const(1 / prod(shape[2:]), dtype)
    return moved(ops().broadcast_to(share, shape), inverse(inward))


def _adaptive_mean(call: Call, x: Expr, g: Expr) -> Expr:
    """Regions of differing size are one matrix an axis: how much of each element each region takes."""
    op = ops()
    rank, inward, outward, shape, out = _plain(call)
    found = moved(g, outward)
    for axis in range(2, 2 + rank):
        matrix = _shares(shape[axis], out[axis]).astype(x.tensor_type.dtype)
        order = [*(other for other in range(rank + 2) if other != axis), axis]
        rows = op.nn.dense(moved(found, order), Constant(np.ascontiguousarray(matrix.T)), units=shape[axis])
        found = moved(rows, inverse(order))
    return moved(found, inverse(inward))


def _shares(size: int, count: int) -> np.ndarray:
    shares = np.zeros((count, size))
    for region in range(count):
        begin, end = region * size // count, -(-(region + 1) * size // count)
        shares[region, begin:end] = 1 / (end - begin)
    return shares


largest = one_argument(_largest)
mean = one_argument(_mean)
global_mean = one_argument(_global_mean)
adaptive_mean = one_argument(_adaptive_mean)
