"""Layers of 2- and 4-bit weights beside ones of 8 bits, on every configuration: exact, in fewer bytes or products."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.accel.isa.rules import dram_granules
from relay_hw.accel.isa.spec import GemmMode, Mem, Nibble, Op
from relay_hw.accel.isa.stream import decode_instructions
from relay_hw.tensorize import Segment, why_not
from relay_hw.tensorize.kernel import ConvKernel
from relay_hw.tensorize.match.composite import match
from relay_hw.tensorize.refine import without_weights
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.operands import WeightForm, operand_starts, operand_tiles, row_factors, weight_form
from tests.targets import target_for

W4 = target_for("w4")


def gemms(segment: Segment) -> list[dict[str, int]]:
    return [values for op, values in segment.program.instructions if op is Op.GEMM]


def products(segment: Segment) -> int:
    """Micro-ops of all products."""
    return sum(v["iter_out"] * v["iter_in"] * (v["uop_end"] - v["uop_begin"]) for v in gemms(segment))


def weight_bytes(segment: Segment, config: Target) -> int:
    """Bytes of DRAM that weights and their factors are loaded from."""
    return sum(dram_granules(config, v) * v["y"] * v["x"] for v in weight_loads(segment)) * config.granule_bytes


def weight_loads(segment: Segment) -> list[dict[str, int]]:
    """Of both instruction streams."""
    resident = segment.program.resident
    first = decode_instructions(resident.data or b"") if resident is not None else ()
    return [v for op, v in (*first, *segment.program.instructions) if op is Op.LOAD and v["mem"] == Mem.WGT]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("groups", [1, 2, 48])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5)])
def test_convolutions(kit: SimpleNamespace, config: Target, kernel: tuple[int, int], groups: int, bits: int) -> None:
    build = kit.Regions(groups + kernel[1], config, bits)
    segment = kit.compare(build.function(build.conv(build.input(48, 7, 9), 48, kernel, groups=groups)), config)
    assert {v["nibble"] for v in gemms(segment)} == (
        {Nibble.LOW, Nibble.HIGH} if config.wgt_bits == 4 and bits == 8 else {Nibble.WHOLE}
    )


@pytest.mark.parametrize("units", [5, 33])
@pytest.mark.parametrize("inputs", [10, 300, 272, 512])
def test_dense_layers(kit: SimpleNamespace, config: Target, inputs: int, units: int) -> None:
    for bits in (2, 4, 8):
        build = kit.Regions(inputs + units, config, bits)
        kit.compare(build.function(build.dense(build.input(inputs), units)), config)


def test_layers_of_both_kinds_follow_one_another(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(9, config)
    x = build.input(3, 12, 12)
    y = build.conv(x, 16, padding=(1, 1, 1, 1))
    build.bits = 4
    r = build.conv(y, 16, padding=(1, 1, 1, 1))
    z = build.conv(r, 16, padding=(1, 1, 1, 1), residual=y)
    z = build.conv(z, 32, padding=(1, 1, 1, 1), strides=(2, 2))
    z = build.conv(z, 32, groups=32, padding=(1, 1, 1, 1))
    z = build.max_pool(z, (2, 2), (2, 2))
    build.bits = 2
    z = build.conv(z, 32, padding=(1, 1, 1, 1))
    z = build.conv(z, 32, groups=32, padding=(1, 1, 1, 1))
    build.bits = 8
    kit.compare(build.function(build.dense(build.sum_pool(z, (3, 3)), 10)), config, order=4)


@pytest.mark.parametrize("groups", [1, 3, 48])
@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5)])
def test_convolutions_with_factors(kit: SimpleNamespace, config: Target, kernel: tuple[int, int], groups: int) -> None:
    """A factor for each output channel and entry of inputs, where no groups cut the entries."""
    build = kit.Regions(groups + kernel[1], config)
    build.factored = True
    segment = kit.compare(build.function(build.conv(build.input(48, 7, 9), 48, kernel, groups=groups)), config)
    assert {v["pitch"] for v in weight_loads(segment)} == {int(groups == 1 and config.factor_granules > 0)}


@pytest.mark.parametrize("inputs", [(300,), (512,), (20, 3, 3), (32, 5, 2)])
def test_dense_layers_with_factors(kit: SimpleNamespace, config: Target, inputs: tuple[int, ...]) -> None:
    build = kit.Regions(len(inputs), config)
    build.factored = True
    segment = kit.compare(build.function(build.dense(build.input(*inputs), 33)), config)
    assert {v["pitch"] for v in weight_loads(segment)} == {int(config.factor_granules > 0)}


def test_layers_with_factors_follow_others(kit: SimpleNamespace, config: Target) -> None:
    """Images of few channels, transposed and depthwise layers among them, whose weights have none in memory."""
    build = kit.Regions(11, config)
    build.factored = True
    x = build.conv(build.input(3, 12, 12), 16, padding=(1, 1, 1, 1))
    y = build.conv(x, 24, padding=(1, 1, 1, 1), residual=None)
    y = build.conv(y, 40, strides=(2, 2))
    build.factored, build.bits = False, 8
    z = build.conv(y, 40, (1, 1))
    build.factored = True
    z = build.conv(z, 40, padding=(1, 1, 1, 1), residual=y)
    z = build.conv(z, 40, groups=40, padding=(1, 1, 1, 1))
    z = build.conv_transpose(z, 16)
    kit.compare(build.function(build.dense(z, 10)), config, order=4)


@pytest.mark.parametrize("name, share", [("default", 17 / 16), ("ecp5", 9 / 8), ("wide", 33 / 32), ("w4", 9 / 8)])
def test_factors_take_so_many_bytes(kit: SimpleNamespace, name: str, share: float) -> None:
    config, found = target_for(name), []
    for factored in (False, True):
        build = kit.Regions(3, config, config.wgt_bits // 2)
        build.factored = factored
        segment = kit.compare(build.function(build.conv(build.input(64, 6, 6), 64)), config)
        found.append((weight_bytes(segment, config), products(segment)))
    assert found[1] == (share * found[0][0], found[0][1])


def test_factors_are_the_smallest_of_each_row() -> None:
    rows = np.array([[0, 0, 0, 0], [7, -8, 1, 0], [14, -2, 0, 8], [-128, 112, 0, 16], [105, 15, -120, 0]], np.int8)
    factors = row_factors(rows, 8)
    assert factors is not None and factors.tolist() == [1, 1, 2, 16, 15]
    for row in ([8, 1, 0, 0], [17, 0, 0, 0], [-16, 14, 3, 0], [127, 0, 0, 0]):
        assert row_factors(np.array([row], np.int8), 8) is None
    last = np.concatenate([np.tile(rows, (100, 1)), [[127, 1, 0, 0]]]).astype(np.int8)
    assert row_factors(last, 8) is None and row_factors(last[:-1], 8) is not None
    narrow = row_factors(np.array([[4, -8, 0], [1, -2, 0], [7, -7, 0]], np.int8), 4)
    assert narrow is not None and narrow.tolist() == [4, 1, 7]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_convolution(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(("w4", "w4", "ecp5w4", "default", "wide", "ecp5"))))
    small = st.integers(1, 4)
    kernel, strides, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = data.draw(st.tuples(*(st.integers(0, extent[axis % 2] - 1) for axis in range(4))))
    height, width = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    assume(height + pads[0] + pads[2] >= extent[0] and width + pads[1] + pads[3] >= extent[1])
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config, data.draw(st.sampled_from((2, 4, 8))))
    build.factored = data.draw(st.booleans())
    inputs = data.draw(st.integers(1, 90))
    groups = data.draw(st.sampled_from([1, 1, 1, inputs, *(n for n in (2, 3) if inputs % n == 0)]))
    x = build.input(inputs, height, width)
    y = build.conv(x, groups * data.draw(st.integers(1, 40)), kernel, strides, pads, dilation, groups=groups)
    kit.compare(build.function(y), config, seed, order=seed)


def test_default_loads_half_the_bytes(kit: SimpleNamespace) -> None:
    config, found = target_for("default"), []
    for bits in (4, 8):
        build = kit.Regions(3, config, bits)
        found.append(kit.compare(build.function(build.conv(build.input(64, 6, 6), 64)), config))
    assert 2 * weight_bytes(found[0], config) == weight_bytes(found[1], config)
    assert products(found[0]) == products(found[1])
    assert all(v["expand"] for v in weight_loads(found[0])) and not any(v["expand"] for v in weight_loads(found[1]))


@pytest.mark.parametrize("name", ["w4", "ecp5w4"])
def test_arrays_of_4_bits_load_half_the_bytes_of_2_bit_weights(kit: SimpleNamespace, name: str) -> None:
    config, found = target_for(name), []
    for bits in (2, 4, 8):
        build = kit.Regions(3, config, bits)
        found.append(kit.compare(build.function(build.conv(build.input(64, 6, 6), 64)), config))
    assert 4 * weight_bytes(found[0], config) == 2 * weight_bytes(found[1], config) == weight_bytes(found[2], config)
    assert 2 * products(found[0]) == 2 * products(found[1]) == products(found[2])
    assert [{v["expand"] for v in weight_loads(segment)} for segment in found] == [{1}, {0}, {0}]


@pytest.mark.parametrize("channels, kernel, slots", [(64, 3, 18), (16, 3, 6), (48, 3, 15), (16, 1, 1), (32, 1, 1)])
def test_w4_takes_two_entries_a_product(kit: SimpleNamespace, channels: int, kernel: int, slots: int) -> None:
    """Neighbouring pixels share a product where channels alone do not fill it; 8-bit weights take two of each."""
    for bits in (2, 4, 8):
        build = kit.Regions(4, W4, bits)
        y = build.conv(build.input(channels, 8, 8), 16, (kernel, kernel))
        segment = kit.compare(build.function(y), W4)
        assert products(segment) == (9 - kernel) ** 2 * slots * (2 if bits == 8 else 1)
        modes = {v["mode"] for v in gemms(segment)}
        assert modes == {GemmMode.ENTRY if channels * kernel == 16 else GemmMode.MATMUL}


def test_operands_hold_every_entry_once() -> None:
    rng = np.random.default_rng(1)
    for count in range(1, 12):
        tiles = rng.integers(-128, 128, (2, count, W4.block_out, W4.inp_lanes)).astype(np.int8)
        x = rng.integers(-128, 128, count * W4.inp_lanes + W4.inp_lanes)
        starts = operand_starts(count, 2)
        assert len(starts) == -(-count // 2) and max(starts) + 2 <= max(count, 2)
        operands = np.stack([x[s * W4.inp_lanes :][: W4.block_in] for s in starts])
        got = np.einsum("gnol,nl->go", operand_tiles(tiles, W4).astype(int), operands)
        want = np.einsum("gnol,nl->go", tiles.astype(int), x[: count * W4.inp_lanes].reshape(count, -1))
        assert (got == want).all()


def test_tiles_are_timed_with_weights_of_as_many_bits(kit: SimpleNamespace) -> None:
    for bits, form in {2: WeightForm.QUARTERS, 4: WeightForm.NARROW, 8: WeightForm.HALVES}.items():
        build = kit.Regions(5, W4, bits)
        kernel = match(build.conv(build.input(16, 5, 5), 16).op, W4).kernel
        assert isinstance(kernel, ConvKernel)
        assert form is weight_form(without_weights(kernel, W4).weights, W4) is weight_form(kernel.weights, W4)


@pytest.mark.parametrize("name", ["default", "w4", "wide"])
def test_tiles_are_timed_with_factors(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    build = kit.Regions(5, config)
    build.factored = True
    kernel = match(build.conv(build.input(64, 5, 5), 16).op, config).kernel
    assert isinstance(kernel, ConvKernel)
    for weights in (kernel.weights, without_weights(kernel, config).weights):
        assert weight_form(weights, config, rows=True) is WeightForm.FACTORED
        assert weight_form(weights, config) is not WeightForm.FACTORED


def test_products_of_activations_are_refused_where_weights_have_4_bits(kit: SimpleNamespace) -> None:
    build = kit.Regions(6, W4)
    call = build.product(build.tensor(2, 16, 32), build.tensor(2, 16, 32))
    assert why_not(call.op, W4) == "products of activations: weights must have 8 bits, not 4 as in w4"


def test_the_form_follows_the_values() -> None:
    limits = [np.array(values, np.int8) for values in ((-2, 1), (-2, 2), (-8, 7), (-9, 7))]
    expected = {
        "w4": "quarters narrow narrow halves",
        "default": "packed packed packed bytes",
        "tiny": "bytes bytes bytes bytes",
    }
    for name, forms in expected.items():
        config = target_for(name)
        assert " ".join(weight_form(values, config).value for values in limits) == forms
