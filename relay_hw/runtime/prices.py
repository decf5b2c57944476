"""Measures the cycles of each layer at each weight width, on the cycle simulator.

In: a float module, a strategy with widths to choose from, a way to compile. Out: a `LayerCost` for mixed precision. The
whole network is compiled once a width: a layer's price is what its instructions took, or were waited for, in a launch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.module import IRModule
from relay_hw.quantize import Budget, Strategy, WeightRounding, find_strategy
from relay_hw.quantize.main import realize_module
from relay_hw.quantize.methods.knapsack import require_solver
from relay_hw.quantize.methods.mixed import LayerCost
from relay_hw.target.records import LayerInfo

# Layers of a quantized module when it is compiled, and the regions that one inference launches, in order.
Compiled = tuple[Sequence[LayerInfo], Sequence[str]]
Compile = Callable[[IRModule], Compiled]


def needs_prices(strategy: Strategy) -> bool:
    """Whether the strategy, or one that it chooses from, has a cycle budget."""
    return any(one.budget is Budget.CYCLES for one in (strategy, *map(find_strategy, strategy.candidates)))


def layer_prices(
    mod: IRModule, strategy: Strategy, calibration: Mapping[str, NDArray[Any]] | None, build: Compile
) -> LayerCost:
    """Cycles of each layer in an inference, by its name and weight width; 0 on the host.

    Cycles depend on widths alone, so weights are rounded the short way. Raises QuantizeError if no layer with
    weights runs on the accelerator at any width.
    """
    require_solver()
    prices: dict[int, dict[str, int]] = {}
    for bits in sorted(set(strategy.mixed_bits)):
        plain = replace(
            strategy,
            budget=None,
            candidates=(),
            epochs=0,
            weight_bits=bits,
            weight_rounding=WeightRounding.HALF_EVEN,
            bias_correction=False,
        )
        prices[bits] = cycles_by_layer(*build(realize_module(mod, plain, calibration).mod))
    if not any(sum(found.values()) for found in prices.values()):
        raise QuantizeError(f"strategy {strategy.name}: a cycle budget must have a layer on the accelerator")
    return lambda layer, bits: prices[bits].get(layer, 0) if bits in prices else 0


def cycles_by_layer(layers: Sequence[LayerInfo], calls: Sequence[str]) -> dict[str, int]:
    """Cycles of the layers with multiply-accumulates in an inference, by their names in strategies."""
    found: Counter[str] = Counter()
    for row in layers:
        if row.macs:
            found[row.name.replace(" #", "#")] += row.cycles * calls.count(row.function)
    return found
