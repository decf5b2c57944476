"""Arithmetic of quantization: scales, zero points, and real factors as integer multiplier and shift.

In: float ranges and scales. Out: `QParams`, integer arrays, (multiplier, shift), exact or with a stated error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from typing_extensions import assert_never

from relay_hw.errors import QuantizeError
from relay_hw.quantize.choices import WeightRange, WeightRounding
from relay_hw.quantize.factors import factored_scales
from relay_hw.quantize.layer_rule import ActivationRule, WeightRule

MAX_SHIFT: Final = 62
_INT32_MAX: Final = 2**31 - 1
_SHARES: Final = np.arange(64, 19, -1) / 64

Array = NDArray[Any]


def spread(values: NDArray[np.float64], axis: int, rank: int) -> NDArray[np.float64]:
    """Reshape one number per index of an axis for broadcasting with arrays of `rank` axes."""
    return values.reshape([-1 if position == axis else 1 for position in range(rank)])


@dataclass(frozen=True, slots=True)
class QParams:
    """Quantization parameters: an integer q in [low, high] represents scale * (q - zero_point); `scale` is float32."""

    scale: float
    zero_point: int
    low: int
    high: int

    def quantize(self, value: float) -> int:
        """The nearest integer to `value`, half away from zero, saturated."""
        scaled = value / self.scale
        rounded = math.floor(abs(scaled) + 0.5) * (1 if scaled >= 0 else -1)
        return min(max(rounded + self.zero_point, self.low), self.high)

    def integers(self, values: Array) -> NDArray[np.int8]:
        """Of each value the integer that `quantize` finds; of one that is no number that of 0."""
        steps = np.nan_to_num(values.astype(np.float64), nan=0.0) / self.scale
        rounded = np.floor(np.abs(steps) + 0.5) * np.sign(steps) + self.zero_point
        return np.clip(rounded, self.low, self.high).astype(np.int8)

    def reals(self, integers: NDArray[Any]) -> NDArray[np.float32]:
        """What integers represent."""
        return (integers - self.zero_point).astype(np.float32) * np.float32(self.scale)


def activation_params(low: float, high: float, rule: ActivationRule) -> QParams:
    """Scale and zero point that hold [low, high] and exactly 0."""
    qlow, qhigh = rule.low, rule.high
    low, high = min(low, 0.0), max(high, 0.0)
    if rule.symmetric:
        scale = _round_scale(max(-low, high) / (qhigh + rule.beyond), rule.power_of_two)
        return QParams(scale, 0, qlow, qhigh)
    scale = _round_scale((high - low) / (qhigh - qlow), rule.power_of_two)
    zero_point = round(qlow - low / scale)
    return QParams(scale, min(max(zero_point, qlow), qhigh), qlow, qhigh)


def weight_scales(
    weight: Array,
    rule: WeightRule,
    at_least: NDArray[np.float64] | None = None,
    importance: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """One scale for each output channel (axis 0), float32 numbers in float64, none below `at_least`.

    `importance` [channels or 1, weights of a channel] weighs squared errors where the rule asks for the least.
    """
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    limit = np.abs(rows).max(axis=1, initial=0.0)
    if not rule.per_channel:
        limit = np.full_like(limit, limit.max())
    if rule.range is WeightRange.MSE and rows.size:
        limit = _least_error(rows, limit, rule, importance)
    scales = limit / (rule.limit + rule.beyond)
    if at_least is not None:
        scales = np.maximum(scales, at_least)
    if not rule.per_channel:
        scales = np.full_like(scales, scales.max())
    return np.array([_round_scale(float(s), rule.power_of_two) for s in scales])


def _least_error(
    rows: NDArray[np.float64], limit: NDArray[np.float64], rule: WeightRule, importance: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """The share of `limit`, per row or for all, with the least error of rounding and clipping."""
    best, lowest = limit, np.full(len(rows), np.inf)
    for share in _SHARES:
        scales = np.array(
            [_round_scale(float(one), rule.power_of_two) for one in limit * share / (rule.limit + rule.beyond)]
        )[:, None]
        rounded = np.clip(np.rint(rows / scales), -rule.limit, rule.limit) * scales
        error = np.square(rows - rounded)
        errors = (error if importance is None else error * importance).sum(axis=1)
        if not rule.per_channel:
            errors = np.full_like(errors, errors.sum())
        best, lowest = np.where(errors < lowest, limit * share, best), np.minimum(errors, lowest)
    return best


def quantize_weight(
    weight: Array, steps: NDArray[np.float64], rule: WeightRule, seeds: Sequence[int] = ()
) -> NDArray[np.int8]:
    """Integers by the rule, saturated to the symmetric range. `steps` have the weight's rank.

    Rounding that learns from data starts from the nearest integers. `seeds` join the rule's in random rounding.
    """
    scaled = weight.astype(np.float64) / steps
    match rule.rounding:
        case WeightRounding.FLOOR:
            rounded = np.floor(scaled)
        case WeightRounding.HALF_UP:
            rounded = np.floor(scaled + 0.5)
        case WeightRounding.HALF_AWAY:
            rounded = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
        case WeightRounding.STOCHASTIC:
            rounded = np.floor(scaled + np.random.default_rng([rule.seed, *seeds]).random(scaled.shape))
        case WeightRounding.HALF_EVEN | WeightRounding.ADAROUND | WeightRounding.GPTQ:
            rounded = np.rint(scaled)
        case _:
            assert_never(rule.rounding)
    return np.clip(rounded, -rule.limit, rule.limit).astype(np.int8)


def normalise(factor: Fraction, bits: int) -> tuple[int, int]:
    """Multiplier m and shift s with m / 2**s nearest to `factor` >= 0, 0 <= m < 2**bits, 0 <= s <= 62.

    The relative error is below 2**-(bits - 1), but for factors under 2**(bits - 63), where s stays 62 and the absolute
    error is at most 2**-63. Raises QuantizeError for a factor that no shift from 0 on can hold.
    """
    if factor < 0:
        raise QuantizeError(f"requantization factor must be at least 0, not {float(factor)}")
    if factor == 0:
        return 0, 0
    shift = min(bits - 1 - _floor_log2(factor), MAX_SHIFT)
    multiplier = _nearest(factor, shift)
    if multiplier == 1 << bits:
        multiplier, shift = multiplier >> 1, shift - 1
    if shift < 0:
        raise QuantizeError(f"requantization factor must be less than 2**{bits}, not {float(factor)}")
    return multiplier, shift


def normalise_together(factors: Sequence[Fraction], bits: int) -> tuple[tuple[int, ...], int]:
    """Multipliers that share the shift of the largest factor. Raises QuantizeError as `normalise` does."""
    _, shift = normalise(max(factors), bits)
    return tuple(_nearest(factor, shift) for factor in factors), shift


def _floor_log2(value: Fraction) -> int:
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if value >= _power(guess) else guess - 1


def _power(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def _nearest(factor: Fraction, shift: int) -> int:
    return math.floor(factor * _power(shift) + Fraction(1, 2))


def _round_scale(scale: float, power_of_two: bool) -> float:
    """Round to a positive normal float32, so that the graph's constants are exactly the scales of the multipliers."""
    if not math.isfinite(scale):
        raise QuantizeError(f"scale must be finite, not {scale}")
    if scale <= float(np.finfo(np.float32).tiny):
        return 1.0 if scale == 0.0 else 2.0**-126
    if not power_of_two:
        return float(np.float32(scale))
    mantissa, exponent = math.frexp(scale)
    return 2.0 ** (exponent - 1 if mantissa == 0.5 else exponent)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """A layer in integers: weight int8 [O, ...], bias int32 [O] with the input's zero point folded in, scales [O].

    `unfolded`: the bias alone. `factors`: a divisor of each weight, from 1 on; None if all are 1.
    """

    weight: NDArray[np.int8]
    bias: NDArray[np.int32]
    unfolded: NDArray[np.int32]
    scales: NDArray[np.float64]
    factors: NDArray[np.int8] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """How errors of a layer's weights count. `importance`: of each for the output; `groups`: group number of
    each weight of a channel."""

    importance: NDArray[np.float64] | None = None
    groups: NDArray[np.int64] | None = None


