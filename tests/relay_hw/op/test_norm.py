"""Normalisations and softmax against their formulas in float64."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.types import TensorType, TupleType

RNG = np.random.default_rng(0)
X = RNG.normal(2, 3, (2, 4, 3, 5)).astype(np.float32)
GAMMA, BETA, MEAN = (RNG.normal(size=4).astype(np.float32) for _ in range(3))
VAR = RNG.uniform(0.5, 2, 4).astype(np.float32)


def test_batch_norm(apply: Callable[..., tuple]) -> None:
    got, mean, variance = apply(op.nn.batch_norm, X, GAMMA, BETA, MEAN, VAR, epsilon=1e-3)
    for n, c, h, w in np.ndindex(*X.shape):
        want = (float(X[n, c, h, w]) - MEAN[c]) / sqrt(VAR[c] + 1e-3) * GAMMA[c] + BETA[c]
        assert got[n, c, h, w] == pytest.approx(want, rel=1e-4, abs=1e-5)
    assert (mean == MEAN).all() and (variance == VAR).all()
    last, *_ = apply(op.nn.batch_norm, X.transpose(0, 2, 3, 1), GAMMA, BETA, MEAN, VAR, axis=-1, epsilon=1e-3)
    np.testing.assert_allclose(last.transpose(0, 3, 1, 2), got, rtol=1e-6)
    plain, *_ = apply(op.nn.batch_norm, X, GAMMA, BETA, MEAN, VAR, center=False, scale=False)
    np.testing.assert_allclose(plain[:, 1], (X[:, 1] - MEAN[1]) / sqrt(VAR[1] + 1e-5), rtol=1e-5, atol=1e-6)


def test_batch_norm_infers_its_parameters(infer: Callable, refuse: Callable[..., str]) -> None:
    data = TensorType((2, 4, 3), "float32")
    result, types = infer(op.nn.batch_norm, data, None, None, None, None)
    assert result == TupleType([data, TensorType((4,)), TensorType((4,))])
    assert types[1:] == [TensorType((4,))] * 4
    assert refuse(op.nn.batch_norm, data, TensorType((3,)), None, None, None) == (
        "the gamma of nn.batch_norm must be Tensor[(4,), float32], not Tensor[(3,), float32]"
    )


def standard(items: np.ndarray, epsilon: float = 1e-5) -> np.ndarray:
    wide = items.astype(np.float64)
    return (wide - wide.mean()) / np.sqrt(wide.var() + epsilon)


def test_layer_instance_and_group_norm(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    gamma, beta = RNG.normal(size=5).astype(np.float32), RNG.normal(size=5).astype(np.float32)
    layer = apply(op.nn.layer_norm, X, gamma, beta)
    np.testing.assert_allclose(layer[1, 2, 0], standard(X[1, 2, 0]) * gamma + beta, rtol=1e-4, atol=1e-5)
    instance = apply(op.nn.instance_norm, X, GAMMA, BETA)
    np.testing.assert_allclose(instance[1, 2], standard(X[1, 2]) * GAMMA[2] + BETA[2], rtol=1e-4, atol=1e-5)
    group = apply(op.nn.group_norm, X, GAMMA, BETA, num_groups=2)
    want = standard(X[1, 2:]) * GAMMA[2:, None, None] + BETA[2:, None, None]
    np.testing.assert_allclose(group[1, 2:], want, rtol=1e-4, atol=1e-5)
    vector = TensorType((4,))
    assert refuse(op.nn.group_norm, TensorType((1, 4, 2)), vector, vector, num_groups=3) == (
        "num_groups of nn.group_norm must divide 4, not be 3"
    )


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(apply: Callable[..., np.ndarray], axis: int) -> None:
    x = RNG.normal(0, 4, (3, 6)).astype(np.float32)
    got = apply(op.nn.softmax, x, axis=axis)
    logs = apply(op.nn.log_softmax, x, axis=axis)
    for i, j in np.ndindex(*x.shape):
        line = x[:, j] if axis == 0 else x[i]
        total = sum(exp(float(v)) for v in line)
        assert got[i, j] == pytest.approx(exp(float(x[i, j])) / total, rel=1e-5)
        assert logs[i, j] == pytest.approx(float(x[i, j]) - log(total), rel=1e-4, abs=1e-5)
    assert (apply(op.nn.fast_softmax, x, axis=axis) == got).all()


def test_softmax_of_large_numbers(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    assert apply(op.nn.softmax, np.array([1e4, 1e4], np.float32)).tolist() == [0.5, 0.5]
    assert refuse(op.nn.softmax, TensorType((2,), "int8")) == "the data of nn.softmax must be floating point, not int8"
    assert refuse(op.nn.softmax, TensorType((2,)), axis=1) == "the axis of nn.softmax must be in [-1, 1), not 1"


def test_dropout_keeps_everything(apply: Callable[..., np.ndarray]) -> None:
    assert (apply(op.nn.dropout, X, rate=0.9) == X).all()
    kept, mask = apply(op.nn.dropout_raw, X)
    assert (kept == X).all() and (mask == 1).all()


def test_l2_normalize_and_lrn(apply: Callable[..., np.ndarray]) -> None:
    got = apply(op.nn.l2_normalize, X, eps=1e-9, axis=(1,))
    np.testing.assert_allclose(got, X / np.sqrt((X.astype(np.float64) ** 2).sum(1, keepdims=True)), rtol=1e-5)
    lrn = apply(op.nn.lrn, X, size=3, alpha=0.1, beta=0.5, bias=1.0)
    for c in range(4):
        near = X[:, max(c - 1, 0) : c + 2].astype(np.float64)
        want = X[:, c] / (1 + 0.1 / 3 * (near**2).sum(1)) ** 0.5
        np.testing.assert_allclose(lrn[:, c], want, rtol=1e-5)


@pytest.mark.parametrize("operator", [op.nn.softmax, op.nn.log_softmax, op.nn.fast_softmax])
def test_softmax_of_nothing_is_nothing(apply: Callable[..., np.ndarray], operator: Callable[..., object]) -> None:
    for shape in ((1, 0), (0, 3)):
        assert apply(operator, np.zeros(shape, np.float32)).shape == shape
