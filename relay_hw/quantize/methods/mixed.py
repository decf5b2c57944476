"""Mixed precision: measures each layer's sensitivity to narrow weights, and chooses widths within a budget.

In: a float network, a strategy with a budget, calibration data. Out: the strategy with a width for each layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Call, Expr
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import readers_of
from relay_hw.op.dense import along
from relay_hw.quantize.batch import Values
from relay_hw.quantize.choices import Budget
from relay_hw.quantize.fragments import fragment_modules, own_layers, record
from relay_hw.quantize.layer_rule import WeightRule
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.columns import columns, from_rows, has_columns, to_rows
from relay_hw.quantize.methods.gptq import second_order
from relay_hw.quantize.methods.knapsack import Option, Options, least, quietest, require_solver, widest
from relay_hw.quantize.methods.layerwise_replay import make_shots
from relay_hw.quantize.number import spread, weight_scales
from relay_hw.quantize.realizer import float_weights
from relay_hw.quantize.steps import LinearStep
from relay_hw.quantize.strategy import LayerChoice, Strategy
from relay_hw.quantize.sums import merge_sums
from relay_hw.transform.fragments import is_graph
from relay_hw.transform.graph import dataflow_order, is_op

Array = NDArray[Any]
LayerCost = Callable[[str, int], float]  # name of a layer, bits of its weights: bytes or cycles
SAMPLES = 64


def assign_bits(
    mod: IRModule, strategy: Strategy, data: Mapping[str, Array], cost: LayerCost | None = None
) -> Strategy:
    """`strategy` with a width for each linear layer, so that the noise is least within its budget.

    `cost` says what a layer takes at a width (by default bytes); the budget is a share of what all take at the widest.
    Raises QuantizeError for a budget below what the narrowest widths take, or one of cycles without `cost`;
    UnsupportedError without scipy.
    """
    require_solver()
    layers = plan_layers(mod["main"].body, replace(strategy, budget=None))
    if cost is None and strategy.budget is Budget.CYCLES:
        raise QuantizeError(
            f"strategy {strategy.name}: a cycle budget must have an accelerator that counts them: "
            "compile or compare the network, or give `cost`"
        )
    return with_widths(strategy, choose(measure(mod, layers, data, cost or stored_bytes(layers)), strategy))


def with_widths(strategy: Strategy, chosen: Sequence[Option]) -> Strategy:
    """The strategy with a width for each layer."""
    widths = tuple(LayerChoice(one.layer, weight_bits=one.bits) for one in chosen)
    return replace(strategy, budget=None, layers=strategy.layers + widths)


def stored_bytes(layers: Layers) -> LayerCost:
    """Bytes of weights as the accelerator stores them."""
    steps = {layers.names[step]: step for step in layers.linear}
    return lambda layer, bits: steps[layer].linear.weight.size * (0.5 if bits <= 4 else 1.0)


def choose(options: Options, strategy: Strategy) -> list[Option]:
    """One option per layer within the strategy's budget. Raises QuantizeError if there is none."""
    whole = sum(one.cost for one in widest(options))
    needed = least(options) / whole if whole else 0.0
    if needed > strategy.budget_share:
        raise QuantizeError(
            f"strategy {strategy.name}: budget_share must be at least {needed:.3f} for this network, "
            f"not {strategy.budget_share}"
        )
    return quietest(options, strategy.budget_share * whole)


def measure(mod: IRModule, layers: Layers, data: Mapping[str, Array], cost: LayerCost) -> dict[str, list[Option]]:
    """The options of each linear layer, noise measured on calibration samples."""
    shots = make_shots(mod, data, SAMPLES)
    body = shots.mod["main"].body
    own = layers if shots.mod is mod else plan_layers(body, layers.strategy)
    output = logits(body)
    known = [_known(own, given) for given in shots.inputs]
    reference = _Reference(output, known, [_flat(Values(values).of(output)) for values in known])
    later = _later(body)
    widths = sorted(set(layers.strategy.mixed_bits))
    found: dict[str, list[Option]] = {}
    for step in own.linear:
        name = own.names[step]
        fixed = _fixed(layers.strategy, name)
        bits_of = (fixed,) if fixed is not None else widths
        found[name] = [
            Option(name, bits, _noise(step, own, bits, reference, later[step.linear.anchor]), cost(name, bits))
            for bits in bits_of
        ]
    return found


