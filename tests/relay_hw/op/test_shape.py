"""Reshape codes, transpose, squeeze, layouts, repetition and creation."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call
from relay_hw.ir.types import ANY, TensorType
from relay_hw.op.create import InitOpAttrs
from relay_hw.op.layout import Layout, transform_layout
from relay_hw.op.shape import reshape_dims

CODES = [
    ((2, 3, 4), (4, 0, 2), (4, 3, 2)),
    ((2, 3, 4), (2, 0, 0), (2, 3, 4)),
    ((2, 3, 4), (6, 1, -1), (6, 1, 4)),
    ((2, 3, 4), (3, -1, 8), (3, 1, 8)),
    ((2, 3, 4), (-1,), (24,)),
    ((2, 3, 4), (-2,), (2, 3, 4)),
    ((2, 3, 4), (2, -2), (2, 3, 4)),
    ((2, 3, 4), (-2, 1, 1), (2, 3, 4, 1, 1)),
    ((2, 3, 4), (-3, 4), (6, 4)),
    ((2, 3, 4, 5), (-3, -3), (6, 20)),
    ((2, 3, 4), (0, -3), (2, 12)),
    ((2, 3, 4), (-4, 1, 2, -2), (1, 2, 3, 4)),
    ((2, 3, 4), (2, -4, -1, 3, -2), (2, 1, 3, 4)),
    ((ANY, 3, 4), (0, -1), (ANY, 12)),
    ((ANY, 4), (-1, 2), (ANY, 2)),
    ((ANY, 4), (-3,), (ANY,)),
    ((ANY, 3), (-4, 2, -1, 0), (2, ANY, 3)),
    ((), (1,), (1,)),
    ((1,), (), ()),
]


@pytest.mark.parametrize(("data", "codes", "want"), CODES, ids=str)
def test_reshape_codes(data: tuple, codes: tuple, want: tuple) -> None:
    assert reshape_dims(data, codes) == want


WRONG = [
    ((2, 3), (7,), r"reshape must keep the 6 elements of \(2, 3\), not give \(7,\)"),
    ((2, 3), (-1, -1), r"newshape of reshape must have at most one -1, not \(-1, -1\)"),
    ((2, 3), (4, -1), r"reshape must keep the 6 elements of \(2, 3\), which \(4, -1\) cannot"),
    ((2, 3), (2, 3, 0), r"newshape \(2, 3, 0\) of reshape must fit the data, not ask for axis 2 of \(2, 3\)"),
    ((2, 3), (-5,), r"codes of reshape's newshape must be at least -4, not -5"),
    ((2, 3), (-4, 2), r"-4 in newshape of reshape must be followed by two sizes, not end \(-4, 2\)"),
    ((4, 3), (-4, -1, -1, 3), r"one of the two sizes after -4 .* must be given, not both -1"),
    ((4, 3), (-4, 3, 2, 3), r"the two sizes after -4 in newshape of reshape must multiply to 4, not 3 and 2"),
]


@pytest.mark.parametrize(("data", "codes", "sentence"), WRONG, ids=str)
def test_reshape_refuses(data: tuple, codes: tuple, sentence: str) -> None:
    with pytest.raises(TypeCheckError, match=sentence):
        reshape_dims(data, codes)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.randoms())
def test_reshape_keeps_the_order(shape: list[int], random: object) -> None:
    x = np.arange(prod(shape)).reshape(shape)
    got = op.get("reshape").reference(op.get("reshape").attrs_type((-1,)), [x], TensorType((prod(shape),), "int64"))  # type: ignore[misc]
    assert got.tolist() == list(range(prod(shape)))


def test_a_true_zero_needs_allowzero(apply: Callable[..., np.ndarray]) -> None:
    empty = np.zeros((0, 3), np.float32)
    assert apply(op.reshape, empty, newshape=(3, 0), allowzero=True).shape == (3, 0)
    assert apply(op.reshape, empty, newshape=(0, 3)).shape == (0, 3)


def test_reverse_reshape_reads_from_the_right(apply: Callable[..., np.ndarray]) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert apply(op.reverse_reshape, x, newshape=(-1, 0)).shape == (6, 4)
    assert apply(op.reverse_reshape, x, newshape=(-3, 0)).shape == (6, 4)


def test_reshape_like(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    assert apply(op.reshape_like, x, np.zeros((4, 6))).shape == (4, 6)
    like = np.zeros((9, 6, 2))
    assert apply(op.reshape_like, x, like, lhs_begin=1, lhs_end=3, rhs_begin=1, rhs_end=3).shape == (2, 6, 2)
    assert refuse(op.reshape_like, TensorType((2, 3)), TensorType((4,))) == (
        "reshape_like must keep the 6 elements of (2, 3), not give (4,)"
    )


def test_transpose(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = np.arange(24).reshape(2, 3, 4)
    got = apply(op.transpose, x, axes=(2, 0, -2))
    assert all(got[c, a, b] == x[a, b, c] for a, b, c in np.ndindex(*x.shape))
    assert apply(op.transpose, x).shape == (4, 3, 2)
    assert refuse(op.transpose, TensorType((2, 3)), axes=(0,)) == "axes of transpose must name all 2 axes, not (0,)"
    assert refuse(op.transpose, TensorType((2, 3)), axes=(0, 0)) == "the axes of transpose must differ, not (0, 0)"


def test_expand_and_squeeze(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = np.arange(6).reshape(2, 3)
    assert apply(op.expand_dims, x, axis=1, num_newaxis=2).shape == (2, 1, 1, 3)
    assert apply(op.expand_dims, x, axis=-1).shape == (2, 3, 1)
    y = x.reshape(1, 2, 1, 3)
    assert apply(op.squeeze, y).shape == (2, 3)
    assert apply(op.squeeze, y, axis=(0,)).shape == (2, 1, 3)
    assert refuse(op.squeeze, TensorType((1, 2)), axis=(1,)) == "axis 1 of squeeze must have size 1, not 2"
    assert refuse(op.expand_dims, TensorType((2,)), axis=3) == "the axis of expand_dims must be in [-2, 2), not 3"


def test_batch_flatten(apply: Callable[..., np.ndarray], infer: Callable, refuse: Callable[..., str]) -> None:
    assert apply(op.nn.batch_flatten, np.zeros((2, 3, 4, 5))).shape == (2, 60)
    assert infer(op.nn.batch_flatten, TensorType((ANY, 3, 4)))[0] == TensorType((ANY, 12))
    assert (
        refuse(op.nn.batch_flatten, TensorType((3,))) == "the data of nn.batch_flatten must have at least 2 axes, not 1"
    )


def test_broadcast_to_keeps_the_element_type(apply: Callable[..., np.ndarray]) -> None:
    """Relay's record of its attributes has an element type, which counts for operators without data only."""
    broadcast = op.get("broadcast_to")
    wide = apply(lambda x: Call(broadcast, (x,), InitOpAttrs((2, 3), "float32")), np.ones(3, "int8"))
    assert wide.dtype == "int8"


