"""Rotary embeddings are products with constants or with what is looked up, and sums, all in integers."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Constant, Expr, Tuple, Var
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize.main import reference_of
from relay_hw.quantize.turned import turned_products
from relay_hw.transform.graph import op_name, shape_of
from tests.relay_hw.quantize.tokens import (
    EACH,
    HEADS,
    TOKENS,
    WIDTH,
    X,
    dense,
    floats,
    module,
    names,
    quantized,
    random,
    samples,
)

ANGLES = np.outer(np.arange(TOKENS), np.tile(0.5 ** np.arange(EACH // 2), 2))[None, None].astype(np.float32)
COSINES, SINES = (op.const(np.asarray(part)) for part in (np.cos(ANGLES), np.sin(ANGLES)))


def rotary(x: Expr, cosines: Expr, sines: Expr) -> Expr:
    """[1, heads, tokens, width of a head]."""
    whole = op.transpose(op.reshape(x, (1, TOKENS, HEADS, EACH)), (0, 2, 1, 3))
    cut = (op.strided_slice(whole, (begin,), (begin + EACH // 2,), axes=(3,)) for begin in (0, EACH // 2))
    first, second = cut
    turned = op.concatenate([op.negative(second), first], 3)
    return op.add(op.multiply(whole, cosines), op.multiply(turned, sines))


def read(x: Expr, seed: int = 3) -> Expr:
    return dense(op.reshape(op.transpose(x, (0, 2, 1, 3)), (1, TOKENS, WIDTH)), seed)


def test_constants_are_integers_of_one_shape() -> None:
    mod = module(read(rotary(dense(X), COSINES, SINES)))
    body, decibel = quantized(mod)
    assert floats(body) == set() and decibel > 22
    assert names(body).count("fixed.mul") == 2 and names(body).count("fixed.add") == 1
    assert not {"negative", "nn.conv2d"} & {*names(body)}
    products = [node for node in post_order(body) if op_name(node) == "fixed.mul"]
    assert all(isinstance(one.args[1], Constant) and shape_of(one.args[1]) == shape_of(one) for one in products)


def test_what_is_looked_up_is_spread_once() -> None:
    cosines, sines = (Var(name, TensorType(ANGLES.shape)) for name in ("cos", "sin"))
    body = op.add(read(rotary(dense(X, 1), cosines, sines)), read(rotary(dense(X, 2), cosines, sines), 4))
    data = {"cos": np.repeat(COSINES.data, 16, 0), "sin": np.repeat(SINES.data, 16, 0)}
    integer, decibel = quantized(module(body, cosines, sines), {**samples(), **data})
    assert floats(integer) == {"multiply", "broadcast_to"} and decibel > 25
    found = names(integer)
    assert [found.count(name) for name in ("multiply", "broadcast_to", "fixed.mul")] == [1, 2, 4]


def test_the_values_are_the_same() -> None:
    mod = module(read(rotary(dense(X), COSINES, SINES)))
    x = {"x": samples(1)["x"]}
    np.testing.assert_allclose(evaluate(reference_of(mod), x), evaluate(mod, x), rtol=1e-4, atol=1e-5)


IMAGE = random(1, HEADS, 4, EACH)
ROW = Var("row", TensorType((1, TOKENS, 1)))


@pytest.mark.parametrize(
    "body",
    [
        op.multiply(X, op.const(np.float32(2))),
        op.multiply(X, random(WIDTH)),
        op.multiply(X, random(1, TOKENS, WIDTH)),
        op.multiply(X, ROW),
        op.multiply(op.reshape(X, (TOKENS, WIDTH)), op.mean(op.reshape(X, (TOKENS, WIDTH)), (0,), keepdims=True)),
        op.multiply(op.concatenate([op.negative(ROW), X], 2), random(1, TOKENS, WIDTH + 1)),
    ],
    ids=["number", "columns", "whole", "rows", "two axes", "a float is negated"],
)
def test_other_products_stay(body: Expr) -> None:
    """Norms multiply by a number a row; layers stand for numbers of columns."""
    mod = module(Tuple((body, ROW)), ROW)
    whole = mod["main"].body
    integers = {node for node in post_order(whole) if node is not ROW and op_name(node) != "mean"}
    integers -= {node for node in post_order(whole) if isinstance(node, Var) and node.name_hint == "row"}
    assert turned_products(whole, integers) == {}
