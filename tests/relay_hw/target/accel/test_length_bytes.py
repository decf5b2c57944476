"""Computed lengths of a softmax as bytes: the same result for any length, and where none can be the graph stays."""

from __future__ import annotations

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import exponentials
from relay_hw.target.accel.length_bytes import length_bytes
from relay_hw.transform.graph import dtype_of, is_op, shape_of
from relay_hw.transform.infer_type import InferType
from tests.relay_hw.transform.checks import module, var

RNG = np.random.default_rng(2)
X = var("x", 3, 4, 300, dtype="int8")
TABLE = op.const(exponentials(0.03))


def _function(lengths: Expr, *params: Expr) -> Function:
    once = op.fixed.softmax(X, TABLE, lengths, zero_point=-120)
    return InferType()(module(op.fixed.softmax(once, TABLE, lengths), X, *params))["main"]


@pytest.mark.parametrize("length", [-(1 << 31), -1, 0, 1, 127, 128, 255, 256, 299, 300, 65535, 65536, (1 << 31) - 1])
def test_any_length(length: int) -> None:
    lengths = var("lengths", 1, dtype="int32")
    before = _function(lengths, lengths)
    after = length_bytes(before, load_config("default"))
    softmaxes = [node for node in post_order(after.body) if isinstance(node, Call) and is_op(node, "fixed.softmax")]
    assert {(dtype_of(call.args[2]), shape_of(call.args[2])) for call in softmaxes} == {("int8", (1, 32))}
    assert len({call.args[2] for call in softmaxes}) == 1
    given = [RNG.integers(-128, 128, (3, 4, 300)).astype(np.int8), np.array([length], np.int32)]
    old, new = (evaluate(IRModule.from_expr(function), given) for function in (before, after))
    np.testing.assert_array_equal(new, old)


def test_what_stays() -> None:
    lengths, many = var("lengths", 1, dtype="int32"), var("many", 3, dtype="int32")
    for function, config in (
        (_function(op.const(np.array([5], np.int32))), "default"),
        (_function(many, many), "default"),
        (_function(lengths, lengths), "tiny"),
        (_function(lengths, lengths), "ecp5"),
    ):
        assert length_bytes(function, load_config(config)) is function