def measure_all(reference: IRModule, strategy: Strategy, data: Mapping[str, Array]) -> Options:
    """The options of every layer, without costs. Of a network in fragments, noise is a share of each one's result."""
    if is_graph(reference):
        return measure(reference, plan_layers(reference["main"].body, strategy), data, _free)
    modules = fragment_modules(reference)
    found: dict[str, list[Option]] = {}
    for name, given in record(reference, list(modules), data).items():
        own = own_layers(modules[name], strategy)
        fragment = merge_sums(modules[name], given)
        for layer, some in measure(fragment, plan_layers(fragment["main"].body, own), given, _free).items():
            # Layers of one name in several fragments are one choice.
            both = zip(some, found.get(layer, some), strict=True)
            found[layer] = [replace(a, noise=a.noise + b.noise) for a, b in both] if layer in found else some
    return found


def _free(_layer: str, _bits: int) -> float:
    return 0.0


def _fixed(strategy: Strategy, name: str) -> int | None:
    """The width that the user gave a layer, if any."""
    given = [choice.weight_bits for choice in strategy.layers if choice.matches(name)]
    return next((bits for bits in reversed(given) if bits is not None), None)


def logits(body: Expr) -> Expr:
    """The result, before a final softmax."""
    return body.args[0] if isinstance(body, Call) and is_op(body, "nn.softmax", "nn.log_softmax") else body


def _known(layers: Layers, given: Mapping[Expr, Array]) -> dict[Expr, Any]:
    """The values of inputs and of the tensor after each step."""
    known: dict[Expr, Any] = dict(given)
    for step in layers.plan.steps:
        known[step.output] = Values(known).of(step.output)
    return known


def _later(body: Expr) -> dict[Expr, set[Expr]]:
    """For each call the nodes that depend on it, itself included."""
    depends: dict[Expr, set[Expr]] = {}
    readers = readers_of(body)
    for node in reversed(dataflow_order(body, "main")):
        depends[node] = {node}.union(*(depends[reader] for reader in readers.get(node, ())))
    return depends


@dataclass(frozen=True, slots=True, eq=False)
class _Reference:
    """The float network on samples: values of all nodes, and of `output`."""

    output: Expr
    known: list[dict[Expr, Any]]
    wanted: list[Array]


def _noise(step: LinearStep, layers: Layers, bits: int, reference: _Reference, later: set[Expr]) -> float:
    """Relative power of the output's change if only this layer's weights have `bits` bits.

    `later`: what depends on the layer.
    """
    known, output = reference.known, reference.output
    weight, shift = _narrow(step, layers.own[step].weights.at_width(bits), [values[step.inputs[0]] for values in known])
    anchor = step.linear.anchor
    power = error = 0.0
    for values, want in zip(known, reference.wanted, strict=True):
        trial = Values({node: value for node, value in values.items() if node not in later})
        trial.set(anchor.args[1], weight)
        result = trial.of(anchor)
        trial.set(anchor, result + along(shift.astype(result.dtype), step.linear.axis, result.ndim))
        power += float(np.square(want).sum())
        error += float(np.square(_flat(trial.of(output)) - want).sum())
    return error / max(power, 1e-300)


def _narrow(step: LinearStep, rule: WeightRule, inputs: list[Array]) -> tuple[Array, Array]:
    """The layer's weight after second-order rounding, as floats, and the mean error of its channels."""
    weight, _ = float_weights(step)
    scales = weight_scales(weight, rule)
    if not has_columns(step):
        steps = spread(scales, 0, weight.ndim)
        rounded = np.clip(np.rint(weight / steps), -rule.limit, rule.limit) * steps
        return _placed(step, rounded), np.zeros(len(weight))
    rows = to_rows(step, weight)
    share = max(1, 2048 // len(inputs))
    rng = np.random.default_rng(0)
    parts = [columns(step, data) for data in inputs]
    means = np.mean([part.mean(axis=2, dtype=np.float64) for part in parts], axis=0)
    few = [part[:, :, rng.choice(part.shape[2], min(share, part.shape[2]), replace=False)] for part in parts]
    seen = np.concatenate(few, axis=2).astype(np.float64)
    steps = scales.reshape(*rows.shape[:2], 1)
    rounded = second_order(rows, steps, seen, rule.limit) * steps
    shift = np.einsum("gok,gk->go", rows - rounded, means).reshape(-1)
    return _placed(step, from_rows(step, rounded, weight)), shift


def _placed(step: LinearStep, weight: Array) -> Array:
    """A weight with its output channels on axis 0, as the operator takes it."""
    return np.ascontiguousarray(np.moveaxis(weight, 0, step.linear.weight_axis)).astype(step.linear.weight.dtype)


def _flat(value: Any) -> Array:
    parts = value if isinstance(value, tuple) else (value,)
    return np.concatenate([np.asarray(part, np.float64).reshape(-1) for part in parts])
