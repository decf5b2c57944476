"""Packed weights: every byte of 4-bit and of 2-bit ones, and as two halves whose products add up to a byte's own."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import EncodeError
from relay_hw.accel.isa.nibbles import (
    fits_bits,
    pack_factors,
    pack_weights,
    scale_weights,
    split_nibbles,
    unpack_nibbles,
    widen_weights,
)
from relay_hw.accel.isa.semantics import SEMANTICS
from relay_hw.accel.isa.spec import GemmMode, Nibble, Op
from relay_hw.accel.isa.state import AccelState
from relay_hw.accel.isa.stream import complete

BYTES = np.arange(-128, 128, dtype=np.int16).astype(np.int8)
NARROW = np.array([(a, b) for a in range(-8, 8) for b in range(-8, 8)], np.int8)


def test_pairs_of_narrow_numbers_come_back() -> None:
    packed = pack_weights(NARROW, 4)
    assert packed.shape == (256, 1) and len(set(packed.reshape(-1).tolist())) == 256
    assert (unpack_nibbles(packed) == NARROW).all()
    assert packed[np.flatnonzero((NARROW == (-8, 7)).all(axis=1))[0], 0] == 0x78


def test_a_byte_is_sixteen_times_its_high_half_and_the_low_one() -> None:
    low, high = split_nibbles(BYTES)
    total = unpack_nibbles(low, Nibble.LOW).astype(int) + unpack_nibbles(high, Nibble.HIGH)
    assert (total == BYTES).all()
    assert set(unpack_nibbles(low, Nibble.LOW).tolist()) == set(range(16))
    assert set(unpack_nibbles(high).tolist()) == set(range(-8, 8))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(EncodeError, match="4-bit weights must be from -8 to 7, not 0 to 8"):
        pack_weights(np.array([0, 8], np.int8), 4)
    with pytest.raises(EncodeError, match="2-bit weights must be from -2 to 1, not -3 to 0"):
        pack_weights(np.array([0, -3, 0, 0], np.int8), 2)
    with pytest.raises(EncodeError, match="4-bit weights must be a multiple of 2 in number, not 3"):
        pack_weights(np.zeros(3, np.int8), 4)
    with pytest.raises(EncodeError, match="2-bit weights must be a multiple of 4 in number, not 6"):
        pack_weights(np.zeros(6, np.int8), 2)
    assert fits_bits(np.zeros(0, np.int8), 2) and fits_bits(NARROW, 4) and not fits_bits(NARROW, 2)
    for bits, low, high in ((4, -9, 8), (2, -3, 2)):
        assert not fits_bits(np.array([low], np.int8), bits) and not fits_bits(np.array([high], np.int8), bits)


def test_all_bytes_of_quarters_come_back() -> None:
    """Every four 2-bit numbers, as LOAD widens them to 4 bits; every two 4-bit ones, as it widens them to bytes."""
    quarters = np.array(list(product(range(-2, 2), repeat=4)), np.int8)
    packed = pack_weights(quarters, 2)
    assert packed.shape == (256, 1) and len(set(packed.reshape(-1).tolist())) == 256
    assert packed[np.flatnonzero((quarters == (1, -2, 0, -1)).all(axis=1))[0], 0] == 0b11_00_10_01
    assert (unpack_nibbles(widen_weights(packed, 4)) == quarters).all()
    assert (widen_weights(pack_weights(NARROW, 4), 8).view(np.int8) == NARROW).all()


def test_every_weight_meets_every_factor() -> None:
    factors = pack_factors(np.arange(1, 17, dtype=np.int8))
    assert factors.tolist() == [16 * high + high - 1 for high in range(1, 16, 2)]
    for bits, count in ((8, 16), (4, 4)):
        narrow = np.arange(-count // 2, count // 2, dtype=np.int8)
        wide = widen_weights(pack_weights(np.tile(narrow, 16), bits // 2), bits)
        products = scale_weights(wide, factors, count, bits)
        found = products.view(np.int8) if bits == 8 else unpack_nibbles(products)
        wanted = (narrow * np.arange(1, 17)[:, None]).reshape(-1)
        low = wanted % (1 << bits)
        assert (found == np.where(low < 1 << (bits - 1), low, low - (1 << bits))).all()
        assert bits == 4 or (found == wanted).all()


@pytest.mark.parametrize("mode", [GemmMode.MATMUL, GemmMode.ENTRY, GemmMode.TAPS])
def test_two_passes_of_halves_are_a_product_of_bytes(mode: GemmMode) -> None:
    """Every weight byte in every mode; inputs of every size."""
    config = load_config("w4")
    rng = np.random.default_rng(3)
    state = AccelState(config, np.zeros(0, np.uint8))
    state.inp[:] = rng.integers(-128, 128, state.inp.shape)
    weights = np.resize(BYTES, (config.block_out, config.block_in))
    rng.shuffle(weights.reshape(-1))
    low, high = split_nibbles(weights)
    state.wgt[0], state.wgt[1] = low.view(np.int8), high.view(np.int8)
    state.uop[0] = 1 << 48
    groups = config.tap_groups if mode is GemmMode.TAPS else 1
    for part, base in ((Nibble.LOW, 0), (Nibble.HIGH, groups)):
        values = {"mode": mode, "nibble": part, "wgt_base": base, "inp_base": 5, "uop_end": 1}
        SEMANTICS[Op.GEMM](state, complete(Op.GEMM, {**values, "overwrite": int(part is Nibble.LOW)}), 0)
    lines = state.inp.astype(int)
    if mode is GemmMode.TAPS:
        expected = (lines[5:9].T * weights[:, :4]).sum(axis=1)
    else:
        operand = lines[5:7].reshape(-1) * (np.arange(32) < (32 if mode is GemmMode.MATMUL else 16))
        expected = weights.astype(int) @ operand
    assert (state.acc[0] == expected).all()
