"""Equalization of channels (after Nagel 2019): what lies between layers is scaled channel by channel, so that small
channels get as many of the integers as large ones do.

In: a float network, its layers, calibration data. Out: one that means the same on these data and costs less rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Op, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.batch import Values
from relay_hw.quantize.layers import Layers, plan_layers
from relay_hw.quantize.methods.layerwise_replay import make_shots
from relay_hw.quantize.methods.stretches import Stretch, find_stretches, input_axis
from relay_hw.quantize.number import spread
from relay_hw.quantize.steps import LinearStep, is_depthwise
from relay_hw.transform.graph import constant, dataflow_order, remake, typed_tuple
from relay_hw.transform.linear import bias_calls

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Changes = dict[tuple[Expr, int], Array]  # (call, argument) -> its new constant
# A channel's scale is its reach and its largest weight, each to one of these powers: those that cost least noise.
_OF_REACH: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_OF_WEIGHT: Final = (0.0, 0.25, 0.5)
_MOST: Final = 1024.0  # a channel that is smaller than this share of the largest gains nothing more
_ROOM: Final = 2.0


@dataclass(frozen=True, slots=True)
class Reach:
    """Statistics of a tensor's channels on calibration data: range and variance."""

    low: Float64
    high: Float64
    power: Float64


def equalize(mod: IRModule, layers: Layers, data: Mapping[str, Array]) -> Expr:
    """The body of `mod` with the channels of each stretch equalized, in float; `layers` are those of `mod`."""
    body = mod["main"].body
    stretches = find_stretches(body, layers.plan)
    reaches = measure(mod, layers, data, stretches)
    weights = {step: step.linear.weight.astype(np.float64) for one in stretches for step in (*one.makers, *one.readers)}
    gains: dict[LinearStep, Float64] = {}
    for stretch in stretches:
        scale = best_scale(stretch, layers, reaches)
        if (scale == 1.0).all():
            continue
        for maker in stretch.makers:
            weights[maker] = weights[maker] * spread(scale, maker.linear.weight_axis, weights[maker].ndim)
            gains[maker] = scale
        for reader in stretch.readers:
            weights[reader] = weights[reader] / spread(scale, input_axis(reader), weights[reader].ndim)
    biases = {step: step.linear.bias * gain for step, gain in gains.items() if step.linear.bias is not None}
    return with_layers(body, weights, biases)


def measure(mod: IRModule, layers: Layers, data: Mapping[str, Array], stretches: list[Stretch]) -> dict[Expr, Reach]:
    """Measure the channels of each tensor of `stretches`."""
    shots = make_shots(mod, data)
    own = layers if shots.mod is mod else plan_layers(shots.mod["main"].body, layers.strategy)
    batched = dict(zip(layers.plan.group, own.plan.group, strict=True))
    axes = {tensor: one.axis for one in stretches for tensor in one.tensors}
    parts: dict[Expr, list[Float64]] = {tensor: [] for tensor in axes}
    for given in shots.inputs:
        values = Values(given)
        for tensor, axis in axes.items():
            rows = np.moveaxis(values.of(batched[tensor]), axis, 0)
            rows = rows.reshape(len(rows), -1).astype(np.float64)
            kinds = (rows.min(axis=1), rows.max(axis=1), rows.mean(axis=1), np.square(rows).mean(axis=1))
            parts[tensor].append(np.stack(kinds))
    found: dict[Expr, Reach] = {}
    for tensor, some in parts.items():
        low, high, mean, square = np.array(some).swapaxes(0, 1)
        found[tensor] = Reach(low.min(axis=0), high.max(axis=0), square.mean(axis=0) - np.square(mean.mean(axis=0)))
    return found


def best_scale(stretch: Stretch, layers: Layers, reaches: Mapping[Expr, Reach]) -> Float64:
    """The scale of each channel that minimises the rounding noise of a stretch's readers."""
    of = [reaches[tensor] for tensor in stretch.tensors]
    sizes = [np.maximum(one.high, -one.low) for one in of]
    reach = np.max([size / max(float(size.max()), 1e-300) for size in sizes], axis=0)
    weight = np.max([_largest(one) for one in stretch.readers], axis=0)
    lives = (reach > 0) & (weight > 0)
    reach, weight = (np.where(lives, np.maximum(part, 1 / _MOST), 1.0) for part in (reach, weight))
    least, most = _limits(stretch, reaches)
    candidates = [np.clip(weight**b / reach**a, least, most) for a, b in product(_OF_REACH, _OF_WEIGHT)]
    return min(candidates, key=lambda scale: noise(stretch, layers, reaches, scale))


