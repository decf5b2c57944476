"""Quantization-aware training of weights, by Relay's own gradients (straight through rounding).

In: a float network, its layers and ranges, calibration inputs. Out: integers for each linear layer, what was gained.
Labels are not needed: the float network is the teacher, and the loss is the squared distance from its results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from relay_hw.analysis import infer_type
from relay_hw.errors import QuantizeError
from relay_hw.ir.expr import Expr, Function, Let, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.quantize.batch import Values
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.augment import augmented, image_axes
from relay_hw.quantize.methods.layerwise_replay import count_launches, launch_sizes, make_shots
from relay_hw.quantize.methods.mixed import logits
from relay_hw.quantize.methods.simulate import simulate, simulated_integers
from relay_hw.quantize.number import LayerWeights, QParams, assemble, fits, layer_weights, spread
from relay_hw.quantize.realizer import Ranges, float_weights, group_params
from relay_hw.quantize.steps import LinearStep, PlanStep
from relay_hw.quantize.strategy import Strategy
from relay_hw.support.progress import SILENT, Progress
from relay_hw.transform.gradient import gradient
from relay_hw.transform.graph import constant, dataflow_order, make
from relay_hw.transform.linear import bias_calls

Array = NDArray[Any]
Float64 = NDArray[np.float64]
SAMPLES: Final = 256
BATCH: Final = 16
HELD_OUT: Final = 4  # one sample of this many is used for validation
_WANTED: Final = "quantize.wanted"
_DECAY_FIRST, _DECAY_SECOND = 0.9, 0.999
# Of one step at a learning rate of 1: integers of a weight, share of a bias's range.
_WEIGHT_STEP: Final = 20.0
_BIAS_STEP: Final = 0.25
_Sample = tuple[Mapping[Expr, Array], Sequence[Array]]
_TRAINING: Final = "training"


@dataclass(frozen=True, slots=True)
class Gain:
    """Signal-to-noise ratio of the results on samples that were not trained on, in dB, of the start and at the end."""

    start_db: float
    end_db: float
    samples: int

    def sentence(self) -> str:
        """A sentence on the gain of the training."""
        held = f"{self.samples} held-out samples"
        if self.end_db <= self.start_db:
            return f"training: no gain on {held}, start kept ({self.start_db:.1f} dB)"
        gain = self.end_db - self.start_db
        return f"training: +{gain:.1f} dB of signal-to-noise on {held}, {self.start_db:.1f} to {self.end_db:.1f} dB"


@dataclass(slots=True, eq=False)
class _Learned:
    """Numbers that are trained: `unit` is how far one step at a learning rate of 1 takes them."""

    values: Float64
    variable: Var
    unit: Float64
    first: Float64
    second: Float64

    @staticmethod
    def of(name: str, values: Float64, unit: Float64 | float) -> _Learned:
        variable = Var(name, TensorType(values.shape, "float32"))
        object.__setattr__(variable, "checked_type", variable.type_annotation)
        return _Learned(values.copy(), variable, np.asarray(unit), np.zeros(values.shape), np.zeros(values.shape))

    def move(self, slope: Array, rate: float, number: int) -> None:
        """One step of Adam."""
        exact = slope.astype(np.float64)
        self.first += (1 - _DECAY_FIRST) * (exact - self.first)
        self.second += (1 - _DECAY_SECOND) * (np.square(exact) - self.second)
        mean = self.first / (1 - _DECAY_FIRST**number)
        power = self.second / (1 - _DECAY_SECOND**number)
        self.values = self.values - mean / (np.sqrt(power) + 1e-12) * rate * self.unit


@dataclass(slots=True, eq=False)
class _Part:
    """A layer in training: its weight in the operator's layout, a factor for each channel, its bias."""

    step: LinearStep
    scales: Float64
    weight: _Learned
    gain: _Learned | None
    bias: _Learned | None
    fixed_bias: Float64

    @property
    def learned(self) -> Iterator[_Learned]:
        for one in (self.weight, self.gain, self.bias):
            if one is not None:
                yield one


