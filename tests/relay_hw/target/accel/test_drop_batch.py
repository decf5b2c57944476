"""Tensors of tokens with a batch axis lose it; images keep it; the result stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import exponentials
from relay_hw.target.accel.drop_batch import drop_batch
from relay_hw.transform.graph import dtype_of, is_op, op_name, shape_of
from relay_hw.transform.infer_type import InferType
from tests.relay_hw.transform.checks import module, var

RNG = np.random.default_rng(5)
X = var("x", 6, 24, dtype="int8")
TABLE = op.const(RNG.permutation(np.arange(-128, 128)).astype(np.int8))
SUM = {"y_multiplier": 3, "r_multiplier": 5, "shift": 3, "y_zero_point": 2}


def _ints(*shape: int, dtype: str = "int8") -> Expr:
    return op.const(RNG.integers(-100, 100, shape).astype(dtype))


def _heads(x: Expr = X) -> Expr:
    """[1, heads, tokens, channels of a head]."""
    return op.transpose(op.reshape(x, (1, 6, 3, 8)), (0, 2, 1, 3))


def _rotary(x: Expr) -> Expr:
    """Halves of a head's channels swapped, both times factors, added."""
    halves = (op.strided_slice(x, (begin,), (begin + 4,), (1,), axes=(3,)) for begin in (4, 0))
    turned = op.concatenate(Tuple(list(halves)), axis=-1)
    parts = (op.fixed.mul(y, _ints(1, 3, 6, 8), multiplier=3, shift=7, r_zero_point=2) for y in (x, turned))
    return op.fixed.add(*parts, **SUM)


def _softmax(x: Expr) -> Expr:
    return op.fixed.softmax(x, op.const(exponentials(0.1)), causal=True)


def _function(body: Expr) -> Function:
    return InferType()(module(body, X))["main"]


def _dropped(body: Expr) -> Function:
    before = _function(body)
    after = drop_batch(before)
    data = RNG.integers(-128, 128, (6, 24)).astype(np.int8)
    values = [evaluate(module(function.body, *function.params), [data]) for function in (before, after)]
    for one, other in zip(*((v if isinstance(v, tuple) else (v,)) for v in values), strict=True):
        np.testing.assert_array_equal(one, other)
    return after


def _of_four_axes(function: Function) -> list[str]:
    """Operators, but the reshapes at borders, that make int8 tensors of four axes."""
    calls = [node for node in post_order(function.body) if isinstance(node, Call) and dtype_of(node) == "int8"]
    return [op_name(call) for call in calls if len(shape_of(call) or ()) == 4 and not is_op(call, "reshape")]


FLAT: dict[str, Callable[[], Expr]] = {
    "heads": lambda: op.reshape(_heads(), (3, 6, 8)),
    "rotary embedding": lambda: op.reshape(_rotary(_heads()), (3, 6, 8)),
    "keys": lambda: op.reshape(op.transpose(_rotary(_heads()), (0, 1, 3, 2)), (3, 8, 6)),
    "softmax": lambda: op.reshape(_softmax(op.reshape(_heads(), (1, 3, 8, 6))), (3, 8, 6)),
    "table and clip": lambda: op.reshape(op.clip(op.fixed.table(_heads(), TABLE), -5, 9), (6, 24)),
    "some rows": lambda: op.reshape(op.strided_slice(_heads(), (0, 0, 1), (1, 3, 6), (1, 1, 2)), (9, 8)),
    "also the result": lambda: Tuple([op.reshape(_heads(), (3, 6, 8)), _heads()]),
    "of another one": lambda: op.reshape(op.reshape(_heads(), (1, 18, 2, 4)), (36, 4)),
}


@pytest.mark.parametrize("name", FLAT)
def test_tokens(name: str) -> None:
    assert _of_four_axes(_dropped(FLAT[name]())) == []


