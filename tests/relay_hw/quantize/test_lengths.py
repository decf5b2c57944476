"""Softmax of the first columns of a row, as many as a number of the network's says; masks of any numbers stay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Var
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.quantize.main import realize_module
from relay_hw.transform.graph import op_name
from tests.relay_hw.quantize.tokens import HEADS, TOKENS, X, dense, heads, module, names, number, samples

MASK = Var("mask", TensorType((1, TOKENS), "int64"))
SHAPE = (1, HEADS, TOKENS, TOKENS)


def added(scores: Expr) -> Expr:
    """As BERT's exporters write it."""
    there = op.cast(op.reshape(MASK, (1, 1, 1, TOKENS)), "float32")
    return op.add(scores, op.multiply(op.subtract(number(1), there), number(-1e9)))


def lengths(scores: Expr) -> Expr:
    count = op.cast(op.sum(op.reshape(MASK, (1, 1, 1, TOKENS)), (-1,), keepdims=True), "int32")
    columns = op.const(np.arange(TOKENS, dtype=np.int32).reshape(1, 1, 1, -1))
    return op.where(op.less(columns, count), scores, number(-1e9))


def attention(mask: Callable[[Expr], Expr]) -> Expr:
    q, k, v = (heads(dense(X, at)) for at in range(3))
    scores = op.reshape(op.nn.batch_matmul(q, k), SHAPE)
    weights = op.nn.softmax(mask(op.divide(scores, number(2))))
    mixed = op.nn.batch_matmul(op.reshape(weights, SHAPE[1:]), v, transpose_b=False)
    return dense(op.reshape(op.transpose(mixed, (1, 0, 2)), (1, TOKENS, -1)), 4)


def padded(count: int = 16, seed: int = 2) -> dict[str, np.ndarray]:
    given = np.random.default_rng(seed).integers(2, TOKENS + 1, (count, 1))
    return {**samples(count, seed), "mask": (np.arange(TOKENS) < given).astype(np.int64)}


def test_a_number_of_columns_is_softmax_of_so_many() -> None:
    mod = module(attention(lengths), MASK)
    realized = realize_module(mod, "int8", padded())
    found = names(realized.mod["main"].body)
    assert found.count("qnn.quantize") == found.count("qnn.dequantize") == found.count("fixed.softmax") == 1
    assert not {"where", "less", "nn.softmax"} & {*found}
    body = realized.mod["main"].body
    (soft,) = (node for node in post_order(body) if isinstance(node, Call) and op_name(node) == "fixed.softmax")
    counted = realized.mod.with_functions({"main": Function(realized.mod["main"].params, soft.args[2])})
    signal = noise = 0.0
    for at in range(4):
        one = {key: array[at : at + 1] for key, array in padded(4, seed=7).items()}
        want, have = (np.asarray(evaluate(each, one), np.float64) for each in (mod, realized.mod))
        signal, noise = signal + np.square(want).sum(), noise + np.square(want - have).sum()
        assert list(np.asarray(evaluate(counted, one))) == [one["mask"].sum()]
    assert 10 * np.log10(signal / noise) > 25


def test_a_mask_of_any_numbers_hides_what_it_says() -> None:
    """Also where all that was seen in calibration were ends of rows."""
    mod = module(attention(added), MASK)
    realized = realize_module(mod, "int8", padded())
    found = names(realized.mod["main"].body)
    assert "nn.softmax" in found and "fixed.softmax" not in found
    one = {key: array[:1] for key, array in padded(4, seed=7).items()}
    one["mask"] = (np.arange(TOKENS) != 0).astype(np.int64)[None]
    want, have = (np.asarray(evaluate(each, one), np.float64) for each in (mod, realized.mod))
    assert 10 * np.log10(np.square(want).sum() / np.square(want - have).sum()) > 25
