"""Prices of layers: cycles that the exact engine counts in the network compiled at each width."""

from __future__ import annotations

from dataclasses import replace

import pytest

from relay_hw.errors import QuantizeError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy, find_strategy, quantize
from relay_hw.runtime.compile import bind_params, compile_model
from relay_hw.runtime.manifest import LayerInfo
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.prices import Compiled, cycles_by_layer, layer_prices, needs_prices
from tests.relay_hw.small_models import images, save_plain

DATA = {"image": images(8, 99)}
MIXED = replace(find_strategy("mixed-cycles"), multiplier_bits=16)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> IRModule:
    model = load_model(save_plain(tmp_path_factory.mktemp("prices") / "plain.onnx"))
    return bind_params(model.mod, model.params)


def test_a_price_is_what_the_layer_takes_in_the_whole_network(plain: IRModule) -> None:
    def build(quantized: IRModule) -> Compiled:
        built = compile_model(plain, CompileOptions(config="ecp5w4", host_target="numpy"), quantized=quantized)
        return built.layers, built.calls.order

    price = layer_prices(plain, MIXED, DATA, build)
    for bits in (4, 8):
        quantized = quantize(plain, replace(find_strategy("int8"), weight_bits=bits, multiplier_bits=16), DATA)
        built = compile_model(plain, CompileOptions(config="ecp5w4", host_target="numpy"), quantized=quantized)
        rows = {row.name: row.cycles for row in built.layers if row.where == "accel" and row.macs}
        assert rows and {name: price(name, bits) for name in rows} == rows
    assert price("nothing", 4) == 0


def test_the_budget_is_kept_by_the_cycles_of_the_build(plain: IRModule) -> None:
    """8-bit weights pass through 4-bit multipliers twice, so that widths decide."""

    def built(strategy: Strategy | str) -> tuple[int, set[int | None]]:
        made = compile_model(
            plain, CompileOptions(config="ecp5w4", strategy=strategy, host_target="numpy"), calibration=DATA
        )
        return sum(row.cycles for row in made.layers if row.macs), {one.weight_bits for one in made.strategy.layers}

    (wide, _), (narrow, _) = built("int8-gptq"), built("w4a8-gptq")
    cycles, widths = built(replace(MIXED, budget_share=(narrow / wide + 1) / 2))
    assert narrow <= cycles < wide and widths == {4, 8}


def test_a_network_without_layers_on_the_accelerator_has_no_prices(plain: IRModule) -> None:
    with pytest.raises(QuantizeError, match="strategy mixed-cycles: a cycle budget must have a layer on the acc"):
        layer_prices(plain, MIXED, DATA, lambda _quantized: ((), ()))


def test_layers_of_one_name_are_one_price() -> None:
    rows = [LayerInfo("y", "nn.dense", "accel", name, macs=8, cycles=cycles) for name, cycles in (("a", 5), ("b", 7))]
    assert cycles_by_layer(rows, ("a", "b", "b")) == {"y": 5 + 2 * 7}


def test_who_needs_prices() -> None:
    assert needs_prices(MIXED) and needs_prices(Strategy("best", candidates=("int8", "mixed-cycles")))
    assert not needs_prices(find_strategy("mixed")) and not needs_prices(find_strategy("int8"))