def test_broadcast_to_and_its_adjoint(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = np.arange(3).reshape(3, 1)
    wide = apply(op.broadcast_to, x, shape=(2, 3, 4))
    assert wide.shape == (2, 3, 4) and (wide == x).all()
    assert apply(op.broadcast_to_like, x, np.zeros((3, 5))).shape == (3, 5)
    assert apply(op.collapse_sum_to, wide, shape=(3, 1)).tolist() == (x * 8).tolist()
    assert apply(op.collapse_sum_like, wide, x).tolist() == (x * 8).tolist()
    assert refuse(op.broadcast_to, TensorType((3,)), shape=(4,)) == (
        "the shape of broadcast_to must be one to which (3,) broadcasts, not (4,)"
    )


def test_tile_and_repeat(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([[1, 2], [3, 4]])
    assert apply(op.tile, x, reps=(2,)).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert apply(op.tile, x, reps=(2, 1, 1)).shape == (2, 2, 2)
    assert apply(op.repeat, x, repeats=2, axis=0).tolist() == [[1, 2], [1, 2], [3, 4], [3, 4]]
    assert apply(op.repeat, x, repeats=2).tolist() == [1, 1, 2, 2, 3, 3, 4, 4]


def test_upsampling(apply: Callable[..., np.ndarray], infer: Callable, refuse: Callable[..., str]) -> None:
    x = np.arange(6, dtype="float32").reshape(1, 1, 2, 3)
    assert apply(op.nn.upsampling, x, scale_h=2, scale_w=1)[0, 0].tolist() == [[0, 1, 2]] * 2 + [[3, 4, 5]] * 2
    last = apply(op.nn.upsampling, x.transpose(0, 2, 3, 1), scale_h=1, scale_w=2, layout="NHWC")
    assert last[0, :, :, 0].tolist() == [[0, 0, 1, 1, 2, 2], [3, 3, 4, 4, 5, 5]]
    ty = TensorType((1, 3, 4, 5), "int8")
    assert infer(op.nn.upsampling, ty, scale_h=2.0, scale_w=3)[0] == TensorType((1, 3, 8, 15), "int8")
    for attrs, sentence in (
        ({"scale_h": 1.5}, "scale_h of nn.upsampling must be a whole number from 1 on, not 1.5"),
        ({"method": "bilinear"}, "method of nn.upsampling must be nearest_neighbor, not bilinear"),
    ):
        assert refuse(op.nn.upsampling, ty, **attrs) == sentence
    shape = TensorType((3, 4))
    assert refuse(op.nn.upsampling, shape) == "the data of nn.upsampling must have 4 axes, not (3, 4)"


def test_creation(apply: Callable[..., np.ndarray], infer: Callable, refuse: Callable[..., str]) -> None:
    assert apply(op.zeros, shape=(2, 3), dtype="int8").tolist() == [[0] * 3] * 2
    assert apply(op.ones, shape=4).tolist() == [1] * 4
    assert apply(op.full, np.array(7, np.int32), shape=(2,)).tolist() == [7, 7]
    assert infer(op.full, TensorType((), "int32"), shape=(2,), dtype="float32")[0] == TensorType((2,))
    assert apply(op.full_like, np.zeros((2, 2), np.int8), np.array(3, np.int8)).tolist() == [[3, 3], [3, 3]]
    assert refuse(op.full, TensorType((2,)), shape=(2,)) == "the fill value of full must be a scalar, not (2,)"


@pytest.mark.parametrize("layouts", [("NCHW", "NHWC"), ("NCHW", "NCHW4c"), ("OIHW", "HWIO"), ("OIHW", "OIHW4i2o")])
def test_layouts_go_there_and_back(apply: Callable[..., np.ndarray], layouts: tuple[str, str]) -> None:
    source, target = layouts
    x = np.arange(4 * 8 * 3 * 2).reshape(4, 8, 3, 2).astype(np.int32)
    there = apply(op.layout_transform, x, src_layout=source, dst_layout=target)
    back = apply(op.layout_transform, there, src_layout=target, dst_layout=source)
    assert there.shape != x.shape and back.tolist() == x.tolist()


def test_a_blocked_layout_by_index() -> None:
    x = np.arange(2 * 8 * 3 * 5).reshape(2, 8, 3, 5)
    got = transform_layout(x, Layout.parse("NCHW"), Layout.parse("NCHW4c"))
    assert all(got[n, c // 4, h, w, c % 4] == x[n, c, h, w] for n, c, h, w in np.ndindex(*x.shape))


def test_layout_errors(refuse: Callable[..., str]) -> None:
    four = TensorType((1, 6, 2, 2))
    assert refuse(op.layout_transform, four, src_layout="NCHW", dst_layout="NCHW4c") == (
        "axis C of layout_transform must be a multiple of 4, not 6"
    )
    assert refuse(op.layout_transform, four, src_layout="NCHW", dst_layout="NCW") == (
        "dst_layout of layout_transform must have the axes of NCHW, not NCW"
    )
    assert refuse(op.layout_transform, four, src_layout="NCHW", dst_layout="N?HW") == (
        "a layout must be capital letters and factors like 4c, not N?HW"
    )
    assert refuse(op.layout_transform, TensorType((1, 6)), src_layout="NCHW", dst_layout="NHWC") == (
        "the data of layout_transform must have the 4 axes of NCHW, not 2"
    )
