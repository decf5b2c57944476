"""Reductions against sums and searches over index tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.types import ANY, TensorType
from relay_hw.op.reduce import ReduceAttrs, reduced_axes


def groups(x: np.ndarray, axes: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], list[float]]]:
    """For every index of the kept axes the elements that are reduced, in row-major order."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    for index in product(*(range(x.shape[axis]) for axis in kept)):
        where: list[object] = [slice(None)] * x.ndim
        for axis, at in zip(kept, index, strict=True):
            where[axis] = at
        yield index, x[tuple(where)].ravel().tolist()  # type: ignore[index]


FUNCTIONS: dict[str, Callable[[list[int]], float]] = {
    "sum": sum,
    "prod": prod,
    "max": max,
    "min": min,
    "mean": lambda items: int(sum(items) / len(items)),
    "argmax": lambda items: items.index(max(items)),
    "argmin": lambda items: items.index(min(items)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("axis", [(0,), (1,), (-1,), (0, 2), (1, 2), (0, 1, 2)])
def test_integers(apply: Callable[..., np.ndarray], name: str, axis: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(-5, 6, (2, 3, 4)).astype(np.int32)
    got = apply(getattr(op, name), x, axis=axis)
    for index, items in groups(x, tuple(a % 3 for a in axis)):
        assert got[index] == FUNCTIONS[name](items)
    kept = apply(getattr(op, name), x, axis=axis, keepdims=True)
    assert kept.shape == tuple(1 if at in [a % 3 for a in axis] else size for at, size in enumerate(x.shape))
    assert kept.ravel().tolist() == got.ravel().tolist()


def test_no_axis_means_all_and_exclude_the_others(apply: Callable[..., np.ndarray]) -> None:
    x = np.arange(24).reshape(2, 3, 4).astype(np.int32)
    assert apply(op.sum, x) == 276
    assert apply(op.sum, x, axis=1, exclude=True).tolist() == x.sum((0, 2)).tolist()
    assert apply(op.argmax, x) == 23


@given(st.sets(st.integers(-3, 2), min_size=1), st.booleans())
def test_axes_partition_the_rank(axes: set[int], exclude: bool) -> None:
    if len({axis % 3 for axis in axes}) != len(axes):
        return
    found = reduced_axes("sum", ReduceAttrs(tuple(axes), False, exclude), 3)
    assert set(found) == ({0, 1, 2} - {a % 3 for a in axes} if exclude else {a % 3 for a in axes})


def test_small_integers_wrap(apply: Callable[..., np.ndarray]) -> None:
    assert apply(op.sum, np.full(3, 100, np.int8)) == 300 - 256
    assert apply(op.mean, np.array([-1, -2], np.int8)) == -1


def test_floats(apply: Callable[..., np.ndarray]) -> None:
    x = np.random.default_rng(2).normal(size=(5, 7)).astype(np.float32)
    wide = x.astype(np.float64)
    for name, want in (("sum", wide.sum(0)), ("mean", wide.mean(0)), ("prod", wide.prod(0)), ("max", wide.max(0))):
        np.testing.assert_allclose(apply(getattr(op, name), x, axis=0), want, rtol=1e-5)
    np.testing.assert_allclose(apply(op.variance, x, axis=1), wide.var(1), rtol=1e-5)
    np.testing.assert_allclose(apply(op.variance, x, axis=1, unbiased=True), wide.var(1, ddof=1), rtol=1e-5)
    np.testing.assert_allclose(apply(op.std, x, axis=1, keepdims=True), wide.std(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(apply(op.logsumexp, x, axis=1), np.log(np.exp(wide).sum(1)), rtol=1e-5)
    mean, variance = apply(op.mean_variance, x, axis=0)
    np.testing.assert_allclose(mean, wide.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(variance, wide.var(0), rtol=1e-5)


def test_all_any(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([[True, False], [True, True]])
    assert apply(op.all, x, axis=1).tolist() == [False, True]
    assert apply(op.any, x, axis=0).tolist() == [True, True]


def test_ties_take_the_first_or_last(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([3, 9, 9, 1, 1], np.int8)
    assert apply(op.argmax, x) == 1 and apply(op.argmin, x) == 3
    assert apply(op.argmax, x, select_last_index=True) == 2 and apply(op.argmin, x, select_last_index=True) == 4


def test_types(infer: Callable, refuse: Callable[..., str]) -> None:
    assert infer(op.sum, TensorType((ANY, 3)), axis=1)[0] == TensorType((ANY,))
    assert infer(op.argmax, TensorType((ANY, 3)), axis=1, keepdims=True)[0] == TensorType((ANY, 1), "int32")
    assert refuse(op.max, TensorType((2, 3)), axis=2) == "the axis of max must be in [-2, 2), not 2"
    assert refuse(op.max, TensorType((2, 3)), axis=(1, -1)) == "the axes of max must differ, not (1, -1)"
