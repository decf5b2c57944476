"""4-bit weights: every byte, packed and unpacked, and as two halves whose products add up to its own."""

from __future__ import annotations

import numpy as np
import pytest

from accel.isa.config import load_config
from accel.isa.errors import EncodeError
from accel.isa.nibbles import is_narrow, pack_nibbles, split_nibbles, unpack_nibbles
from accel.isa.program import complete
from accel.isa.semantics import SEMANTICS
from accel.isa.spec import GemmMode, Nibble, Op
from accel.isa.state import AccelState

BYTES = np.arange(-128, 128, dtype=np.int16).astype(np.int8)
NARROW = np.array([(a, b) for a in range(-8, 8) for b in range(-8, 8)], np.int8)


def test_pairs_of_narrow_numbers_come_back() -> None:
    packed = pack_nibbles(NARROW)
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
        pack_nibbles(np.array([0, 8], np.int8))
    with pytest.raises(EncodeError, match="4-bit weights must be an even number, not 3"):
        pack_nibbles(np.zeros(3, np.int8))
    assert is_narrow(np.zeros(0, np.int8)) and is_narrow(NARROW)
    assert not is_narrow(np.array([-9], np.int8)) and not is_narrow(np.array([8], np.int8))


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
