"""Rounding learned layer by layer, as AdaRound (Nagel 2020): each weight goes up or down so that the layer's output,
activation included, stays near that of the float network.

In: a layer's rows and columns. Out: integers. Gradients of the one product are written out; the optimizer is Adam.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from relay_hw.quantize.methods.gptq import SHRINKAGE

Float64 = NDArray[np.float64]

_STRETCH_LOW, _STRETCH_HIGH = -0.1, 1.1  # the sigmoid is stretched, so that it reaches 0 and 1
_RATE = 0.02
_COLUMNS = 512
_WEIGHT = 0.01  # of the term that drives every choice to 0 or 1


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What the products of rounded rows shall be: with the columns `given`, plus `intercept` [groups, channels],
    clipped to `bounds`, near to `target` [groups, channels, columns], clipped too."""

    given: Float64
    target: Float64
    intercept: Float64
    bounds: tuple[float, float]


def learned_rounding(rows: Float64, steps: Float64, aim: Wanted, limit: int, turns: int, seed: int) -> NDArray[np.int8]:
    """Integers [groups, channels, depth] for `rows` with `steps`, one for each row or weight, up to `limit`.

    `turns` of the optimizer, whose columns are drawn by `seed`.
    """
    given, target, intercept = aim.given, aim.target, aim.intercept
    scaled = rows / steps
    floor = np.clip(np.floor(scaled), -limit, limit)
    choice = _inverse(np.clip(scaled - floor, 0.0, 1.0))
    rng = np.random.default_rng(seed)
    low, high = aim.bounds
    # With few columns to learn from, weights should stay near their original values.
    ridge = SHRINKAGE * rows.shape[2] / given.shape[2] * np.square(given).mean(axis=(1, 2))
    wanted = np.clip(target, low, high)
    power = float(np.square(wanted - wanted.mean(axis=2, keepdims=True)).mean()) or 1.0
    first, second = np.zeros_like(choice), np.zeros_like(choice)
    for number in range(1, turns + 1):
        picked = rng.integers(0, given.shape[2], min(_COLUMNS, given.shape[2]))
        share, slope = _rectified(choice)
        whole = np.clip(floor + share, -limit, limit)
        x = given[:, :, picked]
        output = np.matmul(whole * steps, x) + intercept[:, :, None]
        error = np.clip(output, low, high) - wanted[:, :, picked]
        error *= (output >= low) & (output <= high)
        gradient = np.matmul(error, x.swapaxes(1, 2)) / x.shape[2]
        gradient += ridge[:, None, None] * (whole * steps - rows)
        gradient *= steps * (2.0 / (power * error[:, :, 0].size))
        gradient *= rows.size / rows.shape[2]  # of a channel's mean, so that the rate does not depend on channels
        gradient += _WEIGHT * _roundness_slope(share, number / turns)
        gradient *= slope
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * np.square(gradient)
        rate = _RATE * math.sqrt(1 - 0.999**number) / (1 - 0.9**number)
        choice -= rate * first / (np.sqrt(second) + 1e-10)
    share, _ = _rectified(choice)
    return np.clip(floor + (share >= 0.5), -limit, limit).astype(np.int8)


def _rectified(choice: Float64) -> tuple[Float64, Float64]:
    """The rectified stretched sigmoid and its derivative."""
    sigmoid = 1.0 / (1.0 + np.exp(-choice))
    stretched = sigmoid * (_STRETCH_HIGH - _STRETCH_LOW) + _STRETCH_LOW
    inside = (stretched > 0.0) & (stretched < 1.0)
    return np.clip(stretched, 0.0, 1.0), sigmoid * (1 - sigmoid) * (_STRETCH_HIGH - _STRETCH_LOW) * inside


def _inverse(share: Float64) -> Float64:
    """The inverse of the stretched sigmoid."""
    sigmoid = (share - _STRETCH_LOW) / (_STRETCH_HIGH - _STRETCH_LOW)
    return np.log(sigmoid / (1.0 - sigmoid))


def _roundness_slope(share: Float64, time: float) -> Float64:
    """The slope of 1 - |2 share - 1|**beta; beta falls from 20 to 2 in the last four fifths of the time."""
    if time < 0.2:
        return np.zeros_like(share)
    beta = 2.0 + 18.0 * (1.0 - (time - 0.2) / 0.8)
    distance = 2.0 * share - 1.0
    return -2.0 * beta * np.sign(distance) * np.abs(distance) ** (beta - 1.0)
