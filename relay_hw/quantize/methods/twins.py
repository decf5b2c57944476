"""Channels twice, where the accelerator computes with idle lanes: one of the twins is rounded a quarter of a step
higher, the other a quarter lower, so that both together hold one bit more (after channel splitting, Zhao 2019).

In: a float network, its layers, calibration data. Out: an equivalent one, with twins. Chains of depthwise layers
keep the twins apart; the layer behind them reads each with half of its weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Expr
from relay_hw.ir.module import IRModule
from relay_hw.quantize.layers import Layers
from relay_hw.quantize.methods.equalize import Reach, felt, measure, with_layers
from relay_hw.quantize.methods.stretches import Stretch, find_stretches, input_axis
from relay_hw.quantize.number import spread
from relay_hw.quantize.steps import AddStep, LinearStep, is_depthwise
from relay_hw.transform.graph import is_op

Array = NDArray[Any]
Float64 = NDArray[np.float64]
Indices = NDArray[np.int64]
LANES: Final = 16  # channels that every configuration computes together, at least
_QUARTER: Final = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class _Chain:
    """Stretches connected by depthwise layers, which each channel passes on its own."""

    first: LinearStep
    between: tuple[LinearStep, ...]
    last: LinearStep
    stretches: tuple[Stretch, ...]


def add_twins(mod: IRModule, layers: Layers, data: Mapping[str, Array]) -> Expr:
    """The body of `mod` with twins of the channels that rounding hurts most; `layers` are those of `mod`."""
    body = mod["main"].body
    chains = _chains(body, layers)
    if not chains:
        return body
    reaches = measure(mod, layers, data, [one for chain in chains for one in chain.stretches])
    writer = _Writer()
    for chain in chains:
        writer.twin(chain, _picked(chain, layers, reaches), [_step(one, layers, reaches) for one in chain.stretches])
    return writer.rebuilt(body)


def _chains(body: Expr, layers: Layers) -> list[_Chain]:
    """Chains with idle lanes, in order of evaluation; none shares a layer's weight with another."""
    sums = {tensor for step in layers.plan.steps if isinstance(step, AddStep) for tensor in (*step.inputs, step.output)}
    simple: dict[LinearStep, Stretch] = {}
    for one in find_stretches(body, layers.plan):
        if len(one.makers) == len(one.readers) == 1 and not any(tensor in sums for tensor in one.tensors):
            simple[one.makers[0]] = one
    found: list[_Chain] = []
    for first, stretch in simple.items():
        if is_depthwise(first) or not -first.linear.channels % LANES:
            continue
        stretches, last = [stretch], stretch.readers[0]
        while is_depthwise(last) and last in simple:
            stretches.append(simple[last])
            last = simple[last].readers[0]
        steps = [first, *(one.makers[0] for one in stretches[1:])]
        if not is_depthwise(last) and all(step.linear.bias is not None for step in steps):
            found.append(_Chain(first, tuple(steps[1:]), last, tuple(stretches)))
    return found


def _picked(chain: _Chain, layers: Layers, reaches: Mapping[Expr, Reach]) -> Indices:
    """The channels to duplicate, one per idle lane: those whose rounding costs the layer behind the chain most."""
    felt_later = felt(chain.last)
    noise = np.zeros(chain.first.linear.channels)
    for stretch, layer in zip(reversed(chain.stretches), (*reversed(chain.between), None), strict=True):
        lives = reaches[stretch.tensors[0]].high > reaches[stretch.tensors[0]].low
        noise += _step(stretch, layers, reaches) ** 2 * felt_later * lives
        felt_later = felt_later if layer is None else felt_later * felt(layer)
    alive = np.flatnonzero(noise > 0)
    return np.sort(alive[np.argsort(-noise[alive], kind="stable")][: -len(noise) % LANES])


def _step(stretch: Stretch, layers: Layers, reaches: Mapping[Expr, Reach]) -> float:
    """The approximate quantization step of a stretch's first tensor."""
    tensor = stretch.tensors[0]
    low, high = min(float(reaches[tensor].low.min()), 0.0), max(float(reaches[tensor].high.max()), 0.0)
    return (high - low) / (2 ** layers.of_tensor(tensor).bits - 1)


class _Writer:
    """Rewrites weights and biases of layers, and the graph with them."""

    def __init__(self) -> None:
        self._weights: dict[LinearStep, Float64] = {}
        self._biases: dict[LinearStep, Float64] = {}

    def twin(self, chain: _Chain, picked: Indices, steps: Sequence[float]) -> None:
        """Rewrite the chain's layers with copies of the channels `picked` behind all others."""
        order = np.concatenate([np.arange(chain.first.linear.channels), picked])
        side = np.zeros(len(order))
        side[picked], side[len(order) - len(picked) :] = _QUARTER, -_QUARTER
        before = np.zeros(len(order))
        for maker, step in zip((chain.first, *chain.between), steps, strict=True):
            axis = maker.linear.weight_axis
            weight = self._weights[maker] = np.take(self._weight(maker), order, axis)
            taken = np.zeros(len(order))
            if is_depthwise(maker):
                taken = before * np.moveaxis(weight, axis, 0).reshape(len(order), -1).sum(axis=1)
            self._biases[maker] = np.take(self._bias(maker), order) + side * step - taken
            before = side * step
        axis = input_axis(chain.last)
        weight = np.take(self._weight(chain.last), order, axis)
        shares = np.where(side == 0, 1.0, 0.5)
        self._weights[chain.last] = weight * spread(shares, axis, weight.ndim)

    def rebuilt(self, body: Expr) -> Expr:
        """`body` with the rewritten layers."""
        attrs: dict[Expr, Any] = {step.linear.anchor: _attrs(step, value) for step, value in self._weights.items()}
        return with_layers(body, self._weights, self._biases, attrs)

    def _weight(self, step: LinearStep) -> Float64:
        return self._weights.get(step, step.linear.weight.astype(np.float64))

    def _bias(self, step: LinearStep) -> Float64:
        assert step.linear.bias is not None
        return self._biases.get(step, step.linear.bias.astype(np.float64))


def _attrs(step: LinearStep, weight: Array) -> Any:
    """The attributes of a layer with another number of channels."""
    attrs, channels = step.linear.anchor.attrs, weight.shape[step.linear.weight_axis]
    if is_op(step.linear.anchor, "nn.dense"):
        return replace(attrs, units=None if attrs.units is None else channels)
    found = replace(attrs, channels=None if attrs.channels is None else channels)
    return replace(found, groups=channels) if is_depthwise(step) else found