def noise(stretch: Stretch, layers: Layers, reaches: Mapping[Expr, Reach], scale: Float64) -> float:
    """The power that rounding the tensors of a stretch and the weights of its readers adds to what these make."""
    share = sum((felt(one) for one in stretch.readers), np.zeros(len(scale)))
    total = 0.0
    for tensor in stretch.tensors:
        reach, steps = reaches[tensor], 2 ** layers.of_tensor(tensor).bits - 1
        width = max(float((reach.high * scale).max()), 0.0) - min(float((reach.low * scale).min()), 0.0)
        total += width**2 / steps**2 * float((share / np.square(scale)).sum())
    for reader in stretch.readers:
        power = reaches[reader.inputs[0]].power * np.square(scale)
        total += _weight_noise(reader, layers, scale, power)
    return total


def _weight_noise(reader: LinearStep, layers: Layers, scale: Float64, power: Float64) -> float:
    """The noise from rounding the weights of a reader whose input channels have `power`."""
    own = layers.own[reader].weights
    rows = _rows(reader)
    if is_depthwise(reader):
        # [channels, 1, taps]: each output channel meets one channel of the input.
        rows, power = rows / scale[:, None, None], power[:, None]
    else:
        rows, power = rows / scale[None, :, None], power[None, :]
    steps = np.abs(rows).max(axis=(1, 2)) / own.limit
    if not own.per_channel:
        steps = np.full_like(steps, steps.max())
    return float((np.square(steps)[:, None] * power).sum()) * rows.shape[2]


def _rows(step: LinearStep) -> Float64:
    """The weight of a layer as [output channels, input channels, taps]."""
    weight = np.moveaxis(step.linear.weight.astype(np.float64), step.linear.weight_axis, 0)
    if is_depthwise(step):
        return weight.reshape(len(weight), 1, -1)
    axis = input_axis(step)
    moved = np.moveaxis(weight, axis + (axis < step.linear.weight_axis), 1)
    return moved.reshape(*moved.shape[:2], -1)


def felt(step: LinearStep) -> Float64:
    """The share of a channel's power that reaches the layer's output."""
    rows = np.square(_rows(step)).sum(axis=2)
    return rows[:, 0] if is_depthwise(step) else rows.sum(axis=0)


def _largest(step: LinearStep) -> Float64:
    """The largest weight of each input channel, as a share of the largest of its row."""
    if is_depthwise(step):
        return np.ones(step.linear.channels)
    rows = np.abs(_rows(step)).max(axis=2)
    return (rows / np.maximum(rows.max(axis=1, keepdims=True), 1e-300)).max(axis=0)


def _limits(stretch: Stretch, reaches: Mapping[Expr, Reach]) -> tuple[Float64, Float64]:
    """The least and the largest scales. A clip at b, as ReLU6 has, cuts a channel at b / scale of what it stands for:
    where a channel gets near it the scale is 1, elsewhere there is room for twice of what calibration shows."""
    channels = stretch.makers[0].linear.channels
    most = np.full(channels, np.inf)
    for tensor, bound in stretch.bounds.items():
        reach = reaches[tensor].high * _ROOM
        most = np.minimum(most, np.maximum(bound / np.where(reach > 0, reach, 1e-300), 1.0))
    return np.full(channels, 1.0 if stretch.bounds else 0.0), most


def with_layers(
    body: Expr,
    weights: Mapping[LinearStep, Float64],
    biases: Mapping[LinearStep, Float64],
    attrs: Mapping[Expr, Any] | None = None,
) -> Expr:
    """`body` with other weights and biases of some layers, and with other attributes of some operators."""
    adders = bias_calls(body)
    changes: Changes = {(step.linear.anchor, 1): _like(step.linear.weight, value) for step, value in weights.items()}
    changes |= {(adders[step.linear.anchor], 1): _like(step.linear.bias, value) for step, value in biases.items()}
    return _with_constants(body, changes, attrs or {})


def _like(old: Array | None, new: Float64) -> Array:
    assert old is not None
    return new.astype(old.dtype)


def _with_constants(body: Expr, changes: Changes, attrs: Mapping[Expr, Any]) -> Expr:
    new: dict[Expr, Expr] = {}
    for node in dataflow_order(body, "main"):
        match node:
            case Call(op=Op()):
                args = [
                    constant(changes[node, index], arg.span) if (node, index) in changes else new[arg]
                    for index, arg in enumerate(node.args)
                ]
                same = all(arg is old for arg, old in zip(args, node.args, strict=True))
                new[node] = node if same else remake(node, args, attrs.get(node))
            case Tuple(fields=parts):
                new[node] = typed_tuple([new[part] for part in parts])
            case TupleGetItem(tuple_value=value):
                new[node] = copy_with(node, tuple_value=new[value])
            case _:
                new[node] = node
    return new[body]
