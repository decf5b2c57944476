"""Regions of several layers: bytes, any order of the units, one launch after the other, determinism."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.span import Span
from relay_hw.tensorize import compile_function
from relay_hw.tensorize.target import Target
from tests.targets import target_for


def small_cnn(kit: SimpleNamespace, config: Target, seed: int = 1) -> Function:
    """Every kind of layer."""
    build = kit.Regions(seed, config)
    x = build.input(3, 12, 12)
    y = build.conv(x, 16, padding=(1, 1, 1, 1))
    z = build.conv(y, 16, padding=(1, 1, 1, 1), residual=y)
    y = build.max_pool(z, (2, 2), (2, 2))
    z = build.conv(y, 24, (1, 1), (2, 2))
    y = build.add(build.conv(y, 24, (3, 3), (2, 2), (1, 1, 1, 1)), z)
    y = build.sum_pool(y, (3, 3))
    return build.function(build.dense(build.dense(y, 20), 10))


def lenet(kit: SimpleNamespace, config: Target) -> Function:
    """The size of the demonstration's network."""
    build = kit.Regions(3, config)
    y = build.conv(build.input(1, 28, 28), 16, (5, 5), (2, 2), (2, 2, 2, 2))
    y = build.max_pool(build.conv(y, 16, padding=(1, 1, 1, 1)), (2, 2), (2, 2))
    y = build.max_pool(build.conv(y, 32, padding=(1, 1, 1, 1)), (2, 2), (2, 2))
    return build.function(build.dense(build.dense(y, 64), 10))


@pytest.mark.parametrize("order", [None, 0, 1, 2])
def test_small_cnn(kit: SimpleNamespace, config: Target, order: int | None) -> None:
    kit.compare(small_cnn(kit, config), config, seed=5, order=order)


def test_lenet(kit: SimpleNamespace, config: Target) -> None:
    kit.compare(lenet(kit, config), config, order=3)


def test_lenet_is_fast_on_default(kit: SimpleNamespace) -> None:
    config = target_for("default")
    segment = compile_function(lenet(kit, config), config, "accel_0")
    assert segment.cycles < 12_500
    assert segment.program.count < 200


