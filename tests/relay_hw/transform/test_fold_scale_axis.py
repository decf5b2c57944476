"""FoldScaleAxis: multiplications are gone where they can be, results stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Tuple
from relay_hw.transform import BackwardFoldScaleAxis, FoldScaleAxis, ForwardFoldScaleAxis, InferType
from tests.relay_hw.random_cnn import random_cnn
from tests.relay_hw.transform.checks import assert_close, assert_keeps_result, module, operators, var

RNG = np.random.default_rng(0)
X = var("x", 1, 4, 6, 6)


def weight(*shape: int) -> Expr:
    return op.const(RNG.normal(size=shape).astype("float32"))


def factor(*shape: int, sign: int = 1) -> Expr:
    return op.const((sign * RNG.uniform(0.5, 2, shape)).astype("float32"))


def conv(x: Expr, out: int = 4, groups: int = 1, layout: str = "NCHW") -> Expr:
    kernel = {"NCHW": (out, 4 // groups, 3, 3), "NHWC": (3, 3, 4 // groups, out)}[layout]
    names = {"NCHW": "OIHW", "NHWC": "HWIO"}
    return op.nn.conv2d(x, weight(*kernel), padding=1, groups=groups, data_layout=layout, kernel_layout=names[layout])


def pool(x: Expr) -> Expr:
    return op.nn.max_pool2d(x, (2, 2))


FOLDS: dict[str, tuple[type, Callable[[], Expr]]] = {
    "conv": (BackwardFoldScaleAxis, lambda: op.multiply(conv(X), factor(4, 1, 1))),
    "conv from the left": (BackwardFoldScaleAxis, lambda: op.multiply(factor(1, 4, 1, 1), conv(X))),
    "scalar": (BackwardFoldScaleAxis, lambda: op.multiply(conv(X), factor(sign=-1))),
    "relu": (BackwardFoldScaleAxis, lambda: op.multiply(pool(op.nn.relu(conv(X))), factor(4, 1, 1))),
    "negative factor": (
        BackwardFoldScaleAxis,
        lambda: op.multiply(op.nn.avg_pool2d(conv(X), (2, 2)), factor(4, 1, 1, sign=-1)),
    ),
    "bias": (BackwardFoldScaleAxis, lambda: op.multiply(op.nn.bias_add(conv(X), factor(4)), factor(4, 1, 1))),
    "residual": (BackwardFoldScaleAxis, lambda: op.multiply(op.add(conv(X), conv(X)), factor(4, 1, 1))),
    "constant": (BackwardFoldScaleAxis, lambda: op.multiply(op.subtract(conv(X), factor(4, 1, 1)), factor(4, 1, 1))),
    "forward": (ForwardFoldScaleAxis, lambda: conv(op.multiply(X, factor(4, 1, 1)))),
    "forward relu": (ForwardFoldScaleAxis, lambda: conv(pool(op.nn.relu(op.multiply(X, factor(4, 1, 1)))))),
    "forward depthwise": (ForwardFoldScaleAxis, lambda: conv(op.multiply(X, factor(4, 1, 1)), 8, 4)),
    "forward dense": (
        ForwardFoldScaleAxis,
        lambda: op.nn.dense(op.multiply(op.reshape(X, (36, 4)), factor(4)), weight(5, 4), units=5),
    ),
    "NHWC": (FoldScaleAxis, lambda: op.multiply(conv(op.reshape(X, (1, 6, 6, 4)), layout="NHWC"), factor(4))),
}

STAYS: dict[str, Callable[[], Expr]] = {
    "relu with a negative factor": lambda: op.multiply(op.nn.relu(conv(X)), factor(4, 1, 1, sign=-1)),
    "along height": lambda: op.multiply(conv(X), factor(6, 1)),
    "not a constant": lambda: op.multiply(conv(X), X),
    "grouped": lambda: conv(op.multiply(X, factor(4, 1, 1)), 4, 2),
    "no layer": lambda: op.multiply(op.exp(X), factor(4, 1, 1)),
    "a residual without layer": lambda: op.multiply(op.add(conv(X), X), factor(4, 1, 1)),
    "infinite": lambda: op.multiply(conv(X), op.const(np.float32("inf"))),
}


@pytest.mark.parametrize("name", FOLDS)
def test_folds(name: str) -> None:
    step, build = FOLDS[name]
    mod = InferType()(module(build(), X))
    for one in (step(), FoldScaleAxis()):
        new = one(mod)
        assert "multiply" not in operators(new)
        x = {"x": RNG.normal(size=(1, 4, 6, 6)).astype("float32")}
        assert_close(evaluate(mod, x), evaluate(new, x), name)


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    mod = InferType()(module(STAYS[name](), X))
    assert FoldScaleAxis()(mod) is mod


def test_what_others_read_stays() -> None:
    y = conv(X)
    mod = InferType()(module(Tuple([op.multiply(y, factor(4, 1, 1)), y]), X))
    assert FoldScaleAxis()(mod) is mod
    z = op.multiply(X, factor(4, 1, 1))
    mod = InferType()(module(Tuple([conv(z), z]), X))
    assert FoldScaleAxis()(mod) is mod


@pytest.mark.parametrize("seed", range(5))
def test_networks(seed: int) -> None:
    assert random_cnn(seed)
    for step in (FoldScaleAxis(), ForwardFoldScaleAxis(), BackwardFoldScaleAxis()):
        assert_keeps_result(step, seed)
