"""SimplifyExpr: every rule where it holds and where it must not, and the result kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.transform import SimplifyExpr
from relay_hw.transform.simplify import SIMPLIFY_RULES
from tests.relay_hw.transform.checks import (
    assert_close,
    assert_keeps_result,
    assert_same_module,
    module,
    operators,
    var,
)

RNG = np.random.default_rng(7)
X = var("x", 1, 4, 6, 6)
W = op.const(RNG.normal(size=(8, 4, 3, 3)).astype("float32"))
V = op.const(RNG.normal(size=(8,)).astype("float32"))
C = op.const(RNG.normal(size=(8, 1, 1)).astype("float32"))


def _number(value: float):
    return op.const(np.float32(value))


def _pad(data, value=0.0, width=((0, 0), (0, 0), (1, 0), (0, 1))):
    return op.nn.pad(data, width, _number(value))


def _check(body, *wanted):
    """`body` over X simplifies to these operators and keeps its value, negative and large inputs included."""
    mod = module(body, X)
    new = SimplifyExpr()(mod)
    x = {"x": np.random.default_rng(1).normal(size=(1, 4, 6, 6)).astype("float32") * 5}
    assert_close(evaluate(mod, x), evaluate(new, x), str(wanted))
    assert operators(new) == list(wanted)
    assert new["main"].func_type == SimplifyExpr()(new)["main"].func_type


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_keeps_the_result(seed):
    assert_keeps_result(SimplifyExpr(), seed)


@pytest.mark.parametrize(
    "body",
    [
        op.nn.dropout(X),
        op.copy(X),
        op.cast(X, "float32"),
        op.reshape(X, (1, 4, -1, 6)),
        op.transpose(X, (0, 1, 2, 3)),
        op.transpose(op.transpose(X, (0, 2, 3, 1)), (0, 3, 1, 2)),
        op.transpose(op.transpose(X)),
        op.squeeze(op.expand_dims(X, 2), (2,)),
        op.reshape(op.reshape(op.nn.batch_flatten(X), (4, 36)), (1, 4, 6, 6)),
        op.add(X, _number(0)),
        op.subtract(X, _number(0)),
        op.multiply(_number(1), X),
        op.divide(X, op.const(np.ones((4, 1, 1), "float32"))),
        op.clip(X, -math.inf, math.inf),
        op.concatenate([X], 1),
        op.nn.max_pool2d(X, (1, 1)),
        _pad(X, width=((0, 0),) * 4),
    ],
)  # fmt: skip
def test_what_changes_nothing_goes(body):
    _check(body)


def test_what_only_looks_like_nothing_stays():
    _check(op.cast(op.cast(X, "int8"), "float32"), "cast", "cast")
    _check(op.add(X, op.const(np.zeros((2, 1, 1, 1), "float32"))), "add")
    _check(op.subtract(_number(0), X), "subtract")
    _check(op.nn.max_pool2d(X, (1, 1), (2, 2)), "nn.max_pool2d")
    _check(op.transpose(op.transpose(X, (0, 2, 3, 1)), (0, 2, 3, 1)), "transpose")
    _check(op.concatenate([X, X], 1), "concatenate")


def test_reshapes_join():
    _check(op.reshape(op.reshape(X, (4, 36)), (2, 72)), "reshape")
    _check(op.squeeze(op.nn.global_avg_pool2d(X), (2, 3)), "nn.global_avg_pool2d", "reshape")
    _check(op.nn.batch_flatten(op.reshape(X, (2, 2, 36))), "reshape")
    _check(op.expand_dims(op.expand_dims(op.reshape(X, (144,)), 0), 0), "reshape")
    _check(op.transpose(op.reshape(X, (1, 4, 1, 36)), (2, 1, 3, 0)), "reshape")


def test_constants_join_the_layer():
    conv = op.nn.conv2d(X, W)
    _check(op.add(conv, C), "nn.conv2d", "nn.bias_add")
    _check(op.add(C, conv), "nn.conv2d", "nn.bias_add")
    _check(op.add(conv, _number(2)), "nn.conv2d", "nn.bias_add")
    _check(op.subtract(op.nn.bias_add(conv, V), C), "nn.conv2d", "nn.bias_add")
    _check(op.multiply(conv, C), "nn.conv2d")
    _check(op.add(op.multiply(op.nn.bias_add(conv, V), C), C), "nn.conv2d", "nn.bias_add")
    _check(op.multiply(op.multiply(op.add(op.add(X, _number(1)), _number(2)), _number(3)), _number(4)),
           "add", "multiply")  # fmt: skip
    dense = op.nn.dense(op.nn.batch_flatten(X), op.const(RNG.normal(size=(3, 144)).astype("float32")))
    row = op.const(np.arange(3, dtype="float32"))
    _check(op.add(dense, row), "nn.batch_flatten", "nn.dense", "nn.bias_add")


def test_constants_that_are_no_bias_stay():
    conv = op.nn.conv2d(X, W)
    image = op.const(RNG.normal(size=(1, 8, 4, 4)).astype("float32"))
    _check(op.add(conv, image), "nn.conv2d", "add")
    _check(op.multiply(conv, op.const(RNG.normal(size=(4, 1)).astype("float32"))), "nn.conv2d", "multiply")
    _check(op.add(conv, op.const(np.ones((2, 8, 1, 1), "float32"))), "nn.conv2d", "add")
    _check(op.add(op.multiply(conv, C), conv), "nn.conv2d", "multiply", "add")


def test_activations_take_one_form():
    _check(op.clip(X, 0.0, math.inf), "nn.relu")
    _check(op.clip(X, 0.0, 3.4028234663852886e38), "nn.relu")
    _check(op.maximum(_number(0), X), "nn.relu")
    _check(op.nn.leaky_relu(X, 0.0), "nn.relu")
    _check(op.nn.relu(op.nn.relu(X)), "nn.relu")
    _check(op.minimum(op.nn.relu(X), _number(6)), "clip")
    _check(op.nn.relu(op.clip(X, -1.0, 6.0)), "clip")
    bounds = op.const(np.array([0, 0, 1, 0], "float32").reshape(4, 1, 1))
    _check(op.maximum(X, bounds), "maximum")
    _check(op.nn.leaky_relu(X, 0.1), "nn.leaky_relu")


@settings(max_examples=200, deadline=None)
@given(*[st.sampled_from([-math.inf, -2.0, -0.5, 0.0, 0.5, 3.0, math.inf])] * 4)
def test_two_clips_are_one(a, b, c, d):
    if a > b or c > d:
        return
    x = var("x", 9)
    mod = module(op.clip(op.clip(x, a, b), c, d), x)
    values = {"x": np.array([-9, -2, -1, -0.5, 0, 0.25, 0.5, 2, 9], "float32")}
    new = SimplifyExpr()(mod)
    assert len(operators(new)) <= 2
    np.testing.assert_array_equal(evaluate(mod, values), evaluate(new, values))


def test_activations_move_to_their_layer():
    _check(op.nn.relu(op.nn.max_pool2d(op.nn.conv2d(X, W), (2, 2), (2, 2))), "nn.conv2d", "nn.relu", "nn.max_pool2d")
    _check(op.nn.relu(op.nn.max_pool2d(X, (2, 2), padding=(1, 1))), "nn.relu", "nn.max_pool2d")
    _check(op.clip(op.reshape(X, (1, -1)), 0.0, 6.0), "clip", "reshape")
    both = op.concatenate([op.nn.conv2d(X, W, padding=(1, 1)), X], 1)
    _check(op.nn.relu(both), "nn.conv2d", "nn.relu", "nn.relu", "concatenate")
    _check(op.nn.relu(op.nn.avg_pool2d(X, (2, 2))), "nn.avg_pool2d", "nn.relu")
    pooled = op.nn.max_pool2d(X, (2, 2))
    _check(op.add(op.nn.relu(pooled), pooled), "nn.max_pool2d", "nn.relu", "add")


def test_pads_join_convolutions():
    _check(op.nn.conv2d(_pad(X), W), "nn.conv2d")
    _check(op.nn.conv2d(_pad(X), W, padding=(2, 1), strides=(2, 2)), "nn.conv2d")
    _check(op.nn.conv2d(_pad(_pad(X)), W), "nn.conv2d")
    _check(op.nn.conv2d(_pad(X, 0.5), W), "nn.pad", "nn.conv2d")
    _check(op.nn.conv2d(_pad(X, width=((0, 0), (0, 0), (-1, 0), (0, 0))), W), "nn.pad", "nn.conv2d")
    wide = op.const(RNG.normal(size=(8, 5, 3, 3)).astype("float32"))
    _check(op.nn.conv2d(_pad(X, width=((0, 0), (0, 1), (1, 1), (1, 1))), wide), "nn.pad", "nn.conv2d")
    last = op.transpose(X, (0, 2, 3, 1))
    body = op.nn.conv2d(_pad(last, width=((0, 0), (1, 2), (0, 1), (0, 0))),
                        op.const(RNG.normal(size=(3, 3, 4, 2)).astype("float32")),
                        data_layout="NHWC", kernel_layout="HWIO")  # fmt: skip
    _check(body, "transpose", "nn.conv2d")


def test_a_reflection_that_is_read_by_another_rule():
    """A rule behind it in the same round asks for its type."""
    mod = module(op.expand_dims(op.nn.pad(X, ((0, 0), (0, 0), (1, 2), (1, 0)), pad_mode="reflect"), axis=0), X)
    assert operators(SimplifyExpr()(mod)) == ["nn.mirror_pad", "reshape"]


def test_reflection_is_a_mirror():
    widths = ((0, 0), (0, 0), (1, 2), (3, 0))
    _check(op.nn.pad(X, widths, pad_mode="reflect"), "nn.mirror_pad")
    _check(op.nn.pad(X, ((0, 0), (0, 0), (1, 2), (-1, 0)), pad_mode="reflect"), "nn.pad")
    _check(op.nn.pad(X, widths, pad_mode="edge"), "nn.pad")


def test_pads_join_poolings():
    pool = op.nn.max_pool2d
    _check(pool(_pad(X, -3.4028234663852886e38), (2, 2)), "nn.max_pool2d")
    _check(pool(_pad(op.nn.relu(X)), (2, 2)), "nn.relu", "nn.max_pool2d")
    _check(pool(_pad(X), (2, 2)), "nn.pad", "nn.max_pool2d")
    raised = op.nn.upsampling(op.nn.relu(X), 2, 2)
    _check(pool(_pad(raised), (2, 2)), "nn.relu", "nn.upsampling", "nn.max_pool2d")
    # Windows of padding alone are below 0.
    outside = pool(op.nn.relu(X), (2, 2), padding=(2, 2))
    _check(pool(_pad(outside), (2, 2)), "nn.relu", "nn.max_pool2d", "nn.pad", "nn.max_pool2d")
    _check(
        pool(_pad(op.nn.relu(X), width=((0, 0), (0, 0), (2, 0), (0, 0))), (2, 2)), "nn.relu", "nn.pad", "nn.max_pool2d"
    )
    average = op.nn.avg_pool2d
    _check(average(_pad(X), (2, 2)), "nn.avg_pool2d")
    _check(average(_pad(X), (3, 3), padding=(1, 1), count_include_pad=True), "nn.avg_pool2d")
    _check(average(_pad(X), (2, 2), padding=(1, 1)), "nn.pad", "nn.avg_pool2d")
    _check(average(_pad(X), (2, 2), strides=(2, 2), ceil_mode=True), "nn.pad", "nn.avg_pool2d")


def test_means_are_poolings_and_products_dense_layers():
    _check(op.mean(X, (2, 3)), "nn.global_avg_pool2d", "reshape")
    _check(op.mean(X, (-1, 2), keepdims=True), "nn.global_avg_pool2d")
    _check(op.mean(X, (1, 2)), "mean")
    _check(op.mean(X, (0, 1), exclude=True), "mean")
    flat = op.nn.batch_flatten(X)
    weight = op.const(RNG.normal(size=(144, 3)).astype("float32"))
    _check(op.nn.matmul(flat, weight), "nn.batch_flatten", "nn.dense")


def test_nothing_to_do_gives_the_module_back():
    assert_same_module(SimplifyExpr(), module(op.nn.relu(op.nn.bias_add(op.nn.conv2d(X, W), V)), X))


def test_every_rule_has_a_name_of_its_own():
    names = [rule.name for rule in SIMPLIFY_RULES]
    assert len(set(names)) == len(names)
