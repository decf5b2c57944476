"""EliminateCommonSubexpr."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.expr import Call, Op, Trait, Tuple
from relay_hw.transform import EliminateCommonSubexpr
from tests.relay_hw.transform.checks import assert_keeps_result, assert_same_module, module, operators, var


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_keeps_the_result(seed):
    assert_keeps_result(EliminateCommonSubexpr(), seed)


def test_equal_calls_become_one():
    x = var("x", 2)

    def half():
        return op.multiply(op.exp(x), op.const(np.float32(0.5)))

    assert operators(EliminateCommonSubexpr()(module(op.add(half(), half()), x))) == ["exp", "multiply", "add"]


def test_attributes_and_constants_must_be_equal():
    x = var("x", 2)
    parts = [op.clip(x, 0.0, 1.0), op.clip(x, 0.0, 2.0), op.clip(x, 0.0, 1.0)]
    constants = [op.const(np.float32(0)), op.const(np.float32(-0.0)), op.const(np.int32(0)), op.const(np.zeros(1, "f"))]
    new = EliminateCommonSubexpr()(module(Tuple(parts + constants), x))
    fields = new["main"].body.fields
    assert fields[0] is fields[2] and fields[0] is not fields[1]
    assert len(set(fields[3:])) == 4


def test_effects_are_not_shared():
    traits = frozenset({Trait.EFFECT})
    loud = Op("test.loud", 1, lambda types, a, s: types[0], lambda a, values, t: values[0], traits=traits)
    x = var("x", 2)
    new = EliminateCommonSubexpr()(module(op.add(Call(loud, [x]), Call(loud, [x])), x))
    assert operators(new) == ["test.loud", "test.loud", "add"]


def test_nothing_to_do_gives_the_module_back():
    x = var("x", 2)
    assert_same_module(EliminateCommonSubexpr(), module(op.add(op.exp(x), op.nn.relu(x)), x))
