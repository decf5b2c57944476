"""Strategies: the registry, exceptions for layers, TOML files, and what all of them refuse."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.errors import QuantizeError
from relay_hw.quantize import (
    STRATEGIES,
    Budget,
    Calibration,
    LayerChoice,
    LayerPolicy,
    NumberFormat,
    Strategy,
    WeightRounding,
    find_strategy,
    load_strategy,
    strategy_names,
    strategy_values,
)
from relay_hw.quantize.strategy import Place
from relay_hw.quantize.strategy_file import strategy_from

PROMISED = """
    int8 int8-minmax int8-kl int8-mse int8-symmetric int8-pow2 w4a8 w4a8-adaround w4a8-gptq w4g16a8-gptq w2a8-gptq
    w2g16a8-gptq mixed qat-int8 qat-w4a8 tvm mxint8 mxfp8 mxfp6 mxfp4 fp8-e4m3 fp8-e5m2
"""


def test_the_default_is_what_the_contract_says():
    first = find_strategy(strategy_names()[0])
    assert first.name == "int8"
    assert (first.weight_bits, first.activation_bits, first.multiplier_bits) == (8, 8, 31)
    assert first.per_channel and not first.symmetric and first.rounding == "half_up"
    assert (first.activations.low, first.activations.high, first.weights.limit) == (-128, 127, 127)


def test_names_are_unique_and_found():
    assert len(set(strategy_names())) == len(STRATEGIES)
    assert all(find_strategy(name).name == name for name in strategy_names())
    assert set(PROMISED.split()) <= set(strategy_names())
    own = Strategy("mine", weight_bits=4)
    assert find_strategy(own) is own


def test_strategies_are_frozen():
    with pytest.raises(FrozenInstanceError):
        find_strategy("int8").weight_bits = 4


def test_formats_without_hardware_say_so():
    without = {strategy.name for strategy in STRATEGIES if strategy.simulated}
    assert without == {"mxint8", "mxfp8", "mxfp6", "mxfp4", "fp8-e4m3", "fp8-e5m2"}


def test_only_recipes_that_read_data_need_it():
    assert find_strategy("int8").needs_data and find_strategy("w4a8-gptq").needs_data
    assert not find_strategy("tvm").needs_data and not find_strategy("mxfp4").needs_data
    exceptions = LayerChoice("x", calibration=Calibration.KL), LayerChoice("x", weight_rounding=WeightRounding.GPTQ)
    assert all(replace(find_strategy("tvm"), layers=(one,)).needs_data for one in exceptions)


def test_exceptions_of_layers():
    strategy = Strategy(
        "s",
        weight_bits=4,
        first_layer=LayerPolicy.INT8,
        last_layer=LayerPolicy.FLOAT,
        layers=(
            LayerChoice("conv_*", activation_bits=6),
            LayerChoice("conv_2", weight_bits=8, calibration=Calibration.KL),
            LayerChoice("conv_9", quantized=False),
        ),
    )
    assert strategy.for_layer("dense_1").weights.limit == 7
    assert strategy.for_layer("dense_1", Place(is_first=True)).weights.limit == 127
    one = strategy.for_layer("conv_2")
    assert (one.weights.limit, one.activations.bits, one.activations.calibration) == (127, 6, Calibration.KL)
    assert strategy.weights.at_width(8) == replace(strategy, weight_bits=8).weights
    assert strategy.is_quantized("conv_2") and not strategy.is_quantized("conv_9")
    assert not strategy.is_quantized("dense_1", Place(is_last=True))
    assert Strategy("t", dense_layers=LayerPolicy.FLOAT).is_quantized("x") is True
    assert Strategy("t", dense_layers=LayerPolicy.FLOAT).is_quantized("x", Place(is_dense=True)) is False
    assert (
        Strategy("t", depthwise_layers=LayerPolicy.INT8, weight_bits=4)
        .for_layer("x", Place(is_depthwise=True))
        .weights.limit
        == 127
    )


def test_a_file_is_a_strategy(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        """
        base = "w4a8"
        summary = "mine"
        rounding = "half_even"
        percentile = 99
        weight_rounding = "gptq"
        mixed_bits = [4, 6, 8]
        budget = "cycles"
        [[layer]]
        layer = "conv_1*"
        weight_bits = 8
        calibration = "kl"
        [[layer]]
        layer = "dense"
        quantized = false
        """
    )
    strategy = find_strategy(str(path))
    assert strategy.name == "mine" and strategy.weight_bits == 4 and strategy.first_layer is LayerPolicy.INT8
    assert strategy.percentile == 99.0 and strategy.rounding == "half_even" and strategy.mixed_bits == (4, 6, 8)
    assert strategy.weight_rounding is WeightRounding.GPTQ and strategy.budget is Budget.CYCLES
    assert strategy.layers == (
        LayerChoice("conv_1*", weight_bits=8, calibration=Calibration.KL),
        LayerChoice("dense", quantized=False),
    )
    assert load_strategy(path) == strategy


@pytest.mark.parametrize("name", strategy_names())
def test_values_come_back(name):
    strategy = find_strategy(name)
    assert strategy_from(strategy_values(strategy), "here", "other") == strategy


@given(
    st.builds(
        Strategy,
        name=st.just("s"),
        weight_bits=st.integers(2, 8),
        momentum=st.floats(0.01, 1),
        number_format=st.sampled_from(NumberFormat),
        budget=st.none() | st.sampled_from(Budget),
        layers=st.lists(
            st.builds(LayerChoice, st.sampled_from("abc"), weight_bits=st.none() | st.integers(2, 8),
                      quantized=st.booleans()),
            max_size=3,
        ).map(tuple),
    )
)  # fmt: skip
def test_any_values_come_back(strategy):
    assert strategy_from(strategy_values(strategy), "here", "other") == strategy


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a = [", "strategy file .*bad.toml must be TOML: "),
        ("a = " + "[" * 100_000, "bad.toml must be TOML: it must have fewer tables and lists inside one another"),
        ("a = " + "9" * 5000, "bad.toml must be TOML: integers must have at most 4,300 digits"),
        ("a" + ".a" * 32 + " = 1", "bad.toml must be TOML: keys must have at most 32 parts, not 33"),
        ("weight_bit = 4", "bad.toml: key must be one of .*, not weight_bit; did you mean weight_bits"),
        ("weight_bits = 9", "bad.toml: strategy bad: weight_bits must be an integer from 2 to 8, not 9"),
        ("weight_bits = '4'", "weight_bits must be an integer from 2 to 8, not 4"),
        ("base = 'int9'", "bad.toml: base: strategy must be one of int8, .*, not int9"),
        ("base = 3", "base must be the name of a strategy, not 3"),
        ("calibration = 'best'", "calibration must be one of min_max, .*, not best"),
        ("symmetric = 1", "symmetric must be true or false, not 1"),
        ("name = 1", "name must be a string, not 1"),
        ("mixed_bits = 4", "mixed_bits must be a list, not 4"),
        ("layer = 4", r"layer must be a list of tables \(\[\[layer\]\]\), not 4"),
        ("[[layer]]\nweight_bits = 4", 'layer 1: must say which layer'),
        ("[[layer]]\nlayer = 'x'\nweight_bits = 1", "layer 1: layer x: weight_bits must be an integer from 2 to 8"),
        ("[[layer]]\nlayer = 'x'\nepochs = 1", "layer 1: key must be one of .*, not epochs"),
    ],
)  # fmt: skip
def test_what_a_file_must_not_say(tmp_path, text, sentence):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(QuantizeError, match=sentence):
        find_strategy(str(path))


def test_a_file_that_is_not_there():
    with pytest.raises(QuantizeError, match=r"strategy file nowhere\.toml must be readable: .*No such file"):
        find_strategy("nowhere.toml")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: find_strategy("int9"), r"one of int8, int8-gptq, .*, a .toml file, not int9; did you mean int8\?"),
        (lambda: Strategy("s", weight_bits=1), "strategy s: weight_bits must be an integer from 2 to 8, not 1"),
        (lambda: Strategy("s", weight_bits=9), "weight_bits must be an integer from 2 to 8, not 9"),
        (lambda: Strategy("s", activation_bits=16), "activation_bits must be an integer from 2 to 8, not 16"),
        (lambda: Strategy("s", weight_bits=4.0), "weight_bits must be an integer from 2 to 8, not 4.0"),
        (lambda: Strategy("s", multiplier_bits=32), "multiplier_bits must be an integer from 8 to 31, not 32"),
        (lambda: Strategy("s", multiplier_bits=7), "multiplier_bits must be an integer from 8 to 31, not 7"),
        (lambda: Strategy("s", bias_bits=7), "bias_bits must be an integer from 8 to 32, not 7"),
        (lambda: Strategy("s", seed=-1), "seed must be an integer from 0 to .*, not -1"),
        (lambda: Strategy("s", rounding="up"), "rounding must be one of half_up, half_even, half_away, floor, not up"),
        (lambda: Strategy("s", percentile=30), "percentile must be more than 50 and at most 100, not 30"),
        (lambda: Strategy("s", budget_share=0), "budget_share must be more than 0 and at most 1, not 0"),
        (lambda: Strategy("s", momentum=2), "momentum must be more than 0 and at most 1, not 2"),
        (lambda: Strategy("s", global_scale=float("inf")), "global_scale must be positive and finite, not inf"),
        (lambda: Strategy("s", learning_rate="fast"), "learning_rate must be more than 0 and at most 1, not fast"),
        (lambda: Strategy("s", calibration="kl"), "calibration must be one of min_max, percentile, kl, .*, not kl"),
        (lambda: Strategy("s", first_layer=None), "first_layer must be one of same, int8, float, not None"),
        (lambda: Strategy("s", mixed_bits=()), "mixed_bits must hold at least one width, not none"),
        (lambda: Strategy("s", mixed_bits=(4, 16)), "mixed_bits must be an integer from 2 to 8, not 16"),
        (lambda: LayerChoice("conv", weight_bits=1), "layer conv: weight_bits must be an integer from 2 to 8, not 1"),
    ],
)  # fmt: skip
def test_what_is_out_of_range_is_refused(make, sentence):
    with pytest.raises(QuantizeError, match=sentence):
        make()
