"""SimplifyInference and CanonicalizeOps: the operators are gone and the numbers are the same."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.transform import CanonicalizeOps, InferType, SimplifyInference
from tests.relay_hw.transform.checks import module, operators, var

X = var("x", 2, 6, 4)
RNG = np.random.default_rng(0)


def vector(size: int) -> Expr:
    return op.const(RNG.uniform(0.5, 2, size).astype("float32"))


CASES = {
    f"{name}{axis}{scale}{center}": build(axis, scale, center)
    for name, build in {
        "batch_norm": lambda axis, scale, center: TupleGetItem(
            op.nn.batch_norm(X, *(vector(X.type_annotation.shape[axis]) for _ in range(4)), axis, 1e-3, center, scale),
            0,
        ),
        "layer_norm": lambda axis, scale, center: op.nn.layer_norm(
            X, *(vector(X.type_annotation.shape[axis]) for _ in range(2)), axis, 1e-3, center, scale
        ),
        "instance_norm": lambda axis, scale, center: op.nn.instance_norm(
            X, *(vector(X.type_annotation.shape[axis]) for _ in range(2)), axis, 1e-3, center, scale
        ),
    }.items()
    for axis in (1, -1)
    for scale in (True, False)
    for center in (True, False)
} | {
    "group_norm": op.nn.group_norm(X, vector(6), vector(6), 3),
    "l2_normalize": op.nn.l2_normalize(X, 1e-3, axis=1),
    "dropout": op.nn.dropout(op.exp(X)),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_stay(name: str) -> None:
    mod = InferType()(module(CASES[name], X))
    new = SimplifyInference()(mod)
    assert not any("norm" in operator or "dropout" in operator for operator in operators(new))
    x = RNG.normal(size=(2, 6, 4)).astype("float32")
    np.testing.assert_allclose(evaluate(new, [x]), evaluate(mod, [x]), rtol=2e-5, atol=2e-6)


def test_the_statistics_of_a_batch_norm_keep_it() -> None:
    norm = op.nn.batch_norm(X, *(vector(6) for _ in range(4)))
    assert "nn.batch_norm" in operators(SimplifyInference()(module(TupleGetItem(norm, 1), X)))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_bias_add(axis: int) -> None:
    mod = module(op.nn.bias_add(X, vector((2, 6, 4)[axis]), axis), X)
    new = CanonicalizeOps()(mod)
    assert "nn.bias_add" not in operators(new) and "add" in operators(new)
    x = RNG.normal(size=(2, 6, 4)).astype("float32")
    np.testing.assert_array_equal(evaluate(new, [x]), evaluate(mod, [x]))
    assert relay.transform.CanonicalizeOps()(new) is new
