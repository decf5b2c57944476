"""Strategies: the registry and what it refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from relay_hw.errors import QuantizeError
from relay_hw.quantize import STRATEGIES, Strategy, find_strategy, strategy_names


def test_the_default_is_what_the_contract_says():
    first = find_strategy(strategy_names()[0])
    assert first.name == "int8"
    assert (first.weight_bits, first.activation_bits, first.multiplier_bits) == (8, 8, 31)
    assert first.per_channel and not first.symmetric and first.rounding == "half_up"
    assert first.activation_range == (-128, 127) and first.weight_limit == 127


def test_names_are_unique_and_found():
    assert len(set(strategy_names())) == len(STRATEGIES)
    assert all(find_strategy(name).name == name for name in strategy_names())
    own = Strategy("mine", weight_bits=4)
    assert find_strategy(own) is own


def test_strategies_are_frozen():
    with pytest.raises(FrozenInstanceError):
        find_strategy("int8").weight_bits = 4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: find_strategy("int9"), "strategy must be one of int8, int8-symmetric, .*, not int9"),
        (lambda: Strategy("s", weight_bits=1), "strategy s: weight_bits must be an integer from 2 to 8, not 1"),
        (lambda: Strategy("s", weight_bits=9), "weight_bits must be an integer from 2 to 8, not 9"),
        (lambda: Strategy("s", activation_bits=16), "activation_bits must be an integer from 2 to 8, not 16"),
        (lambda: Strategy("s", weight_bits=4.0), "weight_bits must be an integer from 2 to 8, not 4.0"),
        (lambda: Strategy("s", multiplier_bits=32), "multiplier_bits must be an integer from 8 to 31, not 32"),
        (lambda: Strategy("s", multiplier_bits=7), "multiplier_bits must be an integer from 8 to 31, not 7"),
        (lambda: Strategy("s", rounding="up"), "rounding must be one of half_up, half_even, half_away, floor, not up"),
        (lambda: Strategy("s", percentile=30), "percentile must be more than 50 and at most 100, not 30"),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(make, sentence):
    with pytest.raises(QuantizeError, match=sentence):
        make()
