"""Observers: record the values of a tensor during calibration and choose its range.

In: arrays, one a sample. Out: (low, high). Only the moving average depends on their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.quantize.choices import Calibration
from relay_hw.quantize.layer_rule import ActivationRule

Array = NDArray[Any]

BINS = 8192
_MERGED = 4
_SHARES = np.arange(64, 7, -1) / 64
_UNSEEN = "calibration data must reach every tensor, not leave one without a value"


class Observer(Protocol):
    """Records the values of one tensor."""

    def update(self, value: Array) -> None:
        """Record values. Raises QuantizeError if one is not finite."""
        ...

    def limits(self) -> tuple[float, float]:
        """The range to represent. Raises QuantizeError if nothing was recorded."""
        ...


class GlobalObserver:
    """One range for every tensor, whatever its values."""

    def __init__(self, scale: float) -> None:
        self._scale = scale

    def update(self, value: Array) -> None:
        """Ignore the values."""

    def limits(self) -> tuple[float, float]:
        return -self._scale, self._scale


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
            raise QuantizeError(_UNSEEN)
        return self._low, self._high


class MovingAverageObserver:
    """An exponential moving average of each sample's range, with weight `momentum` for the past.

    The only observer whose answer depends on the order of the samples; `update` takes one of them.
    """

    def __init__(self, momentum: float) -> None:
        self._momentum = momentum
        self._range: tuple[float, float] | None = None

    def update(self, value: Array) -> None:
        if not value.size:
            return
        sample = MinMaxObserver()
        sample.update(value)
        low, high = sample.limits()
        if self._range is not None:
            keep, add = self._momentum, 1.0 - self._momentum
            low, high = keep * self._range[0] + add * low, keep * self._range[1] + add * high
        self._range = low, high

    def limits(self) -> tuple[float, float]:
        if self._range is None:
            raise QuantizeError(_UNSEEN)
        return self._range


class Histogram:
    """Counts of values on [-reach, reach), reach a power of two, in bins of one width.

    When a value falls outside, pairs of bins merge exactly, so that counts do not depend on the order of the data.
    """

    def __init__(self) -> None:
        self._extremes = MinMaxObserver()
        self.counts = np.zeros(BINS, np.int64)
        self.reach = 0.0

    def update(self, value: Array) -> None:
        """Count `value`. Raises QuantizeError if one is not finite."""
        self._extremes.update(value)
        if not value.size:
            return
        largest = float(np.abs(value).max())
        if largest == 0.0:
            largest = 1e-30
        while self.reach <= largest:
            self._widen(largest)
        # Reach and bins are powers of two, so scaling is exact; adding before the floor would lose small negatives.
        index = np.floor(value.reshape(-1).astype(np.float64) * (BINS // 2 / self.reach)).astype(np.int64) + BINS // 2
        self.counts += np.bincount(np.clip(index, 0, BINS - 1), minlength=BINS)

    @property
    def width(self) -> float:
        """Width of a bin."""
        return 2 * self.reach / BINS

    @property
    def centers(self) -> NDArray[np.float64]:
        """Middle of each bin."""
        return (np.arange(BINS, dtype=np.float64) + 0.5) * self.width - self.reach

    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest value. Raises QuantizeError if nothing was recorded."""
        return self._extremes.limits()

    def between(self, low_tail: float, high_tail: float) -> tuple[float, float]:
        """The range without these shares of values at its ends, in whole bins."""
        low, high = self.extremes()
        total = int(self.counts.sum())
        below, above = np.cumsum(self.counts), np.cumsum(self.counts[::-1])
        first = int(np.searchsorted(below, int(total * low_tail), side="right"))
        last = BINS - 1 - int(np.searchsorted(above, int(total * high_tail), side="right"))
        return max(low, first * self.width - self.reach), min(high, (last + 1) * self.width - self.reach)

    def _widen(self, largest: float) -> None:
        if not self.counts.any():
            self.reach = 2.0 ** (math.frexp(largest)[1])
            return
        merged = self.counts.reshape(-1, 2).sum(axis=1)
        quarter = BINS // 4
        self.counts = np.zeros(BINS, np.int64)
        self.counts[quarter : quarter + BINS // 2] = merged
        self.reach *= 2.0


RangeCost: TypeAlias = Callable[[Histogram, float, float], float]


class _HistogramObserver:
    """Chooses a range from a histogram."""

    def __init__(self) -> None:
        self.histogram = Histogram()

    def update(self, value: Array) -> None:
        """Count `value`."""
        self.histogram.update(value)


class PercentileObserver(_HistogramObserver):
    """The range of `percentile` percent of the values, cut equally from both ends."""

    def __init__(self, percentile: float) -> None:
        super().__init__()
        self._tail = (100.0 - percentile) / 100.0

    def limits(self) -> tuple[float, float]:
        return self.histogram.between(self._tail / 2, self._tail / 2)


class OutlierObserver(_HistogramObserver):
    """The range without outliers: values further from the central 99.8 % than half the width of these."""

    def limits(self) -> tuple[float, float]:
        low, high = self.histogram.extremes()
        inner_low, inner_high = self.histogram.between(0.001, 0.001)
        slack = (inner_high - inner_low) / 2
        return max(low, inner_low - slack), min(high, inner_high + slack)


class SearchObserver(_HistogramObserver):
    """The range of least `cost(histogram, low, high)`: moves both ends inward in turn, in steps of 1/64."""

    def __init__(self, cost: RangeCost) -> None:
        super().__init__()
        self._cost = cost

    def limits(self) -> tuple[float, float]:
        low, high = self.histogram.extremes()
        low, high = min(low, 0.0), max(high, 0.0)
        if low == high:
            return low, high
        best = self._best([(low * share, high * share) for share in _SHARES])
        best = self._best([best, *((low * share, best[1]) for share in _SHARES)])
        return self._best([best, *((best[0], high * share) for share in _SHARES)])

    def _best(self, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        costs = [self._cost(self.histogram, low, high) if low < high else math.inf for low, high in ranges]
        return ranges[int(np.argmin(costs))]


def squared_error(levels: int, symmetric: bool, power_of_two: bool = False) -> RangeCost:
    """The sum of squared errors of rounding to `levels` integers and of clipping."""

    def cost(histogram: Histogram, low: float, high: float) -> float:
        rounded = _rounded(histogram.centers, low, high, levels, symmetric, power_of_two)
        return float((np.square(histogram.centers - rounded) * histogram.counts).sum())

    return cost


def divergence(levels: int, symmetric: bool) -> RangeCost:
    """The Kullback-Leibler divergence between the distributions of the values and of their `levels` integers.

    As in calibration by entropy (Migacz 2017): P is the histogram with clipped values at its ends, Q has the counts of
    each integer spread evenly over those of its bins that are not empty. Bins are merged by four, so that chance plays
    no part in them; zeros, which every range holds exactly, are left out.
    """

    def cost(histogram: Histogram, low: float, high: float) -> float:
        counts = histogram.counts.reshape(-1, _MERGED).sum(axis=1).astype(np.float64)
        centers = histogram.centers.reshape(-1, _MERGED).mean(axis=1)
        half = histogram.width * _MERGED / 2
        counts[np.abs(centers) <= half] = 0
        inside = (centers > low - half) & (centers < high + half)
        if not counts[inside].any():
            return math.inf
        first, last = int(np.argmax(inside)), len(inside) - 1 - int(np.argmax(inside[::-1]))
        kept = counts[first : last + 1]
        true = kept.copy()
        true[0] += counts[:first].sum()
        true[-1] += counts[last + 1 :].sum()
        step = max(-low, high) / (levels // 2 - 1) if symmetric else (high - low) / (levels - 1)
        group = np.rint(centers[first : last + 1] / step).astype(np.int64)
        group -= group.min()
        full = kept > 0
        sums, sizes = np.bincount(group, kept), np.bincount(group, full)
        spread = np.where(full, (sums / np.maximum(sizes, 1))[group], 0.0)
        p, q = _smooth(true / true.sum()), _smooth(spread / spread.sum())
        return float((p * np.log(p / q)).sum())

    return cost


def _smooth(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smooth a distribution: empty bins get a small share of the others."""
    small = 1e-4 / len(share)
    return (share + small) / (1.0 + 1e-4)


def _rounded(
    values: NDArray[np.float64], low: float, high: float, levels: int, symmetric: bool, power_of_two: bool
) -> NDArray[np.float64]:
    """`values` rounded to the integers of a range."""
    step = max(-low, high) / (levels // 2 - 1) if symmetric else (high - low) / (levels - 1)
    if power_of_two:
        step = 2.0 ** math.ceil(math.log2(step))
    zero = -levels // 2 if symmetric else round(low / step)
    return np.clip(np.rint(values / step), zero, zero + levels - 1) * step


def make_observer(rule: ActivationRule) -> Observer:
    """The observer that `rule` asks for."""
    levels = 1 << rule.bits
    match rule.calibration:
        case Calibration.MIN_MAX:
            return MinMaxObserver()
        case Calibration.PERCENTILE:
            return PercentileObserver(rule.percentile)
        case Calibration.MOVING_AVERAGE:
            return MovingAverageObserver(rule.momentum)
        case Calibration.OUTLIER:
            return OutlierObserver()
        case Calibration.MSE:
            return SearchObserver(squared_error(levels, rule.symmetric, rule.power_of_two))
        case Calibration.KL:
            return SearchObserver(divergence(levels, rule.symmetric))
        case Calibration.GLOBAL:
            return GlobalObserver(rule.global_scale)
