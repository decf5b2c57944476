"""4-bit weights: two to a byte, the earlier one in the low half; an 8-bit weight is 16 * high + low.

In: int8 or uint8 arrays. Out: the same with the last axis half or twice as long. Exact for every byte.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from accel.isa.errors import EncodeError
from accel.isa.spec import Nibble

Bytes = NDArray[np.uint8]

LOWEST, HIGHEST = -8, 7
_LOW = np.uint8(0xF)
_FOUR = np.uint8(4)


def is_narrow(values: NDArray[Any]) -> bool:
    """True where every value fits 4 bits."""
    return not values.size or (int(values.min()) >= LOWEST and int(values.max()) <= HIGHEST)


def pack_nibbles(values: NDArray[np.int8]) -> NDArray[np.uint8]:
    """uint8 [..., n / 2] of int8 [..., n] from -8 to 7. Raises EncodeError."""
    if values.shape[-1] % 2:
        raise EncodeError(f"4-bit weights must be an even number, not {values.shape[-1]}")
    if not is_narrow(values):
        raise EncodeError(f"4-bit weights must be from {LOWEST} to {HIGHEST}, not {values.min()} to {values.max()}")
    return _joined(values.view(np.uint8))


def split_nibbles(values: NDArray[np.int8]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Low and high halves of int8 [..., n], packed: for GEMM with `nibble` low and high."""
    data: Bytes = values.view(np.uint8)
    high: Bytes = np.right_shift(data, _FOUR)
    return _joined(data), _joined(high)


def unpack_nibbles(data: NDArray[np.uint8], nibble: Nibble = Nibble.WHOLE) -> NDArray[np.int8]:
    """int8 [..., 2 n] of uint8 [..., n]: the numbers that products are made with."""
    low: Bytes = np.left_shift(data, _FOUR)
    high: Bytes = np.bitwise_and(data, ~_LOW)
    both = np.stack([low, high], axis=-1).reshape(*data.shape[:-1], -1).view(np.int8)
    match nibble:
        case Nibble.WHOLE:
            return both >> 4
        case Nibble.LOW:
            return (both.view(np.uint8) >> 4).view(np.int8)
        case Nibble.HIGH:
            return both


def _joined(numbers: Bytes) -> Bytes:
    """The low halves of pairs of bytes as one byte."""
    first: Bytes = np.bitwise_and(numbers[..., 0::2], _LOW)
    second: Bytes = np.left_shift(numbers[..., 1::2], _FOUR)
    return np.bitwise_or(first, second)
