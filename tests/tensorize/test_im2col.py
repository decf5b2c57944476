"""Folded convolutions: the interpreter's numbers for every way to fold, whatever lanes hold that nobody wrote, and the
speed that folding is for."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import relay_hw.tensorize.compile
import relay_hw.tensorize.match.composite
import relay_hw.tensorize.tiles.im2col
import relay_hw.tensorize.tiles.inputs
from relay_hw.accel.isa.program import TensorLayout
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.errors import TensorizeError
from relay_hw.interp import evaluate
from relay_hw.ir.module import IRModule
from relay_hw.tensorize import Segment, compile_function
from relay_hw.tensorize.kernel import ConvKernel
from relay_hw.tensorize.match.region import Region, read_region
from relay_hw.tensorize.target import Target
from relay_hw.tensorize.tiles.choose import best_conv
from relay_hw.tensorize.tiles.im2col import folded_shapes, folded_weights
from relay_hw.tensorize.tiles.inputs import fold_inputs
from tests.targets import target_for

CASES = {
    "first layer of ResNet": dict(shape=(3, 30, 26), channels=9, kernel=(7, 7), strides=(2, 2), padding=(3, 3, 3, 3)),
    "digits": dict(shape=(1, 28, 28), channels=6, kernel=(5, 5), strides=(2, 2), padding=(2, 2, 2, 2)),
    "stride 1": dict(shape=(3, 12, 10), channels=20, kernel=(3, 3), padding=(1, 1, 1, 1)),
    "strides differ": dict(shape=(2, 17, 13), channels=5, kernel=(4, 3), strides=(3, 1), padding=(1, 0, 2, 1)),
    "one row": dict(shape=(3, 1, 20), channels=4, kernel=(3, 3), padding=(1, 1, 1, 1)),
    "one column": dict(shape=(5, 20, 1), channels=4, kernel=(3, 3), padding=(1, 1, 1, 1)),
    "rows of padding alone": dict(shape=(1, 3, 9), channels=3, kernel=(7, 3), padding=(6, 2, 6, 2)),
    "1x1": dict(shape=(3, 6, 7), channels=8, kernel=(1, 1)),
    "stride over the kernel": dict(shape=(3, 14, 14), channels=8, kernel=(2, 2), strides=(4, 3)),
    "wide": dict(shape=(3, 5, 400), channels=4, kernel=(3, 5), strides=(1, 2), padding=(1, 2, 1, 2)),
}


def build(kit: SimpleNamespace, config: Target, name: str, pad_value: int | None = -9):
    case = dict(CASES[name])
    regions = kit.Regions(sum(map(ord, name)), config)
    x = regions.input(*case.pop("shape"))
    return regions.function(regions.conv(x, pad_value=pad_value, **case))


def kernel_of(region: Region) -> ConvKernel:
    kernel = region.layers[0].kernel
    assert isinstance(kernel, ConvKernel)
    return kernel


def gathers(segment: Segment) -> int:
    return sum(op is Op.GATHER for op, _ in segment.program.instructions)


@pytest.mark.parametrize("name", CASES)
def test_every_fold_computes_the_layer(
    kit: SimpleNamespace, config: Target, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = build(kit, config, name)
    kernel = kernel_of(read_region(function, config, "accel_0"))
    shapes = folded_shapes(kernel, config)
    monkeypatch.setattr(relay_hw.tensorize.tiles.inputs, "_gains", lambda *_: True)
    tried = 0
    for shape in shapes:
        if best_conv((shape,), config) is None:
            continue
        monkeypatch.setattr(relay_hw.tensorize.tiles.im2col, "folded_shapes", lambda *_, shape=shape: (shape,))
        segment = kit.compare(function, config, seed=tried)
        assert gathers(segment) and segment.inputs[0].layout is TensorLayout.ROWS
        tried += 1
    if tried:
        return
    assert kernel.source.channels % config.block_in == 0 or config.name == "tiny"


@pytest.mark.parametrize("name", ["first layer of ResNet", "digits", "stride 1", "strides differ"])
def test_lanes_that_nobody_writes_do_not_count(kit: SimpleNamespace, config: Target, name: str) -> None:
    function = build(kit, config, name)
    segment = compile_function(function, config, "accel_0")
    assert gathers(segment), "such layers are faster folded"
    shape = function.params[0].type_annotation.static_shape
    x = np.random.default_rng(5).integers(-128, 128, shape).astype(np.int8)
    wanted = np.asarray(evaluate(IRModule.from_expr(function), [x]))
    for seed in range(3):
        device = FunctionalDevice(config)
        device.load(segment.program)
        scratch = device.state.scratch[Mem.INP]
        scratch[:] = np.random.default_rng(seed).integers(0, 256, scratch.size)
        found = kit.run(segment, [x], config, device=device)
        assert np.array_equal(found[0], wanted)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_layers(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(["default", "tiny", "ecp5", "wide"])))
    draw = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    channels, height, width = draw(1, 9), draw(1, 20), draw(1, 24)
    kernel = (draw(1, min(7, height + 2)), draw(1, min(7, width + 2)))
    padding = tuple(draw(0, kernel[axis % 2] - 1) for axis in range(4))
    room = (height + padding[0] + padding[2] - kernel[0], width + padding[1] + padding[3] - kernel[1])
    assume(min(room) >= 0)
    strides = (draw(1, 3), draw(1, 3))
    regions = kit.Regions(draw(0, 1000), config)
    x = regions.input(channels, height, width)
    y = regions.conv(x, draw(1, 20), kernel, strides, padding, pad_value=draw(-128, 127))
    try:
        kit.compare(regions.function(y), config, order=draw(0, 3))
    except TensorizeError as error:
        assert "must have a tile that fits" in str(error)


def test_inputs_with_other_readers_stay_pixels(kit: SimpleNamespace) -> None:
    config = target_for("default")
    regions = kit.Regions(3, config)
    x = regions.input(3, 12, 12)
    first = regions.conv(x, 16, (3, 3), padding=(1, 1, 1, 1))
    segment = kit.compare(regions.function(first, regions.max_pool(x, (2, 2))), config)
    assert not gathers(segment) and segment.inputs[0].layout is TensorLayout.NHWC


def test_two_convolutions_share_rows(kit: SimpleNamespace) -> None:
    config = target_for("default")
    regions = kit.Regions(4, config)
    x, other = regions.input(3, 12, 12), regions.input(20, 12, 12)
    first = regions.conv(x, 16, (3, 3), padding=(1, 1, 1, 1))
    second = regions.conv(x, 20, (5, 5), padding=(2, 2, 2, 2), residual=other)
    segment = kit.compare(regions.function(first, second), config)
    assert gathers(segment)
    assert [port.layout for port in segment.inputs] == [TensorLayout.ROWS, TensorLayout.NHWC]


def test_values_inside_a_region_stay_pixels(kit: SimpleNamespace) -> None:
    config = target_for("default")
    regions = kit.Regions(5, config)
    x = regions.input(16, 10, 10)
    small = regions.conv(x, 3, (3, 3), padding=(1, 1, 1, 1))
    segment = kit.compare(regions.function(regions.conv(small, 16, (3, 3), padding=(1, 1, 1, 1))), config)
    assert not gathers(segment)


@pytest.mark.parametrize(
    "case",
    [
        dict(shape=(3, 20, 20), channels=4, kernel=(3, 3), dilation=(2, 2)),
        dict(shape=(16, 8, 8), channels=4, kernel=(3, 3)),
        dict(shape=(3, 2, 1400), channels=4, kernel=(2, 3)),
    ],
    ids=["dilation", "whole blocks", "rows beyond the buffer"],
)
def test_what_cannot_be_folded(kit: SimpleNamespace, case: dict) -> None:
    config, case = target_for("default"), dict(case)
    regions = kit.Regions(6, config)
    x = regions.input(*case.pop("shape"))
    function = regions.function(regions.conv(x, **case))
    assert not folded_shapes(kernel_of(read_region(function, config, "a")), config)
    assert not gathers(kit.compare(function, config))


@pytest.mark.parametrize("name", CASES)
def test_weights_are_moved_not_changed(kit: SimpleNamespace, config: Target, name: str) -> None:
    kernel = kernel_of(read_region(build(kit, config, name), config, "accel_0"))
    for shape in folded_shapes(kernel, config):
        folded = folded_weights(kernel, shape, config)
        assert np.count_nonzero(folded) == np.count_nonzero(kernel.weights)
        assert folded.astype(np.int64).sum() == kernel.weights.astype(np.int64).sum()


def test_region_without_gain_is_left_alone(kit: SimpleNamespace) -> None:
    """One output pixel: the window is the image, and pixels are as good."""
    config = target_for("default")
    regions = kit.Regions(8, config)
    x = regions.input(10)
    region = read_region(regions.function(regions.dense(x, 4)), config, "accel_0")
    assert fold_inputs(region, config) == region


LARGE = dict(shape=(3, 224, 224), channels=64, kernel=(7, 7), strides=(2, 2), padding=(3, 3, 3, 3))
SMALL = dict(shape=(1, 28, 28), channels=8, kernel=(5, 5), strides=(2, 2), padding=(2, 2, 2, 2))


@pytest.mark.parametrize(
    ("case", "products", "limit"),
    # Products of a full array: 112 x 112 x 4 x ceil(147 / 16), and 14 x 14 x 3 vectors of two kernel rows.
    [(LARGE, 501_760, 1.05), (SMALL, 588, 2.5)],
    ids=["224x224", "28x28"],
)
def test_folded_layers_keep_the_array_busy(kit: SimpleNamespace, case: dict, products: int, limit: float) -> None:
    config, case = target_for("default"), dict(case)
    regions = kit.Regions(9, config)
    x = regions.input(*case.pop("shape"))
    segment = compile_function(regions.function(regions.conv(x, pad_value=3, **case)), config, "accel_0")
    device = CycleDevice(config, data=False)
    device.load(segment.program)
    stats = device.launch()
    assert stats.counters["GEMM_UOPS"] == products
    assert products <= (stats.cycles or 0) <= limit * products
    assert abs(segment.cycles - (stats.cycles or 0)) <= 0.02 * products + 50
