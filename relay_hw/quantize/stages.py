"""Quantization in four passes, as Relay had them: partition, annotate, calibrate, realize.

In: a float module. Out of each: a module that can be printed, saved and given to other passes; what a stage found is
marked in it. All of them together give what `quantize` gives, byte for byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize import relay_recipe
from relay_hw.quantize.calibration import flat_data, given_data
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.main import (
    Calibrated,
    calibrate_fragments,
    calibrate_graph,
    fragment_strategies,
    realized,
    reference_of,
)
from relay_hw.quantize.marks import marked_strategies, with_marks, without_marks
from relay_hw.quantize.methods.mixed import LayerCost
from relay_hw.quantize.number import LayerWeights
from relay_hw.quantize.steps import PlanStep
from relay_hw.quantize.strategy import Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.base import Pass, map_functions
from relay_hw.transform.fragments import is_graph


class QuantizePartition(Pass):
    """Simplifies the module, and cuts programs with control flow into the graphs that are quantized."""

    name = "quantize-partition"

    def transform(self, mod: IRModule) -> IRModule:
        return reference_of(mod)


class QuantizeAnnotate(Pass):
    """Marks every tensor that becomes integers by a strategy, which the function keeps."""

    name = "quantize-annotate"

    def __init__(self, strategy: str | Strategy | None = None) -> None:
        """None: the settings of the innermost `with qconfig(...)`, or int8. Raises QuantizeError for an unknown one."""
        self._strategy = None if strategy is None else find_strategy(strategy)

    def transform(self, mod: IRModule) -> IRModule:
        chosen = self._strategy or relay_recipe.current_strategy(mod) or find_strategy("int8")
        own = {"main": chosen} if is_graph(mod) else fragment_strategies(mod, chosen)
        return mod.with_functions(
            {name: with_marks(mod[name], plan_layers(mod[name].body, one)) for name, one in own.items()}
        )


class QuantizeCalibrate(Pass):
    """Runs the samples: searches strategies and scales channels where the strategy asks for it, and gives every tensor
    its range and layers the integers that are fitted to data."""

    name = "quantize-calibrate"

    def __init__(
        self,
        data: Mapping[str, NDArray[Any]] | relay_recipe.Dataset | None = None,
        progress: Progress = SILENT,
        cost: LayerCost | None = None,
    ) -> None:
        """`data`: an array for each input of `main`, samples on the first axis, or Relay's dataset of batches."""
        self._data = None if data is None else relay_recipe.arrays(data)
        self._progress = progress
        self._cost = cost

    def transform(self, mod: IRModule) -> IRModule:
        own = _strategies(mod, self.name)
        plain = map_functions(mod, lambda function: without_marks(function).function)
        data = self._data
        for strategy in own.values():
            data = given_data(strategy, self._data)
        given = flat_data(plain["main"].params, data or {})
        if is_graph(plain):
            found = {"main": calibrate_graph(plain, own["main"], given, self._progress, self._cost)}
        else:
            fragments = calibrate_fragments(plain, own, given, self._progress, self._cost)
            found = {name: one for name, (one, _) in fragments.items()}
        return plain.with_functions({name: _calibrated(plain[name], one) for name, one in found.items()})


class QuantizeRealize(Pass):
    """Replaces what is annotated and calibrated by integer operators."""

    name = "quantize-realize"

    def transform(self, mod: IRModule) -> IRModule:
        own = _strategies(mod, self.name)
        new = {name: _realized(mod, name, strategy) for name, strategy in own.items()}
        return mod.with_functions(new)


def partition() -> QuantizePartition:
    """The first stage: the float network in the form whose layers strategies name."""
    return QuantizePartition()


def annotate(strategy: str | Strategy | None = None) -> QuantizeAnnotate:
    """The second stage: what becomes integers, by a strategy or by the settings of `with qconfig(...)`."""
    return QuantizeAnnotate(strategy)


def calibrate(
    data: Mapping[str, NDArray[Any]] | relay_recipe.Dataset | None = None,
    progress: Progress = SILENT,
    cost: LayerCost | None = None,
) -> QuantizeCalibrate:
    """The third stage: ranges and fitted integers, from samples. `cost`: as of `quantize`."""
    return QuantizeCalibrate(data, progress, cost)


def realize() -> QuantizeRealize:
    """The last stage: integer operators."""
    return QuantizeRealize()


def _calibrated(old: Function, found: Calibrated) -> Function:
    """The function with what was found, and the attributes of the old one."""
    fitted = {step.output: weights for step, weights in found.weights.items()}
    new = with_marks(found.reference["main"], found.layers, found.ranges, fitted)
    return copy_with(new, attrs={**old.attrs, **new.attrs})


def _strategies(mod: IRModule, stage: str) -> dict[str, Strategy]:
    """The strategy of each annotated function. Raises QuantizeError where annotation has not been done."""
    found = marked_strategies(mod)
    if not found:
        raise QuantizeError(f"{stage} must run after quantize-annotate: the module has no annotations")
    return found


def _realized(mod: IRModule, name: str, strategy: Strategy) -> Function:
    plain = without_marks(mod[name])
    layers = plan_layers(plain.function.body, strategy)
    if not plain.ranges.keys() >= set(layers.plan.integers):
        raise QuantizeError(f"quantize-realize must run after quantize-calibrate: a tensor of @{name} has no range")
    weights: dict[PlanStep, LayerWeights] = {
        step: plain.fitted[step.output] for step in layers.linear if step.output in plain.fitted
    }
    graph = IRModule({"main": plain.function}, mod.types)
    new = realized(Calibrated(graph, layers, plain.ranges, weights)).mod["main"]
    return copy_with(new, attrs=plain.function.attrs)
