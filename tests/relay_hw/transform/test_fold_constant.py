"""FoldConstant: values by the operators' own meaning, failing calls left, effects left."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import EvalError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Constant, If, Op, RefCreate, RefRead, Trait, Tuple, TupleGetItem
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform import FoldConstant
from tests.relay_hw.transform.checks import assert_keeps_result, assert_same_module, module, operators, var


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_keeps_the_result(seed):
    assert_keeps_result(FoldConstant(), seed)


def test_folds_a_chain_to_one_constant():
    x = var("x", 2, 3)
    value = op.const(np.arange(3, dtype="float32"))
    body = op.add(x, op.multiply(op.add(value, value), value))
    new = FoldConstant()(module(body, x))
    assert operators(new) == ["add"]
    assert isinstance(new["main"].body.args[1], Constant)
    np.testing.assert_array_equal(new["main"].body.args[1].data, [0, 2, 8])


def test_folds_through_tuples():
    parts = op.split(op.const(np.arange(6, dtype="int32")), 2)
    body = op.concatenate(Tuple([TupleGetItem(parts, 1), TupleGetItem(parts, 0)]), 0)
    new = FoldConstant()(module(body))
    assert isinstance(new["main"].body, Constant)
    np.testing.assert_array_equal(new["main"].body.data, [3, 4, 5, 0, 1, 2])
    assert new["main"].body.data.dtype == np.int32


def test_takes_the_branch_of_a_known_condition():
    x = var("x", 2)
    body = If(op.const(np.bool_(False)), op.nn.relu(x), op.negative(x))
    assert operators(FoldConstant()(module(body, x))) == ["negative"]


def test_a_failing_call_stays_and_fails_when_evaluated():
    body = op.floor_divide(op.const(np.int32(1)), op.const(np.int32(0)))
    new = FoldConstant()(module(body))
    assert operators(new) == ["floor_divide"]
    with pytest.raises(EvalError, match="divisor"):
        evaluate(new, [])


def test_a_reference_is_not_a_constant():
    body = RefRead(RefCreate(op.const(np.float32(2))))
    new = FoldConstant()(module(body))
    assert any(isinstance(node, RefRead) for node in post_order(new["main"]))
    assert evaluate(new, []) == 2


def test_an_operator_with_effect_stays():
    traits = frozenset({Trait.EFFECT})
    loud = Op("test.loud", 1, lambda types, a, s: types[0], lambda a, values, t: values[0], traits=traits)
    body = Call(loud, [op.const(np.float32(1))])
    assert operators(FoldConstant()(module(body))) == ["test.loud"]


def test_nothing_to_do_gives_the_module_back():
    x = var("x", 2)
    assert_same_module(FoldConstant(), module(op.nn.relu(x), x))


def test_type_of_a_folded_scalar_is_kept():
    new = FoldConstant()(module(op.cast(op.const(np.float32(3.7)), "int8")))
    assert new["main"].func_type.ret_type == TensorType((), "int8")
    assert new["main"].body.data == 3