def test_several_inputs_and_outputs(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(9, config)
    a, b = (
        build.input(8, 6, 6),
        build.input(
            12,
        ),
    )
    y = build.conv(a, 8, padding=(1, 1, 1, 1))
    z = build.dense(b, 7)
    segment = kit.compare(build.function(z, build.add(y, a), y), config)
    assert [port.name for port in segment.outputs] == ["output_0", "output_1", "output_2"]
    assert [port.shape for port in segment.inputs] == [(1, 8, 6, 6), (1, 12)]


def test_one_result_twice(kit: SimpleNamespace, config: Target) -> None:
    build = kit.Regions(10, config)
    y = build.dense(build.input(9), 6)
    kit.compare(build.function(y, y), config)


def test_launches_do_not_depend_on_earlier_ones(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    function = small_cnn(kit, config)
    segment = compile_function(function, config, "accel_0")
    rng = np.random.default_rng(0)
    device = FunctionalDevice(config)
    device.load(segment.program)
    for _ in range(3):
        x = rng.integers(-128, 128, (1, 3, 12, 12)).astype(np.int8)
        (have,) = kit.run(segment, [x], config, device=device)
        assert np.array_equal(have, evaluate(IRModule.from_expr(function), [x]))


def test_same_function_gives_the_same_bytes(kit: SimpleNamespace, config: Target) -> None:
    first, second = (compile_function(small_cnn(kit, config), config, "a").program.to_bytes() for _ in range(2))
    assert first == second


def test_layers_cover_the_program(kit: SimpleNamespace, config: Target) -> None:
    segment = compile_function(small_cnn(kit, config), config, "accel_0", resident=False)
    assert len(segment.owners) == segment.program.count
    covered = sorted(index for layer in segment.layers for begin, end in layer.ranges for index in range(begin, end))
    assert covered == list(range(segment.program.count))
    ops = [layer.composite.attrs["Composite"] for layer in segment.layers]
    assert ops.count("accel.conv2d") == 4 and ops[-1] == "accel.dense"
    assert segment.layers[0].macs == 12 * 12 * 16 * 27
    device = FunctionalDevice(config)
    device.load(segment.program)
    counted = device.launch().counters
    assert sum(layer.bytes_read for layer in segment.layers) == counted["READ_BYTES"]
    assert sum(layer.bytes_written for layer in segment.layers) == counted["WRITE_BYTES"]


def test_scratch_is_shared_by_tensors_that_do_not_live_together(kit: SimpleNamespace) -> None:
    config = target_for("default")
    build = kit.Regions(2, config)
    y: Expr = build.input(64, 28, 28)
    for _ in range(8):
        y = build.conv(y, 64, (1, 1))
    segment = kit.compare(build.function(y), config)
    assert segment.program.section("scratch").size <= 4 * 64 * 28 * 28 + 4 * 4096


@pytest.mark.parametrize("name", ["default", "tiny"])
def test_weights_larger_than_their_memory(kit: SimpleNamespace, name: str) -> None:
    config = target_for(name)
    build = kit.Regions(4, config)
    channels = 16 * config.block_in
    y = build.conv(build.input(channels, 5, 5), 12 * config.block_out, padding=(1, 1, 1, 1))
    y = build.conv(y, channels, padding=(1, 1, 1, 1))
    kit.compare(build.function(build.dense(y, 3 * config.block_out + 1)), config, order=1)


def test_inputs_larger_than_their_memory(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    build = kit.Regions(6, config)
    y = build.conv(build.input(16, 9, 150), 16, padding=(1, 1, 1, 1))
    y = build.max_pool(y, (3, 3), (2, 2), (1, 1, 1, 1))
    kit.compare(build.function(build.conv(y, 20, (3, 3), (2, 2), (1, 1, 1, 1))), config)


def test_sums_longer_than_their_memories(kit: SimpleNamespace) -> None:
    config = target_for("tiny")
    build = kit.Regions(7, config)
    x = build.input(600, 3, 3)
    y = build.conv(x, 9, padding=(1, 1, 1, 1))
    kit.compare(build.function(build.add(y, build.conv(x, 9, (1, 1), residual=y)), build.dense(x, 17)), config)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_chain(kit: SimpleNamespace, data: st.DataObject) -> None:
    """Random layers on random earlier values of the same size; all values that nothing reads are results."""
    config = target_for(data.draw(st.sampled_from(("default", "tiny", "ecp5", "wide"))))
    seed = data.draw(st.integers(0, 1 << 20))
    build = kit.Regions(seed, config)
    values = [build.input(data.draw(st.integers(1, 20)), *data.draw(st.tuples(st.integers(3, 9), st.integers(3, 9))))]
    read: set[Expr] = set()
    for _ in range(data.draw(st.integers(1, 5))):
        x = data.draw(st.sampled_from(values))
        read.add(x)
        kind = data.draw(st.sampled_from(("conv", "strided", "add", "pool", "sum", "dense", "residual")))
        shape = build.shape(x)
        flat = len(shape) == 2
        channels = data.draw(st.integers(1, 36))
        same = [value for value in values if build.shape(value) == shape]
        if flat or kind == "dense":
            y = build.dense(x, channels) if kind != "add" else build.add(x, data.draw(st.sampled_from(same)))
        elif kind == "conv":
            y = build.conv(x, channels, padding=(1, 1, 1, 1))
        elif kind == "strided":
            y = build.conv(x, channels, (2, 2), (2, 1), (1, 1, 0, 1))
        elif kind == "add":
            y = build.add(x, data.draw(st.sampled_from(same)))
        elif kind == "residual":
            y = build.conv(x, shape[1], padding=(1, 1, 1, 1), residual=data.draw(st.sampled_from(same)))
        elif kind == "pool":
            y = build.max_pool(x, (2, 3), (1, 2), (1, 1, 0, 1))
        else:
            y = build.sum_pool(x, (3, 2), (2, 1), (1, 1, 1, 0))
        values.append(y)
    read |= {arg for value in values[1:] for arg in value.args}
    results = [value for value in values[1:] if value not in read] or [values[-1]]
    kit.compare(build.function(*results), config, seed, order=seed)


def test_names_of_layers_are_words(kit: SimpleNamespace) -> None:
    """Converted models name a layer after all the operators that became it, with semicolons between."""
    config = target_for("tiny")
    build = kit.Regions(0, config)
    conv = build.conv(build.input(3, 4, 4), 4)
    body = conv.op.body
    core = body.args[0]
    named = Call(core.op, core.args, core.attrs, span=Span("relu;conv 1\n/weights"), checked_type=core.checked_type)
    scaled = Call(body.op, [named, *body.args[1:]], body.attrs, checked_type=body.checked_type)
    inner = Function(conv.op.params, scaled, conv.op.ret_type, attrs=conv.op.attrs)
    build._shapes[call := Call(inner, conv.args)] = build.shape(conv)
    segment = compile_function(build.function(call), config, "accel_0")
    assert [layer.name for layer in segment.layers] == ["0:relu_conv_1_/weights"]
