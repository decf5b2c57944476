"""LiftTo2D: one chain of two-dimensional layers with two changes of shape, and the same numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Tuple, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.transform import InferType
from relay_hw.transform.lift_to_2d import LIFTED, LiftTo2D
from tests.relay_hw.transform.checks import assert_close, count, module, operators, var

RNG = np.random.default_rng(0)
X = var("x", 2, 4, 11)
SHAPES = {"squeeze", "expand_dims", "reshape"}


def array(*shape: int) -> Expr:
    return op.const(RNG.uniform(0.5, 2, shape).astype("float32"))


def conv(x: Expr, **attrs: object) -> Expr:
    return op.nn.conv1d(x, array(4, 4, 3), padding=1, **attrs)


def lifted(body: Expr) -> IRModule:
    """The module behind the pass, which must compute the same."""
    mod = InferType()(module(body, X))
    new = LiftTo2D()(mod)
    x = {"x": RNG.normal(size=(2, 4, 11)).astype("float32")}
    wanted, found = evaluate(mod, x), evaluate(new, x)
    pairs = zip(wanted, found, strict=True) if isinstance(wanted, tuple) else [(wanted, found)]
    for want, got in pairs:
        assert_close(want, got, new.astext())
    return new


INNER = {
    "relu": lambda x: op.nn.relu(x),
    "bias": lambda x: op.nn.bias_add(x, array(4)),
    "bias, counted from the end": lambda x: op.nn.bias_add(x, array(4), axis=-2),
    "channels": lambda x: op.add(x, array(4, 1)),
    "channels in front": lambda x: op.multiply(array(1, 4, 1), x),
    "width": lambda x: op.add(x, array(11)),
    "channels and width": lambda x: op.subtract(array(4, 11), x),
    "scalar": lambda x: op.multiply(x, op.const(np.float32(2))),
    "residual": lambda x: op.add(x, op.exp(x)),
    "max pool": lambda x: op.nn.max_pool1d(x, 3, 2, padding=(1, 0)),
    "average pool": lambda x: op.nn.avg_pool1d(x, 3, 2, padding=1, ceil_mode=True, count_include_pad=True),
    "adaptive pool": lambda x: op.nn.adaptive_avg_pool1d(x, 5),
    "pad": lambda x: op.nn.pad(x, ((0, 0), (0, 0), (1, 2))),
    "batch norm": lambda x: TupleGetItem(op.nn.batch_norm(x, *(array(4) for _ in range(4))), 0),
    "softmax": lambda x: op.nn.softmax(x, axis=1),
    "softmax along the width": lambda x: op.nn.softmax(x, axis=-1),
    "choice": lambda x: op.where(op.any(op.greater(x, op.const(np.float32(0))), axis=[2], keepdims=True), x, op.exp(x)),
    "concatenate": lambda x: op.concatenate([op.nn.relu(x), x], axis=2),
    "split": lambda x: op.add(TupleGetItem(op.split(x, 2, axis=1), 0), TupleGetItem(op.split(x, 2, axis=1), 1)),
    "mean": lambda x: op.multiply(x, op.mean(x, axis=[2], keepdims=True)),
}


@pytest.mark.parametrize("name", INNER)
def test_operators_between_layers_follow(name: str) -> None:
    inner = INNER[name](conv(X))
    channels = 2 if name == "split" else 4
    new = lifted(op.nn.conv1d(inner, array(3, channels, 2)))
    found = operators(new)
    assert count(new)["nn.conv2d"] == 2 and not LIFTED.keys() & set(found)
    assert [name for name in found if name in SHAPES] == ["expand_dims", "squeeze"], new.astext()


def test_data_from_outside_gets_its_axis_where_it_is_read() -> None:
    new = lifted(op.nn.relu(op.add(conv(X), X)))
    assert operators(new) == ["expand_dims", "nn.conv2d", "expand_dims", "add", "nn.relu", "squeeze"]


def test_other_operators_read_three_axes() -> None:
    y = conv(X)
    new = lifted(Tuple([y, op.transpose(y, (0, 2, 1)), op.nn.relu(y), op.sum(y, axis=1), op.add(y, array(3, 2, 1, 1))]))
    assert count(new)["squeeze"] == 2


def test_a_mean_over_the_width_ends_the_chain() -> None:
    for axis in ([2], [-1], None, [0, 2]):
        assert operators(lifted(op.mean(conv(X), axis=axis))) == ["expand_dims", "nn.conv2d", "mean"]
    assert operators(lifted(op.mean(conv(X), axis=[1], exclude=True))) == ["expand_dims", "nn.conv2d", "mean"]


def test_what_stays() -> None:
    """Networks without such layers, the statistics of a batch norm, layers of other layouts."""
    plain = InferType()(module(op.nn.relu(op.add(X, X)), X))
    assert LiftTo2D()(plain) is plain
    norm = op.nn.batch_norm(conv(X), *(array(4) for _ in range(4)))
    assert count(lifted(Tuple([TupleGetItem(norm, index) for index in range(3)])))["squeeze"] == 1
    other = op.nn.conv1d(X, array(3, 11, 2), data_layout="NWC", kernel_layout="WIO")
    other = replace_weight(other, array(3, 11, 5))
    assert operators(lifted(other)) == ["nn.conv1d"]


def replace_weight(call: Call, weight: Expr) -> Call:
    return Call(call.op, (call.args[0], weight), replace(call.attrs, channels=None, kernel_size=None))


@given(
    st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 3),
    st.sampled_from([1, 2, 4]), st.booleans(),
)  # fmt: skip
def test_any_convolution(
    kernel: int, stride: int, before: int, after: int, dilation: int, groups: int, transposed: bool
) -> None:
    if transposed:
        extra = {"output_padding": min(stride, dilation) - 1}
        weight, build = array(4, 6 if groups == 1 else 4, kernel), op.nn.conv1d_transpose
        before, after = min(before, dilation * (kernel - 1)), min(after, dilation * (kernel - 1))
    else:
        extra, weight, build = {}, array(8, 4 // groups, kernel), op.nn.conv1d
    body = build(X, weight, strides=stride, padding=(before, after), dilation=dilation, groups=groups, **extra)
    assert not LIFTED.keys() & set(operators(lifted(body)))
