"""Measures against their definitions written out, and intervals against known values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.compare.measures import TOP, decibel, mcnemar, measure, paired_change, wilson


def outputs(seed: int, count: int = 40, classes: int = 7) -> np.ndarray:
    """Few values, so that ties are frequent."""
    return np.random.default_rng(seed).integers(-4, 5, (count, classes)).astype(np.float32)


@given(seed=st.integers(0, 2**32 - 1))
def test_shares_count_what_they_say(seed: int) -> None:
    mine, floats = outputs(seed), outputs(seed + 1)
    labels = np.random.default_rng(seed).integers(0, 7, 40)
    found = measure(mine, floats, labels, None, True)
    best = [int(np.flatnonzero(row == row.max())[0]) for row in mine]
    wanted = [int(np.flatnonzero(row == row.max())[0]) for row in floats]
    assert found.top1 == sum(b == y for b, y in zip(best, labels, strict=True)) / 40
    assert found.agreement == sum(a == b for a, b in zip(best, wanted, strict=True)) / 40
    assert found.gained == sum(b == y != w for b, w, y in zip(best, wanted, labels, strict=True))
    assert found.lost == sum(w == y != b for b, w, y in zip(best, wanted, labels, strict=True))
    ranked = [sorted(range(7), key=lambda k, row=row: (-row[k], k))[:TOP] for row in mine]
    assert found.top5 == sum(y in five for y, five in zip(labels, ranked, strict=True)) / 40
    change = found.top1 - float(np.mean(np.array(wanted) == labels))
    assert found.change == pytest.approx(change)
    assert found.change_interval is not None and found.change_interval[0] <= change <= found.change_interval[1]


def test_the_float_network_agrees_with_itself() -> None:
    floats = outputs(3)
    found = measure(floats, floats, np.zeros(40, np.int64), None, True)
    assert (found.agreement, found.sqnr_db, found.gained, found.lost, found.p_value) == (1.0, None, 0, 0, 1.0)


def test_regressors_have_an_error_and_no_shares() -> None:
    floats = outputs(1)
    found = measure(floats + 2, floats, None, floats.astype(np.float64) + 1, False)
    assert found.mse == pytest.approx(1.0)
    assert (found.top1, found.agreement, found.gained) == (None, None, None)
    assert found.sqnr_db == pytest.approx(10 * math.log10(float((floats**2).sum()) / (4 * floats.size)))


def test_few_classes_have_no_top_five() -> None:
    found = measure(outputs(0, classes=5), outputs(1, classes=5), np.zeros(40, np.int64), None, True)
    assert found.top5 is None and found.top1 is not None


@given(hits=st.integers(0, 60), more=st.integers(0, 60))
def test_wilson_solves_its_equation(hits: int, more: int) -> None:
    count = hits + more
    if not count:
        return
    z = 1.959963984540054
    for bound in wilson(hits, count):
        if 1e-9 < bound < 1 - 1e-9:
            assert abs(hits / count - bound) == pytest.approx(z * math.sqrt(bound * (1 - bound) / count), abs=1e-9)


@given(gained=st.integers(0, 40), lost=st.integers(0, 40))
def test_mcnemar_is_a_fair_coin(gained: int, lost: int) -> None:
    total, fewer = gained + lost, min(gained, lost)
    exact = min(1.0, 2 * sum(math.comb(total, k) for k in range(fewer + 1)) / 2**total)
    assert mcnemar(gained, lost) == pytest.approx(exact)
    assert mcnemar(gained, lost) == mcnemar(lost, gained)


@given(gained=st.integers(0, 30), lost=st.integers(0, 30), same=st.integers(0, 100))
def test_paired_intervals_hold_the_change(gained: int, lost: int, same: int) -> None:
    count = gained + lost + same
    if not count:
        return
    low, high = paired_change(gained, lost, count)
    assert -1 <= low <= (gained - lost) / (count + 2) <= high <= 1
    turned = paired_change(lost, gained, count)
    assert (low, high) == pytest.approx((-turned[1], -turned[0]))


def test_decibel() -> None:
    assert decibel(100.0, 1.0) == pytest.approx(20.0)
    assert decibel(5.0, 0.0) is None
    assert math.isfinite(decibel(0.0, 1.0) or math.inf)
