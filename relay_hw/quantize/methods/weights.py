"""Chooses a layer's integer weights from its calibration activations: scales, rounding, bias correction.

In: a `LayerStatistics`. Out: `LayerWeights`. Bias correction is Nagel 2019's, measured on data.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.quantize.choices import WeightRounding
from relay_hw.quantize.factors import factor_groups
from relay_hw.quantize.methods.adaround import Wanted, learned_rounding
from relay_hw.quantize.methods.columns import from_rows, to_rows
from relay_hw.quantize.methods.gptq import adapt, covariance, second_order
from relay_hw.quantize.methods.layerwise_replay import LayerStatistics
from relay_hw.quantize.number import Attention, LayerWeights, assemble, fits, layer_weights

Array = NDArray[Any]
Float64 = NDArray[np.float64]


def choose_weights(statistics: LayerStatistics) -> LayerWeights:
    """The integers and bias of one layer by its rule."""
    rule, name = statistics.rule, statistics.name
    rows = statistics.rows
    if rule.rounding.is_learned:
        rows = adapt(rows, statistics.wanted, statistics.given)
    weight = from_rows(statistics.step, rows, statistics.weight)
    moments = covariance(statistics.given, statistics.given)
    groups = factor_groups(statistics.step, rule)
    importance = _importance(statistics, moments)
    start = layer_weights(weight, statistics.bias, statistics.params, rule, name, Attention(importance, groups))
    scales = start.scales.reshape(*rows.shape[:2], 1)
    factors = np.ones(1) if start.factors is None else to_rows(statistics.step, start.factors)
    integers = to_rows(statistics.step, start.weight)
    if rule.rounding is WeightRounding.GPTQ:
        integers = second_order(rows, scales * factors, statistics.given, rule.limit) * factors
    elif rule.rounding is WeightRounding.ADAROUND:
        integers = _learned(statistics, rows, scales * factors) * factors
    bias = statistics.bias
    if rule.bias_correction:
        bias = bias + mean_error(statistics, integers * scales)
    chosen = from_rows(statistics.step, integers, statistics.weight).astype(np.int8)
    if not fits(chosen, bias, statistics.params, start.scales):
        return start
    return assemble(chosen, bias, statistics.params, start.scales)


def mean_error(statistics: LayerStatistics, rows: Float64) -> Float64:
    """The mean error of each output channel if the layer has `rows` and reads the integer network."""
    wanted = np.einsum("gok,gk->go", statistics.rows, statistics.wanted_mean)
    return (wanted - np.einsum("gok,gk->go", rows, statistics.given_mean)).reshape(-1)


def _learned(statistics: LayerStatistics, rows: Float64, steps: Float64) -> NDArray[np.int8]:
    rule, step = statistics.rule, statistics.step
    bias = statistics.bias.reshape(rows.shape[:2])
    target = np.matmul(statistics.rows, statistics.wanted) + bias[:, :, None]
    offset = bias + mean_error(statistics, rows).reshape(bias.shape) if rule.bias_correction else bias
    wanted = Wanted(statistics.given, target, offset, (step.low, step.high))
    return learned_rounding(rows, steps, wanted, rule.limit, rule.steps, rule.seed)


def _importance(statistics: LayerStatistics, moments: Float64) -> Float64 | None:
    """How much the output feels an error of each weight: the power of its input, in the order of the weight's axes."""
    power = np.einsum("gkk->gk", moments) + np.square(statistics.given_mean) * 1e-3 + 1e-12
    spread = np.broadcast_to(power[:, None, :], statistics.rows.shape)
    return from_rows(statistics.step, spread, statistics.weight).reshape(len(statistics.weight), -1)