def hold_out(mod: IRModule, data: Mapping[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
    """Split `data` into training (and calibration) samples and validation samples.

    Methods that choose integers by data fit those that they saw: only others can say what training adds to them.
    """
    steps, count = launch_sizes(mod), count_launches(mod, data)
    if count < 2:
        raise QuantizeError(f"calibration data must hold at least 2 samples to train with, not {count}")
    is_held = np.arange(count) % HELD_OUT == 1
    parts = {name: np.asarray(data[name])[: count * step].reshape(count, step, -1) for name, step in steps.items()}
    shapes = {name: (-1, *np.asarray(data[name]).shape[1:]) for name in steps}
    shown, held = (
        {name: part[index].reshape(shapes[name]) for name, part in parts.items()} for index in (~is_held, is_held)
    )
    return shown, held


def train(
    mod: IRModule,
    layers: Layers,
    ranges: Ranges,
    data: tuple[Mapping[str, Array], Mapping[str, Array]],
    start: Mapping[PlanStep, LayerWeights] | None = None,
    progress: Progress = SILENT,
) -> tuple[dict[PlanStep, LayerWeights], Gain]:
    """Train all epochs: integers of every linear layer of `layers`, the plan of `mod`, and the gain.

    `data`: samples to train with, and those that nothing was chosen by so far. `start`: integers of other methods to
    begin with, instead of the float weights.
    """
    strategy = layers.strategy
    size = min(BATCH, *(count_launches(mod, part) for part in data))
    shots, held = (make_shots(mod, part, SAMPLES, size) for part in data)
    body = shots.mod["main"].body
    own = layers if shots.mod is mod else plan_layers(body, strategy)
    limits = dict(zip(own.plan.group, (ranges[tensor] for tensor in layers.plan.group), strict=True))
    params = group_params(own, limits)
    originals = [step for step in layers.plan.steps if isinstance(step, LinearStep)]
    begin = [(start or {}).get(step) for step in originals]
    parts = [_part(number, step, own, params, begin[number]) for number, step in enumerate(own.linear)]
    inputs = shots.mod["main"].params
    taught = targets(body)
    loss = _Loss(_loss(body, own, params, parts, taught), tuple(inputs), parts)
    unseen: list[dict[Expr, Array]] = [
        {param: one[other] for param, other in zip(inputs, held.mod["main"].params, strict=True)} for one in held.inputs
    ]
    run = _Run(loss, taught, shots.inputs, unseen, image_axes(own.plan), strategy)
    gain = run.run(progress)
    return {old: _integers(part, own, params) for old, part in zip(originals, parts, strict=True)}, gain


def targets(body: Expr) -> list[Expr]:
    """The teacher's outputs: the result before a softmax, or the float ones of several results."""
    results = body.fields if isinstance(body, Tuple) else (logits(body),)
    return [one for one in results if isinstance(one.type, TensorType) and one.type.dtype.startswith("float")]


class _Run:
    """Epochs over the training samples; validation samples select the best state."""

    def __init__(
        self,
        loss: _Loss,
        taught: Sequence[Expr],
        shown: Sequence[Mapping[Expr, Array]],
        held: Sequence[Mapping[Expr, Array]],
        images: Mapping[Expr, tuple[int, int]],
        strategy: Strategy,
    ) -> None:
        self._loss, self._taught, self._shown, self._images = loss, taught, shown, images
        self._strategy = strategy
        self._held = [self._asked(one) for one in held]
        self._power = float(np.mean([sum(map(_power, wanted)) for _, wanted in self._held]))

    def run(self, progress: Progress) -> Gain:
        """Train, and keep the state that was best on validation samples, possibly the initial one."""
        strategy, rng = self._strategy, np.random.default_rng(self._strategy.seed)
        total, number = strategy.epochs * len(self._shown), 0
        first = best = self._noise()
        kept = self._loss.state()
        progress.started(_TRAINING, total)
        for _ in range(strategy.epochs):
            for batch in self._mixed(rng):
                rate = strategy.learning_rate * 0.5 * (1 + math.cos(math.pi * number / total))
                number += 1
                self._loss.step(self._asked(augmented(batch, self._images, rng)), rate, number)
                progress.advanced(_TRAINING, number)
            noise = self._noise()
            if noise < best:
                best, kept = noise, self._loss.state()
        self._loss.restore(kept)
        samples = sum(len(np.atleast_1d(wanted[0])) for _, wanted in self._held)
        return Gain(self._decibel(first), self._decibel(best), samples)

    def _mixed(self, rng: np.random.Generator) -> Iterator[dict[Expr, Array]]:
        """The training samples in new random batches each time."""
        first = self._shown[0]
        size = 1 if any(array.ndim == 0 for array in first.values()) else len(next(iter(first.values())))
        if size == 1:
            yield from (dict(self._shown[int(index)]) for index in rng.permutation(len(self._shown)))
            return
        whole = {key: np.concatenate([one[key] for one in self._shown]) for key in first}
        for group in rng.permutation(size * len(self._shown)).reshape(-1, size):
            yield {key: array[group] for key, array in whole.items()}

    def _asked(self, given: Mapping[Expr, Array]) -> _Sample:
        values = Values(given)
        return given, [values.of(one) for one in self._taught]

    def _noise(self) -> float:
        return sum(self._loss.value(sample) for sample in self._held) / len(self._held)

    def _decibel(self, noise: float) -> float:
        return 10 * math.log10(self._power / noise) if noise > 0 and self._power > 0 else math.inf


def _power(values: Array) -> float:
    return float(np.square(values, dtype=np.float64).mean())


def _part(
    number: int, step: LinearStep, layers: Layers, params: Mapping[Expr, QParams], start: LayerWeights | None
) -> _Part:
    linear, given, own = step.linear, params[step.inputs[0]], layers.own[step].weights
    weight, bias = float_weights(step)
    weight = weight.astype(np.float64)
    scales = layer_weights(weight, bias, given, own, layers.names[step]).scales
    if start is not None:
        scales = start.scales
        weight = start.weight * spread(scales, 0, weight.ndim)
        bias = start.unfolded * (given.scale * scales)
    placed = np.moveaxis(weight, 0, linear.weight_axis)
    along = spread(scales, linear.weight_axis, placed.ndim)
    learned = _Learned.of(f"quantize.weight_{number}", placed, _WEIGHT_STEP * along)
    is_free = own.per_channel and not own.power_of_two
    gain = _Learned.of(f"quantize.gain_{number}", np.ones_like(along), 1.0) if is_free else None
    result = params[step.output]
    reach = result.scale * (result.high - result.low) * _BIAS_STEP
    own_bias = None if linear.bias is None else _Learned.of(f"quantize.bias_{number}", bias, reach)
    return _Part(step, scales, learned, gain, own_bias, bias)


def _loss(
    body: Expr, layers: Layers, params: Mapping[Expr, QParams], parts: list[_Part], taught: Sequence[Expr]
) -> Function:
    """fn (inputs, targets, parameters) -> squared distance of the rounded network's results from the targets."""
    weights: dict[Expr, dict[int, Expr]] = {}
    adders = bias_calls(body)
    for part in parts:
        linear = part.step.linear
        limit = layers.own[part.step].weights.limit
        scales = spread(part.scales, linear.weight_axis, linear.weight.ndim).astype(np.float32)
        numbers = (scales, np.float32(-limit), np.float32(limit))
        rounded = make(
            "relay.op.annotation.simulated_quantize",
            (part.weight.variable, *map(constant, numbers)),
            kind=2,
            rounding="half_even",
        )
        if part.gain is not None:
            rounded = make("multiply", (rounded, part.gain.variable))
        weights[linear.anchor] = {1: rounded}
        if part.bias is not None:
            weights[adders[linear.anchor]] = {1: part.bias.variable}
    _, new = simulate(body, layers, simulated_integers(params), weights)
    results = [new[one] for one in taught]
    wanted = [Var(f"{_WANTED}_{k}", one.tensor_type, checked_type=one.type) for k, one in enumerate(results)]
    loss = reduce(lambda left, right: make("add", (left, right)), map(_distance, results, wanted))
    free = [one.variable for part in parts for one in part.learned]
    known = {*free, *wanted}
    inputs = [node for node in dataflow_order(loss, "main") if isinstance(node, Var) and node not in known]
    return Function([*inputs, *wanted, *free], loss)


def _distance(result: Expr, wanted: Expr) -> Expr:
    error = make("subtract", (result, wanted))
    return make("mean", (make("multiply", (error, error)),), axis=None, keepdims=False, exclude=False)


class _Loss:
    """A loss, its gradient, and steps along it."""

    def __init__(self, loss: Function, inputs: tuple[Var, ...], parts: list[_Part]) -> None:
        self._inputs = [one for one in inputs if one in loss.params]
        self._learned = [one for part in parts for one in part.learned]
        self._forward = loss
        self._reverse = cast(Function, infer_type(IRModule({"main": gradient(loss, mode="first_order")}))["main"])

    def value(self, sample: _Sample) -> float:
        """The loss of the current parameters."""
        return float(Values(self._bound(self._forward, sample)).of(self._forward.body))

    def step(self, sample: _Sample, rate: float, number: int) -> None:
        """Update the parameters once."""
        _, slopes = evaluate_lets(self._reverse.body, self._bound(self._reverse, sample))
        by_name = dict(zip((param.name_hint for param in self._forward.params), slopes, strict=True))
        for one in self._learned:
            one.move(by_name[one.variable.name_hint], rate, number)

    def state(self) -> list[Float64]:
        """A copy of the parameters."""
        return [one.values.copy() for one in self._learned]

    def restore(self, state: Sequence[Float64]) -> None:
        """Restore the parameters from a copy."""
        for one, values in zip(self._learned, state, strict=True):
            one.values = values

    def _bound(self, function: Function, sample: _Sample) -> dict[Expr, Array]:
        given, wanted = sample
        by_name: dict[str, Array] = {f"{_WANTED}_{number}": one for number, one in enumerate(wanted)}
        by_name |= {var.name_hint: given[var] for var in self._inputs}
        by_name |= {one.variable.name_hint: one.values.astype(np.float32) for one in self._learned}
        return {var: by_name[var.name_hint] for var in function.params}


def evaluate_lets(body: Expr, given: Mapping[Expr, Any]) -> Any:
    """The value of lets around a dataflow graph."""
    values = Values(given)
    while isinstance(body, Let):
        values.set(body.var, values.of(body.value))
        body = body.body
    return values.of(body)


def _integers(part: _Part, layers: Layers, params: Mapping[Expr, QParams]) -> LayerWeights:
    step, linear = part.step, part.step.linear
    rule, given = layers.own[step].weights, params[step.inputs[0]]
    weight = np.moveaxis(part.weight.values, linear.weight_axis, 0)
    limit, steps = rule.limit, spread(part.scales, 0, weight.ndim)
    whole = np.clip(np.rint(weight / steps), -limit, limit).astype(np.int8)
    scales = part.scales
    if part.gain is not None:
        scales = (scales * part.gain.values.reshape(-1)).astype(np.float32).astype(np.float64)
    bias = part.fixed_bias if part.bias is None else part.bias.values
    if fits(whole, bias, given, scales):
        return assemble(whole, bias, given, scales)
    return layer_weights(weight, bias, given, rule, layers.names[step])
