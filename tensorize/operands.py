"""How sums of products are cut into operands of GEMM, and weights into the bytes that LOAD brings.

In: entries of INP in a row, int8 tiles. Out: first entries of operands, tiles as deep as an operand, stored bytes. A
layer whose weights all lie in -8..7 has 4-bit weights: half the bytes, and one product where others take two; where the
array takes 4 bits, weights in -2..1 take half of that again.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from accel.isa.config import AccelConfig
from accel.isa.nibbles import fits_bits, pack_weights, split_nibbles
from accel.isa.spec import GemmMode, Nibble
from tensorize.kernel import Int8

Bytes = NDArray[np.uint8]


class WeightForm(Enum):
    """Weights of a layer: bytes; 4-bit ones widened by LOAD, or as they are; 2-bit ones widened to 4; bytes as two
    halves of 4 bits."""

    BYTES = "bytes"
    PACKED = "packed"
    NARROW = "narrow"
    QUARTERS = "quarters"
    HALVES = "halves"

    @property
    def passes(self) -> int:
        """Products, and entries of WGT, for each operand."""
        return 2 if self is WeightForm.HALVES else 1

    @property
    def ratio(self) -> int:
        """Bytes of WGT for each byte of DRAM."""
        return 2 if self.packed else 1

    @property
    def packed(self) -> bool:
        """True where LOAD widens."""
        return self in (WeightForm.PACKED, WeightForm.QUARTERS)

    def parts(self) -> Iterator[tuple[int, Nibble]]:
        """Number and meaning of each pass."""
        yield from enumerate((Nibble.LOW, Nibble.HIGH) if self is WeightForm.HALVES else (Nibble.WHOLE,))


def weight_form(weights: Int8, config: AccelConfig) -> WeightForm:
    """How the weights of a layer are stored. What LOAD widens must be whole granules for each entry."""
    whole = config.wgt_bytes % (2 * config.granule_bytes) == 0
    if whole and fits_bits(weights, config.wgt_bits // 2):
        return WeightForm.PACKED if config.wgt_bits == 8 else WeightForm.QUARTERS
    if config.wgt_bits == 8:
        return WeightForm.BYTES
    return WeightForm.NARROW if fits_bits(weights, 4) else WeightForm.HALVES


@lru_cache(maxsize=4096)
def operand_starts(count: int, entries: int) -> tuple[int, ...]:
    """First entries of the operands of `entries` each that cover `count` in a row; the last ones may overlap."""
    if count < entries:
        return (0,)
    return tuple(min(begin, count - entries) for begin in range(0, count, entries))


def operand_mode(count: int, config: AccelConfig) -> GemmMode:
    """Mode of GEMM for operands out of `count` entries in a row: of a single one no second is read."""
    return GemmMode.ENTRY if count < config.operand_entries else GemmMode.MATMUL


def operand_tiles(tiles: Int8, config: AccelConfig) -> Int8:
    """int8 [..., operands, BLOCK_OUT, BLOCK_IN] of [..., entries in a row, BLOCK_OUT, INP_LANES]; each entry once."""
    count, entries = tiles.shape[-3], config.operand_entries
    if entries == 1:
        return tiles
    starts = operand_starts(count, entries)
    shape = (*tiles.shape[:-3], len(starts), config.block_out, entries, config.inp_lanes)
    found = np.zeros(shape, np.int8)
    done = 0
    for number, start in enumerate(starts):
        for entry in range(max(done, start), min(start + entries, count)):
            found[..., number, :, entry - start, :] = tiles[..., entry, :, :]
        done = start + entries
    return found.reshape(*shape[:-2], config.block_in)


def stored_tiles(tiles: Int8, form: WeightForm) -> Bytes:
    """uint8 [groups, passes x n, bytes] of int8 [groups, n, BLOCK_OUT, BLOCK_IN]: low halves, then high ones."""
    flat = np.ascontiguousarray(tiles).reshape(tiles.shape[0], tiles.shape[1], -1)
    match form:
        case WeightForm.BYTES:
            return flat.view(np.uint8)
        case WeightForm.PACKED | WeightForm.NARROW:
            return pack_weights(flat, 4)
        case WeightForm.QUARTERS:
            return pack_weights(flat, 2)
        case WeightForm.HALVES:
            return np.concatenate(split_nibbles(flat), axis=1)
