"""Observers that choose: against the values themselves, and against exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.errors import QuantizeError
from relay_hw.quantize import Calibration, Strategy
from relay_hw.quantize.observe import (
    Histogram,
    MovingAverageObserver,
    OutlierObserver,
    SearchObserver,
    divergence,
    make_observer,
    squared_error,
)


def _seen(observer, *arrays):
    for array in arrays:
        observer.update(np.asarray(array, np.float32))
    return observer.limits()


def _error(data: np.ndarray, low: float, high: float, levels: int) -> float:
    """Squared error of quantizing `data` itself."""
    step = (high - low) / (levels - 1)
    zero = round(low / step)
    return float(np.square(data - np.clip(np.rint(data / step), zero, zero + levels - 1) * step).sum())


def test_moving_average_by_hand():
    observer = MovingAverageObserver(0.75)
    assert _seen(observer, [-1.0, 4.0], [], [-5.0, 8.0]) == (-2.0, 5.0)
    with pytest.raises(QuantizeError, match="calibration data must reach every tensor"):
        MovingAverageObserver(0.5).limits()


def test_outliers_are_left_out_and_no_others():
    rng = np.random.default_rng(0)
    data = rng.uniform(-1, 1, 20_000)
    low, high = _seen(OutlierObserver(), data, [50.0])
    assert low == pytest.approx(data.min()) and 1.9 < high < 2.1
    assert _seen(OutlierObserver(), data)[1] == pytest.approx(data.max())


@pytest.mark.parametrize("levels", [16, 256])
@pytest.mark.parametrize("kind", ["normal", "relu", "tail"])
def test_least_error_is_near_that_of_a_fine_search(kind, levels):
    rng = np.random.default_rng(1)
    data = {
        "normal": rng.normal(size=30_000),
        "relu": np.maximum(rng.normal(size=30_000), 0),
        "tail": rng.standard_t(3, 30_000),
    }[kind]
    low, high = _seen(SearchObserver(squared_error(levels, False)), data)
    found = _error(data, low, high, levels)
    shares = np.linspace(0.02, 1, 50)
    best = min(_error(data, a * data.min(), b * data.max(), levels) for a in shares for b in shares
               if a * data.min() < b * data.max())  # fmt: skip
    assert found <= 1.1 * best
    assert found <= _error(data, min(data.min(), 0), data.max(), levels)


def test_ranges_that_hold_everything_stay_where_nothing_is_gained():
    data = np.tile(np.arange(-128, 128), 50) / 16
    assert _seen(SearchObserver(squared_error(256, False)), data) == (-8.0, 127 / 16)


def test_power_of_two_steps_are_counted_as_such():
    """A range just above a power of two doubles the step; giving up one value in a thousand halves it."""
    data = np.concatenate([np.random.default_rng(2).uniform(-1, 1, 20_000), [1.02]])
    _, high = _seen(SearchObserver(squared_error(256, True, power_of_two=True)), data)
    assert high / 127 <= 2.0**-7


def test_divergence_keeps_an_even_distribution_and_cuts_a_lonely_value():
    rng = np.random.default_rng(3)
    even = rng.uniform(-1, 1, 200_000)
    low, high = _seen(SearchObserver(divergence(256, False)), even)
    assert low < -0.95 and high > 0.95
    _, high = _seen(SearchObserver(divergence(256, False)), rng.normal(size=100_000), [300.0])
    assert 2 < high < 60


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=50), st.sampled_from(list(Calibration)),
       st.booleans())  # fmt: skip
def test_every_range_lies_within_what_was_seen(items, calibration, symmetric):
    if calibration is Calibration.GLOBAL:
        return
    low, high = _seen(make_observer(Strategy("s", calibration=calibration, symmetric=symmetric).activations), items)
    assert min(items + [0.0]) <= low <= high <= max(items + [0.0])


def test_a_global_range_needs_no_values():
    assert make_observer(Strategy("s", calibration=Calibration.GLOBAL, global_scale=4.0).activations).limits() == (
        -4.0,
        4.0,
    )


def test_the_histogram_has_every_value_in_its_bin():
    histogram = Histogram()
    data = np.random.default_rng(4).normal(size=1000).astype(np.float32)
    for part in np.array_split(data, 3):
        histogram.update(part)
    assert histogram.counts.sum() == 1000
    edges = np.append(histogram.centers - histogram.width / 2, histogram.reach)
    np.testing.assert_array_equal(histogram.counts, np.histogram(data, edges)[0])
