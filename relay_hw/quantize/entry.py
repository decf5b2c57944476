"""The function `quantize`, called with a strategy, or with Relay's own arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.module import IRModule
from relay_hw.quantize import main, relay_recipe
from relay_hw.quantize.methods.mixed import LayerCost
from relay_hw.quantize.strategy import Strategy
from relay_hw.support.progress import SILENT, Progress


def quantize(
    mod: IRModule,
    strategy: str | Strategy | Mapping[str, Any] | None = "int8",
    calibration: Mapping[str, NDArray[Any]] | relay_recipe.Dataset | None = None,
    progress: Progress = SILENT,
    cost: LayerCost | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    dataset: relay_recipe.Dataset | None = None,
) -> IRModule:
    """`mod` with its convolutions, dense layers, poolings and residual adds in integers.

    `calibration` has an array for each input of `main`, samples on the first axis. Inputs and outputs stay float.
    `cost` (layer's name, bits of its weights) is what mixed precision saves.

    Relay's call, `quantize(mod, params, dataset)`, follows `qconfig`: where parameters or a dataset are given, or a
    `with qconfig(...)` is open. Raises QuantizeError for a strategy that is unknown or cannot be applied.
    """
    as_relay = strategy is None or isinstance(strategy, Mapping)
    if as_relay or params is not None or dataset is not None or relay_recipe.in_qconfig():
        given = strategy if isinstance(strategy, Mapping) else params
        samples = dataset if dataset is not None else calibration
        return relay_recipe.quantize(mod, given, samples)
    assert isinstance(strategy, (str, Strategy))
    return main.quantize(mod, strategy, calibration, progress, cost)  # type: ignore[arg-type]
