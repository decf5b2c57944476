"""Statistics of inputs, to warn about data unlike the calibration data in scale, range, normalisation or layout.

In: arrays, samples on the first axis. Out: a few numbers that a build keeps; a sentence where later data cannot have
been prepared in the same way. Every bound says how far chance alone may go, from the number of samples on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import permutations
from math import exp, prod, sqrt, tanh
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_never

Array = NDArray[Any]
# Samples that mean, deviation and neighbours are taken from, spread over all.
LOOKED_AT: Final = 64
# Fewer calibration samples do not say how samples differ.
LEAST_SAMPLES: Final = 16
# Fewer samples than these may be odd ones.
LEAST_GIVEN: Final = 4
# Axes as long as that have neighbours to compare.
LEAST_LENGTH: Final = 4
# Standard errors that no sound data go beyond.
ERRORS: Final = 8.0
# A shift of mean or deviation as a share of the range, and of a correlation, that quantization would notice.
LEAST_SHIFT: Final = 0.05
LEAST_CORRELATION: Final = 0.3
MOST: Final = 0.999
# A shift of the ends as a share of the range.
LEAST_END: Final = 0.2
# Largest values that differ by this factor indicate another scale.
OTHER_SCALE: Final = 16.0


class Kind(Enum):
    """A statistic of each sample. Deviations are kept as logarithms, correlations by Fisher's transformation, so that
    they are distributed evenly around their average."""

    MEAN = "mean"
    DEVIATION = "deviation"
    LOWEST = "lowest value"
    HIGHEST = "highest value"
    NEIGHBOURS = "neighbours"


@dataclass(frozen=True, slots=True)
class Feature:
    """A statistic over all samples. `axis`: whose neighbours are correlated."""

    kind: Kind
    average: float
    deviation: float
    samples: int
    axis: int | None = None

    @property
    def value(self) -> float:
        """The average, transformed back."""
        match self.kind:
            case Kind.MEAN | Kind.LOWEST | Kind.HIGHEST:
                return self.average
            case Kind.DEVIATION:
                return exp(self.average)
            case Kind.NEIGHBOURS:
                return tanh(self.average)
            case _:
                assert_never(self.kind)


@dataclass(frozen=True, slots=True)
class Seen:
    """Statistics of an input over the calibration data. `quietest`: the smallest of the samples' largest magnitudes."""

    dtype: str
    samples: int
    low: float
    high: float
    quietest: float
    features: tuple[Feature, ...]

    @property
    def is_constant(self) -> bool:
        """Whether all values are the same."""
        return self.low == self.high


def look(array: Array) -> Seen:
    """Statistics of `array`, finite numbers with samples on the first axis."""
    flat = np.abs(array.reshape(len(array), -1)).max(axis=1)
    return Seen(
        str(array.dtype), len(array), float(array.min()), float(array.max()), float(flat.min()), _features(array)
    )


def complaint(array: Array, before: Seen) -> str:
    """How `array` differs from the calibration data; empty if it was plausibly prepared alike."""
    now = look(array)
    return _scale(array, now, before) or _range(array, now, before) or _shift(now, before)


def shape_hint(given: Sequence[int], wanted: Sequence[int]) -> str:
    """How to fix samples of another shape with the same number of elements, as the end of a sentence."""
    if prod(given) != prod(wanted) or not wanted:
        return ""
    if len(given) == len(wanted) <= 6 and sorted(given) == sorted(wanted):
        order = next(p for p in permutations(range(len(given))) if [given[k] for k in p] == list(wanted))
        return f"; its axes are in another order: transpose it by {(0, *(k + 1 for k in order))}"
    return "; it has as many elements: reshape it"


def _scale(array: Array, now: Seen, before: Seen) -> str:
    largest, then = (max(abs(one.low), abs(one.high)) for one in (now, before))
    if before.is_constant or now.is_constant:
        return ""
    share = _share(array, before.low, before.high)
    if largest > OTHER_SCALE * then and share > min(LEAST_SHIFT + _chance(before), 0.99):
        return f"{_outside(array, now, before)}, and reach {largest / then:.0f} times as far; is it scaled alike?"
    if min(now.samples, before.samples) >= LEAST_GIVEN and OTHER_SCALE * largest < before.quietest:
        used = (now.high - now.low) / (before.high - before.low)
        share = f"{_percent(used)} of the calibrated range {_range_of(before)}"
        return f"values are {_span(now)}, {share}; is it scaled alike?"
    return ""


