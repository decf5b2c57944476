"""FastMath, FoldExplicitPadding, CanonicalizeCast, CombineParallelConv2D and -Dense."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.transform import (
    CanonicalizeCast,
    CombineParallelConv2D,
    CombineParallelDense,
    FastMath,
    FoldExplicitPadding,
    InferType,
)
from tests.relay_hw.random_cnn import random_cnn, random_input
from tests.relay_hw.transform.checks import assert_close, count, module, operators, var

RNG = np.random.default_rng(0)
X = var("x", 1, 4, 6, 6)


def inputs() -> dict[str, np.ndarray]:
    return {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}


def conv(x: Expr, out: int, **options: object) -> Expr:
    weight = op.const(RNG.normal(size=(out, 4, 3, 3)).astype("float32"))
    return op.nn.conv2d(x, weight, **{"padding": 1, **options})


def test_fast_math() -> None:
    body = op.nn.softmax(op.add(op.exp(X), op.add(op.tanh(X), op.erf(X))), axis=1)
    new = FastMath()(module(body, X))
    assert sorted(operators(new)) == ["add", "add", "fast_erf", "fast_exp", "fast_tanh", "nn.fast_softmax"]
    given = inputs()
    np.testing.assert_allclose(evaluate(new, given), evaluate(module(body, X), given), rtol=1e-2, atol=1e-4)


def test_fold_explicit_padding() -> None:
    body = op.nn.conv2d(
        op.nn.pad(X, ((0, 0), (0, 0), (1, 2), (0, 1))), op.const(np.ones((2, 4, 3, 3), "float32")), padding=1
    )
    new = FoldExplicitPadding()(module(body, X))
    assert operators(new) == ["nn.conv2d"] and "padding=[2, 1, 3, 2]" in new.astext()
    given = inputs()
    assert_close(evaluate(module(body, X), given), evaluate(new, given), "padding")


def test_a_widening_cast_stands_at_each_reader() -> None:
    x = var("x", 3, dtype="int8")
    wide = op.cast(x, "int32")
    new = CanonicalizeCast()(module(Tuple([op.add(wide, wide), op.negative(wide)]), x))
    assert count(new)["cast"] == 3
    narrow = op.cast(op.cast(x, "int32"), "int8")
    mod = InferType()(module(op.add(narrow, narrow), x))
    assert CanonicalizeCast()(mod) is mod


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_parallel_convolutions(layout: str) -> None:
    x = X if layout == "NCHW" else op.transpose(X, axes=[0, 2, 3, 1])
    kernel = {"NCHW": "OIHW", "NHWC": "HWIO"}[layout]

    def layer(out: int) -> Expr:
        shape = {"NCHW": (out, 4, 3, 3), "NHWC": (3, 3, 4, out)}[layout]
        weight = op.const(RNG.normal(size=shape).astype("float32"))
        return op.nn.conv2d(x, weight, channels=out, data_layout=layout, kernel_layout=kernel)

    body = Tuple([op.nn.relu(layer(2)), layer(3), op.exp(layer(1))])
    mod = InferType()(module(body, X))
    new = CombineParallelConv2D()(mod)
    assert count(new)["nn.conv2d"] == 1 and count(new)["strided_slice"] == 3
    given = inputs()
    for wanted, found in zip(evaluate(mod, given), evaluate(new, given), strict=True):
        assert_close(wanted, found, layout)
    assert CombineParallelConv2D(4)(mod) is mod


def test_layers_that_differ_or_stand_in_branches_stay() -> None:
    c = relay.var("c", "bool")
    body = Tuple([conv(X, 2), conv(X, 2, strides=2), conv(op.exp(X), 2), relay.If(c, conv(X, 2), conv(X, 2))])
    mod = InferType()(module(body, c, X))
    assert CombineParallelConv2D(2)(mod) is mod


def test_parallel_dense_layers() -> None:
    x = var("x", 2, 5)
    layers = [op.nn.dense(x, op.const(RNG.normal(size=(n, 5)).astype("float32")), units=n) for n in (3, 4, 1)]
    mod = InferType()(module(Tuple(layers), x))
    new = CombineParallelDense()(mod)
    assert count(new)["nn.dense"] == 1
    assert sum(isinstance(node, Call) for node in post_order(new["main"])) == 4
    given = [RNG.normal(size=(2, 5)).astype("float32")]
    for wanted, found in zip(evaluate(mod, given), evaluate(new, given), strict=True):
        assert_close(wanted, found, "dense")


def test_weights_that_are_computed() -> None:
    first, second = var("a", 3, 4, 3, 3), var("b", 4, 2, 3, 3)
    weights = [op.multiply(first, op.const(np.float32(2))), op.transpose(second, (1, 0, 2, 3)), first]
    mod = InferType()(module(Tuple([op.nn.conv2d(X, weight, padding=1) for weight in weights]), X, first, second))
    new = CombineParallelConv2D()(mod)
    assert count(new)["nn.conv2d"] == 1 and count(new)["concatenate"] == 1
    given = [RNG.normal(size=ty.static_shape).astype("float32") for ty in (p.tensor_type for p in mod["main"].params)]
    for wanted, found in zip(evaluate(mod, given), evaluate(new, given), strict=True):
        assert_close(wanted, found, "computed weights")


def test_weights_that_need_another_layer_or_a_later_name_stay() -> None:
    x = var("x", 2, 3)
    weight = op.const(RNG.normal(size=(3, 3)).astype("float32"))
    inner = op.nn.dense(x, weight, units=3)
    again = op.nn.dense(x, op.concatenate([inner, op.const(np.ones((1, 3), "float32"))], axis=0), units=3)
    mod = InferType()(module(Tuple([inner, again]), x))
    assert CombineParallelDense(2)(mod) is mod
    named = relay.Var("w")
    late = relay.Let(named, op.add(weight, weight), op.nn.dense(x, named, units=3))
    other = InferType()(module(Tuple([inner, late]), x))
    assert count(CombineParallelDense(2)(other))["nn.dense"] == 2


def test_dense_layers_as_a_batch() -> None:
    x, computed = var("x", 2, 5), var("w", 3, 5)
    weights = [op.const(RNG.normal(size=(n, 5)).astype("float32")) for n in (3, 4, 3)] + [op.exp(computed)]
    layers = [op.nn.dense(x, weight, units=n) for weight, n in zip(weights, (3, 4, 3, 3), strict=True)]
    mod = InferType()(module(Tuple(layers), x, computed))
    new = CombineParallelDense(3, to_batch=True)(mod)
    assert (count(new)["nn.dense"], count(new)["nn.batch_matmul"]) == (1, 1)
    given = [RNG.normal(size=shape).astype("float32") for shape in ((2, 5), (3, 5))]
    for wanted, found in zip(evaluate(mod, given), evaluate(new, given), strict=True):
        assert_close(wanted, found, "batch")


@pytest.mark.parametrize("seed", range(4))
def test_networks(seed: int) -> None:
    mod = InferType()(random_cnn(seed))
    given = random_input(mod, seed)
    for step in (FoldExplicitPadding(), CanonicalizeCast(), CombineParallelConv2D(2), CombineParallelDense(2)):
        assert_close(evaluate(mod, given), evaluate(step(mod), given), f"{step!r} on random_cnn({seed})")
