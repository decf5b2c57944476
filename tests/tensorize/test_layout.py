"""Layouts: packing is undone by unpacking, padding is zero, records hold the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.program import TensorLayout, TensorSlot
from relay_hw.accel.isa.records import decode_prm
from relay_hw.accel.isa.spec import Rounding
from relay_hw.accel.isa.tensors import pack_tensor, slot_bytes, unpack_tensor
from relay_hw.errors import TensorizeError
from relay_hw.tensorize.layout import (
    image_bytes,
    image_of,
    pack_activation,
    pack_weights,
    pair_record,
    requantize_records,
    unpack_activation,
    unpack_weights,
)
from relay_hw.tensorize.stages import AddStage, Requantize
from relay_hw.tensorize.target import Target

NAMES = st.sampled_from(("default", "tiny", "ecp5", "wide"))
SHAPES = st.one_of(
    st.tuples(st.just(1), st.integers(1, 70)),
    st.tuples(st.just(1), st.integers(1, 70), st.integers(1, 5), st.integers(1, 5)),
)


def random_int8(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-128, 128, shape).astype(np.int8)


@given(name=NAMES, shape=SHAPES, seed=st.integers(0, 1000))
def test_activations_come_back(name: str, shape: tuple[int, ...], seed: int) -> None:
    config, x = load_config(name), random_int8(shape, seed)
    packed = pack_activation(x, config)
    assert packed.dtype == np.int8 and packed.ndim == 1
    assert packed.size == image_bytes(image_of(shape), config) and packed.size % config.granule_bytes == 0
    assert np.array_equal(unpack_activation(packed, shape, config), x)
    assert np.array_equal(unpack_activation(packed.view(np.uint8), shape, config), x)
    assert np.count_nonzero(packed) == np.count_nonzero(x)


@given(name=NAMES, channels=st.integers(1, 40), size=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_a_pixel_is_consecutive_bytes_and_padding(name: str, channels: int, size: tuple[int, int]) -> None:
    config, x = load_config(name), random_int8((1, channels, *size), channels)
    packed = pack_activation(x, config)
    pixel = -(-channels // config.channel_align) * config.channel_align
    for row in range(size[0]):
        for column in range(size[1]):
            begin = (row * size[1] + column) * pixel
            assert packed[begin : begin + channels].tolist() == x[0, :, row, column].tolist()
            assert not packed[begin + channels : begin + pixel].any()


@given(name=NAMES, channels=st.integers(1, 20), size=st.tuples(st.integers(1, 5), st.integers(1, 5)))
def test_rows_lie_as_the_program_says(name: str, channels: int, size: tuple[int, int]) -> None:
    config, x = load_config(name), random_int8((1, channels, *size), channels)
    slot, pixels = TensorSlot("x", "input", 0, (1, *size, channels), "int8", TensorLayout.ROWS), x.transpose(0, 2, 3, 1)
    packed = pack_activation(x, config, TensorLayout.ROWS).view(np.uint8)
    assert packed.size == image_bytes(image_of(x.shape), config, TensorLayout.ROWS) == slot_bytes(config, slot)
    assert np.array_equal(pack_tensor(config, slot, pixels), packed)
    assert np.array_equal(unpack_tensor(config, slot, packed), pixels)
    rows = packed.reshape(size[0], -1)
    assert rows.shape[1] % config.granule_bytes == 0
    assert rows[:, : size[1] * channels].tobytes() == pixels.tobytes() and not rows[:, size[1] * channels :].any()


@given(name=NAMES, shape=st.tuples(*(st.integers(1, n) for n in (40, 3, 3, 40))), seed=st.integers(0, 1000))
def test_weights_come_back(name: str, shape: tuple[int, ...], seed: int) -> None:
    config, weights = load_config(name), random_int8(shape, seed)
    tiles = pack_weights(weights, config)
    assert tiles.shape[-2:] == (config.block_out, config.block_in)
    assert np.array_equal(unpack_weights(tiles, shape, config), weights)
    assert np.count_nonzero(tiles) == np.count_nonzero(weights)


def test_weight_tiles_by_hand() -> None:
    """Tile [o][y][x][i] holds [block_out][block_in]."""
    config, weights = load_config("tiny"), random_int8((9, 2, 3, 6), 0)
    tiles = pack_weights(weights, config)
    assert tiles.shape == (3, 2, 3, 2, 4, 4)
    assert tiles[1, 1, 2, 0, 3, 2] == weights[7, 1, 2, 2]
    assert tiles[2, 0, 1, 1, 0, 1] == weights[8, 0, 1, 5]
    assert not tiles[2, :, :, :, 1:].any() and not tiles[:, :, :, 1, :, 2:].any()


@pytest.mark.parametrize("name", ["default", "tiny", "ecp5", "wide"])
def test_records(name: str) -> None:
    config = load_config(name)
    most = (1 << config.multiplier_bits) - 1
    numbers = np.array([[-(1 << 31), (1 << 31) - 1, 5], [most, 0, 7], [62, 0, 31]], np.int64)
    stage = Requantize(*numbers, 0, Rounding.FLOOR, -128, 127)
    blocks = -(-32 // config.block_out)
    records = requantize_records(stage, blocks, config)
    assert not records.shared and records.of(1, 1) == records.data[config.prm_bytes : 2 * config.prm_bytes]
    assert records.first(3) == 3
    fields = decode_prm(np.frombuffer(records.data, np.uint8))
    assert fields["bias"].size == blocks * config.block_out
    for row, field in enumerate(("bias", "multiplier", "shift")):
        assert fields[field][:3].tolist() == numbers[row].tolist()
        assert not fields[field][3:].any()


@pytest.mark.parametrize("channels", [16, 33, 40])
def test_equal_records_are_one(channels: int, config: Target) -> None:
    numbers = [np.full(channels, number, np.int64) for number in (-5, 77, 9)]
    blocks = -(-channels // config.block_out)
    records = requantize_records(Requantize(*numbers, 0, Rounding.FLOOR, -128, 127), blocks, config)
    assert records.shared and records.of(2, 1) == records.of(0, blocks) == records.data
    assert len(records.data) == config.prm_bytes and records.first(2) == 0
    fields = decode_prm(np.frombuffer(records.data, np.uint8))
    assert {name: set(fields[name].tolist()) for name in ("bias", "multiplier", "shift")} == {
        "bias": {-5},
        "multiplier": {77},
        "shift": {9},
    }
    numbers[0][channels - 1] = 4
    assert not requantize_records(Requantize(*numbers, 0, Rounding.FLOOR, -128, 127), blocks, config).shared


def test_pair_record(config: Target) -> None:
    stage = AddStage(3, 4, 5, -6, 7, 0, Rounding.HALF_UP, -128, 127)
    fields = decode_prm(np.frombuffer(pair_record(stage, config), np.uint8))
    assert {name: set(values.tolist()) for name, values in fields.items()} == {
        "multiplier": {3},
        "bias": {4},
        "shift": {5},
        "y_zero": {-6},
        "r_zero": {7},
    }
    assert fields["bias"].size == config.block_out


def test_refusals() -> None:
    config = load_config("default")
    with pytest.raises(TensorizeError, match=r"activation must be int8, not uint8"):
        pack_activation(np.zeros((1, 3), np.uint8), config)
    shapes = r"\(1, C, H, W\), \(H, W, C\) or \(W, C\)"
    with pytest.raises(TensorizeError, match=rf"activation shape must be {shapes}, not \(2, 3, 4, 5\)"):
        pack_activation(np.zeros((2, 3, 4, 5), np.int8), config)
    with pytest.raises(TensorizeError, match=r"packed activation must be 16 bytes, not 15"):
        unpack_activation(np.zeros(15, np.int8), (1, 3), config)
