"""Joining, cutting, picking and padding, by index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.types import ANY, TensorType, TupleType
from relay_hw.op.slices import StridedSliceAttrs

X = np.arange(2 * 3 * 4).reshape(2, 3, 4).astype(np.int32)


def test_concatenate_and_stack(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    a, b = X, X[:, :1] + 100
    got = apply(lambda *parts: op.concatenate(parts, 1), a, b)
    assert got.shape == (2, 4, 4) and got[:, :3].tolist() == a.tolist() and got[:, 3:].tolist() == b.tolist()
    stacked = apply(lambda *parts: op.stack(parts, -1), a, a + 1)
    assert stacked.shape == (2, 3, 4, 2) and stacked[..., 1].tolist() == (a + 1).tolist()
    join = lambda *parts: op.concatenate(parts, 0)  # noqa: E731
    assert refuse(join, TensorType((2, 3)), TensorType((2, 4))) == (
        "the shapes of concatenate must agree but for axis 0, not be (2, 3) and (2, 4)"
    )
    assert refuse(join, TensorType((2, 3)), TensorType((2, 3), "int8")) == (
        "the element types of concatenate's arguments must be equal, not float32 and int8"
    )
    assert refuse(join) == "concatenate must get at least one tensor, not an empty tuple"
    assert refuse(lambda x: op.get("concatenate") and op.concatenate(x, 0), TensorType((2,))) == (
        "argument 1 of concatenate must be a tuple of tensors, not Tensor[(2,), float32]"
    )


def test_concatenate_of_unknown_sizes(infer: Callable) -> None:
    parts = TupleType([TensorType((ANY, 3)), TensorType((2, 3))])
    assert infer(lambda x: op.concatenate(x, 0), parts)[0] == TensorType((ANY, 3))
    assert infer(lambda x: op.concatenate(x, 1), parts)[0] == TensorType((ANY, 6))


def test_split(apply: Callable[..., tuple], refuse: Callable[..., str]) -> None:
    thirds = apply(op.split, X, indices_or_sections=3, axis=1)
    assert [part.tolist() for part in thirds] == [X[:, at : at + 1].tolist() for at in range(3)]
    parts = apply(op.split, X, indices_or_sections=(1, 3), axis=-1)
    assert [part.shape[-1] for part in parts] == [1, 2, 1]
    assert refuse(op.split, TensorType((5,)), indices_or_sections=2) == (
        "the sections of split must divide axis size 5, not be 2"
    )
    assert refuse(op.split, TensorType((5,)), indices_or_sections=(3, 2)) == (
        "the indices of split must rise within [0, 5], not be (3, 2)"
    )


BOUND = st.integers(-7, 7)


@given(BOUND, BOUND, st.sampled_from([-3, -2, -1, 1, 2, 3]), st.integers(1, 5))
def test_slices_follow_python(begin: int, end: int, stride: int, size: int) -> None:
    one = op.get("strided_slice")
    attrs = StridedSliceAttrs((begin,), (end,), (stride,))
    x = np.arange(size)
    want = list(range(size))[begin:end:stride]
    ty = one.relation([TensorType((size,), "int64")], attrs, None)  # type: ignore[arg-type]
    assert ty == TensorType((len(want),), "int64")
    assert one.reference(attrs, [x], ty).tolist() == want


def test_slice_by_size_and_axes(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    got = apply(op.strided_slice, X, begin=(0, 1), end=(1, -1), slice_mode="size")
    assert got.tolist() == X[0:1, 1:].tolist()
    got = apply(op.strided_slice, X, begin=(-2,), end=(2,), slice_mode="size", axes=(2,))
    assert got.tolist() == X[:, :, 2:].tolist()
    assert apply(op.strided_slice, X, begin=(1,), end=(3,), axes=(-1,)).tolist() == X[:, :, 1:3].tolist()
    ty = TensorType((2, 3))
    assert refuse(op.strided_slice, ty, begin=(0,), end=(1,), strides=(0,)) == "strides of strided_slice must not be 0"
    assert refuse(op.strided_slice, ty, begin=(0, 0, 0), end=(1, 1, 1)) == (
        "begin of strided_slice must have at most 2 numbers, one an axis, not 3"
    )
    assert refuse(op.strided_slice, ty, begin=(0,), end=(1,), slice_mode="x") == (
        "slice_mode of strided_slice must be end or size, not x"
    )


def test_take(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    indices = np.array([[0, 2], [-1, 9]], np.int32)
    clipped = apply(op.take, X, indices, axis=1)
    assert clipped.shape == (2, 2, 2, 4) and clipped[:, 1, 1].tolist() == X[:, 2].tolist()
    assert clipped[:, 1, 0].tolist() == X[:, 0].tolist()
    wrapped = apply(op.take, X, indices, axis=1, mode="wrap")
    assert wrapped[:, 1, 0].tolist() == X[:, 2].tolist() and wrapped[:, 1, 1].tolist() == X[:, 0].tolist()
    assert apply(op.take, X, np.array([5, 100])).tolist() == [5, 23]
    rows = np.array([[0], [2]], np.int64)
    assert apply(op.take, X, rows, axis=1, batch_dims=1).tolist() == [[X[0, 0].tolist()], [X[1, 2].tolist()]]
    assert refuse(op.take, TensorType((2,)), TensorType((2,))) == "the indices of take must be integers, not float32"
    assert refuse(op.take, TensorType((2,)), TensorType((2,), "int32"), mode="raise") == (
        "mode of take must be clip, wrap or fast, not raise"
    )


def test_pad(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = X[0].astype(np.int8)
    got = apply(op.nn.pad, x, pad_width=((1, 0), (0, 2)), pad_value=-5)
    assert got.shape == (4, 6) and got[1:, :4].tolist() == x.tolist()
    assert got[0].tolist() == [-5] * 6 and got[:, 4:].ravel().tolist() == [-5] * 8
    assert apply(op.nn.pad, x, pad_width=((-1, 0), (1, -1))).tolist() == np.pad(x[1:, :-1], ((0, 0), (1, 0))).tolist()
    edge = apply(op.nn.pad, x, pad_width=((1, 1), (0, 0)), pad_mode="edge")
    assert edge[0].tolist() == x[0].tolist() and edge[-1].tolist() == x[-1].tolist()
    mirror = apply(op.nn.pad, x, pad_width=((0, 0), (2, 0)), pad_mode="reflect")
    assert mirror[:, :2].tolist() == x[:, [2, 1]].tolist()
    assert refuse(op.nn.pad, TensorType((2, 3)), pad_width=((1, 1),)) == (
        "pad_width of nn.pad must have one pair for each of 2 axes, not ((1, 1),)"
    )
    assert refuse(op.nn.pad, TensorType((2,)), pad_width=((-2, -1),)) == (
        "pad_width of nn.pad must leave something of (2,), not be ((-2, -1),)"
    )
    assert refuse(op.nn.pad, TensorType((2,)), pad_width=((0, 1),), pad_mode="wrap") == (
        "pad_mode of nn.pad must be constant, edge or reflect, not wrap"
    )


def test_mirror_pad_and_reverse(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([1, 2, 3])
    assert apply(op.nn.mirror_pad, x, pad_width=((2, 1),)).tolist() == [2, 1, 1, 2, 3, 3]
    assert apply(op.nn.mirror_pad, x, pad_width=((2, 1),), mode="REFLECT").tolist() == [3, 2, 1, 2, 3, 2]
    assert apply(op.reverse, X, axis=1)[:, 0].tolist() == X[:, 2].tolist()


@pytest.mark.parametrize("name", ["concatenate", "stack"])
def test_unknown_tuples_wait(infer: Callable, name: str) -> None:
    assert infer(lambda x: getattr(op, name)(x, 0), None)[0] is None
