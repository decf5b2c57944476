"""Choices of widths within a budget, against all choices that there are."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw.errors import QuantizeError, UnsupportedError
from relay_hw.quantize.methods.knapsack import Option, front, least, quietest, widest

WIDTHS = (2, 4, 8)
numbers = st.integers(0, 1000)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, list[Option]]:
    """Options of up to five layers, costs and noises as they come."""
    count = draw(st.integers(1, 5))
    return {
        f"layer {n}": [
            Option(f"layer {n}", bits, draw(numbers) / 1000, float(draw(numbers)))
            for bits in draw(st.lists(st.sampled_from(WIDTHS), min_size=1, max_size=3, unique=True))
        ]
        for n in range(count)
    }


def noise(choice: Sequence[Option]) -> float:
    return sum(one.noise for one in choice)


def cost(choice: Sequence[Option]) -> float:
    return sum(one.cost for one in choice)


def all_choices(options: Mapping[str, Sequence[Option]]) -> list[tuple[Option, ...]]:
    return list(itertools.product(*options.values()))


@settings(max_examples=60, deadline=None)
@given(options=tables(), share=st.integers(0, 10))
def test_nothing_within_the_budget_is_quieter(options: dict[str, list[Option]], share: int) -> None:
    every = all_choices(options)
    low, high = least(options), max(map(cost, every))
    allowed = low + (high - low) * share / 10
    found = quietest(options, allowed)
    assert [one.layer for one in found] == list(options) and cost(found) <= allowed + 1e-6
    best = min(noise(choice) for choice in every if cost(choice) <= allowed)
    assert noise(found) == pytest.approx(best, abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(options=tables(), points=st.integers(2, 8))
def test_a_front_goes_from_the_cheapest_to_the_quietest(options: dict[str, list[Option]], points: int) -> None:
    found = front(options, points)
    every = all_choices(options)
    assert 1 <= len(found) <= points
    assert cost(found[0]) == pytest.approx(min(map(cost, every)))
    assert noise(found[-1]) == pytest.approx(min(map(noise, every)), abs=1e-6)
    for one in found:
        assert not any(cost(other) < cost(one) - 1e-6 and noise(other) < noise(one) - 1e-6 for other in every)


def test_less_than_the_least_is_refused() -> None:
    options = {"a": [Option("a", 4, 0.1, 5.0), Option("a", 8, 0.0, 10.0)]}
    with pytest.raises(QuantizeError, match="a budget must allow at least 5, not 4"):
        quietest(options, 4.0)
    assert widest(options) == [Option("a", 8, 0.0, 10.0)] and quietest({}, 0.0) == []


def test_without_scipy_the_way_to_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    sentence = r"scipy must be installed to choose widths of layers: pip install 'relay-hw\[mixed\]'"
    with pytest.raises(UnsupportedError, match=sentence):
        quietest({"a": [Option("a", 8, 0.0, 10.0)]}, 10.0)
