"""Depthwise, grouped and transposed convolutions: the program's bytes equal the interpreter's, for any sizes."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from relay_hw.errors import TensorizeError
from relay_hw.tensorize.target import Target
from tests.targets import target_for

CONFIGS = ("default", "tiny", "ecp5", "wide")

GROUPED = {
    "groups of one block": dict(shape=(32, 9, 8), channels=32, groups=2, padding=(1, 1, 1, 1)),
    "groups narrower than a block": dict(shape=(24, 7, 7), channels=48, groups=6, strides=(2, 2)),
    "groups across blocks": dict(shape=(60, 6, 5), channels=40, groups=2, kernel=(2, 3)),
    "one output a group": dict(shape=(33, 5, 5), channels=11, groups=11, kernel=(1, 1)),
    "pad value": dict(shape=(20, 6, 6), channels=20, groups=4, padding=(0, 1, 2, 0), pad_value=9),
    "channel multiplier": dict(shape=(5, 8, 8), channels=15, groups=5, padding=(1, 1, 1, 1)),
}
DEPTHWISE = {
    "3x3": dict(shape=(20, 9, 11), padding=(1, 1, 1, 1)),
    "stride 2": dict(shape=(33, 11, 10), strides=(2, 2), padding=(0, 0, 1, 1)),
    "5x5": dict(shape=(7, 9, 9), kernel=(5, 5), padding=(2, 2, 2, 2)),
    "row": dict(shape=(18, 5, 9), kernel=(1, 3), padding=(0, 1, 0, 1)),
    "column": dict(shape=(18, 9, 2), kernel=(3, 1), padding=(1, 0, 1, 0)),
    "1x1": dict(shape=(40, 4, 4), kernel=(1, 1)),
    "dilation": dict(shape=(16, 12, 13), dilation=(2, 3), padding=(2, 3, 2, 3)),
    "narrow": dict(shape=(6, 5, 2), kernel=(2, 2)),
    "whole image": dict(shape=(34, 5, 6), kernel=(5, 6)),
    "pad value": dict(shape=(16, 6, 6), padding=(1, 1, 1, 1), pad_value=-50),
    "several tiles": dict(shape=(64, 40, 40), padding=(1, 1, 1, 1)),
}
TRANSPOSED = {
    "4x4 stride 2": dict(shape=(20, 4, 5), channels=18),
    "3x3 stride 2, output padding": dict(
        shape=(5, 6, 6), channels=20, kernel=(3, 3), output_padding=(1, 1), zero_point=7
    ),
    "2x2 stride 2": dict(shape=(16, 5, 5), channels=16, kernel=(2, 2), padding=(0, 0, 0, 0)),
    "kernel below the stride": dict(
        shape=(7, 4, 4), channels=6, kernel=(1, 2), strides=(3, 3), padding=(0,) * 4, zero_point=-3
    ),
    "results without inputs": dict(shape=(4, 3, 3), channels=5, kernel=(2, 2), padding=(0,) * 4, output_padding=(1, 1)),
    "stride 1": dict(shape=(9, 6, 6), channels=17, kernel=(3, 3), strides=(1, 1), zero_point=-128),
    "dilation": dict(shape=(8, 5, 5), channels=8, kernel=(3, 3), dilation=(2, 3), padding=(1, 2, 0, 3)),
    "5x5 stride 3": dict(shape=(12, 5, 4), channels=9, kernel=(5, 5), strides=(3, 2), padding=(2, 1, 1, 2)),
}


@pytest.mark.parametrize("name", GROUPED)
def test_grouped(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(GROUPED[name])
    build = kit.Regions(11, config)
    x = build.input(*case.pop("shape"))
    kit.compare(build.function(build.conv(x, **case)), config)


@pytest.mark.parametrize("name", DEPTHWISE)
def test_depthwise(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(DEPTHWISE[name])
    shape = case.pop("shape")
    build = kit.Regions(12, config)
    x = build.input(*shape)
    kit.compare(build.function(build.conv(x, shape[0], groups=shape[0], **case)), config)


@pytest.mark.parametrize("name", TRANSPOSED)
def test_transposed(kit: SimpleNamespace, config: Target, name: str) -> None:
    case = dict(TRANSPOSED[name])
    build = kit.Regions(13, config)
    x = build.input(*case.pop("shape"))
    kit.compare(build.function(build.conv_transpose(x, **case)), config)


@pytest.mark.parametrize("channels", [3, 16, 37])
def test_dense_to_image(kit: SimpleNamespace, config: Target, channels: int) -> None:
    build = kit.Regions(channels, config)
    y = build.dense_image(build.input(50), channels, 3, 4)
    kit.compare(build.function(build.conv(y, 9, padding=(1, 1, 1, 1)), y), config)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_grouped_conv(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(CONFIGS)))
    small = st.integers(1, 4)
    kernel, strides, dilation = (data.draw(st.tuples(small, small)) for _ in range(3))
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    pads = data.draw(st.tuples(*(st.integers(0, extent[axis % 2] - 1) for axis in range(4))))
    height, width = data.draw(st.tuples(st.integers(1, 12), st.integers(1, 12)))
    assume(height + pads[0] + pads[2] >= extent[0] and width + pads[1] + pads[3] >= extent[1])
    groups = data.draw(st.integers(2, 40))
    inputs = data.draw(st.sampled_from((1, 1, 2, 3, 16)))
    outputs = data.draw(st.sampled_from((1, 1, 2, 5, 16)))
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    x = build.input(inputs * groups, height, width)
    value = data.draw(st.one_of(st.none(), st.integers(-128, 127)))
    y = build.conv(x, outputs * groups, kernel, strides, pads, dilation, value, groups=groups)
    try:
        kit.compare(build.function(y), config, seed, order=seed)
    except TensorizeError as error:
        # The host computes what no tile holds: a window of the groups that a granule of outputs is of takes more than a
        # quarter of INP.
        assert "must have a tile that fits" in str(error)
        held = inputs * min(groups, max(16, config.bus_bytes) // outputs + 1)
        assert extent[0] * extent[1] * held > config.inp_depth * config.block_in // 4


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_transposed_conv(kit: SimpleNamespace, data: st.DataObject) -> None:
    config = target_for(data.draw(st.sampled_from(CONFIGS)))
    small, kernels = st.integers(1, 3), st.integers(1, 5)
    kernel, strides, dilation = (data.draw(st.tuples(s, s)) for s in (kernels, small, small))
    pads = data.draw(st.tuples(*(st.integers(0, 4) for _ in range(4))))
    extra = data.draw(st.tuples(*(st.integers(0, step - 1) for step in strides)))
    sizes = data.draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    results = [
        (size - 1) * strides[a] + (kernel[a] - 1) * dilation[a] + 1 + extra[a] - pads[a] - pads[a + 2]
        for a, size in enumerate(sizes)
    ]
    assume(min(results) >= 1)
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    x = build.input(data.draw(st.integers(1, 40)), *sizes)
    channels, zero = data.draw(st.integers(1, 40)), data.draw(st.integers(-128, 127))
    y = build.conv_transpose(x, channels, kernel, strides, pads, dilation, extra, zero)
    kit.compare(build.function(y), config, seed, order=seed)
