"""Gradients of float32 operators against an independent implementation: PyTorch's autograd, ties and kinks included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.analysis.infer import infer_expr
from relay_hw.ir.expr import Expr, Var
from relay_hw.ir.types import TensorType
from tests.relay_hw.op.gradient_checks import slopes_of, value

torch = pytest.importorskip("torch", reason="torch, a test extra, is not installed")
F = torch.nn.functional


def compare(build: Callable[..., Expr], reference: Callable[..., Any], *values: np.ndarray, free: int = 9) -> None:
    """Value and gradients by the first `free` arguments, weighted at random."""
    params = [Var(f"x{i}", ty, checked_type=ty) for i, ty in enumerate(map(_type, values))]
    function = infer_expr(build(*params))
    binds = dict(zip(params, values, strict=True))
    given_tensors = [torch.tensor(v, requires_grad=v.dtype.kind == "f" and i < free) for i, v in enumerate(values)]
    expected = reference(*given_tensors)
    found = value(function, binds)
    np.testing.assert_allclose(found, expected.detach().numpy(), rtol=2e-5, atol=2e-5)
    weights = np.random.default_rng(3).normal(size=found.shape).astype("float32")
    expected.backward(torch.tensor(weights))
    seed = Var("g", function.type, checked_type=function.type)
    wanted = [param for param, tensor in zip(params, given_tensors, strict=True) if tensor.requires_grad]
    for param, slope in zip(wanted, slopes_of(function, seed, wanted), strict=True):
        other = given_tensors[params.index(param)].grad
        np.testing.assert_allclose(value(slope, binds | {seed: weights}), other.numpy(), rtol=1e-4, atol=1e-4)


def _type(array: np.ndarray) -> TensorType:
    return TensorType(array.shape, str(array.dtype))


def steps(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Few different numbers: ties everywhere, zeros too."""
    return rng.integers(-2, 3, shape).astype("float32")


SEEDS = st.integers(0, 2**20)


