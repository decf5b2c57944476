"""Matrix products and bias."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relay_hw import op
from relay_hw.ir.types import ANY, TensorType

RNG = np.random.default_rng(0)


def test_dense(apply: Callable[..., np.ndarray]) -> None:
    x, w = RNG.normal(size=(2, 3, 5)).astype(np.float32), RNG.normal(size=(4, 5)).astype(np.float32)
    want = [
        [[sum(float(a) * float(b) for a, b in zip(row, unit, strict=True)) for unit in w] for row in rows] for rows in x
    ]
    np.testing.assert_allclose(apply(op.nn.dense, x, w, units=4), want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("depth", [3, 1023, 1025, 300_000])
def test_int8_sums_are_exact_and_wrap(apply: Callable[..., np.ndarray], depth: int) -> None:
    x, w = np.full((1, depth), -128, np.int8), np.full((2, depth), -128, np.int8)
    w[1] = 127
    w[:, 0] = 1
    got = apply(op.nn.dense, x, w, out_dtype="int32")
    want = [(depth - 1) * 16384 - 128, -(depth - 1) * 128 * 127 - 128]
    assert got.tolist() == [[(value + 2**31) % 2**32 - 2**31 for value in want]]


def test_int8_products_stay_int8_without_out_dtype(apply: Callable[..., np.ndarray]) -> None:
    got = apply(op.nn.dense, np.array([[100, 100]], np.int8), np.array([[3, 1]], np.int8))
    assert got.dtype == np.int8 and got.item() == (400 + 128) % 256 - 128


@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
def test_matmul_and_batch_matmul(apply: Callable[..., np.ndarray], flags: tuple[bool, bool]) -> None:
    a, b = RNG.integers(-9, 9, (3, 4)), RNG.integers(-9, 9, (4, 5))
    left, right = (side.T if flag else side for side, flag in zip((a, b), flags, strict=True))
    want = [[sum(int(a[i, k] * b[k, j]) for k in range(4)) for j in range(5)] for i in range(3)]
    got = apply(op.nn.matmul, left, right, transpose_a=flags[0], transpose_b=flags[1])
    assert got.tolist() == want
    batched = apply(
        op.nn.batch_matmul, left[None].repeat(2, 0), right[None], transpose_a=flags[0], transpose_b=flags[1]
    )
    assert batched.tolist() == [want, want]


def test_batch_matmul_transposes_the_second_side_by_default() -> None:
    from relay_hw.ir.expr import Var

    assert op.nn.batch_matmul(Var("a"), Var("b")).attrs.transpose_b


def test_bias_add(apply: Callable[..., np.ndarray], infer: Callable) -> None:
    x = np.zeros((2, 3, 2), np.int32)
    assert apply(op.nn.bias_add, x, np.array([1, 2, 3], np.int32))[1].tolist() == [[1, 1], [2, 2], [3, 3]]
    assert apply(op.nn.bias_add, x, np.array([1, 2], np.int32), axis=-1)[0, 0].tolist() == [1, 2]
    top = np.array([[2**31 - 1]], np.int32)
    assert apply(op.nn.bias_add, top, np.array([1], np.int32)).item() == -(2**31)
    assert infer(op.nn.bias_add, TensorType((2, 3), "int32"), None)[1][1] == TensorType((3,), "int32")


def test_unknown_weights_are_inferred(infer: Callable) -> None:
    result, (_, weight) = infer(op.nn.dense, TensorType((ANY, 5)), None, units=4)
    assert result == TensorType((ANY, 4)) and weight == TensorType((4, 5))
    assert infer(op.nn.dense, TensorType((2, 5)), None)[0] is None
    _, (_, weight) = infer(op.nn.matmul, TensorType((2, 5)), None, units=4)
    assert weight == TensorType((5, 4))


def test_type_errors(refuse: Callable[..., str]) -> None:
    data = TensorType((2, 5))
    assert refuse(op.nn.dense, data, TensorType((4, 6))) == (
        "the weight of nn.dense must be Tensor[(4, 5), float32], not Tensor[(4, 6), float32]"
    )
    assert refuse(op.nn.dense, data, TensorType((4,))) == (
        "the weight of nn.dense must have 2 axes (units, inputs), not (4,)"
    )
    assert refuse(op.nn.dense, data, TensorType((4, 5)), units=3) == (
        "the weight of nn.dense must be Tensor[(3, 5), float32], not Tensor[(4, 5), float32]"
    )
    assert refuse(op.nn.batch_matmul, TensorType((1, 2, 3)), TensorType((1, 2, 4))) == (
        "the inner sizes of nn.batch_matmul must be equal, not 3 and 4"
    )
    assert refuse(op.nn.batch_matmul, TensorType((2, 3)), TensorType((1, 2, 4))) == (
        "the arguments of nn.batch_matmul must have 3 axes, not (2, 3) and (1, 2, 4)"
    )
    assert refuse(op.nn.bias_add, data, TensorType((4,))) == (
        "the bias of nn.bias_add must be Tensor[(5,), float32], not Tensor[(4,), float32]"
    )
