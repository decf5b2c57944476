"""What one layer computes on VTA, in integers: sums of products and a tail of ALU operations.

In: shapes and constants of a composite. Out: `Kernel`, or one sentence about what VTA lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

# N, C, H, W.
Shape = tuple[int, int, int, int]
Numbers = NDArray[np.int64]
_INT32_MAX: Final = 2**31 - 1
# Amounts of SHR that every implementation reads alike.
MOST_SHIFT: Final = 15
# The largest power of two that a weight holds.
MOST_SCALE: Final = 6
_DATA_MAX: Final = 128
_LARGEST_RESULT: Final = 256


class Kind(Enum):
    """How channels of the data become channels of the result."""

    # Every channel reads all channels, by weights.
    DENSE = "dense"
    # Every channel reads its own, times a power of two.
    DIAGONAL = "diagonal"
    # The largest of a window of its own channel.
    MAXIMUM = "maximum"


@dataclass(frozen=True, slots=True)
class Window:
    """Rows and columns of each pair: `size`, `strides`, `dilation`, and zeros `before` the data."""

    size: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    before: tuple[int, int] = (0, 0)

    @property
    def taps(self) -> int:
        """Places of the window."""
        return self.size[0] * self.size[1]

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns that one window spans."""
        rows, columns = ((n - 1) * d + 1 for n, d in zip(self.size, self.dilation, strict=True))
        return rows, columns


@dataclass(frozen=True, slots=True, eq=False)
class Tail:
    """What the ALU does with a sum: add `bias` [O], shift left by `left`, then right by each of `shifts`, add
    `zero_point`, clip. A shift is one amount for all channels, or [O]."""

    bias: Numbers
    left: int
    shifts: tuple[int | Numbers, ...]
    zero_point: int
    low: int
    high: int

    @property
    def vectors(self) -> tuple[Numbers, ...]:
        """Rows of parameters: the bias, and shifts that differ between channels."""
        return (self.bias, *(shift for shift in self.shifts if not isinstance(shift, int)))


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """One layer. `weight`: int8 [O, I, rows, columns] of DENSE; `scales`: of each operand of DIAGONAL, as logarithm."""

    kind: Kind
    data: Shape
    result: Shape
    window: Window
    weight: NDArray[np.int8] | None = None
    scales: tuple[int, ...] = (0,)
    tail: Tail | None = None


@dataclass(frozen=True, slots=True)
class Scaling:
    """A requantization: multipliers and shifts of all channels or of each, rounding of halves, zero point, range."""

    multipliers: Sequence[int]
    shifts: Sequence[int]
    rounding: str
    zero_point: int
    low: int
    high: int


def tail_of(scaling: Scaling, bias: Numbers, reach: Numbers) -> Tail | str:
    """The tail of a layer whose sums are at most `reach` [O] from 0 without the bias [O]; or why there is none."""
    channels = len(bias)
    if scaling.rounding not in ("half_up", "floor"):
        return f"VTA's shift drops bits, so that halves can be rounded up or all down, not by {scaling.rounding}"
    pairs = (scaling.multipliers, scaling.shifts)
    multipliers, shifts = (np.broadcast_to(np.array(one, np.int64), (channels,)) for one in pairs)
    odd = [int(m) for m in multipliers if m & (m - 1) or not m]
    if odd:
        return f"VTA scales by shifts: multipliers must be powers of two, not {odd[0]} (strategy int8-pow2 makes such)"
    amounts = shifts - np.log2(multipliers).astype(np.int64)
    if amounts.max(initial=0) > 31:
        return f"VTA's sums have 32 bits: shifts must be at most 31, not {amounts.max()}"
    half = np.where((amounts > 0) & (scaling.rounding == "half_up"), 1 << np.maximum(amounts - 1, 0), 0)
    left = int(max(-amounts.min(initial=0), 0))
    most = reach + np.abs(bias + half)
    if left > MOST_SHIFT or (most.max(initial=0) << left) + _LARGEST_RESULT > _INT32_MAX:
        return "sums with bias and rounding must fit into 32 bits, for VTA's ALU wraps"
    return Tail(bias + half, left, _steps(amounts + left), scaling.zero_point, scaling.low, scaling.high)


def _steps(amounts: Numbers) -> tuple[int | Numbers, ...]:
    """Shifts to the right that are one after the other these amounts, each small enough for every implementation."""
    found: list[int | Numbers] = []
    common = int(amounts.min(initial=31))
    rest = amounts - common
    while common:
        found.append(min(common, MOST_SHIFT))
        common -= min(common, MOST_SHIFT)
    while rest.any():
        found.append(np.minimum(rest, MOST_SHIFT))
        rest = rest - np.minimum(rest, MOST_SHIFT)
    return tuple(found)


def reach_of(weight: NDArray[np.int8]) -> Numbers:
    """The largest sums of int8 data by a weight [O, ...]."""
    return np.abs(weight.astype(np.int64)).reshape(len(weight), -1).sum(1) * _DATA_MAX


def diagonal_reach(window: Window, scales: Sequence[int], channels: int) -> Numbers:
    """The largest sums of int8 data by powers of two."""
    return np.full(channels, sum(_DATA_MAX * window.taps << scale for scale in scales), np.int64)


def inner_tap(kernel: Kernel, axis: int) -> int | None:
    """A place of the window along an axis that is never in the padding."""
    window, size, out = kernel.window, kernel.data[2 + axis], kernel.result[2 + axis]
    for tap in range(window.size[axis]):
        first = tap * window.dilation[axis] - window.before[axis]
        if first >= 0 and first + (out - 1) * window.strides[axis] < size:
            return tap
    return None