ALIKE: Final = Attention()


def layer_weights(
    weight: Array,
    bias: NDArray[np.float64],
    given: QParams,
    rule: WeightRule,
    where: str,
    attention: Attention = ALIKE,
) -> LayerWeights:
    """Quantize a layer's weight (axis 0: output channels) and bias for an input of `given`.

    A channel whose bias or worst-case sum passes int32 gets a larger scale, so that no accumulator can overflow.
    Raises QuantizeError, naming the layer `where`, for numbers that are not finite.
    """
    check_weights(weight, bias, where)
    bias = _coarse(bias, rule.bias_bits)
    at_least = np.abs(bias) / (given.scale * _INT32_MAX / 2)
    seeds = [crc32(where.encode())]
    while True:
        scales, factors = _scales_and_factors(weight, rule, at_least, attention)
        steps = spread(scales, 0, weight.ndim)
        if factors is None:
            integers = quantize_weight(weight, steps, rule, seeds)
        else:
            integers = quantize_weight(weight, steps * factors, rule, seeds) * factors
        need = _reach(integers, bias, given, scales)
        if need.max(initial=0.0) <= _INT32_MAX:
            break
        at_least = np.where(need > _INT32_MAX, scales * need / (_INT32_MAX / 1.25), scales)
    return replace(assemble(integers, bias, given, scales), factors=factors)


