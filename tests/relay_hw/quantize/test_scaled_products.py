"""Numbers that queries and keys are multiplied by go behind their product, where a softmax takes them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.quantize.forms import integer_forms
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.scaled_products import scaled_products
from relay_hw.transform.graph import op_name, scalar_value
from tests.relay_hw.quantize.tokens import (
    HEADS,
    TOKENS,
    X,
    dense,
    floats,
    heads,
    module,
    names,
    number,
    quantized,
    samples,
)

MASK = op.const(np.triu(np.full((HEADS, TOKENS, TOKENS), -1e9, np.float32), 1)[:1])


def attention(
    q: Callable[[Expr], Expr], k: Callable[[Expr], Expr], soft: Callable[[Expr], Expr] = op.nn.softmax
) -> Expr:
    scores = op.nn.batch_matmul(q(heads(dense(X, 1))), k(heads(dense(X, 2))))
    mixed = op.nn.batch_matmul(soft(scores), heads(dense(X, 3)), transpose_b=False)
    return dense(op.reshape(op.transpose(mixed, (1, 0, 2)), (1, TOKENS, -1)), 4)


def turned_twice(x: Expr) -> Expr:
    return op.transpose(op.multiply(op.transpose(op.divide(x, number(2)), (0, 2, 1)), number(0.9)), (0, 2, 1))


def same(x: Expr) -> Expr:
    return x


SIDES: dict[str, tuple[Callable[[Expr], Expr], Callable[[Expr], Expr], float]] = {
    "both": (lambda x: op.multiply(x, number(0.6)), lambda x: op.multiply(number(0.6), x), 0.36),
    "divided": (lambda x: op.divide(x, number(2.5)), same, 0.4),
    "behind moves": (same, turned_twice, 0.45),
}


@pytest.mark.parametrize("name", SIDES)
def test_factors_are_part_of_the_softmax(name: str) -> None:
    left, right, factor = SIDES[name]
    mod = module(attention(left, right))
    reference = reference_of(mod)["main"].body
    numbers = [scalar_value(arg) for node in post_order(reference) if op_name(node) == "multiply" for arg in node.args]
    np.testing.assert_allclose([one for one in numbers if one is not None], [factor], rtol=1e-6)
    body, decibel = quantized(mod)
    assert floats(body) == set() and "multiply" not in names(body) and decibel > 20
    assert names(body).count("fixed.requantize") == 6


def test_behind_a_mask_too() -> None:
    mod = module(attention(*SIDES["both"][:2], lambda x: op.nn.softmax(op.add(x, MASK))))
    body, decibel = quantized(mod)
    (soft,) = (node for node in post_order(body) if isinstance(node, Call) and op_name(node) == "fixed.softmax")
    assert soft.attrs.causal and floats(body) == set() and decibel > 20


@pytest.mark.parametrize(
    "body",
    [
        attention(lambda x: op.multiply(x, number(-1)), same),
        attention(lambda x: op.multiply(x, op.const(np.full((1, 1, 8), [1, 2] * 4, np.float32))), same),
        op.nn.batch_matmul(op.multiply(heads(X), number(0.5)), heads(X)),
        Tuple([scores := op.nn.batch_matmul(op.multiply(heads(X), number(0.5)), heads(X)), op.nn.softmax(scores)]),
        op.nn.softmax(op.nn.batch_matmul(read := op.multiply(heads(X), number(0.5)), op.exp(read))),
    ],
    ids=["negative", "several", "no softmax", "others read scores", "others read what is scaled"],
)
def test_other_factors_stay(body: Expr) -> None:
    assert scaled_products(module(body)["main"].body) == {}


def test_the_values_are_the_same() -> None:
    for left, right, _ in SIDES.values():
        mod = module(attention(left, right))
        x = {"x": samples(1)["x"]}
        np.testing.assert_allclose(evaluate(integer_forms(mod), x), evaluate(mod, x), rtol=1e-4, atol=1e-5)
