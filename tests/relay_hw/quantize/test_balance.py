"""Outliers of a norm are shared with the weights behind it: the same values, less noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Tuple
from relay_hw.quantize.layers import plan_layers
from relay_hw.quantize.main import calibrate_graph, reference_of
from relay_hw.quantize.methods.balance import balance_norms
from relay_hw.quantize.strategy_file import find_strategy
from relay_hw.support.progress import SILENT
from tests.relay_hw.quantize.tokens import TOKENS, WIDTH, X, dense, module, number, quantized, samples

OFFSET = op.const(np.random.default_rng(3).uniform(-0.2, 0.2, WIDTH).astype(np.float32))


def gamma(outlier: float) -> Expr:
    factors = np.random.default_rng(4).uniform(0.9, 1.1, WIDTH).astype(np.float32)
    factors[5] *= outlier
    return op.const(factors)


def layer_norm(x: Expr, outlier: float) -> Expr:
    return op.nn.layer_norm(x, gamma(outlier), OFFSET)


def rms_norm(x: Expr, outlier: float) -> Expr:
    mean = op.mean(op.power(x, number(2)), (-1,), keepdims=True)
    return op.multiply(gamma(outlier), op.multiply(x, op.divide(number(1), op.sqrt(op.add(mean, number(1e-5))))))


NORMS = {"layer norm": layer_norm, "rms norm": rms_norm}


def network(norm: Callable[[Expr, float], Expr], outlier: float) -> Expr:
    """Two layers read a norm, one of them one token of it."""
    normal = norm(dense(X), outlier)
    token = op.strided_slice(normal, (0,), (1,), axes=(1,))
    return op.add(dense(normal, 1), op.reshape(op.repeat(dense(token, 2), TOKENS, 1), (1, TOKENS, WIDTH)))


def balanced(body: Expr, strategy: str = "int8") -> tuple[Expr, Expr]:
    """Before and after."""
    reference = reference_of(module(body))
    whole = reference["main"].body
    return whole, balance_norms(whole, plan_layers(whole, find_strategy(strategy)))


@pytest.mark.parametrize("name", NORMS)
def test_an_outlier_costs_less(name: str) -> None:
    body = network(NORMS[name], 12.0)
    mod = module(body)
    found = calibrate_graph(reference_of(mod), find_strategy("int8"), samples(), SILENT, None).reference
    x = {"x": samples(1)["x"]}
    np.testing.assert_allclose(evaluate(found, x), evaluate(mod, x), rtol=1e-4, atol=1e-5)
    _, decibel = quantized(mod)
    before, after = balanced(body)
    assert after is not before
    # As without the outlier, within what its weights lose.
    _, without = quantized(module(network(NORMS[name], 1.0)))
    assert decibel > without - 3 and decibel > 28


def test_weights_of_few_bits_take_less() -> None:
    """What is best depends on both widths."""

    def largest(strategy: str) -> float:
        # The first and the last layer have 8 bits.
        body = module(dense(dense(layer_norm(dense(X), 12.0), 1), 2))
        found = calibrate_graph(reference_of(body), find_strategy(strategy), samples(), SILENT, None)
        return float(np.abs(list(found.layers.linear)[1].linear.weight).max())

    assert largest("w4a8") < largest("int8")


def test_a_norm_that_sums_read_stays() -> None:
    normal = layer_norm(dense(X), 12.0)
    before, after = balanced(op.add(normal, dense(normal, 1)))
    assert after is before
    before, after = balanced(Tuple((normal, dense(normal, 1))))
    assert after is before


def test_a_norm_without_outliers_stays() -> None:
    flat = op.nn.layer_norm(dense(X), op.const(np.ones(WIDTH, np.float32)), op.const(np.zeros(WIDTH, np.float32)))
    before, after = balanced(dense(flat, 1))
    assert after is before


def test_columns_without_reach_keep_their_weights() -> None:
    factors = gamma(12.0).data.copy()
    factors[:2] = 0
    flat = op.nn.layer_norm(dense(X), op.const(factors), op.const(np.zeros(WIDTH, np.float32)))
    mod = module(dense(flat, 1))
    _, decibel = quantized(mod)
    assert decibel > 28
