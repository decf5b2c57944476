"""The four stages of quantization: each strategy gives what `quantize` gives, byte for byte, on graphs and programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.errors import QuantizeError
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize import (
    annotate,
    calibrate,
    find_strategy,
    partition,
    qconfig,
    quantize,
    realize,
    strategy_names,
)
from relay_hw.quantize.marks import marked_strategies
from relay_hw.quantize.strategy_file import strategy_from, strategy_values
from relay_hw.runtime.compile import bind_params
from relay_hw.transform import FoldConstant, Pass, Sequential
from tests.relay_hw import recurrent
from tests.relay_hw.quantize.networks import images, network
from tests.relay_hw.quantize.test_relay_recipe import _dataset, _mod

DATA = images(16)


def stages(strategy: str | None, data: Any, *between: Pass, **options: Any) -> Sequential:
    """All stages, with other passes between each two of them."""
    return Sequential(
        [partition(), *between, annotate(strategy), *between, calibrate(data, **options), *between, realize()]
    )


def text(mod: IRModule) -> str:
    return mod.astext(show_types=True)


def cost(layer: str, bits: int) -> float:
    return float(bits)


@pytest.mark.parametrize("name", strategy_names())
def test_the_stages_of_each_strategy_give_what_quantize_gives(name: str) -> None:
    mod = network()
    data = DATA if find_strategy(name).needs_data else None
    found = stages(name, data, cost=cost)(mod)
    assert text(found) == text(quantize(mod, name, data, cost=cost))
    assert relay.analysis.structural_equal(found, quantize(mod, name, data, cost=cost))


@pytest.mark.parametrize("name", ["int8", "w4a8-gptq", "tvm", "int8-twins"])
def test_programs_are_calibrated_fragment_by_fragment(name: str) -> None:
    mod, weights = recurrent.branches()
    bound = bind_params(mod, weights)
    data = {"x": np.random.default_rng(0).normal(size=(6, 16)).astype("float32"), "k": np.full(6, 9, "int32")}
    data["k"][::2] = 1
    assert text(stages(name, data)(bound)) == text(quantize(bound, name, data))


def test_settings_of_relay_are_those_of_the_stages() -> None:
    mod, params = _mod()
    for settings in ({}, {"skip_conv_layers": [1], "skip_dense_layer": False}, {"calibrate_mode": "kl_divergence"}):
        with qconfig(**settings):
            found = stages(None, _dataset())(bind_params(mod, params))
            assert text(found) == text(quantize(mod, params, _dataset()))


def test_other_passes_may_run_between() -> None:
    between = Sequential([FoldConstant(), relay.transform.DeadCodeElimination()])
    assert text(stages("int8-gptq", DATA, between)(network())) == text(quantize(network(), "int8-gptq", DATA))


def test_each_stage_can_be_saved_and_computes_the_same_floats() -> None:
    mod = partition()(network())
    sample = {name: values[:1] for name, values in DATA.items()}
    before = relay.interp.evaluate(mod, sample)
    for stage in (annotate("int8-gptq"), calibrate(DATA)):
        mod = relay.fromtext(stage(mod).astext())
        np.testing.assert_array_equal(relay.interp.evaluate(mod, sample), before)
    assert "annotation.quantized(" in str(mod) and "annotation.quantized_layer(" in str(mod)
    np.testing.assert_array_equal(
        relay.interp.evaluate(realize()(mod), sample),
        relay.interp.evaluate(quantize(network(), "int8-gptq", DATA), sample),
    )


def test_what_calibration_decides_is_kept_as_a_strategy() -> None:
    chosen = marked_strategies(Sequential([partition(), annotate("mixed"), calibrate(DATA)])(network()))["main"]
    assert chosen.budget is None and {one.weight_bits for one in chosen.layers} <= {4, 8} and len(chosen.layers) == 4


@pytest.mark.parametrize("name", strategy_names())
def test_a_strategy_survives_as_an_attribute(name: str) -> None:
    assert strategy_from(strategy_values(find_strategy(name)), "x", "other") == find_strategy(name)


def test_stages_in_another_order_are_refused() -> None:
    mod = partition()(network())
    for stage, word in ((calibrate(DATA), "calibrate"), (realize(), "realize")):
        with pytest.raises(QuantizeError, match=f"quantize-{word} must run after quantize-annotate: the module has no"):
            stage(mod)
    with pytest.raises(QuantizeError, match="quantize-realize must run after quantize-calibrate: a tensor of @main"):
        realize()(annotate("int8")(mod))
    with pytest.raises(QuantizeError, match="strategy int8 needs calibration data"):
        calibrate()(annotate("int8")(mod))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("int8", "must be JSON: "),
        ("[1]", r"must be an object, not \[1\]"),
        ('{"weight_bits": 99}', "strategy strategy: weight_bits must be an integer from 2 to 8"),
    ],
)
def test_a_strategy_that_somebody_wrote_is_checked(text: str, sentence: str) -> None:
    mod = annotate("int8")(partition()(network()))
    main = copy_with(mod["main"], attrs={**mod["main"].attrs, "QuantizeStrategy": text})
    with pytest.raises(QuantizeError, match=f"^attribute QuantizeStrategy of @main:? {sentence}"):
        calibrate(DATA)(mod.with_functions({"main": main}))
