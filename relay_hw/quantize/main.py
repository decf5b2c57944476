"""`quantize`: turns a float module into its integer form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.expr import Expr
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.calibration import calibrate, check_data, flat_data, given_data
from relay_hw.quantize.choices import NumberFormat
from relay_hw.quantize.forms import integer_forms
from relay_hw.quantize.fragments import check_layers, fragment_modules, own_layers, record, replace_fragments
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.balance import balance_norms
from relay_hw.quantize.methods.candidates import best_candidate
from relay_hw.quantize.methods.equalize import equalize
from relay_hw.quantize.methods.layerwise_replay import replay_layers
from relay_hw.quantize.methods.mixed import LayerCost, assign_bits
from relay_hw.quantize.methods.simulate import in_format
from relay_hw.quantize.methods.train import Gain, hold_out, train
from relay_hw.quantize.methods.twins import add_twins
from relay_hw.quantize.methods.weights import choose_weights
from relay_hw.quantize.number import LayerWeights, check_weights
from relay_hw.quantize.realizer import FloatOperator, Probe, Ranges, float_weights, realize
from relay_hw.quantize.steps import PlanStep
from relay_hw.quantize.strategy import Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.quantize.sums import merge_sums
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.fragments import OutlineFragments, is_graph
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A float graph as it will be quantized: `layers` with their rules, the range of each tensor, and `weights` of the
    layers whose integers are fitted to data."""

    reference: IRModule
    layers: Layers
    ranges: Ranges
    weights: Mapping[PlanStep, LayerWeights] = field(default_factory=dict[PlanStep, LayerWeights])
    gain: Gain | None = None


@dataclass(frozen=True, slots=True)
class Realized:
    """`mod` is the quantized module, `reference` the simplified float one; `probes` pair their tensors.

    `operators`: those that stay float, in both. If `main` is not one graph of operators, `fragments` has the records of
    its fragments by name instead. `gain`: of training.
    """

    mod: IRModule
    reference: IRModule
    probes: tuple[Probe, ...]
    strategy: Strategy
    fragments: Mapping[str, Fragment] = field(default_factory=dict[str, "Fragment"])
    operators: tuple[FloatOperator, ...] = ()
    gain: Gain | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the gain from training, of the whole network or of each fragment."""
        own = (self.gain.sentence(),) if self.gain is not None else ()
        parts = (f"{name}: {note}" for name, fragment in self.fragments.items() for note in fragment.realized.notes)
        return own + tuple(parts)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment as a network of its own, and its recorded inputs: parameters, all calls on the first axis."""

    realized: Realized
    data: Mapping[str, Array] | None


def quantize(
    mod: IRModule,
    strategy: str | Strategy = "int8",
    calibration: Mapping[str, Array] | None = None,
    progress: Progress = SILENT,
    cost: LayerCost | None = None,
) -> IRModule:
    """`mod` with its convolutions, dense layers, poolings and residual adds in integers.

    `calibration` has an array for each input of `main`, samples on the first axis. Inputs and outputs stay float.
    `cost` (layer's name, bits of its weights) is what mixed precision saves: for a budget of cycles it must be given.
    Raises QuantizeError for a strategy that is unknown or cannot be applied.
    """
    return realize_module(mod, strategy, calibration, progress, cost).mod


def realize_module(
    mod: IRModule,
    strategy: str | Strategy = "int8",
    calibration: Mapping[str, Array] | None = None,
    progress: Progress = SILENT,
    cost: LayerCost | None = None,
) -> Realized:
    """Like `quantize`, with what accuracy reports need besides the module: `strategy` says what each layer got."""
    chosen = find_strategy(strategy)
    reference = reference_of(mod)
    data = flat_data(reference["main"].params, given_data(chosen, calibration))
    if is_graph(reference):
        return realized(calibrate_graph(reference, chosen, data, progress, cost))
    own = fragment_strategies(reference, chosen)
    found = calibrate_fragments(reference, own, data, progress, cost)
    parts = {name: Fragment(realized(one), seen) for name, (one, seen) in found.items()}
    new = replace_fragments(reference, {name: part.realized.mod["main"] for name, part in parts.items()})
    return Realized(new, reference, (), chosen, parts)


def realized(found: Calibrated) -> Realized:
    """The integer form of a calibrated graph, or the simulated one of a format without hardware."""
    reference, layers, body = found.reference, found.layers, found.reference["main"].body
    if layers.strategy.number_format is not NumberFormat.INTEGER:
        body, probes = in_format(body, layers, found.ranges)
        return Realized(_with_body(reference, body), reference, probes, layers.strategy)
    body, probes, operators = realize(body, layers, found.ranges, found.weights)
    mod = _with_body(reference, body)
    return Realized(mod, reference, probes, layers.strategy, operators=operators, gain=found.gain)


