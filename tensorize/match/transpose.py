"""Splits a transposed convolution into convolutions of stride 1, one for each remainder of row and column by stride.

In: integer weights and attributes. Out: `TransposeKernel`. No inserted zero is ever multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from relay_hw.tensorize.kernel import ConvKernel, Image, Int8, Place, TransposeKernel, Window
from relay_hw.tensorize.stages import Requantize

_HALF = 1 << 31


@dataclass(frozen=True, slots=True)
class Spread:
    """The window an input pixel is spread over; pairs are (height, width), padding (top, left, bottom, right)."""

    strides: tuple[int, int]
    dilation: tuple[int, int]
    padding: tuple[int, int, int, int]
    pad_value: int


@dataclass(frozen=True, slots=True)
class _Taps:
    """One axis of a phase: result number `count` of them start at `first`; input offsets `offsets` with kernel taps.

    A tap of None is a zero: it keeps offsets evenly spaced, and makes every window meet the input.
    """

    first: int
    count: int
    offsets: range
    taps: tuple[int | None, ...]


def transpose_kernel(source: Image, target: Image, weights: Int8, spread: Spread, stage: Requantize) -> TransposeKernel:
    """`weights`: int8 [I, O, kernel height, kernel width]. `stage`'s bias is that of inputs whose zero is 0."""
    kernel = weights.shape[2:]
    axes = [
        list(_phases(size, count, kernel[axis], spread, axis))
        for axis, (size, count) in enumerate(((source.height, target.height), (source.width, target.width)))
    ]
    phases = tuple(_phase(source, target, weights, spread, stage, taps) for taps in product(*axes))
    return TransposeKernel(source, target, phases, source.pixels * weights.size)


def _phases(size: int, total: int, kernel: int, spread: Spread, axis: int) -> Iterator[_Taps]:
    stride, step, before = spread.strides[axis], spread.dilation[axis], spread.padding[axis]
    for first in range(min(stride, total)):
        # Result first + n stride gets tap k of input n + offset where k step = first + before - offset stride.
        found = {
            (first + before - k * step) // stride: k for k in range(kernel) if (first + before - k * step) % stride == 0
        }
        count = -(-(total - first) // stride)
        offsets = _spaced(sorted(found), size, count)
        yield _Taps(first, count, offsets, tuple(found.get(offset) for offset in offsets))


def _spaced(found: list[int], size: int, count: int) -> range:
    """Evenly spaced offsets that contain all found ones, and by which every one of `count` windows meets the input."""
    low, high = (found[0], found[-1]) if found else (0, 0)
    step = found[1] - found[0] if len(found) > 1 else 1
    needed_low, needed_high = min(low, size - count), max(high, 0)
    if (needed_low, needed_high) != (low, high):
        low, high, step = needed_low, needed_high, 1
    return range(low, high + 1, step)


def _phase(
    source: Image, target: Image, weights: Int8, spread: Spread, stage: Requantize, taps: tuple[_Taps, ...]
) -> ConvKernel:
    rows, cols = taps
    inputs, outputs = weights.shape[:2]
    kernel = np.zeros((outputs, len(rows.offsets), len(cols.offsets), inputs), np.int8)
    for y, row in enumerate(rows.taps):
        for x, col in enumerate(cols.taps):
            if row is not None and col is not None:
                kernel[:, y, x] = weights[:, :, row, col].T
    folded = stage.bias - spread.pad_value * kernel.astype(np.int64).sum(axis=(1, 2, 3))
    window = Window(
        kernel=(len(rows.offsets), len(cols.offsets)),
        dilation=(rows.offsets.step, cols.offsets.step),
        padding=(
            -rows.offsets[0],
            -cols.offsets[0],
            rows.count - 1 + rows.offsets[-1] - (source.height - 1),
            cols.count - 1 + cols.offsets[-1] - (source.width - 1),
        ),
        pad_value=spread.pad_value,
    )
    return ConvKernel(
        source,
        Image(rows.count, cols.count, outputs),
        window,
        kernel,
        replace(stage, bias=(folded + _HALF) % (2 * _HALF) - _HALF),
        place=Place(target, (rows.first, cols.first), spread.strides),
    )
