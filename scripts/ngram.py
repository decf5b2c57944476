"""A model of three bytes in a row, to hold a language model against: interpolated Kneser-Ney with three discounts.

In: bytes to count in. Out: the bits that other bytes cost under it. After Chen and Goodman, 1999: of an order's counts
1, 2 and 3 or more lose their own discount, and what they lose goes to the order below, whose counts are the numbers of
different bytes in front; below the lowest all 256 bytes are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scripts.text_data import Bytes

Array = NDArray[Any]
SYMBOLS = 256
ORDER = 3


class KneserNey:
    """Probabilities of each byte behind each two others, float64 [256, 256, 256]."""

    def __init__(self, parts: Sequence[Bytes]) -> None:
        counts = np.zeros((SYMBOLS,) * ORDER)
        for part in parts:
            np.add.at(counts, tuple(part[k : len(part) - ORDER + 1 + k] for k in range(ORDER)), 1)
        # Counts of the order below: how many different bytes were seen in front.
        orders = [counts]
        while orders[-1].ndim > 1:
            orders.append((orders[-1] > 0).sum(axis=0).astype(np.float64))
        below = np.full(SYMBOLS, 1 / SYMBOLS)
        for counted in reversed(orders):
            below = _interpolated(counted, below)
        self.probability = below

    def bits(self, part: Bytes, begin: int) -> Array:
        """The cost of each byte of `part` from `begin` on, which is at least 2."""
        first, second, third = (part[begin - ORDER + 1 + k : len(part) - ORDER + 1 + k] for k in range(ORDER))
        return -np.log2(self.probability[first, second, third])


def _interpolated(counts: Array, below: Array) -> Array:
    """One order's probabilities from its counts and the order below."""
    discount = _discounts(counts)[np.minimum(counts, ORDER).astype(np.int64)]
    total = counts.sum(axis=-1, keepdims=True)
    # Behind what was never seen, the order below alone.
    rest = np.where(total > 0, discount.sum(axis=-1, keepdims=True), 1)
    return (counts - discount + rest * below) / np.where(total > 0, total, 1)


def _discounts(counts: Array) -> Array:
    """What counts of 0, 1, 2, and 3 or more lose."""
    once, twice, thrice, four = (float((counts == number).sum()) for number in range(1, 5))
    if min(once, twice, thrice, four) == 0:
        # Too few bytes are counted to estimate all of them.
        return np.asarray([0, 0.5, 0.5, 0.5])
    share = once / (once + 2 * twice)
    found = [1 - 2 * share * twice / once, 2 - 3 * share * thrice / twice, 3 - 4 * share * four / thrice]
    return np.clip([0, *found], 0, [0, 1, 2, 3])
