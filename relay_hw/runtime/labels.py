"""Checks labels: whether they match the samples and the network's classes.

In: `labels` from users, what a network made of the samples. Out: int64 [N]; refusals and doubts, one sentence each.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.errors import InputError

Array = NDArray[Any]
LABELS: Final = "labels"
# Of fewer samples, any share of hits may be chance.
LEAST_SAMPLES: Final = 50
# Standard errors above the share that guessing gets.
ERRORS: Final = 3.0


def read_labels(labels: Any, samples: int, what: str) -> Array:
    """Labels of `samples` samples of the data `what`. Raises InputError: another number of them, no integers."""
    found = np.asarray(labels)
    if found.shape != (samples,) or found.dtype.kind not in "iu":
        text = f"{found.dtype}{list(found.shape)}"
        raise InputError(f"{what}: {LABELS} must be {samples} integers, one for each sample, not {text}")
    return found.astype(np.int64)


def check_labels(labels: Array, classes: int, what: str) -> None:
    """Raise InputError for a label beyond the network's classes."""
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= classes:
        raise InputError(f"{what}: {LABELS} must be from 0 to {classes - 1}, not {low if low < 0 else high}")


def doubt(hits: float, classes: int, samples: int) -> str:
    """A warning about an accuracy that guessing reaches as well; empty for a better one, or for few samples."""
    chance = 1 / classes
    if samples < LEAST_SAMPLES or hits > chance + ERRORS * sqrt(chance * (1 - chance) / samples):
        return ""
    return (
        f"{100 * hits:.1f} % of {samples:,} {LABELS} are predicted, no more than by guessing among {classes} classes; "
        f"are {LABELS} and samples in the same order, and samples prepared as in training?"
    )
