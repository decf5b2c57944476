"""Single layers: the program's bytes on the functional simulator equal the interpreter's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.tensorize.target import Target
from tests.targets import target_for

CONVS = {
    "one pixel": dict(shape=(5, 1, 1), channels=3, kernel=(1, 1)),
    "same padding": dict(shape=(3, 9, 11), channels=20, padding=(1, 1, 1, 1)),
    "asymmetric padding": dict(shape=(17, 7, 6), channels=5, padding=(2, 0, 1, 1)),
    "stride 2": dict(shape=(16, 11, 9), channels=16, strides=(2, 2), padding=(1, 1, 1, 1)),
    "stride 3 over 1": dict(shape=(8, 10, 13), channels=9, strides=(3, 1), kernel=(2, 3)),
    "1x1 stride 2": dict(shape=(40, 9, 10), channels=33, kernel=(1, 1), strides=(2, 2)),
    "1x1 stride 3": dict(shape=(4, 10, 10), channels=7, kernel=(1, 1), strides=(3, 3)),
    "dilation": dict(shape=(6, 12, 11), channels=10, dilation=(2, 3), padding=(2, 3, 2, 3)),
    "whole image": dict(shape=(10, 4, 5), channels=18, kernel=(4, 5)),
    "wide window": dict(shape=(2, 5, 16), channels=4, kernel=(1, 9), padding=(0, 4, 0, 4)),
    "pad value": dict(shape=(3, 8, 8), channels=6, padding=(1, 2, 0, 1), pad_value=-7),
    "deep": dict(shape=(64, 6, 6), channels=48, padding=(1, 1, 1, 1)),
}


@pytest.mark.parametrize("name", CONVS)
def test_conv(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(CONVS[name])
    build = kit.Regions(sum(map(ord, name)), config)
    x = build.input(*case.pop("shape"))
    kit.compare(build.function(build.conv(x, **case)), config)


SIZES = [
    ((10,), 4),
    ((300,), 70),
    ((3, 5, 7), 11),
    ((16, 4, 4), 33),
    ((20, 1, 1), 5),
    ((1, 28, 28), 9),
    ((10, 10, 9), 6),
]


@pytest.mark.parametrize("shape, units", SIZES)
@pytest.mark.parametrize("flatten", [True, False])
def test_dense(kit: SimpleNamespace, config: Target, shape: tuple[int, ...], units: int, flatten: bool) -> None:
    build = kit.Regions(len(shape) + units, config)
    x = build.input(*shape)
    kit.compare(build.function(build.dense(x, units, flatten)), config)


POOLS = {
    "2x2": dict(shape=(5, 8, 10), size=(2, 2), strides=(2, 2)),
    "3x3 overlapping": dict(shape=(20, 9, 9), size=(3, 3), strides=(2, 2), padding=(1, 1, 1, 1)),
    "3x3 dense": dict(shape=(3, 6, 5), size=(3, 3), padding=(1, 1, 1, 1)),
    "1x1 stride 2": dict(shape=(3, 7, 7), size=(1, 1), strides=(2, 2)),
    "asymmetric": dict(shape=(33, 7, 8), size=(3, 2), strides=(1, 2), padding=(2, 0, 0, 1)),
    "global": dict(shape=(40, 7, 7), size=(7, 7)),
}


@pytest.mark.parametrize("name", POOLS)
def test_max_pool(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(POOLS[name])
    build = kit.Regions(1, config)
    x = build.input(*case.pop("shape"))
    kit.compare(build.function(build.max_pool(x, **case)), config)


@pytest.mark.parametrize("name", POOLS)
def test_sum_pool(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(POOLS[name])
    build = kit.Regions(2, config)
    x = build.input(*case.pop("shape"))
    kit.compare(build.function(build.sum_pool(x, **case)), config)


def test_sum_pool_with_a_pad_value(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(4, config)
    y = build.sum_pool(build.input(20, 6, 7), (3, 2), (2, 1), (1, 0, 2, 1), pad_value=-77)
    kit.compare(build.function(y), config)


def test_max_pool_with_dilation(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(3, config)
    x = build.input(6, 11, 12)
    kit.compare(build.function(build.max_pool(x, (2, 3), (2, 1), (1, 2, 1, 2), (2, 2))), config)


@pytest.mark.parametrize("size, stride, extent", [(2, 2, 7), (3, 2, 8), (3, 3, 7), (2, 3, 10)])
def test_max_pool_in_ceil_mode(kit: SimpleNamespace, config: Target, size: int, stride: int, extent: int) -> None:
    build = kit.Regions(4, config)
    x = build.input(5, extent, extent + 1)
    kit.compare(build.function(build.max_pool(x, (size, size), (stride, stride), ceil_mode=True)), config)


@pytest.mark.parametrize("shape", [(5,), (3, 6, 7), (70, 9, 8)])
def test_add(kit: SimpleNamespace, config: Target, shape: tuple[int, ...]) -> None:
    build = kit.Regions(5, config)
    kit.compare(build.function(build.add(build.input(*shape), build.input(*shape))), config)


def test_add_of_one_value_with_itself(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(6, config)
    x = build.input(4, 5, 6)
    kit.compare(build.function(build.add(x, x)), config)


@pytest.mark.parametrize("swapped", [False, True])
def test_conv_with_residual(kit: SimpleNamespace, config: Target, swapped: bool) -> None:
    build = kit.Regions(7, config)
    x, r = build.input(10, 8, 9), build.input(24, 8, 9)
    y = build.conv(x, 24, padding=(1, 1, 1, 1), residual=r, swapped=swapped)
    kit.compare(build.function(y), config)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_conv(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(("default", "tiny", "ecp5", "wide"))))
    small = st.integers(1, 3)
    kernel, strides, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = data.draw(st.tuples(*(st.integers(0, extent[axis % 2] - 1) for axis in range(4))))
    height, width = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    assume(height + pads[0] + pads[2] >= extent[0] and width + pads[1] + pads[3] >= extent[1])
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    x = build.input(data.draw(st.integers(1, 40)), height, width)
    value = data.draw(st.one_of(st.none(), st.integers(-128, 127)))
    y = build.conv(x, data.draw(st.integers(1, 40)), kernel, strides, pads, dilation, value)
    kit.compare(build.function(y), config, seed, order=seed)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_pool(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(("default", "tiny", "ecp5", "wide"))))
    small = st.integers(1, 4)
    size, strides = data.draw(st.tuples(small, small)), data.draw(st.tuples(small, small))
    pads = data.draw(st.tuples(*(st.integers(0, size[axis % 2] - 1) for axis in range(4))))
    height, width = data.draw(st.tuples(st.integers(1, 14), st.integers(1, 14)))
    assume(height + pads[0] + pads[2] >= size[0] and width + pads[1] + pads[3] >= size[1])
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    x = build.input(data.draw(st.integers(1, 70)), height, width)
    pool = build.max_pool if data.draw(st.booleans()) else build.sum_pool
    kit.compare(build.function(pool(x, size, strides, pads)), config, seed, order=seed)
