"""Group scales: small integer factors that low-bit weights are multiplied by, so that a group of small
weights has small steps.

In: a layer, rows of its weights. Out: which weights share a factor; a scale for each channel, a factor for each weight.
The product of weight and factor is the integer that the network holds, so that nothing after it knows of factors.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Trait
from relay_hw.quantize.choices import WeightRange
from relay_hw.quantize.layer_rule import WeightRule
from relay_hw.quantize.steps import LinearStep
from relay_hw.transform.graph import has_trait, is_op, shape_of

Array = NDArray[Any]
Float64 = NDArray[np.float64]
# Shares of the scale that just holds a channel.
_SHARES: Final = np.arange(20, 14, -1) / 20


def factor_groups(step: LinearStep, rule: WeightRule) -> NDArray[np.int64] | None:
    """Number of the group that each weight of a channel is in, in the order of the weight's axes; None without groups.

    A group is `group` neighbouring channels of the input, at one tap of the window. Groups of channels that a
    convolution has itself are no neighbours in memory, so its weights have no factors.
    """
    if rule.most_factor == 1:
        return None
    anchor, weight = step.linear.anchor, step.linear.weight
    shape = list(weight.shape)
    del shape[step.linear.weight_axis]
    if is_op(anchor, "nn.dense"):
        pixels = image_pixels(anchor.args[0])
        return _numbers((shape[0] // pixels, pixels), 0, rule.group)
    if anchor.attrs.groups != 1:
        return None
    letters = anchor.attrs.kernel_layout.replace("O", "")
    return _numbers(tuple(shape), letters.index("I"), rule.group)


def factored_scales(
    rows: Float64, groups: NDArray[np.int64], rule: WeightRule, importance: Float64 | None
) -> tuple[Float64, NDArray[np.int8]]:
    """A scale for each channel [O], not rounded, and a factor for each weight [O, n] of `rows` [O, n].

    Squared errors, weighed by `importance`, are the least that a few scales and all factors can give; where the range
    is to hold every weight, factors do.
    """
    order = np.argsort(groups, kind="stable")
    starts = np.flatnonzero(np.diff(groups[order], prepend=-1))
    limit = np.abs(rows).max(axis=1, initial=0.0)
    if not rule.per_channel:
        limit = np.full_like(limit, limit.max(initial=0.0))
    weights = rows[:, order]
    power = np.ones_like(weights) if importance is None else np.broadcast_to(importance, rows.shape)[:, order]
    shares = _SHARES if rule.range is WeightRange.MSE else _SHARES[:1]
    best, lowest = limit, np.full(len(rows), np.inf)
    factors = np.ones((len(rows), len(starts)), np.int8)
    for share in shares:
        scales = limit * share / (rule.most_factor * rule.limit)
        found, errors = _best_factors(weights, power, starts, np.where(scales > 0, scales, 1.0), rule)
        if not rule.per_channel:
            errors = np.full_like(errors, errors.sum())
        better = errors < lowest
        best, lowest = np.where(better, limit * share, best), np.where(better, errors, lowest)
        factors = np.where(better[:, None], found, factors)
    spread = np.empty(rows.shape, np.int8)
    spread[:, order] = np.repeat(factors, np.diff(starts, append=rows.shape[1]), axis=1)
    return best / (rule.most_factor * rule.limit), spread


def _best_factors(
    weights: Float64, power: Float64, starts: NDArray[np.int64], scales: Float64, rule: WeightRule
) -> tuple[NDArray[np.int8], Float64]:
    """For each channel and group the factor of the least error, and the errors of channels."""
    limit, reach = rule.limit, np.maximum.reduceat(np.abs(weights), starts, axis=1)
    found = np.full(reach.shape, rule.most_factor, np.int8)
    lowest = np.full(reach.shape, np.inf)
    for factor in range(rule.most_factor, 0, -1):
        steps = scales[:, None] * factor
        whole = np.clip(np.rint(weights / steps), -limit, limit)
        errors = np.add.reduceat(np.square(weights - whole * steps) * power, starts, axis=1)
        if rule.range is not WeightRange.MSE:
            # Not if the steps are too small for the range of the group.
            errors = np.where(reach > steps * limit * (1 + 1e-6), np.inf, errors)
        better = errors < lowest
        found, lowest = np.where(better, np.int8(factor), found), np.where(better, errors, lowest)
    return found, lowest.sum(axis=1)


def _numbers(shape: tuple[int, ...], axis: int, count: int) -> NDArray[np.int64]:
    """Numbers of an array of `shape`: alike for `count` neighbours on an axis."""
    index = np.indices(shape)
    index[axis] //= count
    return np.ravel_multi_index(tuple(index), shape).reshape(-1)


def image_pixels(data: Expr) -> int:
    """Pixels of the image that a dense layer's input was, each of which holds channels that lie side by side."""
    while isinstance(data, Call) and has_trait(data, Trait.RESHAPES):
        shape = shape_of(data.args[0])
        if shape is not None and len(shape) == 4:
            return shape[2] * shape[3]
        data = data.args[0]
    return 1
