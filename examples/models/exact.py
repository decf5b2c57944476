"""Layers in whole numbers: every sum is exact, so the statistics taken from them are the same on every machine.

In: activations as float64 whole numbers of 1/GRID, [N, C, H, W] or [N, C]; weights as whole numbers. Out: the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
# Activations below 2**7, weights of 16 bits and sums of 2**13 products together stay below 2**53.
GRID = 1024
LIMIT = 128 * GRID


def rounded(values: Array) -> Array:
    """Nearest whole numbers, within the limit that keeps sums exact."""
    return np.clip(np.rint(values), -LIMIT, LIMIT)


def conv(x: Array, steps: Array, scale: float, stride: int, pads: Sequence[int], groups: int) -> Array:
    """Convolution with weights `steps` · `scale` [O, I, KH, KW]; pads: top, left, bottom, right."""
    view = windows(x, steps.shape[2:], stride, pads, 0)
    count, channels, high, wide = view.shape[:4]
    out = steps.shape[0]
    if groups == channels == out:
        sums = np.einsum("nchwij,cij->nchw", view, steps[:, 0])
        return rounded(sums * scale)
    # [groups, N·H·W, I·KH·KW] times [groups, I·KH·KW, O / groups]
    columns = view.reshape(count, groups, -1, high, wide, *view.shape[4:]).transpose(1, 0, 3, 4, 2, 5, 6)
    columns = columns.reshape(groups, count * high * wide, -1)
    sums = columns @ steps.reshape(groups, out // groups, -1).transpose(0, 2, 1)
    sums = sums.reshape(groups, count, high, wide, -1).transpose(1, 0, 4, 2, 3)
    return rounded(sums.reshape(count, out, high, wide) * scale)


def conv_transpose(x: Array, steps: Array, scale: float, stride: int, pads: int) -> Array:
    """Transposed convolution with weights `steps` · `scale` [I, O, K, K]: each input pixel adds a patch."""
    count, _, high, wide = x.shape
    kernel = steps.shape[2]
    patches = np.tensordot(x, steps, (1, 0))  # [N, H, W, O, K, K]
    sums = np.zeros((count, steps.shape[1], (high - 1) * stride + kernel, (wide - 1) * stride + kernel))
    for i, j in np.ndindex(kernel, kernel):
        rows, columns = slice(i, i + (high - 1) * stride + 1, stride), slice(j, j + (wide - 1) * stride + 1, stride)
        sums[:, :, rows, columns] += patches[..., i, j].transpose(0, 3, 1, 2)
    return rounded(sums[:, :, pads : sums.shape[2] - pads, pads : sums.shape[3] - pads] * scale)


def dense(x: Array, steps: Array, scale: float) -> Array:
    """Dense layer with weights `steps` · `scale` [O, I]."""
    return rounded(x @ steps.T * scale)


def max_pool(x: Array, kernel: int, stride: int, pads: int) -> Array:
    """Largest value of each window."""
    return windows(x, (kernel, kernel), stride, (pads,) * 4, -LIMIT).max(axis=(4, 5))


def average(x: Array) -> Array:
    """Mean of each map, [N, C, 1, 1]."""
    return rounded(x.mean(axis=(2, 3), keepdims=True))


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), from a table: the decimal module rounds alike on every machine."""
    table = _sigmoids()
    below = table[np.minimum(np.abs(x).astype(np.int64), len(table) - 1)]
    return np.where(x < 0, below, GRID - below)


@cache
def _sigmoids() -> Array:
    """Of 0, -1/GRID, -2/GRID and so on, until nothing is left."""
    context, found = Context(prec=12), [GRID / 2]
    while found[-1] >= 0.5:
        power = context.exp(context.divide(Decimal(len(found)), Decimal(GRID)))
        found.append(float(context.divide(Decimal(GRID), context.add(power, Decimal(1)))))
    return np.rint(np.array(found))


def windows(x: Array, kernel: Sequence[int], stride: int, pads: Sequence[int], fill: int) -> Array:
    """View [N, C, OH, OW, KH, KW] of the padded input."""
    top, left, bottom, right = pads
    if any(pads):
        x = np.pad(x, ((0, 0), (0, 0), (top, bottom), (left, right)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), (2, 3))[:, :, ::stride, ::stride]


def moments(x: Array) -> tuple[Array, Array]:
    """Mean and variance of each channel, in units of the value; one that hardly moves counts a tenth of the mean."""
    whole = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1).astype(np.int64)
    count = whole.shape[1]
    total, squares = whole.sum(1), (whole * whole).sum(1)
    mean = total / count
    variance = np.maximum(squares / count - mean**2, 0.0) / GRID**2
    return mean / GRID, np.maximum(variance, 0.1 * variance.mean() + 1e-3)
