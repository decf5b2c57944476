"""Multiply-accumulates of calls, against counting them one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.analysis import infer_expr
from relay_hw.analysis.products import call_macs
from relay_hw.ir.expr import Call, Constant, Expr, Tuple, Var
from relay_hw.ir.types import TensorType


def var(*shape: int, dtype: str = "float32") -> Expr:
    return infer_expr(Var("x", TensorType(shape, dtype)))


def const(*shape: int) -> Constant:
    return Constant(np.ones(shape, "float32"))


def macs(expr: Expr) -> int:
    found = infer_expr(expr)
    assert isinstance(found, Call)
    return call_macs(found)


@pytest.mark.parametrize(
    ("expr", "count"),
    [
        (op.nn.dense(var(3, 5), const(7, 5)), 3 * 7 * 5),
        (op.nn.matmul(var(5, 3), var(5, 7), transpose_a=True), 3 * 7 * 5),
        (op.nn.batch_matmul(var(2, 3, 5), var(2, 7, 5)), 2 * 3 * 7 * 5),
        (op.nn.conv1d(var(1, 4, 10), const(6, 4, 3)), 6 * 8 * 4 * 3),
        (op.nn.conv2d(var(1, 4, 6, 6), const(8, 2, 3, 3), groups=2), 8 * 16 * 2 * 9),
        (op.nn.conv2d(var(1, 4, 6, 6), const(8, 4, 3, 3), padding=(1, 1)), 8 * 36 * 4 * 9),
        (op.nn.conv3d(var(1, 2, 4, 4, 4), const(3, 2, 2, 2, 2)), 3 * 27 * 2 * 8),
        (op.einsum(Tuple((var(3, 5), var(5, 7))), "ij,jk->ik"), 3 * 5 * 7),
        (op.einsum(Tuple((var(3, 3),)), "ii->i"), 0),
        (op.nn.relu(var(3, 3)), 0),
    ],
)
def test_counts(expr: Expr, count: int) -> None:
    assert macs(expr) == count


@given(
    size=st.integers(1, 6), kernel=st.integers(1, 4), stride=st.integers(1, 3), padding=st.integers(0, 2),
    dilation=st.integers(1, 2),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_transposed_convolutions(size: int, kernel: int, stride: int, padding: int, dilation: int) -> None:
    """The convolution of the image with inserted zeros, without the products of these zeros."""
    out = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
    assume(out >= 1)
    call = op.nn.conv2d_transpose(
        var(1, 2, size, size), const(2, 3, kernel, kernel), strides=(stride, stride), padding=(padding, padding),
        dilation=(dilation, dilation),
    )  # fmt: skip
    # One axis: the input's elements stand every `stride` lines, and so do those that padding would have.
    edge = dilation * (kernel - 1)
    grid = [(line - edge + padding) % stride == 0 for line in range(out + edge)]
    axis = sum(sum(grid[line : line + edge + 1 : dilation]) for line in range(out))
    assert macs(call) == 2 * 3 * axis**2
    assert infer_expr(call).tensor_type.static_shape == (1, 3, out, out)