@settings(max_examples=25)
@given(SEEDS, st.sampled_from((1, 2, 4)), st.integers(1, 3), st.integers(1, 2), st.integers(0, 2), st.integers(1, 3))
def test_conv2d(seed: int, groups: int, stride: int, dilation: int, padding: int, kernel: int) -> None:
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(2, 4, 7, 6)), rng.normal(size=(8, 4 // groups, kernel, kernel))
    args = dict(stride=stride, padding=padding, dilation=dilation, groups=groups)
    compare(
        lambda a, b: op.nn.conv2d(a, b, stride, padding, dilation, groups),
        lambda a, b: F.conv2d(a, b, **args),
        x.astype("float32"),
        w.astype("float32"),
    )


@settings(max_examples=25)
@given(SEEDS, st.sampled_from((1, 2)), st.integers(1, 3), st.integers(1, 2), st.integers(0, 1), st.integers(0, 2))
def test_conv2d_transpose(seed: int, groups: int, stride: int, dilation: int, padding: int, extra: int) -> None:
    rng = np.random.default_rng(seed)
    extra = min(extra, max(stride, dilation) - 1)
    x, w = rng.normal(size=(2, 4, 3, 4)), rng.normal(size=(4, 3, 3, 2))
    compare(
        lambda a, b: op.nn.conv2d_transpose(a, b, stride, padding, dilation, groups, output_padding=extra),
        lambda a, b: F.conv_transpose2d(a, b, None, stride, padding, extra, groups, dilation),
        x.astype("float32"),
        w.astype("float32"),
    )


@settings(max_examples=25)
@given(SEEDS, st.integers(2, 3), st.integers(1, 3), st.integers(0, 1), st.booleans())
def test_max_pool2d_with_ties(seed: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> None:
    x = steps(np.random.default_rng(seed), 2, 3, 7, 6)
    compare(
        lambda a: op.nn.max_pool2d(a, kernel, stride, 1, padding, ceil_mode=False),
        lambda a: F.max_pool2d(a, kernel, stride, padding),
        x,
    )
    pool = dict(ceil_mode=False, count_include_pad=ceil_mode)
    compare(
        lambda a: op.nn.avg_pool2d(a, kernel, stride, 1, padding, **pool),
        lambda a: F.avg_pool2d(a, kernel, stride, padding, **pool),
        x,
    )


@settings(max_examples=10)
@given(SEEDS, st.integers(1, 5), st.integers(1, 5))
def test_adaptive_pools(seed: int, height: int, width: int) -> None:
    x = steps(np.random.default_rng(seed), 2, 3, 5, 6)
    size = (height, width)
    compare(lambda a: op.nn.adaptive_max_pool2d(a, size), lambda a: F.adaptive_max_pool2d(a, size), x)
    compare(lambda a: op.nn.adaptive_avg_pool2d(a, size), lambda a: F.adaptive_avg_pool2d(a, size), x)


@settings(max_examples=10)
@given(SEEDS)
def test_normalisations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, gamma, beta = (rng.normal(size=s).astype("float32") for s in ((3, 4, 5), (4,), (4,)))
    last = [rng.normal(size=5).astype("float32") for _ in range(2)]
    compare(
        lambda a, g, b: op.nn.batch_norm(a, g, b, op.mean(a, 1, exclude=True), op.variance(a, 1, exclude=True))[0],
        lambda a, g, b: F.batch_norm(a, None, None, g, b, training=True),
        x, gamma, beta,
    )  # fmt: skip
    compare(op.nn.layer_norm, lambda a, g, b: F.layer_norm(a, (5,), g, b), x, *last)
    compare(op.nn.instance_norm, lambda a, g, b: F.instance_norm(a, None, None, g, b), x, gamma, beta)
    compare(lambda a, g, b: op.nn.group_norm(a, g, b, 2), lambda a, g, b: F.group_norm(a, 2, g, b), x, gamma, beta)
    compare(lambda a: op.nn.softmax(a, 1), lambda a: F.softmax(a, 1), x)
    compare(op.nn.log_softmax, lambda a: F.log_softmax(a, -1), x)
    compare(lambda a: op.nn.lrn(a, alpha=0.3), lambda a: F.local_response_norm(a, 5, 0.3, 0.75, 2.0), x)
    compare(lambda a: op.nn.l2_normalize(a, 1e-12, 1), lambda a: F.normalize(a, dim=1, eps=1e-6), x)


@settings(max_examples=10)
@given(SEEDS)
def test_losses(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, places = rng.normal(size=(4, 3)).astype("float32"), rng.integers(0, 3, 4)
    targets = np.eye(3, dtype="float32")[places]
    for build in (
        lambda a: op.nn.cross_entropy(op.nn.softmax(a), op.const(targets)),
        lambda a: op.nn.cross_entropy_with_logits(op.nn.log_softmax(a), op.const(targets)),
    ):
        compare(build, lambda a: F.cross_entropy(a, torch.tensor(places)), x)


@settings(max_examples=10)
@given(SEEDS)
def test_selections_and_kinks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, other = steps(rng, 3, 4), steps(rng, 3, 4)
    picks = rng.integers(0, 4, (3, 2))
    compare(lambda a, i: op.gather(a, 1, i),
            lambda a, i: torch.gather(a, 1, i), x, picks)  # fmt: skip
    compare(lambda a, i: op.take(a, i, axis=1), lambda a, i: a[:, i], x, picks)
    compare(lambda a, b, i: op.scatter_elements(a, i, b, 1, "add"), lambda a, b, i: a.scatter_add(1, i, b),
            x, other[:, :2].copy(), picks)  # fmt: skip
    compare(op.nn.relu, torch.relu, x)
    compare(lambda a: op.nn.leaky_relu(a, 0.1), lambda a: F.leaky_relu(a, 0.1), x)
    compare(lambda a: op.clip(a, -1, 1), lambda a: torch.clamp(a, -1, 1), x)
    compare(op.nn.prelu, F.prelu, x, np.array([0.1, 0.2, 0.3, 0.4], "float32"))
    compare(lambda a: op.max(a, 1), lambda a: torch.amax(a, 1), x)
    compare(lambda a: op.prod(a, 1), lambda a: torch.prod(a, 1), x)
    compare(lambda a: op.variance(a, 1), lambda a: torch.var(a, 1, correction=0), x)
    compare(lambda a: op.nn.pad(a, [(1, 0), (2, 1)], pad_mode="reflect"),
            lambda a: F.pad(a[None], (2, 1, 1, 0), "reflect")[0], x)  # fmt: skip
