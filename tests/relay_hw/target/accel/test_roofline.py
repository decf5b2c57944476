"""Costs of layers: against counting by hand, pixel by pixel."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import relay_hw.op as op
from relay_hw.accel.isa.config import load_config
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.target.accel.roofline import LayerCost, layer_cost

SIZE = st.integers(1, 9)


def composite(build: object, shape: tuple[int, ...]) -> Function:
    x = Var("x", TensorType(shape, "int8"))
    return infer_type(IRModule({"main": Function([x], build(x))}))["main"]  # type: ignore[operator]


def requantize(acc: Expr, channels: int) -> Expr:
    return op.fixed.requantize(acc, Constant(np.zeros(channels, np.int32)), 1, 0)


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
    taps = product(range(out), range(rows), range(cols), range(kernel[0]), range(kernel[1]))
    assert layer_cost(composite(build, shape)).macs == shape[1] * sum(1 for _ in taps)


def test_dense_pool_and_add() -> None:
    weight = Constant(np.full((5, 24), 99, np.int8))
    dense = layer_cost(
        composite(lambda x: requantize(op.nn.dense(op.nn.batch_flatten(x), weight, out_dtype="int32"), 5), (1, 6, 2, 2))
    )
    assert dense == LayerCost(120, "6x2x2 -> 5")
    pool = layer_cost(composite(lambda x: op.nn.max_pool2d(x, (2, 2), strides=(2, 2)), (1, 3, 5, 5)))
    assert pool == LayerCost(0, "3x5x5 -> 3x2x2")
    sums = layer_cost(composite(lambda x: requantize(op.fixed.sum_pool2d(x, (4, 4)), 2), (1, 2, 4, 4)))
    assert sums == LayerCost(0, "2x4x4 -> 2x1x1")
    r = Var("r", TensorType((1, 2, 3, 3), "int8"))
    y = Var("y", TensorType((1, 2, 3, 3), "int8"))
    both = infer_type(IRModule({"main": Function([y, r], op.fixed.add(y, r, 1, 1, 1))}))["main"]
    assert layer_cost(both) == LayerCost(0, "2x3x3 + 2x3x3 -> 2x3x3")


@pytest.mark.parametrize(("macs", "cycles"), [(0, 0), (1600, 100), (1601, 101)])
def test_the_array_bounds_a_layer(macs: int, cycles: int) -> None:
    config = load_config("tiny")
    assert config.macs_per_cycle == 16
    assert LayerCost(macs, "").array_cycles(config) == cycles


@pytest.mark.parametrize(("largest", "cycles"), [(7, 512), (8, 1024)])
def test_weights_of_four_bits_need_half_the_products(largest: int, cycles: int) -> None:
    """64 x 16 weights on 1 x 4096 pixels: on w4 other weights take two products each."""
    weight = Constant(np.full((16, 64, 1, 1), largest, np.int8))
    body = op.nn.conv2d
    cost = layer_cost(
        composite(
            lambda x: requantize(body(x, weight, channels=16, kernel_size=(1, 1), out_dtype="int32"), 16),
            (1, 64, 16, 16),
        )
    )
    assert cost.narrow == (largest == 7)
    assert cost.array_cycles(load_config("w4")) == cycles
    assert cost.array_cycles(load_config("default")) == 1024
