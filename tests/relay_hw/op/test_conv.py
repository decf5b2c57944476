"""Convolutions against sums over index tuples: every stride, padding, dilation, group and layout."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.expr import Var
from relay_hw.ir.types import ANY, TensorType


def naive(x: np.ndarray, w: np.ndarray, strides: Any, pads: Any, dilation: Any, groups: int) -> np.ndarray:
    """Convolution by definition, in Python integers or float64."""
    rank = x.ndim - 2
    before, after = pads[:rank], pads[rank:]
    kernel = w.shape[2:]
    out = [
        (n + b + a - (k - 1) * d - 1) // s + 1
        for n, b, a, k, d, s in zip(x.shape[2:], before, after, kernel, dilation, strides, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *out), object if x.dtype.kind in "iu" else np.float64)
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    for n, o, *at in np.ndindex(*result.shape):
        total: Any = 0
        for c, *k in np.ndindex(*w.shape[1:]):
            source = [p * s + q * d - b for p, s, q, d, b in zip(at, strides, k, dilation, before, strict=True)]
            if all(0 <= i < size for i, size in zip(source, x.shape[2:], strict=True)):
                total += x[(n, o // per_out * per_in + c, *source)].item() * w[(o, c, *k)].item()
        result[(n, o, *at)] = total
    return result


def spread(x: np.ndarray, w: np.ndarray, strides: Any, pads: Any, dilation: Any, groups: int, extra: Any) -> np.ndarray:
    """Transposed convolution by definition: every element adds its multiple of the weight."""
    rank = x.ndim - 2
    kernel = w.shape[2:]
    full = [
        (n - 1) * s + (k - 1) * d + 1 + e
        for n, s, k, d, e in zip(x.shape[2:], strides, kernel, dilation, extra, strict=True)
    ]
    per_in, per_out = x.shape[1] // groups, w.shape[1]
    result = np.zeros((x.shape[0], per_out * groups, *full), np.float64)
    for n, c, *at in np.ndindex(*x.shape):
        for o, *k in np.ndindex(*w.shape[1:]):
            goal = [p * s + q * d for p, s, q, d in zip(at, strides, k, dilation, strict=True)]
            result[(n, c // per_in * per_out + o, *goal)] += x[(n, c, *at)] * w[(c, o, *k)]
    crop = tuple(slice(b, size - a) for b, a, size in zip(pads[:rank], pads[rank:], full, strict=True))
    return result[(slice(None), slice(None), *crop)]


def meaning(build: Callable[..., Any], values: list[np.ndarray], **attributes: Any) -> np.ndarray:
    call = build(Var("x"), Var("w"), **attributes)
    types = [TensorType(value.shape, str(value.dtype)) for value in values]
    ty = call.op.relation(types, call.attrs, Same())
    result = call.op.reference(call.attrs, values, ty)
    assert TensorType(result.shape, str(result.dtype)) == ty
    return result


class Same:
    def unify(self, left: Any, right: Any) -> Any:
        assert left == right
        return right

    def resolve(self, ty: Any) -> Any:
        return ty


PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))
PADS = st.tuples(*[st.integers(0, 2)] * 4)


@settings(max_examples=60, deadline=None)
@given(PAIR, PAIR, PADS, PAIR, st.sampled_from([(1, 2, 3), (2, 1, 1), (3, 1, 2), (2, 2, 1)]), st.integers(0, 2**32 - 1))
def test_conv2d_on_int8(kernel: Any, strides: Any, pads: Any, dilation: Any, channels: Any, seed: int) -> None:
    groups, per_in, per_out = channels
    generator = np.random.default_rng(seed)
    x = generator.integers(-128, 128, (1, groups * per_in, 7, 8)).astype(np.int8)
    w = generator.integers(-128, 128, (groups * per_out, per_in, *kernel)).astype(np.int8)
    got = meaning(
        op.nn.conv2d, [x, w], strides=strides, padding=pads, dilation=dilation, groups=groups, out_dtype="int32"
    )
    assert got.tolist() == naive(x, w, strides, pads, dilation, groups).tolist()


@pytest.mark.parametrize(("build", "rank", "size"), [(op.nn.conv1d, 1, 9), (op.nn.conv2d, 2, 6), (op.nn.conv3d, 3, 4)])
def test_floats_of_every_rank(build: Callable[..., Any], rank: int, size: int) -> None:
    generator = np.random.default_rng(rank)
    x = generator.normal(size=(2, 4, *[size] * rank)).astype(np.float32)
    w = generator.normal(size=(6, 2, *[2] * rank)).astype(np.float32)
    pads = tuple(range(2 * rank))[:rank] + (1,) * rank
    got = meaning(build, [x, w], strides=2, padding=pads, dilation=1, groups=2)
    np.testing.assert_allclose(got, naive(x, w, [2] * rank, pads, [1] * rank, 2), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("build", "rank", "size"),
    [(op.nn.conv1d_transpose, 1, 5), (op.nn.conv2d_transpose, 2, 4), (op.nn.conv3d_transpose, 3, 3)],
)
@pytest.mark.parametrize("groups", [1, 2])
def test_transposes_of_every_rank(build: Callable[..., Any], rank: int, size: int, groups: int) -> None:
    generator = np.random.default_rng(rank)
    x = generator.normal(size=(2, 4, *[size] * rank)).astype(np.float32)
    w = generator.normal(size=(4, 3, *[3] * rank)).astype(np.float32)
    pads = (1,) * rank + (0,) * rank
    attributes = {"strides": 2, "padding": pads, "dilation": 1, "groups": groups, "output_padding": 1}
    got = meaning(build, [x, w], **attributes)
    want = spread(x, w, [2] * rank, pads, [1] * rank, groups, [1] * rank)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(PAIR, PAIR, PADS, PAIR, st.integers(0, 1))
def test_conv2d_transpose(kernel: Any, strides: Any, pads: Any, dilation: Any, extra: int) -> None:
    sizes = [
        (3 - 1) * s + (k - 1) * d + 1 - a - b + extra
        for s, k, d, b, a in zip(strides, kernel, dilation, pads[:2], pads[2:], strict=True)
    ]
    if min(sizes) < 1:
        return
    generator = np.random.default_rng(0)
    x = generator.integers(-9, 9, (1, 2, 3, 3)).astype(np.int32)
    w = generator.integers(-9, 9, (2, 2, *kernel)).astype(np.int32)
    got = meaning(
        op.nn.conv2d_transpose, [x, w], strides=strides, padding=pads, dilation=dilation, output_padding=extra
    )
    assert got.tolist() == spread(x, w, strides, pads, dilation, 1, [extra] * 2).tolist()


def test_sums_wrap_around_exactly() -> None:
    """Too large for float32, for float64, and for int64: still what int32 registers would hold."""
    for dtype, low, count in (("int8", -128, 1200), ("int32", -(2**31), 8)):
        x = np.full((1, count, 3, 3), low, dtype)
        w = np.full((1, count, 3, 3), low + 1, dtype)
        total = 9 * count * low * (low + 1)
        got = meaning(op.nn.conv2d, [x, w], out_dtype="int32")
        assert got.item() == (total + 2**31) % 2**32 - 2**31


def test_the_float32_limit_is_exact() -> None:
    """1023 and 1024 products of -128 * -128: the last that float32 sums may hold, and the first they may not."""
    for count in (1023, 1024, 1025):
        x = np.full((1, count, 1, 1), -128, np.int8)
        w = np.full((1, count, 1, 1), -128, np.int8)
        w[0, -1] = -127
        assert meaning(op.nn.conv2d, [x, w], out_dtype="int32").item() == (count - 1) * 16384 + 128 * 127


@pytest.mark.parametrize("layouts", list(product(("NCHW", "NHWC"), ("OIHW", "HWIO", "OHWI"), ("", "NHWC"))))
def test_layouts(layouts: tuple[str, str, str]) -> None:
    data, kernel, out = layouts
    generator = np.random.default_rng(3)
    x = generator.integers(-9, 9, (2, 3, 5, 6)).astype(np.int8)
    w = generator.integers(-9, 9, (4, 3, 2, 3)).astype(np.int8)
    want = naive(x, w, (1, 2), (1, 0, 0, 1), (1, 1), 1).transpose(["NCHW".index(a) for a in out or data])
    arrays = [
        x.transpose(["NCHW".index(letter) for letter in data]),
        w.transpose(["OIHW".index(letter) for letter in kernel]),
    ]
    got = meaning(
        op.nn.conv2d, arrays, strides=(1, 2), padding=(1, 0, 0, 1), data_layout=data, kernel_layout=kernel,
        out_layout=out, out_dtype="int32",
    )  # fmt: skip
    assert got.tolist() == want.tolist()


def test_padding_forms() -> None:
    call = op.nn.conv2d(Var("x"), Var("w"), padding=1)
    assert call.attrs.padding == (1, 1, 1, 1)
    assert op.nn.conv2d(Var("x"), Var("w"), padding=(1, 2)).attrs.padding == (1, 2, 1, 2)
    assert op.nn.conv2d(Var("x"), Var("w"), kernel_size=3).attrs.kernel_size == (3, 3)


def test_an_unknown_weight_is_inferred(infer: Callable) -> None:
    data = TensorType((1, 8, 10, 10), "float16")
    result, (_, weight) = infer(op.nn.conv2d, data, None, channels=4, kernel_size=(3, 3), groups=2)
    assert result == TensorType((1, 4, 8, 8), "float16") and weight == TensorType((4, 4, 3, 3), "float16")
    result, (_, weight) = infer(
        op.nn.conv2d, TensorType((1, 10, 10, 8)), None, channels=4, kernel_size=(3, 3), data_layout="NHWC",
        kernel_layout="HWIO",
    )  # fmt: skip
    assert result == TensorType((1, 8, 8, 4)) and weight == TensorType((3, 3, 8, 4))
    result, (_, weight) = infer(op.nn.conv2d_transpose, TensorType((1, 8, 4, 4)), None, channels=6, kernel_size=2)
    assert result == TensorType((1, 6, 5, 5)) and weight == TensorType((8, 6, 2, 2))
    assert infer(op.nn.conv2d, data, None)[0] is None
    assert infer(op.nn.conv2d, None, TensorType((4, 8, 3, 3)))[0] is None


def test_unknown_sizes_stay_unknown(infer: Callable) -> None:
    result, _ = infer(op.nn.conv2d, TensorType((ANY, 8, ANY, 9)), TensorType((4, 8, 3, 3)))
    assert result == TensorType((ANY, 4, ANY, 7))


def test_type_errors(refuse: Callable[..., str]) -> None:
    data, weight = TensorType((1, 8, 5, 5)), TensorType((4, 8, 3, 3))
    assert refuse(op.nn.conv2d, data, TensorType((4, 7, 3, 3))) == (
        "the weight of nn.conv2d must be Tensor[(4, 8, 3, 3), float32], not Tensor[(4, 7, 3, 3), float32]"
    )
    assert refuse(op.nn.conv2d, data, weight, channels=5) == (
        "the weight of nn.conv2d must be Tensor[(5, 8, 3, 3), float32], not Tensor[(4, 8, 3, 3), float32]"
    )
    assert refuse(op.nn.conv2d, TensorType((1, 8, 2, 2)), weight) == (
        "the kernel (3, 3) of nn.conv2d must fit into the padded data, not into (2, 2)"
    )
    assert (
        refuse(op.nn.conv2d, TensorType((8, 5, 5)), weight) == "the data of nn.conv2d must have 4 axes, not (8, 5, 5)"
    )
    assert refuse(op.nn.conv2d, data, TensorType((4, 8))) == "the weight of nn.conv2d must have 4 axes, not (4, 8)"
    assert refuse(op.nn.conv2d, data, weight, groups=3) == (
        "input channels of nn.conv2d must be a multiple of its 3 groups, not 8"
    )
    assert refuse(op.nn.conv2d, data, weight, strides=(0, 1)) == (
        "strides of nn.conv2d must be 2 positive numbers, not (0, 1)"
    )
    assert refuse(op.nn.conv2d, data, weight, padding=(1, 1, 1)) == (
        "the padding of nn.conv2d must have 1, 2 or 4 numbers, not 3"
    )
    assert refuse(op.nn.conv2d, data, weight, data_layout="NCHX") == (
        "a layout of nn.conv2d must be a permutation of NCHW, not NCHX"
    )
    assert refuse(op.nn.conv2d, data, weight, groups=0) == "groups of nn.conv2d must be at least 1, not 0"
