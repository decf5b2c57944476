"""Weights of 4 bits, two to a byte, and of 2 bits, four to a byte: the earlier ones in lower bits; and their factors.

In: int8 or uint8 arrays. Out: the same with a shorter or longer last axis. Exact for every byte. An 8-bit weight is
16 * high + low. A factor is a number from 1 to 16, stored as one less in 4 bits, of weights that follow one another.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.spec import Nibble

Bytes = NDArray[np.uint8]

_LOW = np.uint8(0xF)
# Bits of a stored factor, and the largest one.
FACTOR_BITS: Final = 4
MOST_FACTOR: Final = 1 << FACTOR_BITS
_FOUR = np.uint8(4)
_TWO, _TWICE = np.uint8(3), np.uint8(2)
# Two 4-bit numbers for two of 2 bits.
_QUARTERS = np.array(
    [(low ^ 2) - 2 & 15 | ((high ^ 2) - 2 & 15) << 4 for high in range(4) for low in range(4)], np.uint8
)


def fits_bits(values: NDArray[Any], bits: int) -> bool:
    """True where every value fits `bits` bits with its sign."""
    limit = 1 << (bits - 1)
    return not values.size or (int(values.min()) >= -limit and int(values.max()) < limit)


def pack_weights(values: NDArray[np.int8], bits: int) -> NDArray[np.uint8]:
    """uint8 [..., n * bits / 8] of int8 [..., n] that fit `bits` bits, 2 or 4. Raises EncodeError."""
    count, limit = 8 // bits, 1 << (bits - 1)
    if values.shape[-1] % count:
        raise EncodeError(f"{bits}-bit weights must be a multiple of {count} in number, not {values.shape[-1]}")
    if not fits_bits(values, bits):
        found = f"{values.min()} to {values.max()}"
        raise EncodeError(f"{bits}-bit weights must be from {-limit} to {limit - 1}, not {found}")
    data = _joined(values.view(np.uint8))
    if bits == 4:
        return data
    high: Bytes = np.right_shift(np.bitwise_and(data, np.uint8(0x30)), _TWICE)
    pairs: Bytes = np.bitwise_or(np.bitwise_and(data, _TWO), high)
    return _joined(pairs)


def widen_weights(data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """uint8 [..., 2 n] of uint8 [..., n]: weights of half as many bits as weights of `bits` bits, 4 or 8."""
    numbers = unpack_nibbles(data).view(np.uint8)
    return numbers if bits == 8 else _QUARTERS[np.bitwise_and(numbers, _LOW)]


def pack_factors(factors: NDArray[np.int8]) -> NDArray[np.uint8]:
    """uint8 [n / 2] of int8 [n] from 1 to 16."""
    return _joined((factors - np.int8(1)).view(np.uint8))


def scale_weights(data: NDArray[np.uint8], factors: NDArray[np.uint8], count: int, bits: int) -> NDArray[np.uint8]:
    """`data` [n], weights of `bits` bits, times stored factors, one for each `count` of them; their low bits stay."""
    numbers = data if bits == 8 else unpack_nibbles(data).view(np.uint8)
    whole = np.repeat(np.bitwise_and(unpack_nibbles(factors).view(np.uint8), _LOW) + np.uint8(1), count)
    products: Bytes = np.multiply(numbers, whole[: numbers.size])
    return products if bits == 8 else _joined(products)


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
