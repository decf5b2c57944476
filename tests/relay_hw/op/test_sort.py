"""Ordering, running sums, blocks of pixels, sizes: values against definitions, types, refusals, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.ir.types import ANY, DimVar, TensorType
from tests.relay_hw.op.gradient_checks import check

Apply = Callable[..., Any]
Refuse = Callable[..., str]
RNG = np.random.default_rng(5)
X = RNG.permutation(24).reshape(2, 3, 4).astype("float64") / 4


def value(call: Any, *arrays: Any) -> Any:
    """The meaning of `call` for arrays, without inference."""
    types = [TensorType(np.shape(array), str(np.asarray(array).dtype)) for array in arrays]
    return call.op.reference(call.attrs, list(arrays), call.op.relation(types, call.attrs, None))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=12), st.booleans())
def test_equal_elements_keep_their_order(items: list[int], is_ascend: bool) -> None:
    x = np.array(items, "int32")
    wanted = sorted(range(len(items)), key=lambda place: items[place] if is_ascend else -items[place])
    # A stable order: of equal elements the first comes first, whichever way.
    assert value(op.argsort(relay.const(x), is_ascend=is_ascend), x).tolist() == wanted
    assert value(op.sort(relay.const(x), is_ascend=is_ascend), x).tolist() == [items[place] for place in wanted]


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("is_ascend", [True, False])
def test_topk_is_the_begin_of_sort(apply: Apply, axis: int, is_ascend: bool) -> None:
    size = X.shape[axis]
    for k in (1, 2, size, 0):
        values, places = apply(op.topk, X, k=k, axis=axis, is_ascend=is_ascend)
        count = k or size
        first = np.take(apply(op.sort, X, axis=axis, is_ascend=is_ascend), np.arange(count), axis=axis)
        assert np.array_equal(values, first)
        assert np.array_equal(np.take_along_axis(X, places, axis), values)
        assert np.array_equal(apply(op.topk, X, k=k, axis=axis, is_ascend=is_ascend, ret_type="values"), values)
        only = apply(op.topk, X, k=k, axis=axis, is_ascend=is_ascend, ret_type="indices", dtype="int64")
        assert only.dtype == "int64" and np.array_equal(only, places)


@given(st.lists(st.integers(0, 9), min_size=1), st.lists(st.integers(-1, 10), min_size=1), st.booleans())
def test_searchsorted_keeps_the_order(sequence: list[int], wanted: list[int], right: bool) -> None:
    line, values = np.array(sorted(sequence)), np.array(wanted)
    found = value(op.searchsorted(relay.const(line), relay.const(values), right=right), line, values)
    for item, place in zip(wanted, found, strict=True):
        assert all(before <= item if right else before < item for before in line[:place])
        assert all(after > item if right else after >= item for after in line[place:])


def test_searchsorted_row_by_row(apply: Apply) -> None:
    rows, wanted = np.array([[1, 3, 5], [2, 4, 6]]), np.array([[3, 6], [3, 1]])
    assert apply(op.searchsorted, rows, wanted).tolist() == [[1, 3], [1, 0]]


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1])
def test_cumsum(apply: Apply, axis: int | None, exclusive: bool) -> None:
    for x in (np.arange(6).reshape(2, 3).astype("int8"), X[0]):
        wanted = np.cumsum(x, axis=axis, dtype=x.dtype)
        flat = x.reshape(-1) if axis is None else x
        found = apply(op.cumsum, x, axis=axis, exclusive=exclusive)
        assert np.allclose(found + flat if exclusive else found, wanted)
        assert found.dtype == x.dtype


def test_cumsum_of_other_types(apply: Apply) -> None:
    assert apply(op.cumsum, np.array([True, True, False]), axis=0).tolist() == [1, 2, 2]
    assert apply(op.cumsum, np.array([100, 100], "int8"), axis=0).tolist() == [100, -56]
    assert apply(op.cumsum, np.array([100, 100], "int8"), axis=0, dtype="int32").tolist() == [100, 200]
    assert apply(op.cumsum, np.zeros((2, 0), "float32"), axis=1, exclusive=True).shape == (2, 0)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_blocks_of_pixels(apply: Apply, layout: str, mode: str) -> None:
    block, (n, c, h, w) = 2, (2, 8, 3, 5)
    plain = RNG.standard_normal((n, c, h, w)).astype("float32")
    order = ["NCHW".index(letter) for letter in layout]
    found = apply(op.nn.depth_to_space, plain.transpose(order), block_size=block, layout=layout, mode=mode)
    found = found.transpose(np.argsort(order))
    for channel, row, column in np.ndindex(c // 4, h * block, w * block):
        inner = (row % block) * block + column % block
        source = inner * (c // 4) + channel if mode == "DCR" else channel * 4 + inner
        assert np.array_equal(found[:, channel, row, column], plain[:, source, row // block, column // block])
    back = apply(op.nn.space_to_depth, found.transpose(order), block_size=block, layout=layout, mode=mode)
    assert np.array_equal(back.transpose(np.argsort(order)), plain)


def test_sizes(apply: Apply) -> None:
    assert apply(op.shape_of, X).tolist() == [2, 3, 4]
    assert apply(op.shape_of, np.float32(1)).tolist() == []
    assert apply(op.ndarray_size, X, dtype="int64") == 24


def test_symbolic_sizes(infer: Callable[..., Any]) -> None:
    n = DimVar("n")
    assert str(infer(op.topk, TensorType((n, 4)), k=2)[0]) == "(Tensor[(n, 2), float32], Tensor[(n, 2), int32])"
    assert str(infer(op.cumsum, TensorType((n, 4)))[0]) == "Tensor[(4 * n), float32]"
    assert (
        str(infer(op.nn.depth_to_space, TensorType((1, 4, n, 3)), block_size=2)[0])
        == "Tensor[(1, 1, 2 * n, 6), float32]"
    )
    assert (
        str(infer(op.nn.space_to_depth, TensorType((1, 1, ANY, 4)), block_size=2)[0]) == "Tensor[(1, 4, ?, 2), float32]"
    )


BLOCK = {"block_size": 2}
IMAGES = (1, 3, 2, 3)


@pytest.mark.parametrize(
    ("build", "types", "attributes", "sentence"),
    [
        (op.sort, [(2, 3)], {"axis": 2}, "the axis of sort must be in [-2, 2), not 2"),
        (op.topk, [(2, 3)], {"k": 4}, "k of topk must be at most the 3 elements of axis 1, not 4"),
        (op.topk, [(2, 3)], {"ret_type": "all"}, "ret_type of topk must be one of both, values, indices, not all"),
        (op.searchsorted, [(2, 3), (3, 3)], {}, "the values of searchsorted must have the rows of Tensor[(2, 3)"),
        (op.nn.depth_to_space, [IMAGES], BLOCK, "channels of nn.depth_to_space must be a multiple of 4, not 3"),
        (op.nn.space_to_depth, [IMAGES], BLOCK, "columns of nn.space_to_depth must be a multiple of 2, not 3"),
        (op.nn.space_to_depth, [(1, 3, 2)], BLOCK, "the data of nn.space_to_depth must have 4 axes, not (1, 3, 2)"),
        (op.nn.space_to_depth, [IMAGES], {**BLOCK, "mode": "X"}, "must be at least 1 and one of DCR, CRD, not 2 and X"),
    ],
)
def test_refusals(refuse: Refuse, build: Any, types: Any, attributes: Any, sentence: str) -> None:
    assert sentence in refuse(build, *(TensorType(shape) for shape in types), **attributes)


@pytest.mark.parametrize(
    "build",
    [
        lambda x: op.sort(x, 1),
        lambda x: op.sort(x, 0, is_ascend=False),
        lambda x: op.topk(x, 2, 1, "values"),
        lambda x: op.cumsum(x, 1),
        lambda x: op.cumsum(x, 2, exclusive=True),
        lambda x: op.cumsum(x),
    ],
)
def test_gradients(build: Any) -> None:
    check(build, X)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_gradients_of_blocks(mode: str) -> None:
    check(lambda x: op.nn.depth_to_space(x, 2, mode=mode), RNG.standard_normal((1, 4, 2, 3)))
    check(lambda x: op.nn.space_to_depth(x, 2, mode=mode), RNG.standard_normal((1, 2, 2, 4)))


def test_the_gradient_of_a_tuple_of_values_and_places() -> None:
    text = (
        '#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) { sum((topk(%x, k=2, dtype="int32")).0 * [2f, 3f]) }'
    )
    mod = relay.fromtext(text)
    both = relay.create_executor(mod=mod).evaluate(relay.transform.gradient(mod["main"], mod))
    assert both(np.array([1, 9, 4, 2], "float32"))[1][0].tolist() == [0, 2, 3, 0]
