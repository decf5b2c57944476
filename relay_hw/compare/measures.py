"""Accuracy of outputs and their distance from float, with paired statistics.

In: outputs of both networks on the same samples, labels or targets. Out: `Quality`; intervals hold 95 percent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Interval = tuple[float, float]

TOP: Final = 5
_Z: Final = 1.959963984540054  # two-sided 95 percent of the normal distribution


@dataclass(frozen=True, slots=True)
class Quality:
    """Measures of one network on `samples`, alone and against float. None: not asked for, or undefined for the output.

    `top1`, `top5`: shares of samples whose label is the largest output, or among the five largest; `mse`: mean squared
    error against the targets. `agreement`: share with float's largest output. `sqnr_db`: 10 log10 of float's power over
    that of the difference, None if there is none. `gained`, `lost`: samples that are right here and wrong in float,
    and the reverse; `change`: their difference over all samples, `p_value`: McNemar's exact test of it.
    """

    samples: int
    sqnr_db: float | None
    top1: float | None = None
    top1_interval: Interval | None = None
    top5: float | None = None
    mse: float | None = None
    agreement: float | None = None
    agreement_interval: Interval | None = None
    gained: int | None = None
    lost: int | None = None
    change: float | None = None
    change_interval: Interval | None = None
    p_value: float | None = None


def measure(
    outputs: Array, reference: Array, labels: Array | None, targets: Array | None, is_classifier: bool
) -> Quality:
    """Compare `outputs` with float's `reference`, both [N, D]; `labels` are [N], `targets` [N, D]."""
    count = len(outputs)
    mse = None if targets is None else _mean_square(outputs - targets)
    sqnr = decibel(float(np.square(reference, dtype=np.float64).sum()), _power(outputs, reference))
    if not is_classifier:
        return Quality(count, sqnr, mse=mse)
    mine, floats = outputs.argmax(axis=1), reference.argmax(axis=1)
    agreed = int((mine == floats).sum())
    agreement, within = agreed / count, wilson(agreed, count)
    if labels is None:
        return Quality(count, sqnr, mse=mse, agreement=agreement, agreement_interval=within)
    right, float_right = mine == labels, floats == labels
    gained, lost = int((right & ~float_right).sum()), int((~right & float_right).sum())
    return Quality(
        count,
        sqnr,
        top1=float(right.mean()),
        top1_interval=wilson(int(right.sum()), count),
        top5=_top(outputs, labels),
        mse=mse,
        agreement=agreement,
        agreement_interval=within,
        gained=gained,
        lost=lost,
        change=(gained - lost) / count,
        change_interval=paired_change(gained, lost, count),
        p_value=mcnemar(gained, lost),
    )


def decibel(signal: float, noise: float) -> float | None:
    """10 log10(signal / noise); None without noise. Never -inf: a signal of zero counts as the smallest number."""
    if noise == 0.0:
        return None
    return 10 * math.log10(max(signal, np.finfo(np.float64).tiny) / noise)


def wilson(hits: int, count: int) -> Interval:
    """Wilson's score interval of a share."""
    share, spread = hits / count, _Z * _Z / count
    middle = share + spread / 2
    half = _Z * math.sqrt(share * (1 - share) / count + spread / (4 * count))
    return max(0.0, (middle - half) / (1 + spread)), min(1.0, (middle + half) / (1 + spread))


def paired_change(gained: int, lost: int, count: int) -> Interval:
    """Interval of the difference of two paired shares, by Agresti and Min: half a sample more in each of four cells."""
    more, less, total = gained + 0.5, lost + 0.5, count + 2
    change = (more - less) / total
    half = _Z * math.sqrt(max(0.0, (more + less) - (more - less) ** 2 / total)) / total
    return max(-1.0, change - half), min(1.0, change + half)


def mcnemar(gained: int, lost: int) -> float:
    """Probability of pairs as uneven as these, or more, were both kinds equally likely (exact, two-sided)."""
    total, fewer = gained + lost, min(gained, lost)
    if not total:
        return 1.0
    log_half = total * math.log(2)
    log_choose = (math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) for k in range(fewer + 1))
    return min(1.0, 2 * math.fsum(math.exp(log - log_half) for log in log_choose))


def _top(outputs: Array, labels: Array) -> float | None:
    """Share of labels among the `TOP` largest; None if there are no more classes than that. Ties count as lower."""
    if outputs.shape[1] <= TOP:
        return None
    rows = np.arange(len(outputs))
    own = outputs[rows, labels][:, None]
    index = np.arange(outputs.shape[1])
    # As argmax does, the first of equal outputs counts as the larger one.
    before = (outputs > own) | ((outputs == own) & (index < labels[:, None]))
    return float((before.sum(axis=1) < TOP).mean())


def _mean_square(difference: Array) -> float:
    return float(np.square(difference, dtype=np.float64).mean())


def _power(outputs: Array, reference: Array) -> float:
    return float(np.square(outputs.astype(np.float64) - reference.astype(np.float64)).sum())
