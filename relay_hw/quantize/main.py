"""`quantize`: turns a float module into its integer form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.calibrate import calibrate, check_data, flat_data
from relay_hw.quantize.choices import NumberFormat
from relay_hw.quantize.fragments import check_layers, fragment_modules, own_layers, record, replace_fragments
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.methods.candidates import best_candidate
from relay_hw.quantize.methods.equalize import equalize
from relay_hw.quantize.methods.layerwise_replay import replay_layers
from relay_hw.quantize.methods.mixed import LayerCost, assign_bits
from relay_hw.quantize.methods.simulate import in_format
from relay_hw.quantize.methods.train import Gain, hold_out, train
from relay_hw.quantize.methods.twins import add_twins
from relay_hw.quantize.methods.weights import choose_weights, needs_rehearsal
from relay_hw.quantize.number import check_weights
from relay_hw.quantize.realize import FloatOperator, Probe, float_weights, realize
from relay_hw.quantize.strategy import Strategy
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.quantize.sums import merge_sums
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.fragments import OutlineFragments, is_graph
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.pipelines import simplify_pipeline

Array = NDArray[Any]


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
    calibration = flat_data(reference["main"].params, calibration)
    if not is_graph(reference):
        return _realize_fragments(reference, chosen, calibration, progress, cost)
    main = reference["main"]
    if chosen.needs_data:
        check_data(main.params, chosen, calibration)
    held: Mapping[str, Array] = {}
    if chosen.epochs:
        calibration, held = hold_out(reference, calibration or {})
    if chosen.candidates:
        chosen = _best(reference, chosen, calibration or {}, cost)
    if chosen.equalize:
        body = equalize(reference, plan_layers(main.body, chosen), calibration or {})
        main = copy_with(main, body=body, checked_type=None)
        reference = InferType()(reference.with_functions({"main": main}))
        main = reference["main"]
    if chosen.twins:
        body = add_twins(reference, plan_layers(main.body, chosen), calibration or {})
        main = copy_with(main, body=body, checked_type=None)
        reference = InferType()(reference.with_functions({"main": main}))
        main = reference["main"]
    if chosen.budget is not None:
        chosen = assign_bits(reference, chosen, calibration or {}, cost)
    layers = plan_layers(main.body, chosen)
    for step in layers.linear:
        check_weights(*float_weights(step), layers.names[step])
    tensors = {tensor: layers.of_tensor(tensor) for tensor in layers.plan.integers}
    if chosen.number_format is not NumberFormat.INTEGER and not chosen.needs_data:
        ranges = dict.fromkeys(tensors, (0.0, 0.0))
    else:
        ranges = calibrate(reference, tensors, chosen, calibration, progress)
    if chosen.number_format is not NumberFormat.INTEGER:
        body, probes = in_format(main.body, layers, ranges)
        new = reference.with_functions({"main": copy_with(main, body=body, checked_type=None)})
        return Realized(InferType()(new), reference, probes, chosen)
    weights = gain = None
    if needs_rehearsal(layers):
        weights = replay_layers(reference, layers, ranges, calibration or {}, choose_weights, progress)
    if chosen.epochs and any(layers.linear):
        weights, gain = train(reference, layers, ranges, (calibration or {}, held), weights, progress)
    body, probes, operators = realize(main.body, layers, ranges, weights)
    new = reference.with_functions({"main": copy_with(main, body=body, checked_type=None)})
    return Realized(InferType()(new), reference, probes, chosen, operators=operators, gain=gain)


def reference_of(mod: IRModule) -> IRModule:
    """The float network whose layers strategies name, with control flow cut into fragments."""
    return OutlineFragments()(simplify_pipeline()(InferType()(mod)))


def _best(reference: IRModule, strategy: Strategy, data: Mapping[str, Array], cost: LayerCost | None) -> Strategy:
    """The best candidate, under the strategy's name and with its exceptions for layers."""

    def realized(one: Strategy, shown: Mapping[str, Array]) -> IRModule:
        return realize_module(reference, one, shown, cost=cost).mod

    own = [
        replace(one, layers=one.layers + strategy.layers, multiplier_bits=strategy.multiplier_bits)
        for one in map(find_strategy, strategy.candidates)
    ]
    best = best_candidate(reference, own, data, realized)
    return replace(best, name=strategy.name, summary=f"{best.name}, the best of {', '.join(strategy.candidates)}")


def _realize_fragments(
    reference: IRModule,
    strategy: Strategy,
    data: Mapping[str, Any] | None,
    progress: Progress,
    cost: LayerCost | None,
) -> Realized:
    """Quantize each fragment by its recorded inputs. A fragment that no sample reaches stays float."""
    modules = fragment_modules(reference)
    check_layers(modules, strategy)
    seen: Mapping[str, Mapping[str, Array] | None] = dict.fromkeys(modules)
    if strategy.needs_data:
        seen = record(reference, list(modules), strategy, data, progress)
    parts = {name: _realize_fragment(modules[name], strategy, data, cost) for name, data in seen.items()}
    new = replace_fragments(reference, {name: part.mod["main"] for name, part in parts.items()})
    return Realized(new, reference, (), strategy, {name: Fragment(part, seen[name]) for name, part in parts.items()})


def _realize_fragment(
    mod: IRModule, strategy: Strategy, data: Mapping[str, Array] | None, cost: LayerCost | None
) -> Realized:
    own = own_layers(mod, strategy)
    if data is None:
        return realize_module(mod, own)
    return realize_module(merge_sums(mod, own, data), own, data, cost=cost)