def _scales_and_factors(
    weight: Array,
    rule: WeightRule,
    at_least: NDArray[np.float64],
    attention: Attention,
) -> tuple[NDArray[np.float64], NDArray[np.int8] | None]:
    """Scales as `weight_scales` rounds them, and a factor for each weight if there are groups."""
    importance, groups = attention.importance, attention.groups
    if groups is None or not weight.size:
        return weight_scales(weight, rule, at_least, importance), None
    rows = weight.reshape(weight.shape[0], -1).astype(np.float64)
    scales, factors = factored_scales(rows, groups, rule, importance)
    scales = np.maximum(scales, at_least)
    if not rule.per_channel:
        scales = np.full_like(scales, scales.max())
    rounded = np.array([_round_scale(float(one), rule.power_of_two) for one in scales])
    return rounded, factors.reshape(weight.shape)


def check_weights(weight: Array, bias: NDArray[np.float64], where: str) -> None:
    """Raise QuantizeError, naming the layer `where`, for numbers that are not finite."""
    if not (np.isfinite(weight).all() and np.isfinite(bias).all()):
        raise QuantizeError(f"weight and bias of {where} must be finite, not infinite or NaN")


def assemble(
    integers: NDArray[np.int8], bias: NDArray[np.float64], given: QParams, scales: NDArray[np.float64]
) -> LayerWeights:
    """Make the record of weights that are integers already; their sums must fit into int32."""
    rounded = np.rint(bias / (given.scale * scales))
    signed = integers.reshape(len(scales), -1).astype(np.int64).sum(axis=1)
    folded = rounded.astype(np.int64) - given.zero_point * signed
    return LayerWeights(integers, folded.astype(np.int32), rounded.astype(np.int32), scales)


def fits(integers: NDArray[np.int8], bias: NDArray[np.float64], given: QParams, scales: NDArray[np.float64]) -> bool:
    """Whether no input can overflow an int32 accumulator."""
    return bool(_reach(integers, bias, given, scales).max(initial=0.0) <= _INT32_MAX)


def _reach(
    integers: NDArray[np.int8], bias: NDArray[np.float64], given: QParams, scales: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The largest possible magnitude of each channel's accumulator."""
    sums = np.abs(integers.reshape(len(scales), -1).astype(np.int64)).sum(axis=1)
    return np.abs(np.rint(bias / (given.scale * scales))) + sums * float(given.high - given.low)


def _coarse(bias: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    """The bias rounded to `bits` bits with one power-of-two scale; with 32 bits it is exact."""
    largest = float(np.abs(bias).max(initial=0.0))
    if bits == 32 or largest == 0.0:
        return bias
    top = 2 ** (bits - 1)
    scale = 2.0 ** math.ceil(math.log2(largest)) / top
    return np.clip(np.rint(bias / scale), 1 - top, top - 1) * scale
