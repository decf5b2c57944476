"""Cuts sums of products into operands of GEMM, and weights into the bytes that LOAD brings.

In: entries of INP in a row, int8 tiles. Out: first entries of operands, tiles as deep as an operand, stored bytes. A
layer whose weights all lie in -8..7 has 4-bit weights: half the bytes, and one product where others take two; where the
array takes 4 bits, weights in -2..1 take half of that again. Weights of half the array's bits may have a factor from 1
to 16 for each output channel and entry of INP: that weights have such factors is seen from their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from relay_hw.accel.isa.config import AccelConfig
from relay_hw.accel.isa.nibbles import MOST_FACTOR, fits_bits, pack_factors, pack_weights, split_nibbles
from relay_hw.accel.isa.spec import GemmMode, Nibble
from relay_hw.tensorize.commands import Packing
from relay_hw.tensorize.kernel import Int8

Bytes = NDArray[np.uint8]


# Rows that are looked at first: few weights that have no factors have them here.
FEW_ROWS = 64


class WeightForm(Enum):
    """Weights of a layer: bytes; 4-bit ones widened by LOAD, or as they are; 2-bit ones widened to 4; those of half the
    array's bits times factors; bytes as two halves of 4 bits."""

    BYTES = "bytes"
    PACKED = "packed"
    NARROW = "narrow"
    QUARTERS = "quarters"
    FACTORED = "factored"
    HALVES = "halves"

    @property
    def passes(self) -> int:
        """Products, and entries of WGT, for each operand."""
        return 2 if self is WeightForm.HALVES else 1

    @property
    def packing(self) -> Packing:
        """How the weights are packed in DRAM, for LOAD to widen."""
        match self:
            case WeightForm.BYTES | WeightForm.NARROW | WeightForm.HALVES:
                return Packing.NONE
            case WeightForm.PACKED | WeightForm.QUARTERS:
                return Packing.HALF
            case WeightForm.FACTORED:
                return Packing.FACTORS

    def stored_bytes(self, entries: int, config: AccelConfig) -> int:
        """Bytes of DRAM of so many entries of WGT."""
        size = entries * config.wgt_bytes
        if self.packing is Packing.NONE:
            return size
        granule, size = config.granule_bytes, size // 2
        leads = -(-size // (config.factor_granules * granule)) if self.packing is Packing.FACTORS else 0
        return size + leads * granule

    def parts(self) -> Iterator[tuple[int, Nibble]]:
        """Number and meaning of each pass."""
        yield from enumerate((Nibble.LOW, Nibble.HIGH) if self is WeightForm.HALVES else (Nibble.WHOLE,))


def weight_form(weights: Int8, config: AccelConfig, rows: bool = False) -> WeightForm:
    """How the weights of a layer are stored. What LOAD widens must be whole granules for each entry.

    `rows`: the last axis are input channels as they lie in entries of INP, so that weights may have factors.
    """
    whole = config.wgt_bytes % (2 * config.granule_bytes) == 0
    if whole and fits_bits(weights, config.wgt_bits // 2):
        return WeightForm.PACKED if config.wgt_bits == 8 else WeightForm.QUARTERS
    multiplied = whole and rows and fits_bits(weights, config.wgt_bits)
    if multiplied and row_factors(input_rows(weights, config), config.wgt_bits) is not None:
        return WeightForm.FACTORED
    if config.wgt_bits == 8:
        return WeightForm.BYTES
    return WeightForm.NARROW if fits_bits(weights, 4) else WeightForm.HALVES


def input_rows(weights: Int8, config: AccelConfig) -> Int8:
    """int8 [n, INP_LANES]: what an output channel has for each entry of INP; the last axis are input channels."""
    missing = -weights.shape[-1] % config.inp_lanes
    padded = np.pad(weights, [(0, 0)] * (weights.ndim - 1) + [(0, missing)]) if missing else weights
    return padded.reshape(-1, config.inp_lanes)


def row_factors(rows: Int8, bits: int) -> NDArray[np.int8] | None:
    """The smallest factor of each row [n, lanes] whose quotients fit half of `bits`; None where a row has none."""
    few = _row_factors(rows[:FEW_ROWS], bits)
    return few if few is None or len(rows) <= FEW_ROWS else _row_factors(rows, bits)


def _row_factors(rows: Int8, bits: int) -> NDArray[np.int8] | None:
    low, high = -(1 << (bits // 2 - 1)), (1 << (bits // 2 - 1)) - 1
    found = np.zeros(len(rows), np.int8)
    for factor in range(1, MOST_FACTOR + 1):
        left = np.flatnonzero(found == 0)
        if not left.size:
            break
        quotients, rest = np.divmod(rows[left], np.int8(factor))
        fits = (rest == 0).all(axis=1) & (quotients >= low).all(axis=1) & (quotients <= high).all(axis=1)
        found[left[fits]] = factor
    return found if found.all() else None


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


def stored_tiles(tiles: Int8, form: WeightForm, config: AccelConfig) -> Bytes:
    """uint8 [groups, passes x n, bytes] of int8 [groups, n, BLOCK_OUT, BLOCK_IN]: low halves, then high ones.

    With factors uint8 [bytes] of all groups.
    """
    flat = np.ascontiguousarray(tiles).reshape(tiles.shape[0], tiles.shape[1], -1)
    match form:
        case WeightForm.BYTES:
            return flat.view(np.uint8)
        case WeightForm.PACKED | WeightForm.NARROW:
            return pack_weights(flat, 4)
        case WeightForm.QUARTERS:
            return pack_weights(flat, 2)
        case WeightForm.FACTORED:
            return _behind_factors(flat.reshape(-1, config.inp_lanes), config)
        case WeightForm.HALVES:
            return np.concatenate(split_nibbles(flat), axis=1)


def _behind_factors(rows: Int8, config: AccelConfig) -> Bytes:
    """Granules of factors, each with as many of weights behind it as it has factors for."""
    factors = row_factors(rows, config.wgt_bits)
    assert factors is not None, "the form says that there are factors"
    granule, block = config.granule_bytes, config.factor_granules
    weights = pack_weights(rows // factors[:, None], config.wgt_bits // 2).reshape(-1, granule)
    count = len(weights) + -(-len(weights) // block)
    leads = np.arange(count) % (block + 1) == 0
    found = np.zeros((count, granule), np.uint8)
    found[~leads] = weights
    packed = np.zeros(int(leads.sum()) * granule, np.uint8)
    packed[: len(factors) // 2] = pack_factors(factors)
    found[leads] = packed.reshape(-1, granule)
    return found.reshape(-1)
