"""Observers: order and batching do not matter; percentiles against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.errors import QuantizeError
from relay_hw.quantize.observe import MinMaxObserver, PercentileObserver

values = st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=60)


@settings(max_examples=100, deadline=None)
@given(values, st.integers(1, 60), st.randoms())
@pytest.mark.parametrize("make", [MinMaxObserver, lambda: PercentileObserver(90.0)])
def test_order_and_batches_do_not_matter(make, items, cut, random):
    whole, parts = make(), make()
    whole.update(np.array(items, np.float32))
    shuffled = list(items)
    random.shuffle(shuffled)
    for begin in range(0, len(shuffled), cut):
        parts.update(np.array(shuffled[begin : begin + cut], np.float32))
    assert whole.limits() == parts.limits()
    low, high = whole.limits()
    assert min(items) <= low <= high <= max(items)


def test_a_small_negative_value_beside_a_huge_one_keeps_its_side():
    whole, parts = PercentileObserver(90.0), PercentileObserver(90.0)
    whole.update(np.array([-1.0, 2.0**53], np.float32))
    parts.update(np.array([-1.0], np.float32))
    parts.update(np.array([2.0**53], np.float32))
    assert whole.limits() == parts.limits() == (-1.0, 2.0**53)


def test_min_max():
    observer = MinMaxObserver()
    observer.update(np.array([[3.0, -2.0]], np.float32))
    observer.update(np.array([], np.float32))
    observer.update(np.array([7], np.float32))
    assert observer.limits() == (-2.0, 7.0)


@pytest.mark.parametrize("percentile", [99.0, 99.9, 99.99])
def test_percentile_is_near_numpy(percentile):
    data = np.random.default_rng(0).standard_t(3, 200_000).astype("float32")
    observer = PercentileObserver(percentile)
    for part in np.array_split(data, 7):
        observer.update(part)
    low, high = observer.limits()
    tail = (100 - percentile) / 2
    bin_width = 2 * 2.0 ** np.ceil(np.log2(np.abs(data).max())) / 4096
    assert abs(low - np.percentile(data, tail)) <= 2 * bin_width
    assert abs(high - np.percentile(data, 100 - tail)) <= 2 * bin_width
    assert high < data.max()


def test_all_of_it_is_min_max():
    data = np.random.default_rng(0).normal(size=1000).astype("float32")
    observer = PercentileObserver(100.0)
    observer.update(data)
    assert observer.limits() == (float(data.min()), float(data.max()))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("make", [MinMaxObserver, lambda: PercentileObserver(99.0)])
def test_what_is_not_finite_is_refused(make, bad):
    with pytest.raises(QuantizeError, match="activations must be finite on the calibration data, not"):
        make().update(np.array([1.0, bad], np.float32))


def test_nothing_seen_is_refused():
    with pytest.raises(QuantizeError, match="calibration data must reach every tensor"):
        MinMaxObserver().limits()


def test_zeros_are_a_range():
    observer = PercentileObserver(99.0)
    observer.update(np.zeros(5, np.float32))
    observer.update(np.full(100, 2.0, np.float32))
    low, high = observer.limits()
    assert low >= 0.0 and high == 2.0
