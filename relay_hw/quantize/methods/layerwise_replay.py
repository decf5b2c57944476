"""Layerwise replay: runs the float and the integer network side by side on calibration samples, layer by layer.

In: the float module, its layers, ranges, data. Out: for each linear layer the integers that a `Chooser` makes from
what the layer meets; layers after it meet the noise of those before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Expr
from relay_hw.ir.module import IRModule
from relay_hw.quantize.batch import BATCH, Values, batched
from relay_hw.quantize.layer_rule import WeightRule
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.augment import augmented, image_axes
from relay_hw.quantize.methods.columns import columns, has_columns, to_rows
from relay_hw.quantize.number import LayerWeights, QParams
from relay_hw.quantize.realizer import Ranges, Realizer, float_weights, group_params
from relay_hw.quantize.steps import FloatStep, LinearStep, PlanStep
from relay_hw.support.progress import SILENT, Progress

Array = NDArray[Any]
Float64 = NDArray[np.float64]
SAMPLES = 128
COLUMNS = 8192
_CHOOSING: Final = "choosing integers of layers"


@dataclass(frozen=True, slots=True, eq=False)
class LayerStatistics:
    """Layer statistics: input columns of the float network (`wanted`) and of the integer network (`given`), both
    [groups, depth, columns], with their means [groups, depth] over all samples and positions.

    `weight` has its output channels on axis 0, `rows` [groups, channels, depth] is the same weight.
    """

    step: LinearStep
    name: str
    rule: WeightRule
    params: QParams
    weight: Array
    bias: Float64
    rows: Float64
    wanted: Float64
    given: Float64
    wanted_mean: Float64
    given_mean: Float64


Chooser = Callable[[LayerStatistics], LayerWeights]


@dataclass(frozen=True, slots=True, eq=False)
class Shots:
    """Samples in batches of the size that `mod` takes at once."""

    mod: IRModule
    inputs: tuple[dict[Expr, Array], ...]


def launch_sizes(mod: IRModule) -> dict[str, int]:
    """Samples of one launch of `mod`, by input."""
    return {p.name_hint: (p.tensor_type.static_shape or (1,))[0] for p in mod["main"].params}


def count_launches(mod: IRModule, data: Mapping[str, Array]) -> int:
    """The number of launches that `data` are for."""
    return min((len(np.asarray(data[name])) // size for name, size in launch_sizes(mod).items()), default=0)


def make_shots(mod: IRModule, data: Mapping[str, Array], limit: int = SAMPLES, most: int = BATCH) -> Shots:
    """At most `limit` samples of `data`, evenly chosen, in groups of at most `most`."""
    size = min(most, limit, count_launches(mod, data))
    many = batched(mod, size) if set(launch_sizes(mod).values()) == {1} else None
    return _shots(mod, data, limit, many, 1 if many is None else size)


def _shots(mod: IRModule, data: Mapping[str, Array], limit: int, many: IRModule | None, size: int) -> Shots:
    """Groups of `size` launches of `mod`, each group one of `many` (None: each launch as `mod` takes it)."""
    steps, count = launch_sizes(mod), count_launches(mod, data)
    picked = np.linspace(0, count - 1, min(limit, count)).round().astype(int)
    used = many or mod
    groups = [picked[start : start + size] for start in range(0, len(picked) - size + 1, size)]
    inputs = []
    for group in groups:
        given: dict[Expr, Array] = {}
        for param in used["main"].params:
            ty = param.tensor_type
            whole = np.asarray(data[param.name_hint])
            parts = whole.reshape(-1, steps[param.name_hint], *whole.shape[1:])[group]
            given[param] = parts.reshape(ty.static_shape).astype(ty.dtype)
        inputs.append(given)
    return Shots(used, tuple(inputs))


def _planned(mod: IRModule, layers: Layers, data: Mapping[str, Array]) -> tuple[Shots, Layers]:
    """Samples in batches, with their plan: as that of one sample, `layers`, step by step.

    A constant that is an operand for one sample (rotary factors) is none for many: then samples come one by one.
    """
    shots = make_shots(mod, data)
    own = layers if shots.mod is mod else plan_layers(shots.mod["main"].body, layers.strategy)
    if [type(step) for step in own.plan.steps] == [type(step) for step in layers.plan.steps]:
        return shots, own
    return _shots(mod, data, SAMPLES, None, 1), layers


def replay_layers(
    mod: IRModule,
    layers: Layers,
    ranges: Ranges,
    data: Mapping[str, Array],
    choose: Chooser,
    progress: Progress = SILENT,
) -> dict[PlanStep, LayerWeights]:
    """Replay the network and let `choose` make the integers of each linear layer of `layers`, the plan of `mod`."""
    shots, own = _planned(mod, layers, data)
    limits = dict(zip(own.plan.group, (ranges[tensor] for tensor in layers.plan.group), strict=True))
    params = group_params(own, limits)
    realizer = Realizer(own, params)
    inputs = _with_others(shots.inputs, own)
    floats: list[dict[Expr, Any]] = [dict(given) for given in inputs]
    integers: list[dict[Expr, Any]] = [dict(given) for given in inputs]
    found: dict[PlanStep, LayerWeights] = {}
    done = _done_after(own.plan.steps, frozenset(inputs[0]))
    progress.started(_CHOOSING, len(list(own.linear)))
    for step, original in zip(own.plan.steps, layers.plan.steps, strict=True):
        weights = None
        if isinstance(step, LinearStep):
            source = realizer.as_int(step.inputs[0])
            given = [_learn(known, source) for known in integers]
            wanted = [_learn(known, step.inputs[0]) for known in floats]
            if has_columns(step):
                weights = choose(_meeting(step, own, params[step.inputs[0]], wanted, given))
            else:
                weights = realizer.weights(step)
            found[original] = weights
            progress.advanced(_CHOOSING, len(found), own.names[step])
        realizer.take(step, weights)
        result = realizer.as_float(step.output) if isinstance(step, FloatStep) else realizer.as_int(step.output)
        for known in integers:
            _learn(known, result)
        for known in floats:
            _learn(known, step.output)
        for tensor in done.get(step, ()):
            _forget(floats, tensor)
            _forget(integers, realizer.as_int(tensor))
    return found


def _with_others(inputs: Sequence[dict[Expr, Array]], layers: Layers) -> list[dict[Expr, Array]]:
    """The samples, plus as many augmented ones as the strategy asks for."""
    rng, axes = np.random.default_rng(layers.strategy.seed), image_axes(layers.plan)
    others = [augmented(given, axes, rng) for _ in range(layers.strategy.augment) for given in inputs]
    return [*inputs, *others]


def _done_after(steps: Sequence[PlanStep], inputs: frozenset[Expr]) -> dict[PlanStep, list[Expr]]:
    """By step, the tensors that no later step reads. Those that float operators still read are recomputed."""
    last = {tensor: step for step in steps if not isinstance(step, FloatStep) for tensor in step.inputs}
    found: dict[PlanStep, list[Expr]] = {}
    for tensor, step in last.items():
        if tensor not in inputs:
            found.setdefault(step, []).append(tensor)
    return found


def _forget(known: Sequence[dict[Expr, Any]], node: Expr) -> None:
    for values in known:
        values.pop(node, None)


def _learn(known: dict[Expr, Any], node: Expr) -> Any:
    """Compute `node` from known values, and keep only its value."""
    if node not in known:
        known[node] = Values(known).of(node)
    return known[node]


def _meeting(
    step: LinearStep, layers: Layers, source: QParams, wanted: Sequence[Array], given: Sequence[Array]
) -> LayerStatistics:
    """Layer statistics of a layer with input `source`."""
    weight, bias = float_weights(step)
    real = [((part.astype(np.float32) - source.zero_point) * np.float32(source.scale)) for part in given]
    many, few = _sample(step, wanted, real, COLUMNS * min(1 + layers.strategy.augment, 2))
    return LayerStatistics(
        step, layers.names[step], layers.own[step].weights, source, weight, bias, to_rows(step, weight),
        wanted=many[0], given=few[0], wanted_mean=many[1], given_mean=few[1],
    )  # fmt: skip


def _sample(
    step: LinearStep, wanted: Sequence[Array], given: Sequence[Array], most: int
) -> tuple[tuple[Float64, Float64], tuple[Float64, Float64]]:
    """About `most` columns of both networks at the same random positions, and means over all positions."""
    rng = np.random.default_rng(0)
    share = max(1, most // len(wanted))
    parts: tuple[list[Float64], list[Float64]] = ([], [])
    means: tuple[list[Float64], list[Float64]] = ([], [])
    for pair in zip(wanted, given, strict=True):
        picked: Any = None
        for kind, data in enumerate(pair):
            whole = columns(step, data)
            if picked is None:
                total = whole.shape[2]
                picked = rng.choice(total, share, replace=False) if total > share else slice(None)
            parts[kind].append(whole[:, :, picked].astype(np.float64))
            means[kind].append(whole.mean(axis=2, dtype=np.float64))
    first, second = ((np.concatenate(parts[kind], axis=2), np.mean(means[kind], axis=0)) for kind in (0, 1))
    return first, second
