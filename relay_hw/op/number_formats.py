"""Small floating-point formats simulated in numpy: FP8, and the block formats MX of the OCP specification 1.0.

In: float arrays. Out: the nearest numbers of a format, as floats; ties to even, saturated.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Format:
    """`mantissa` bits after the point, exponents from `low` (subnormal numbers below) on, up to `largest`.

    `block`: numbers that share a power of two; 0 where each tensor has one float scale instead. `top`: the exponent of
    the largest power of two that an element holds.
    """

    mantissa: int
    low: int
    largest: float
    top: int
    block: int = 0

    @property
    def bits(self) -> float:
        """Bits a number takes, its part of a block's shared exponent included."""
        width = {448.0: 8, 57344.0: 8, 7.5: 6, 6.0: 4}.get(self.largest, 8)
        return width + (8 / self.block if self.block else 0)


FORMATS: Final = MappingProxyType(
    {
        "fp8_e4m3": Format(3, -6, 448.0, 8),
        "fp8_e5m2": Format(2, -14, 57344.0, 15),
        "mxint8": Format(6, 0, 127 / 64, 0, block=32),
        "mxfp8": Format(3, -6, 448.0, 8, block=32),
        "mxfp6": Format(3, 0, 7.5, 2, block=32),
        "mxfp4": Format(1, 0, 6.0, 2, block=32),
    }
)


def to_format(x: Array, name: str, scale: float = 1.0, axis: int = -1) -> Array:
    """`x` rounded to the format, in the type of `x`.

    A format without blocks holds x / scale. One with blocks shares a power of two between 32 numbers along `axis`,
    counted from its start; the last block may be shorter.
    """
    one = FORMATS[name]
    if not one.block:
        return (_elements(np.asarray(x, np.float64) / scale, one) * scale).astype(x.dtype)
    moved = np.moveaxis(np.asarray(x, np.float64), axis, -1)
    missing = -moved.shape[-1] % one.block
    padded = np.pad(moved, [(0, 0)] * (moved.ndim - 1) + [(0, missing)])
    blocks = padded.reshape(*padded.shape[:-1], -1, one.block)
    largest = np.abs(blocks).max(axis=-1, keepdims=True)
    shared = np.ldexp(1.0, np.where(largest > 0, np.frexp(largest)[1] - 1 - one.top, 0))
    held = (_elements(blocks / shared, one) * shared).reshape(padded.shape)[..., : moved.shape[-1]]
    return np.ascontiguousarray(np.moveaxis(held, -1, axis)).astype(x.dtype)


def _elements(x: Array, one: Format) -> Array:
    """The nearest elements of a format."""
    exponent = np.maximum(np.frexp(x)[1] - 1, one.low)
    step = np.ldexp(1.0, exponent - one.mantissa)
    return np.clip(np.rint(x / step) * step, -one.largest, one.largest)
