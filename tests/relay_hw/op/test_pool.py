"""Poolings against windows gathered by index."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.expr import Call, Var
from relay_hw.ir.types import ANY, TensorType


def gather(
    x: np.ndarray, size: Any, strides: Any, dilation: Any, pads: Any, ceil_mode: bool
) -> tuple[list[int], list[tuple[tuple[int, ...], list[Any], int]]]:
    """The output's spatial shape and, for every output element, (index, elements inside, positions in the padding)."""
    rank = x.ndim - 2
    before, after = pads[:rank], pads[rank:]
    rounding = ceil if ceil_mode else floor
    out = [
        rounding(Fraction(n + b + a - (k - 1) * d - 1, s)) + 1
        for n, b, a, k, d, s in zip(x.shape[2:], before, after, size, dilation, strides, strict=True)
    ]
    found = []
    for n, c, *at in np.ndindex(*x.shape[:2], *out):
        inside, padding = [], 0
        for k in np.ndindex(*size):
            where = [p * s + q * d - b for p, s, q, d, b in zip(at, strides, k, dilation, before, strict=True)]
            if all(0 <= i < length for i, length in zip(where, x.shape[2:], strict=True)):
                inside.append(x[(n, c, *where)].item())
            else:
                limits = zip(where, x.shape[2:], before, after, strict=True)
                padding += all(-b <= i < length + a for i, length, b, a in limits)
        found.append(((n, c, *at), inside, padding))
    return out, found


def value_of(call: Call, x: np.ndarray) -> np.ndarray:
    ty = call.op.relation([TensorType(x.shape, str(x.dtype))], call.attrs, None)  # type: ignore[union-attr]
    result = call.op.reference(call.attrs, [x], ty)  # type: ignore[union-attr]
    assert TensorType(result.shape, str(result.dtype)) == ty
    return result


PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
PADS = st.tuples(*[st.integers(0, 1)] * 4)


@settings(max_examples=60, deadline=None)
@given(PAIR, PAIR, PAIR, PADS, st.booleans())
def test_max_pool2d_on_int8(size: Any, strides: Any, dilation: Any, pads: Any, ceil_mode: bool) -> None:
    x = np.random.default_rng(0).integers(-128, 0, (1, 2, 7, 8)).astype(np.int8)
    call = op.nn.max_pool2d(Var("x"), size, strides, dilation, pads, ceil_mode=ceil_mode)
    out, windows = gather(x, size, strides, dilation, pads, ceil_mode)
    got = value_of(call, x)
    assert got.shape[2:] == tuple(out)
    for index, inside, _ in windows:
        assert got[index] == (max(inside) if inside else -128)


@settings(max_examples=60, deadline=None)
@given(PAIR, PAIR, PADS, st.booleans(), st.booleans())
def test_avg_pool2d(size: Any, strides: Any, pads: Any, ceil_mode: bool, include: bool) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (1, 2, 6, 7)).astype(np.float32)
    call = op.nn.avg_pool2d(Var("x"), size, strides, 1, pads, ceil_mode=ceil_mode, count_include_pad=include)
    got = value_of(call, x)
    for index, inside, padding in gather(x, size, strides, (1, 1), pads, ceil_mode)[1]:
        count = len(inside) + (padding if include else 0)
        assert got[index] == pytest.approx(sum(inside) / count if count else 0, rel=1e-6)


@pytest.mark.parametrize(("rank", "size"), [(1, 9), (2, 6), (3, 4)])
def test_every_rank(rank: int, size: int) -> None:
    x = np.random.default_rng(rank).normal(size=(2, 3, *[size] * rank)).astype(np.float32)
    pads = (1,) * rank + (0,) * rank
    largest = value_of(getattr(op.nn, f"max_pool{rank}d")(Var("x"), 2, 2, 1, pads), x)
    mean = value_of(getattr(op.nn, f"avg_pool{rank}d")(Var("x"), 2, 2, 1, pads), x)
    for index, inside, _ in gather(x, (2,) * rank, (2,) * rank, (1,) * rank, pads, False)[1]:
        assert largest[index] == np.float32(max(inside))
        assert mean[index] == pytest.approx(np.mean(inside), rel=1e-5, abs=1e-6)


def test_integer_means_truncate() -> None:
    x = np.array([[[[-3, -4], [0, 0]]]], np.int8)
    assert value_of(op.nn.avg_pool2d(Var("x"), 2), x).item() == -1
    assert value_of(op.nn.global_avg_pool2d(Var("x")), x).item() == -1
    assert value_of(op.nn.avg_pool2d(Var("x"), 2), np.full((1, 1, 2, 2), 127, np.int8)).item() == 127


def test_global_pools_and_layout() -> None:
    x = np.random.default_rng(5).normal(size=(2, 4, 5, 3)).astype(np.float32)
    np.testing.assert_allclose(value_of(op.nn.global_avg_pool2d(Var("x")), x)[..., 0, 0], x.mean((2, 3)), rtol=1e-5)
    assert (value_of(op.nn.global_max_pool2d(Var("x"), "NHWC"), x)[:, 0, 0] == x.max((1, 2))).all()
    swapped = value_of(op.nn.max_pool2d(Var("x"), 2, layout="NHWC", out_layout="NCHW"), x)
    plain = value_of(op.nn.max_pool2d(Var("x"), 2), x.transpose(0, 3, 1, 2))
    assert (swapped == plain).all()


@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools(kind: str, rank: int) -> None:
    x = np.random.default_rng(rank).normal(size=(1, 2, *[7] * rank)).astype(np.float32)
    got = value_of(getattr(op.nn, f"adaptive_{kind}_pool{rank}d")(Var("x"), (3,) * rank), x)
    bounds = [(floor(i * 7 / 3), ceil((i + 1) * 7 / 3)) for i in range(3)]
    for n, c, *at in np.ndindex(*got.shape):
        region = x[(n, c, *(slice(*bounds[i]) for i in at))]
        assert got[(n, c, *at)] == pytest.approx(region.mean() if kind == "avg" else region.max(), rel=1e-5)


def test_types(infer: Callable, refuse: Callable[..., str]) -> None:
    result = infer(op.nn.max_pool2d, TensorType((ANY, 3, ANY, 8)), pool_size=2, strides=2)[0]
    assert result == TensorType((ANY, 3, ANY, 4))
    assert infer(op.nn.adaptive_avg_pool2d, TensorType((1, 3, 8, 8)))[0] == TensorType((1, 3, 8, 8))
    four = TensorType((1, 3, 4, 4))
    assert refuse(op.nn.max_pool2d, four, pool_size=5) == (
        "the window of nn.max_pool2d must fit into the padded data, not into (4, 4)"
    )
    assert refuse(op.nn.max_pool2d, TensorType((3, 4)), pool_size=2) == (
        "the data of nn.max_pool2d must have 4 axes, not (3, 4)"
    )
    assert refuse(op.nn.avg_pool2d, four, pool_size=2, strides=(0, 1)) == (
        "strides of nn.avg_pool2d must be 2 positive numbers, not (0, 1)"
    )
    assert refuse(op.nn.avg_pool2d, four, pool_size=(2, 2, 2)) == (
        "pool_size of nn.avg_pool2d must be 2 positive numbers, not (2, 2, 2)"
    )
    assert refuse(op.nn.adaptive_avg_pool2d, four, output_size=(2, 2, 2)) == (
        "output_size of nn.adaptive_avg_pool2d must be 2 numbers, not (2, 2, 2)"
    )
