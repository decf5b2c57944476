"""Histograms of tensors of unknown range: bins merge in pairs as the range grows.

In: arrays, in any order. Out: `Histogram` of at most `BINS` bins that the values reach.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BINS: Final = 64
_FINE: Final = 2048


@dataclass(frozen=True, slots=True)
class Histogram:
    """`counts` of equal bins from `low` to `high`."""

    low: float
    high: float
    counts: tuple[int, ...]


class Counter:
    """Counts values in fine bins on [-reach, reach), reach a power of two."""

    def __init__(self) -> None:
        self._counts = np.zeros(_FINE, np.int64)
        self._reach = 0.0

    def update(self, value: Array) -> None:
        """Count values; those that are not finite are ignored."""
        flat = value.reshape(-1).astype(np.float64)
        flat = flat[np.isfinite(flat)]
        if not flat.size:
            return
        self._reach_to(float(np.abs(flat).max()))
        index = np.floor(flat * (_FINE // 2 / self._reach)).astype(np.int64) + _FINE // 2
        self._counts += np.bincount(np.clip(index, 0, _FINE - 1), minlength=_FINE)

    def result(self) -> Histogram:
        """The bins from the first to the last with a value, joined until there are `BINS` at most."""
        used = np.flatnonzero(self._counts)
        if not used.size:
            return Histogram(0.0, 0.0, ())
        first, last = int(used[0]), int(used[-1]) + 1
        group = -(-(last - first) // BINS)
        last = first + -(-(last - first) // group) * group
        padded = np.concatenate([self._counts, np.zeros(group, np.int64)])[first:last]
        width = 2 * self._reach / _FINE
        counts = padded.reshape(-1, group).sum(axis=1)
        return Histogram(first * width - self._reach, last * width - self._reach, tuple(map(int, counts)))

    def _reach_to(self, largest: float) -> None:
        if not self._counts.any():
            self._reach = 2.0 ** (math.frexp(largest or 1e-30)[1])
        while self._reach <= largest:
            merged = self._counts.reshape(-1, 2).sum(axis=1)
            self._counts = np.zeros(_FINE, np.int64)
            self._counts[_FINE // 4 : _FINE // 4 + _FINE // 2] = merged
            self._reach *= 2.0
