"""Bits of error: how far a float32 is from the exact result, as the logarithm of the floats between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from relay_hw.transform.numeric.terms import Floats

Bits: TypeAlias = NDArray[np.float64]
Points: TypeAlias = Mapping[str, Floats]

# The error of a NaN where there is a result: all bits.
WORST: Final = 32.0


def ordinal(values: Floats) -> NDArray[np.int64]:
    """The position of each float in the order of all of them; both zeros are 0, and NaN is infinity's neighbour."""
    bits = np.asarray(values, np.float32).copy().view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def bits_of_error(found: Floats, exact: Floats) -> Bits:
    """The logarithm to base 2 of one more than the number of floats from `exact` to `found`; 0 where both are NaN."""
    distance = np.abs(ordinal(found) - ordinal(exact)).astype(np.float64)
    lost = np.where(np.isnan(found), WORST, np.log2(1 + distance))
    return np.where(np.isnan(exact), 0.0, lost)


def bit_patterns(count: int, low: float, high: float, random: np.random.Generator) -> Floats:
    """Floats from `low` to `high`, each bit pattern as likely as any other: small numbers as often as large ones."""
    first, last = (int(ordinal(np.asarray(np.float32(one)))) for one in (low, high))
    drawn = random.integers(first, last, count, endpoint=True)
    patterns = np.where(drawn < 0, (-drawn) | 0x80000000, drawn).astype(np.uint32)
    return patterns.view(np.float32)


Sampler: TypeAlias = Callable[[int, np.random.Generator], Points]
