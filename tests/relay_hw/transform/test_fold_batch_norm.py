"""FoldBatchNorm: into convolutions and dense layers of any layout, else multiply and add."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import TupleGetItem
from relay_hw.transform import FoldBatchNorm
from tests.relay_hw.transform.checks import assert_close, assert_keeps_result, count, module, var


def _values(rng, *shape, low=-1.0):
    return op.const(rng.uniform(low, 1.0, shape).astype("float32"))


def _norm(rng, data, channels, axis=1, **attrs):
    params = [_values(rng, channels, low=low) for low in (-1.0, -1.0, -1.0, 0.05)]
    return TupleGetItem(op.nn.batch_norm(data, *params, axis=axis, **attrs), 0)


def _check(mod, **wanted):
    inputs = {p.name_hint: np.random.default_rng(5).normal(size=p.type_annotation.shape).astype("float32")
              for p in mod["main"].params}  # fmt: skip
    new = FoldBatchNorm()(mod)
    assert_close(evaluate(mod, inputs), evaluate(new, inputs), "folded")
    assert dict(count(new)) == {name.replace("__", "."): number for name, number in wanted.items()}


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_keeps_the_result(seed):
    assert_keeps_result(FoldBatchNorm(), seed)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_into_a_convolution(scale, center, bias, groups):
    rng, x = np.random.default_rng(0), var("x", 1, 4, 5, 5)
    body = op.nn.conv2d(x, _values(rng, 8, 4 // groups, 3, 3), groups=groups)
    if bias:
        body = op.nn.bias_add(body, _values(rng, 8))
    _check(module(_norm(rng, body, 8, scale=scale, center=center), x), nn__conv2d=1, nn__bias_add=1)


def test_into_a_convolution_of_channels_last():
    rng, x = np.random.default_rng(1), var("x", 1, 5, 5, 4)
    body = op.nn.conv2d(x, _values(rng, 3, 3, 4, 6), data_layout="NHWC", kernel_layout="HWIO")
    _check(module(_norm(rng, body, 6, axis=3), x), nn__conv2d=1, nn__bias_add=1)


def test_into_a_transposed_convolution():
    rng, x = np.random.default_rng(1), var("x", 1, 4, 5, 5)
    body = op.nn.conv2d_transpose(x, _values(rng, 4, 6, 3, 3), strides=(2, 2))
    _check(module(_norm(rng, body, 6), x), nn__conv2d_transpose=1, nn__bias_add=1)


@pytest.mark.parametrize("rank", [1, 3])
def test_into_transposed_convolutions_of_other_ranks(rank):
    rng, x = np.random.default_rng(4), var("x", 1, 4, *(5,) * rank)
    layer = getattr(op.nn, f"conv{rank}d_transpose")(x, _values(rng, 4, 6, *(3,) * rank))
    _check(module(_norm(rng, layer, 6), x), **{f"nn__conv{rank}d_transpose": 1, "nn__bias_add": 1})


def test_into_a_dense_layer():
    rng, x = np.random.default_rng(2), var("x", 3, 4)
    body = op.nn.bias_add(op.nn.dense(x, _values(rng, 6, 4)), _values(rng, 6))
    _check(module(_norm(rng, body, 6), x), nn__dense=1, nn__bias_add=1)


def test_not_into_a_convolution_that_others_read():
    rng, x = np.random.default_rng(3), var("x", 1, 4, 5, 5)
    conv = op.nn.conv2d(x, _values(rng, 4, 4, 1, 1))
    _check(module(op.add(_norm(rng, conv, 4), conv), x), nn__conv2d=1, multiply=1, add=2)


def test_not_where_a_grouped_transposed_weight_has_no_axis_of_all_channels():
    rng, x = np.random.default_rng(3), var("x", 1, 4, 5, 5)
    body = op.nn.conv2d_transpose(x, _values(rng, 4, 3, 3, 3), groups=2)
    _check(module(_norm(rng, body, 6), x), nn__conv2d_transpose=1, multiply=1, add=1)


def test_not_along_another_axis():
    rng, x = np.random.default_rng(4), var("x", 1, 4, 5, 6)
    body = op.nn.conv2d(x, _values(rng, 4, 4, 1, 1))
    _check(module(_norm(rng, body, 6, axis=3), x), nn__conv2d=1, multiply=1, add=1)


def test_alone_it_is_a_multiplication_and_an_addition():
    rng, x = np.random.default_rng(4), var("x", 1, 4, 5, 6)
    _check(module(_norm(rng, x, 4), x), multiply=1, add=1)


def test_unknown_statistics_stay():
    x, mean = var("x", 1, 4, 5, 5), var("mean", 4)
    one = op.const(np.ones(4, "float32"))
    _check(module(TupleGetItem(op.nn.batch_norm(x, one, one, mean, one), 0), x, mean), nn__batch_norm=1)


def test_through_a_reshape_into_a_dense_layer():
    rng, x = np.random.default_rng(6), var("x", 1, 5)
    body = op.reshape(op.nn.dense(x, _values(rng, 24, 5)), (1, 4, 2, 3))
    _check(module(_norm(rng, body, 4), x), nn__dense=1, nn__bias_add=1, reshape=1)
