"""Observers: they watch the values of one tensor during calibration and say the range that it needs.

In: arrays, in any order and any batching. Out: (low, high). Neither order nor batching changes the answer.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.quantize.choices import Calibration
from relay_hw.quantize.strategy import Strategy

Array = NDArray[Any]

_BINS = 4096


class Observer(Protocol):
    """Watches one tensor."""

    def update(self, value: Array) -> None:
        """Take in values. Raises QuantizeError where one is not finite."""
        ...

    def limits(self) -> tuple[float, float]:
        """The range to represent. Raises QuantizeError when nothing was seen."""
        ...


class MinMaxObserver:
    """The smallest and the largest value."""

    def __init__(self) -> None:
        self._low = math.inf
        self._high = -math.inf

    def update(self, value: Array) -> None:
        if not value.size:
            return
        low, high = float(value.min()), float(value.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise QuantizeError(f"activations must be finite on the calibration data, not {low} to {high}")
        self._low, self._high = min(self._low, low), max(self._high, high)

    def limits(self) -> tuple[float, float]:
        if self._low > self._high:
            raise QuantizeError("calibration data must reach every tensor, not leave one without a value")
        return self._low, self._high


class PercentileObserver:
    """The range that holds `percentile` percent of the values, cut equally from both ends.

    A histogram on [-reach, reach), reach a power of two: when a value falls outside, pairs of bins merge exactly, so
    that the result does not depend on the order of the data. An end moves in by whole bins only.
    """

    def __init__(self, percentile: float) -> None:
        self._extremes = MinMaxObserver()
        self._tail = (100.0 - percentile) / 100.0
        self._counts = np.zeros(_BINS, np.int64)
        self._reach = 0.0

    def update(self, value: Array) -> None:
        self._extremes.update(value)
        if not value.size:
            return
        largest = float(np.abs(value).max())
        if largest == 0.0:
            largest = 1e-30
        while self._reach <= largest:
            self._widen(largest)
        # Reach and bins are powers of two, so scaling is exact; adding before the floor would lose small negatives.
        index = (
            np.floor(value.reshape(-1).astype(np.float64) * (_BINS // 2 / self._reach)).astype(np.int64) + _BINS // 2
        )
        self._counts += np.bincount(np.clip(index, 0, _BINS - 1), minlength=_BINS)

    def limits(self) -> tuple[float, float]:
        low, high = self._extremes.limits()
        total = int(self._counts.sum())
        drop = int(total * self._tail / 2)
        below, above = np.cumsum(self._counts), np.cumsum(self._counts[::-1])
        first = int(np.searchsorted(below, drop, side="right"))
        last = _BINS - 1 - int(np.searchsorted(above, drop, side="right"))
        width = 2 * self._reach / _BINS
        return max(low, first * width - self._reach), min(high, (last + 1) * width - self._reach)

    def _widen(self, largest: float) -> None:
        if not self._counts.any():
            self._reach = 2.0 ** (math.frexp(largest)[1])
            return
        merged = self._counts.reshape(-1, 2).sum(axis=1)
        quarter = _BINS // 4
        self._counts = np.zeros(_BINS, np.int64)
        self._counts[quarter : quarter + _BINS // 2] = merged
        self._reach *= 2.0


def make_observer(strategy: Strategy) -> Observer:
    """The observer that `strategy` asks for."""
    match strategy.calibration:
        case Calibration.PERCENTILE:
            return PercentileObserver(strategy.percentile)
        case _:
            return MinMaxObserver()
