"""Gathering and scattering by arrays of indices, one_hot, losses: values, types, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import EvalError
from relay_hw.ir.types import TensorType

Apply = Callable[..., Any]
F32, I32 = "float32", "int32"


@given(st.integers(0, 2**20), st.integers(-3, 2))
def test_gather_and_scatter_elements_one_by_one(seed: int, axis: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 2, 4)).astype(F32)
    shape = list(x.shape)
    shape[axis] = 5
    indices = rng.integers(-x.shape[axis], x.shape[axis], shape)
    updates = rng.normal(size=shape).astype(F32)
    gathered, added = np.zeros(shape, F32), x.copy()
    for place in np.ndindex(*shape):
        source = list(place)
        source[axis] = indices[place]
        gathered[place] = x[tuple(source)]
        added[tuple(source)] += updates[place]
    gather = op.gather(op.const(x), axis, op.const(indices))
    assert np.array_equal(gather.op.reference(gather.attrs, [x, indices], TensorType(shape)), gathered)
    scatter = op.scatter_elements(op.const(x), op.const(indices), op.const(updates), axis, "add")
    found = scatter.op.reference(scatter.attrs, [x, indices, updates], TensorType(x.shape))
    np.testing.assert_allclose(found, added, rtol=1e-5, atol=1e-6)


def test_gather_nd(apply: Apply) -> None:
    x = np.arange(12).reshape(2, 3, 2)
    assert apply(op.gather_nd, x, np.array([[0, 1], [2, -3]])).tolist() == [[4, 5], [6, 7]]
    assert apply(op.gather_nd, x, np.array([[1], [1], [0]])).tolist() == [8]
    assert apply(op.gather_nd, x, np.array([[2, 0]]), batch_dims=1).tolist() == [[4, 5], [6, 7]]
    assert apply(op.gather_nd, x, np.zeros((0, 2), I32)).tolist() == [x.tolist()] * 2


@pytest.mark.parametrize(("mode", "expected"), [("update", [9, 1, 5]), ("add", [9, 1, 7]), ("mul", [0, 1, 10]),
                                                ("min", [0, 1, 2]), ("max", [9, 1, 5])])  # fmt: skip
def test_scatter_nd(apply: Apply, mode: str, expected: list[int]) -> None:
    x = np.arange(3)
    assert apply(op.scatter_nd, x, np.array([[0, 2]]), np.array([9, 5]), mode=mode).tolist() == expected
    assert x.tolist() == [0, 1, 2]


def test_one_hot(apply: Apply) -> None:
    indices, one, zero = np.array([1, 3, -1]), np.float32(2).reshape(()), np.float32(-1).reshape(())
    last = apply(op.one_hot, indices, one, zero, depth=2, axis=-1, dtype=F32)
    assert last.tolist() == [[-1, 2], [-1, -1], [-1, -1]]
    first = apply(op.one_hot, indices, one, zero, depth=2, axis=0, dtype=I32)
    assert first.tolist() == [[-1, -1, -1], [2, -1, -1]] and first.dtype == np.int32


def test_losses(apply: Apply) -> None:
    p, t = np.array([[0.5, 0.5], [0.25, 0.75]], F32), np.array([[1, 0], [0, 1]], F32)
    np.testing.assert_allclose(apply(op.nn.cross_entropy, p, t), -(np.log(0.5) + np.log(0.75)) / 2, rtol=1e-6)
    np.testing.assert_allclose(apply(op.nn.cross_entropy_with_logits, np.log(p), t), apply(op.nn.cross_entropy, p, t))


def test_indices_outside_are_refused(apply: Apply) -> None:
    with pytest.raises(EvalError, match=r"the indices of gather must be in \[-2, 2\), not 2"):
        apply(lambda x, i: op.gather(x, 0, i), np.ones(2), np.array([2]))
    with pytest.raises(EvalError, match=r"the indices of scatter_nd must be in \[-2, 2\), not -3"):
        apply(op.scatter_nd, np.ones(2), np.array([[-3]]), np.ones(1))


def test_wrong_types_are_refused(refuse: Callable[..., str]) -> None:
    x, i, s = TensorType((2, 3)), TensorType((2, 3), I32), TensorType(())
    say = lambda build, *types, **attrs: refuse(build, *types, **attrs)  # noqa: E731
    assert say(lambda a, b: op.gather(a, 0, b), x, x) == "the indices of gather must be integers, not float32"
    found = say(lambda a, b: op.gather(a, 0, b), x, TensorType((2, 2), I32))
    assert found == "the indices of gather must have the shape (2, 3) but for axis 0, not (2, 2)"
    found = say(op.scatter_elements, x, i, TensorType((2, 1)))
    assert found == "the updates of scatter_elements must have the indices' shape (2, 3), not (2, 1)"
    found = say(op.scatter_elements, x, i, x, reduction="mean")
    assert found == "the mode of scatter_elements must be one of update, add, mul, min, max, not mean"
    found = say(op.gather_nd, x, TensorType((3, 2), I32))
    assert found.startswith("the first axis of gather_nd's indices must have a size of at most the data's 2 axes, not")
    found = say(op.scatter_nd, x, TensorType((1, 4), I32), TensorType((4, 2)))
    assert found == "the updates of scatter_nd must have the shape (4, 3), not (4, 2)"
    attrs = {"axis": -1, "dtype": F32}
    assert say(op.one_hot, i, x, s, depth=2, **attrs) == "the values of one_hot must be scalars, not (2, 3) and ()"
    assert say(op.one_hot, i, s, s, depth=0, **attrs) == "the depth of one_hot must be at least 1, not 0"
    found = say(op.nn.cross_entropy, x, TensorType((3, 2)))
    assert found == "the arguments of nn.cross_entropy must have one shape of 2 axes, not (2, 3) and (3, 2)"