def calibrate_graph(
    reference: IRModule, chosen: Strategy, data: Mapping[str, Array], progress: Progress, cost: LayerCost | None
) -> Calibrated:
    """All that `data` decide about a float module whose `main` is one graph: the strategy itself where it is searched,
    channels, widths, ranges, fitted weights."""
    if chosen.needs_data:
        check_data(reference["main"].params, data)
    shown, held = hold_out(reference, data) if chosen.epochs else (data, {})
    if chosen.candidates:
        chosen = _best(reference, chosen, shown, cost)
    reference = _rewritten(reference, chosen, shown)
    if chosen.budget is not None:
        chosen = assign_bits(reference, chosen, shown, cost)
    layers = plan_layers(reference["main"].body, chosen)
    for step in layers.linear:
        check_weights(*float_weights(step), layers.names[step])
    ranges = _ranges(reference, layers, shown, progress)
    if chosen.number_format is not NumberFormat.INTEGER:
        return Calibrated(reference, layers, ranges)
    weights, gain = _fitted(reference, layers, ranges, (shown, held), progress)
    return Calibrated(reference, layers, ranges, weights or {}, gain)


def _rewritten(reference: IRModule, chosen: Strategy, data: Mapping[str, Array]) -> IRModule:
    """The float network with norms and layers balanced, its channels scaled and split as the strategy asks."""
    body = reference["main"].body
    balanced = balance_norms(body, plan_layers(body, chosen))
    reference = reference if balanced is body else _with_body(reference, balanced)
    for is_asked, method in ((chosen.equalize, equalize), (chosen.twins, add_twins)):
        if is_asked:
            layers = plan_layers(reference["main"].body, chosen)
            reference = _with_body(reference, method(reference, layers, data))
    return reference


def _ranges(reference: IRModule, layers: Layers, data: Mapping[str, Array], progress: Progress) -> Ranges:
    """The range of each integer tensor; a number format without one range a tensor looks at no data."""
    tensors = {tensor: layers.of_tensor(tensor) for tensor in layers.plan.integers}
    if layers.strategy.number_format is not NumberFormat.INTEGER and not layers.strategy.needs_data:
        return dict.fromkeys(tensors, (0.0, 0.0))
    return calibrate(reference, tensors, data, progress)


def _fitted(
    reference: IRModule,
    layers: Layers,
    ranges: Ranges,
    data: tuple[Mapping[str, Array], Mapping[str, Array]],
    progress: Progress,
) -> tuple[Mapping[PlanStep, LayerWeights] | None, Gain | None]:
    """Integer weights that are fitted to data, None if none are, and the gain of training."""
    weights = gain = None
    if layers.need_statistics:
        weights = replay_layers(reference, layers, ranges, data[0], choose_weights, progress)
    if layers.strategy.epochs and any(layers.linear):
        weights, gain = train(reference, layers, ranges, data, weights, progress)
    return weights, gain


def _with_body(mod: IRModule, body: Expr) -> IRModule:
    """`mod` with another body of `main`, typed."""
    return InferType()(mod.with_functions({"main": copy_with(mod["main"], body=body, checked_type=None)}))


def reference_of(mod: IRModule) -> IRModule:
    """The float network whose layers strategies name, with control flow cut into fragments."""
    reference = OutlineFragments()(simplify_pipeline()(InferType()(mod)))
    return integer_forms(reference) if is_graph(reference) else reference


def _best(reference: IRModule, strategy: Strategy, data: Mapping[str, Array], cost: LayerCost | None) -> Strategy:
    """The best candidate, under the strategy's name and with its exceptions for layers."""

    def quantized(one: Strategy, shown: Mapping[str, Array]) -> IRModule:
        return realize_module(reference, one, shown, cost=cost).mod

    own = [
        replace(one, layers=one.layers + strategy.layers, multiplier_bits=strategy.multiplier_bits)
        for one in map(find_strategy, strategy.candidates)
    ]
    best = best_candidate(reference, own, data, quantized)
    return replace(best, name=strategy.name, summary=f"{best.name}, the best of {', '.join(strategy.candidates)}")


def fragment_strategies(reference: IRModule, strategy: Strategy) -> dict[str, Strategy]:
    """For each fragment with something to quantize, the strategy with the exceptions for its layers.

    Raises QuantizeError for an exception that names no layer of any of them."""
    modules = fragment_modules(reference)
    check_layers(modules, strategy)
    return {name: own_layers(module, strategy) for name, module in modules.items()}


def calibrate_fragments(
    reference: IRModule,
    own: Mapping[str, Strategy],
    data: Mapping[str, Any],
    progress: Progress,
    cost: LayerCost | None,
) -> dict[str, tuple[Calibrated, Mapping[str, Array] | None]]:
    """Each fragment by its recorded inputs, given with it. One that no sample reaches stays float and is left out."""
    modules = fragment_modules(reference)
    seen: Mapping[str, Mapping[str, Array] | None] = dict.fromkeys(own)
    if any(one.needs_data for one in own.values()):
        seen = record(reference, list(own), data, progress)
    return {name: (_calibrate_fragment(modules[name], own[name], part, cost), part) for name, part in seen.items()}


def _calibrate_fragment(
    mod: IRModule, strategy: Strategy, data: Mapping[str, Array] | None, cost: LayerCost | None
) -> Calibrated:
    reference = reference_of(mod if data is None else merge_sums(mod, data))
    given = flat_data(reference["main"].params, given_data(strategy, data))
    return calibrate_graph(reference, strategy, given, SILENT, cost)
