"""The stage that quantizes: a simplified network in integers, by its own scales or by a strategy.

In: a float or prequantized network, a strategy that `settle` adapts to the target, asked once. Out: `Quantized`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from numpy.typing import NDArray

from relay_hw.ir.module import IRModule
from relay_hw.quantize import Strategy
from relay_hw.quantize.held_back import Kept, realize_checked
from relay_hw.quantize.prequantized import is_prequantized, realize_prequantized
from relay_hw.quantize.report import LayerNoise
from relay_hw.runtime.prices import Compile, layer_prices, needs_prices
from relay_hw.runtime.widths import no_gain
from relay_hw.support.progress import Progress
from relay_hw.target.accel.target import AccelTarget
from relay_hw.target.base import Target

# The name of the strategy of a model that came with its own integers.
PREQUANTIZED: Final = "prequantized"


@dataclass(frozen=True, slots=True)
class Settled:
    """A strategy for the target at hand. `is_priced`: layers are timed at each width first; `no_gain`: which of its
    widths bring nothing there, in a sentence, or empty."""

    strategy: Strategy
    is_priced: bool
    no_gain: str


@dataclass(frozen=True, slots=True)
class Quantized:
    """A network in integers, and the strategy with what each layer got. `kept`, `noise`, `warnings`, `notes`: as in
    `CompiledModel`."""

    mod: IRModule
    strategy: Strategy
    kept: tuple[Kept, ...] = ()
    noise: tuple[LayerNoise, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def settle(strategy: Strategy, target: Target, accelerate: bool) -> Settled:
    """`strategy` within the limits of the target. `accelerate`: whether layers run there at all."""
    strategy = replace(strategy, multiplier_bits=min(strategy.multiplier_bits, target.multiplier_bits))
    config = target.config if accelerate and isinstance(target, AccelTarget) else None
    return Settled(
        strategy,
        is_priced=accelerate and needs_prices(strategy),
        no_gain="" if config is None else no_gain(strategy, config),
    )


def quantize_network(
    imported: IRModule,
    simplified: IRModule,
    settled: Settled,
    calibration: Mapping[str, NDArray[Any]] | None,
    build: Compile,
    progress: Progress,
) -> Quantized:
    """`simplified` in integers; `imported` with its own, where it brings them. `build` compiles what is timed."""
    strategy = settled.strategy
    if is_prequantized(imported):
        progress.started("reading the integers of the model")
        mod = realize_prequantized(imported, strategy.multiplier_bits)
        return Quantized(mod, replace(strategy, name=PREQUANTIZED))
    progress.started("quantizing")
    cost = None
    if settled.is_priced:
        progress.started("timing layers at each width")
        cost = layer_prices(simplified, strategy, calibration, build)
    checked = realize_checked(simplified, strategy, calibration, progress=progress, cost=cost)
    realized = checked.realized
    notes = (*realized.notes, *filter(None, [settled.no_gain]))
    found = replace(strategy, layers=realized.strategy.layers)
    return Quantized(realized.mod, found, checked.kept, checked.noise, checked.warnings, notes)
