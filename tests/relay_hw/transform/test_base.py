"""Passes type their input and their result, and keep what they do not touch."""

from __future__ import annotations

import pytest

import relay_hw as relay
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.transform.base import FunctionPass, is_typed
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.sequential import Sequential

X = relay.var("x", shape=(2,))
UNTYPED = IRModule({"main": Function([X], relay.negative(relay.negative(X))), "one": Function([], relay.const(1))})


class ToRelu(FunctionPass):
    name = "to-relu"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        assert function.checked_type is not None and is_typed(mod)

        class Rewrite(Rewriter):
            def rewrite_call(self, old: Call, new: Call) -> Expr:
                return relay.nn.relu(new.args[0])

        new = Rewrite().rewrite(function)
        assert isinstance(new, Function)
        return new


class Break(FunctionPass):
    name = "break"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return Function([X], relay.nn.dense(X, X, units=None))


def test_a_pass_types_its_input_and_its_result() -> None:
    assert not is_typed(UNTYPED)
    new = ToRelu()(UNTYPED)
    assert is_typed(new) and new.astext().count("nn.relu") == 2 and "negative" not in new.astext()
    assert ToRelu()(new)["one"] is new["one"]


def test_infer_type_keeps_a_typed_module() -> None:
    typed = InferType()(UNTYPED)
    assert is_typed(typed) and InferType()(typed) is typed


def test_sequential() -> None:
    passes = Sequential([InferType(), ToRelu()])
    assert repr(passes) == "Sequential([InferType(), ToRelu()])" and passes.name == "sequential"
    assert passes(UNTYPED).astext() == ToRelu()(UNTYPED).astext()
    assert Sequential([])(UNTYPED).astext() == InferType()(UNTYPED).astext()


def test_a_pass_that_breaks_the_program_is_caught() -> None:
    with pytest.raises(TypeCheckError, match=r"the weight of nn\.dense must have 2 axes"):
        Break()(UNTYPED)