def _conv(x: Expr) -> Expr:
    return op.nn.conv2d(x, _ints(5, 3, 1, 1), out_dtype="int32")


IMAGES: dict[str, Callable[[], Expr]] = {
    "read by a convolution": lambda: _conv(op.fixed.table(_heads(), TABLE)),
    "beside a convolution": lambda: Tuple([op.reshape(_softmax(_heads()), (18, 8)), _conv(_softmax(_heads()))]),
    "added to an image": lambda: op.reshape(
        op.fixed.add(op.nn.max_pool2d(_heads(), (1, 1)), op.fixed.table(_heads(), TABLE), **SUM), (18, 8)
    ),
    "an image that is cut and joined again": lambda: op.reshape(
        op.fixed.table(op.reshape(op.nn.max_pool2d(_heads(), (1, 1)), (1, 6, 3, 8)), TABLE), (18, 8)
    ),
    "batches that change places": lambda: op.reshape(op.transpose(_heads(), (1, 0, 2, 3)), (18, 8)),
}


@pytest.mark.parametrize("name", IMAGES)
def test_images(name: str) -> None:
    after = _dropped(IMAGES[name]())
    assert _of_four_axes(after)


def test_what_the_host_quantizes() -> None:
    """A cache of keys comes in with its batch axis; an image does, too, and keeps it."""
    past = var("past", 1, 3, 5, 8)
    scale, zero = op.const(np.float32(0.1)), op.const(np.int32(3))
    held = op.qnn.quantize(past, scale, zero, out_dtype="int8")
    keys = op.concatenate(Tuple([held, op.strided_slice(_heads(), (0,), (1,), (1,), axes=(2,))]), axis=2)
    before = InferType()(module(Tuple([op.reshape(keys, (3, 6, 8)), op.qnn.dequantize(keys, scale, zero)]), X, past))[
        "main"
    ]
    after = drop_batch(before)
    assert _of_four_axes(after) == ["qnn.quantize"]
    given = [RNG.integers(-128, 128, (6, 24)).astype(np.int8), RNG.normal(size=(1, 3, 5, 8)).astype(np.float32)]
    old, new = (evaluate(module(function.body, *function.params), given) for function in (before, after))
    for one, other in zip(old, new, strict=True):
        np.testing.assert_array_equal(one, other)
    image = InferType()(module(_conv(held), past))["main"]
    assert drop_batch(image) is image


def test_nothing_to_drop() -> None:
    before = _function(op.fixed.table(X, TABLE))
    assert drop_batch(before) is before


STEPS: list[Callable[[Expr], Expr]] = [
    lambda x: op.fixed.table(x, TABLE),
    _softmax,
    lambda x: op.fixed.add(x, x, **SUM),
    lambda x: op.transpose(x, (0, 2, 1, 3)),
    lambda x: op.transpose(x, (0, 3, 2, 1)),
    lambda x: op.concatenate(Tuple([x, op.fixed.table(x, TABLE)]), axis=2),
    lambda x: op.concatenate(Tuple([x, x]), axis=-1),
    lambda x: op.strided_slice(x, (0, 0, 0), (1, 9, 2), axes=(0, 1, 2)),
    lambda x: op.strided_slice(x, (2,), (-100,), (-1,), axes=(2,)),
    lambda x: op.strided_slice(x, (-1, 2), (-100, -100), (-2, -1), axes=(3, 1)),
    lambda x: op.nn.max_pool2d(x, (1, 1)),
]


@settings(max_examples=60, deadline=None)
@given(steps=st.lists(st.sampled_from(STEPS), max_size=6))
def test_any_chain(steps: list[Callable[[Expr], Expr]]) -> None:
    x = _heads()
    for step in steps:
        x = step(x)
    size = int(np.prod(shape_of(_function(x).body) or ()))
    after = _dropped(op.reshape(x, (size,)))
    assert (_of_four_axes(after) == []) == (STEPS[-1] not in steps)
