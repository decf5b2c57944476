"""Quantization-aware training: weights learn to be rounded, by the language's own gradient (straight through rounding).

In: a float network, its layers and ranges, calibration inputs. Out: integers for each linear layer. Labels are not
needed: the float network is the teacher, and the loss is the squared distance from its results.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Call, Expr, Function, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize.batch import Values
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.mixed import logits
from relay_hw.quantize.methods.rehearsal import make_shots
from relay_hw.quantize.methods.simulate import simulate, simulated_integers
from relay_hw.quantize.number import LayerWeights, QParams, assemble, fits, layer_weights
from relay_hw.quantize.plan import LinearStep, Step
from relay_hw.quantize.realize import Ranges, float_weights, group_params
from relay_hw.quantize.strategy import Strategy
from relay_hw.transform.gradient import gradient
from relay_hw.transform.graph import constant, dataflow_order, is_op, make

Array = NDArray[Any]
Float64 = NDArray[np.float64]
SAMPLES = 256
_Sample = tuple[Mapping[Expr, Array], Array]
_HELD_OUT = 4  # one sample group of so many is kept to choose by
_WANTED = "quantize.wanted"
_DECAY_FIRST, _DECAY_SECOND = 0.9, 0.999


@dataclass(slots=True, eq=False)
class _Trained:
    """A layer's weight (as the operator takes it) and bias while they are trained, with the optimizer's memory.

    A layer without bias in the network has none to train."""

    step: LinearStep
    scales: Float64
    weight: Float64
    bias: Float64
    weight_var: Var
    bias_var: Var | None
    moments: list[Float64]


def train(
    mod: IRModule,
    layers: Layers,
    ranges: Ranges,
    data: Mapping[str, Array],
    start: Mapping[Step, LayerWeights] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> dict[Step, LayerWeights]:
    """Integers of every linear layer of `layers`, the plan of `mod`, after the strategy's epochs over `data`.

    `start`: integers of other methods to begin with, instead of the float weights.
    """
    strategy = layers.strategy
    shots = make_shots(mod, data, SAMPLES)
    body = shots.mod["main"].body
    own = layers if shots.mod is mod else plan_layers(body, strategy)
    limits = dict(zip(own.plan.group, (ranges[tensor] for tensor in layers.plan.group), strict=True))
    params = group_params(own, limits)
    originals = [step for step in layers.plan.steps if isinstance(step, LinearStep)]
    begin = [(start or {}).get(step) for step in originals]
    parts = [_part(number, step, own, params, begin[number]) for number, step in enumerate(own.linear)]
    target = logits(body)
    wanted = [Values(given).of(target) for given in shots.inputs]
    step = _Step(_loss(body, own, params, parts), tuple(shots.mod["main"].params), parts)
    samples = list(zip(shots.inputs, wanted, strict=True))
    held = samples[::_HELD_OUT]
    shown = [sample for index, sample in enumerate(samples) if index % _HELD_OUT] or samples
    _run(step, shown, held, strategy, progress)
    return {old: _integers(part, own, params) for old, part in zip(originals, parts, strict=True)}


def _run(
    step: _Step,
    shown: Sequence[_Sample],
    held: Sequence[_Sample],
    strategy: Strategy,
    progress: Callable[[int, int], object] | None,
) -> None:
    """Train on `shown`; the weights that did best on `held`, those of the start among them, stay."""
    rng = np.random.default_rng(strategy.seed)
    total, number = strategy.epochs * len(shown), 0
    best, kept = sum(step.loss(sample) for sample in held), step.state()
    for _ in range(strategy.epochs):
        for index in rng.permutation(len(shown)):
            number += 1
            rate = strategy.learning_rate * 0.5 * (1 + math.cos(math.pi * (number - 1) / total))
            step.run(shown[int(index)], rate, number)
            if progress is not None:
                progress(number, total)
        loss = sum(step.loss(sample) for sample in held)
        if loss < best:
            best, kept = loss, step.state()
    step.restore(kept)


def _part(
    number: int, step: LinearStep, layers: Layers, params: Mapping[Expr, QParams], start: LayerWeights | None
) -> _Trained:
    linear, given = step.linear, params[step.inputs[0]]
    weight, bias = float_weights(step)
    weight = weight.astype(np.float64)
    scales = layer_weights(weight, bias, given, layers.own[step], layers.names[step]).scales
    if start is not None:
        scales = start.scales
        weight = start.weight * scales.reshape((-1,) + (1,) * (weight.ndim - 1))
        bias = start.unfolded * (given.scale * scales)
    bias_var = None if linear.bias is None else Var(f"quantize.bias_{number}", TensorType(bias.shape, "float32"))
    placed = np.moveaxis(weight, 0, linear.weight_axis).copy()
    weight_var = Var(f"quantize.weight_{number}", TensorType(placed.shape, "float32"))
    moments = [np.zeros(size.shape) for size in (placed, bias) for _ in range(2)]
    return _Trained(step, scales, placed, bias.copy(), weight_var, bias_var, moments)


def _loss(body: Expr, layers: Layers, params: Mapping[Expr, QParams], parts: list[_Trained]) -> Function:
    """fn (inputs, what is wanted, weights and biases) -> squared distance of the rounded network's result from it."""
    weights: dict[Expr, dict[int, Expr]] = {}
    calls = [node for node in dataflow_order(body, "main") if isinstance(node, Call)]
    bias_calls = {call.args[0]: call for call in calls if is_op(call, "nn.bias_add")}
    for part in parts:
        linear = part.step.linear
        limit = layers.own[part.step].weight_limit
        spread = [1] * linear.weight.ndim
        spread[linear.weight_axis] = -1
        numbers = (part.scales.reshape(spread).astype(np.float32), np.float32(-limit), np.float32(limit))
        variable = _typed(part.weight_var)
        rounded = make(
            "relay.op.annotation.simulated_quantize", (variable, *map(constant, numbers)), kind=2, rounding="half_even"
        )
        weights[linear.anchor] = {1: rounded}
        if part.bias_var is not None:
            weights[bias_calls[linear.anchor]] = {1: _typed(part.bias_var)}
    _, new = simulate(body, layers, simulated_integers(params), weights)
    result = new[logits(body)]
    wanted = _typed(Var(_WANTED, result.type))  # type: ignore[arg-type]
    error = make("subtract", (result, wanted))
    loss = make("mean", (make("multiply", (error, error)),), axis=None, keepdims=False, exclude=False)
    free = [_typed(part.weight_var) for part in parts] + [_typed(p.bias_var) for p in parts if p.bias_var is not None]
    inputs = [node for node in dataflow_order(result, "main") if isinstance(node, Var) and node not in free]
    return Function([*inputs, wanted, *free], loss)


