"""Relay compiled to Python computes what the interpreter computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import relay_hw as relay
from relay_hw.backend.python_code import compile_python
from relay_hw.errors import EvalError, InputError
from relay_hw.transform import InferType, gradient_module
from tests.relay_hw.programs import INPUTS, modules
from tests.relay_hw.transform.real_programs import real_programs
from tests.relay_hw.transform.test_lambda_lift import same
from tests.relay_hw.transform.test_partial_evaluate import NoTorch

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def outcome(function: Any) -> Any:
    try:
        return function()
    except EvalError as error:
        return error.message


@settings(max_examples=60)
@given(modules())
def test_programs_have_the_interpreters_value(mod: relay.IRModule) -> None:
    typed = InferType()(mod)
    compiled = compile_python(typed)
    values = tuple(INPUTS.values())
    expected = outcome(lambda: relay.create_executor("debug", typed).evaluate()(*values))
    same(expected, outcome(lambda: compiled.run("main", values)))


@settings(max_examples=15)
@given(real_programs(NoTorch(), 4))
def test_gradients_have_the_interpreters_value(program: Any) -> None:
    mod = gradient_module(program[0], "main")
    values = [np.array([0.3, -1.2]), np.array([1.1, 0.4])]
    same(relay.create_executor("debug", mod).evaluate()(*values), compile_python(mod).run("main", values))


def test_functions_that_call_themselves_last_are_loops() -> None:
    mod = relay.fromtext(
        HEADER
        + "def @count(%n: int32, %acc: int32) -> int32 { if (%n == 0) { %acc } else { @count(%n - 1, %acc + 2) } }"
        "def @main(%n: int32) -> int32 {"
        " let %f = fn (%k: int32, %l: List[int32]) -> int32 {"
        "   if (%k == 0) { match (%l) { Cons(%h, _) => { %h }, Nil => { 0 } } }"
        "   else { let %g = fn () -> int32 { %k }; %f(%k - 1, Cons(%g(), Nil)) } };"
        " @count(%n, 0) + %f(%n, Nil) }"
    )
    compiled = compile_python(mod)
    assert compiled.run("main", [20_000]) == 40_001
    assert "def g0_count(" in compiled.source and "loop(body" in compiled.source


def test_deep_recursion_and_failures() -> None:
    mod = relay.fromtext(
        HEADER + "def @deep(%n: int32) -> int32 { if (%n == 0) { 0 } else { @deep(%n - 1) + 1 } }"
        "def @first(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h } } }"
        "def @main() -> int32 { @first(Nil) }"
    )
    compiled = compile_python(mod)
    assert compiled.run("deep", [100]) == 100
    with pytest.raises(RecursionError):
        compiled.run("deep", [10_000_000])
    with pytest.raises(EvalError, match="match must have an arm for Nil of List"):
        compiled.run("main", [])
    with pytest.raises(InputError, match="entry must be one of deep, first, main, not f"):
        compiled.run("f", [])
    with pytest.raises(InputError, match="@deep must get 1 argument, not 2"):
        compiled.run("deep", [1, 2])