def _chance(before: Seen) -> float:
    """How likely a sample is one of the two extremes among those of calibration and itself."""
    return 2 / (before.samples + 1)


def _range(array: Array, now: Seen, before: Seen) -> str:
    """Values outside of the range, and far outside: further than it is wide."""
    if now.low >= before.low and now.high <= before.high:
        return ""
    width = before.high - before.low
    near, far = _share(array, before.low, before.high), _share(array, before.low - width, before.high + width)
    chance = _chance(before)
    if near > LEAST_SHIFT + chance + ERRORS * sqrt(chance / now.samples) or far > LEAST_SHIFT + chance:
        return f"{_outside(array, now, before)}; is it normalised alike?"
    return ""


def _shift(now: Seen, before: Seen) -> str:
    width = before.high - before.low
    for one, old in zip(now.features, before.features, strict=True):
        if not _differ(one, old):
            continue
        new, known = one.value, old.value
        values = f"{new:.2g} a sample, in calibration {known:.2g}"
        alike = f"their {old.kind.value} is {values}; is it normalised alike?"
        match old.kind:
            case Kind.MEAN | Kind.DEVIATION:
                least, text = LEAST_SHIFT * width, alike
            case Kind.LOWEST | Kind.HIGHEST:
                least, text = LEAST_END * width, alike
            case Kind.NEIGHBOURS:
                least = LEAST_CORRELATION
                text = f"neighbours on axis {old.axis} correlate by {values}; are its axes in the same order?"
            case _:
                assert_never(old.kind)
        if abs(new - known) > least:
            return text
    return ""


def _differ(one: Feature, old: Feature) -> bool:
    """Whether two averages differ significantly, given the number of samples."""
    if one.samples < LEAST_GIVEN or old.samples < LEAST_SAMPLES:
        return False
    error = old.deviation * sqrt(1 / one.samples + 1 / old.samples) * (1 + LEAST_SAMPLES / (old.samples - 1))
    return abs(one.average - old.average) > ERRORS * error


def _features(array: Array) -> tuple[Feature, ...]:
    count = min(len(array), LOOKED_AT)
    values = array[np.linspace(0, len(array) - 1, count).astype(int)].astype(np.float64)
    axes = tuple(range(1, values.ndim))
    mean = values.mean(axis=axes, keepdims=True) if axes else values
    centred = values - mean
    power = np.square(centred).mean(axis=axes) if axes else np.zeros(count)
    varies = power > 0
    rows = values.reshape(count, -1)
    found = [
        _feature(Kind.MEAN, mean.reshape(count)),
        _feature(Kind.DEVIATION, np.log(power[varies]) / 2),
        _feature(Kind.LOWEST, rows.min(axis=1)),
        _feature(Kind.HIGHEST, rows.max(axis=1)),
    ]
    for axis in axes:
        if values.shape[axis] >= LEAST_LENGTH:
            left, right = (np.take(centred, range(a, values.shape[axis] - 1 + a), axis) for a in (0, 1))
            correlation = (left * right).mean(axis=axes)[varies] / power[varies]
            found.append(_feature(Kind.NEIGHBOURS, np.arctanh(np.clip(correlation, -MOST, MOST)), axis))
    return tuple(found)


def _feature(kind: Kind, values: Array, axis: int | None = None) -> Feature:
    average = float(values.mean()) if values.size else 0.0
    deviation = float(values.std(ddof=1)) if values.size > 1 else 0.0
    return Feature(kind, average, deviation, values.size, axis)


def _share(array: Array, low: float, high: float) -> float:
    return float(((array < low) | (array > high)).mean())


def _outside(array: Array, now: Seen, before: Seen) -> str:
    share = _percent(_share(array, before.low, before.high))
    kinds = f", {now.dtype} where calibration had {before.dtype}" if now.dtype != before.dtype else ""
    return f"{share} of values are outside the calibrated range {_range_of(before)}: they are {_span(now)}{kinds}"


def _percent(share: float) -> str:
    return f"{100 * share:.{0 if share >= 0.01 else 1}f} %"


def _range_of(seen: Seen) -> str:
    return f"[{seen.low:.4g}, {seen.high:.4g}]"


def _span(seen: Seen) -> str:
    return f"{seen.low:.4g} to {seen.high:.4g}"