def _typed(var: Var) -> Var:
    """The variable itself; its type is that of its annotation."""
    object.__setattr__(var, "checked_type", var.type_annotation)
    return var


class _Step:
    """A loss, its gradient, and steps of Adam on it."""

    def __init__(self, loss: Function, inputs: tuple[Var, ...], parts: list[_Trained]) -> None:
        self._inputs = inputs
        self._parts = parts
        self._forward = loss
        self._reverse = cast(Function, infer_type(IRModule({"main": gradient(loss, mode="first_order")}))["main"])

    def loss(self, sample: _Sample) -> float:
        """The loss of the weights as they are."""
        return float(Values(self._bound(self._forward, sample)).of(self._forward.body))

    def run(self, sample: _Sample, rate: float, number: int) -> None:
        """Change weights and biases once; an element moves by about `rate` of ten times their mean magnitude."""
        _, slopes = evaluate_lets(self._reverse.body, self._bound(self._reverse, sample))
        by_name = dict(zip((param.name_hint for param in self._forward.params), slopes, strict=True))
        for part in self._parts:
            trained = [(part.weight, part.weight_var, part.moments[:2])]
            if part.bias_var is not None:
                trained.append((part.bias, part.bias_var, part.moments[2:]))
            for values, variable, moments in trained:
                size = 10 * float(np.abs(values).mean())
                values -= _adam(by_name[variable.name_hint], moments, number) * rate * size

    def state(self) -> list[Float64]:
        """A copy of weights and biases."""
        return [values.copy() for part in self._parts for values in (part.weight, part.bias)]

    def restore(self, state: Sequence[Float64]) -> None:
        """Weights and biases as they were."""
        values = iter(state)
        for part in self._parts:
            part.weight, part.bias = next(values), next(values)

    def _bound(self, function: Function, sample: _Sample) -> dict[Expr, Array]:
        given, wanted = sample
        by_name: dict[str, Array] = {_WANTED: wanted}
        by_name |= {var.name_hint: given[var] for var in self._inputs}
        for part in self._parts:
            by_name[part.weight_var.name_hint] = part.weight.astype(np.float32)
            if part.bias_var is not None:
                by_name[part.bias_var.name_hint] = part.bias.astype(np.float32)
        return {var: by_name[var.name_hint] for var in function.params}


def _adam(slope: Array, moments: list[Float64], number: int) -> Float64:
    """The step of Adam, about 1 in each element; `moments` change."""
    exact = slope.astype(np.float64)
    moments[0] *= _DECAY_FIRST
    moments[0] += (1 - _DECAY_FIRST) * exact
    moments[1] *= _DECAY_SECOND
    moments[1] += (1 - _DECAY_SECOND) * np.square(exact)
    first = moments[0] / (1 - _DECAY_FIRST**number)
    second = moments[1] / (1 - _DECAY_SECOND**number)
    return first / (np.sqrt(second) + 1e-12)


def evaluate_lets(body: Expr, given: Mapping[Expr, Any]) -> Any:
    """The value of lets around a dataflow graph."""
    values = Values(given)
    while isinstance(body, Let):
        values.set(body.var, values.of(body.value))
        body = body.body
    return values.of(body)


def _integers(part: _Trained, layers: Layers, params: Mapping[Expr, QParams]) -> LayerWeights:
    step, linear = part.step, part.step.linear
    strategy, given = layers.own[step], params[step.inputs[0]]
    weight = np.moveaxis(part.weight, linear.weight_axis, 0)
    spread = part.scales.reshape((-1,) + (1,) * (weight.ndim - 1))
    whole = np.clip(np.rint(weight / spread), -strategy.weight_limit, strategy.weight_limit).astype(np.int8)
    if fits(whole, part.bias, given, part.scales):
        return assemble(whole, part.bias, given, part.scales)
    return layer_weights(weight, part.bias, given, strategy, layers.names[step])
