"""Costs of layers: against counting by hand, pixel by pixel."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import relay_hw.op as op
from accel.isa.config import load_config
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.cost import LayerCost, layer_cost

SIZE = st.integers(1, 9)


def composite(build: object, shape: tuple[int, ...]) -> Function:
    x = Var("x", TensorType(shape, "int8"))
    return infer_type(IRModule({"main": Function([x], build(x))}))["main"]  # type: ignore[operator]


def requantize(acc: Expr, channels: int) -> Expr:
    return op.accel.requantize(acc, Constant(np.zeros(channels, np.int32)), 1, 0)


@given(
    shape=st.tuples(st.just(1), st.integers(1, 3), SIZE, SIZE),
    out=st.integers(1, 3),
    kernel=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.tuples(*[st.integers(0, 2)] * 4),
)
@settings(max_examples=60, deadline=None)
def test_convolutions(
    shape: tuple[int, ...],
    out: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    padding: tuple[int, int, int, int],
) -> None:
    top, left, bottom, right = padding
    assume(shape[2] + top + bottom >= kernel[0] and shape[3] + left + right >= kernel[1])
    weight = Constant(np.full((out, shape[1], *kernel), 99, np.int8))

    def build(x: Expr) -> Expr:
        acc = op.nn.conv2d(
            x, weight, strides=strides, padding=padding, channels=out, kernel_size=kernel, out_dtype="int32"
        )
        return requantize(acc, out)

    rows = (shape[2] + top + bottom - kernel[0]) // strides[0] + 1
    cols = (shape[3] + left + right - kernel[1]) // strides[1] + 1
    touched, macs = set(), 0
    for o, y, x, ky, kx in product(range(out), range(rows), range(cols), range(kernel[0]), range(kernel[1])):
        place = (y * strides[0] + ky - top, x * strides[1] + kx - left)
        macs += shape[1]
        if 0 <= place[0] < shape[2] and 0 <= place[1] < shape[3] and o == 0:
            touched.add(place)
    cost = layer_cost(composite(build, shape))
    assert cost.macs == macs
    assert cost.bytes_read == len(touched) * shape[1] + weight.data.size + 4 * out
    assert cost.bytes_written == out * rows * cols


def test_a_pointwise_convolution_of_stride_two_needs_a_quarter() -> None:
    weight = Constant(np.full((4, 8, 1, 1), 99, np.int8))
    cost = layer_cost(
        composite(
            lambda x: requantize(
                op.nn.conv2d(x, weight, strides=(2, 2), channels=4, kernel_size=(1, 1), out_dtype="int32"), 4
            ),
            (1, 8, 10, 10),
        )
    )
    assert cost.bytes_read == 8 * 25 + 32 + 16


def test_dense_pool_and_add() -> None:
    weight = Constant(np.full((5, 24), 99, np.int8))
    dense = layer_cost(
        composite(lambda x: requantize(op.nn.dense(op.nn.batch_flatten(x), weight, out_dtype="int32"), 5), (1, 6, 2, 2))
    )
    assert dense == LayerCost(120, 24 + 120 + 20, 5, "6x2x2 -> 5")
    pool = layer_cost(composite(lambda x: op.nn.max_pool2d(x, (2, 2), strides=(2, 2)), (1, 3, 5, 5)))
    assert pool == LayerCost(0, 3 * 16, 3 * 4, "3x5x5 -> 3x2x2")
    sums = layer_cost(composite(lambda x: requantize(op.accel.sum_pool2d(x, (4, 4)), 2), (1, 2, 4, 4)))
    assert sums == LayerCost(0, 32 + 8, 2, "2x4x4 -> 2x1x1")
    r = Var("r", TensorType((1, 2, 3, 3), "int8"))
    y = Var("y", TensorType((1, 2, 3, 3), "int8"))
    both = infer_type(IRModule({"main": Function([y, r], op.accel.add(y, r, 1, 1, 1))}))["main"]
    assert layer_cost(both) == LayerCost(0, 36, 18, "2x3x3 + 2x3x3 -> 2x3x3")


@pytest.mark.parametrize(
    ("cost", "cycles"),
    [((1600, 8, 8), 100), ((1601, 8, 8), 101), ((16, 800, 8), 100), ((16, 8, 801), 101)],
)
def test_the_roofline_is_the_longest_of_three(cost: tuple[int, int, int], cycles: int) -> None:
    config = load_config("tiny")
    assert config.macs_per_cycle == 16 and config.bus_bytes == 8
    assert LayerCost(*cost, "").roofline_cycles(config) == cycles


@pytest.mark.parametrize(("largest", "read", "cycles"), [(7, 512, 512), (8, 1024, 1024)])
def test_weights_of_four_bits_need_half_the_bytes_and_products(largest: int, read: int, cycles: int) -> None:
    """64 x 16 weights on 1 x 4096 pixels: on w4 other weights take two products each."""
    weight = Constant(np.full((16, 64, 1, 1), largest, np.int8))
    body = op.nn.conv2d
    cost = layer_cost(
        composite(
            lambda x: requantize(body(x, weight, channels=16, kernel_size=(1, 1), out_dtype="int32"), 16),
            (1, 64, 16, 16),
        )
    )
    assert cost.bytes_read == 64 * 256 + read + 64 and cost.narrow == (largest == 7)
    small = LayerCost(cost.macs, 0, 0, "", cost.narrow)
    assert small.roofline_cycles(load_config("w4")) == cycles
    assert small.roofline_cycles(load_config("default")) == 1024
