"""Relay compiled to Python computes what the interpreter computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import relay_hw as relay
from relay_hw.backend.python_code import to_python
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
    compiled = to_python(typed)
    values = tuple(INPUTS.values())
    expected = outcome(lambda: relay.create_executor("debug", typed).evaluate()(*values))
    same(expected, outcome(lambda: compiled.run("main", values)))


@settings(max_examples=15)
@given(real_programs(NoTorch(), 4))
def test_gradients_have_the_interpreters_value(program: Any) -> None:
    mod = gradient_module(program[0], "main")
    values = [np.array([0.3, -1.2]), np.array([1.1, 0.4])]
    same(relay.create_executor("debug", mod).evaluate()(*values), to_python(mod).run("main", values))


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
    compiled = to_python(mod)
    assert compiled.run("main", [20_000]) == 40_001
    assert "def g0_count(" in compiled.source and "loop(body" in compiled.source


def test_deep_recursion_and_failures() -> None:
    mod = relay.fromtext(
        HEADER + "def @deep(%n: int32) -> int32 { if (%n == 0) { 0 } else { @deep(%n - 1) + 1 } }"
        "def @first(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h } } }"
        "def @main() -> int32 { @first(Nil) }"
    )
    compiled = to_python(mod)
    assert compiled.run("deep", [100]) == 100
    with pytest.raises(RecursionError):
        compiled.run("deep", [10_000_000])
    with pytest.raises(EvalError, match="match must have an arm for Nil of List"):
        compiled.run("main", [])
    with pytest.raises(InputError, match="entry must be one of deep, first, main, not f"):
        compiled.run("f", [])
    with pytest.raises(InputError, match="@deep must get 1 argument, not 2"):
        compiled.run("deep", [1, 2])


def test_the_program_reads_as_python() -> None:
    """Functions, parameters and variables keep their names; operators and constants are named objects."""
    mod = relay.fromtext(
        HEADER + "def @scale(%x: Tensor[(2), float32], %factor: float32) -> Tensor[(2), float32] {"
        " let %big = %x * %factor; if (%factor > 1f) { %big } else { %big + %x } }"
    )
    found = relay.to_python(mod)
    assert str(found) == found.source
    assert [line.strip() for line in found.source.splitlines()] == [
        "# @scale: fn (Tensor[(2), float32], float32) -> Tensor[(2), float32]",
        "def g0_scale(x_1, factor_2):",
        "big_3 = asarray(op_multiply0(None, (x_1, factor_2, ), t1))",
        "v_4 = asarray(op_greater3(None, (factor_2, c2, ), t4))",
        "if v_4:",
        "return big_3",
        "else:",
        "v_5 = asarray(op_add5(None, (big_3, x_1, ), t6))",
        "return v_5",
    ]


def test_names_of_variables_meet_no_other_name() -> None:
    text = "def @x_1(%g0_x: int32, %c: int32) -> int32 { let %loop = %c + 1; let %t = %loop * %g0_x; @x_2(%t) } "
    mod = relay.fromtext(HEADER + text + "def @x_2(%a: int32) -> int32 { let %g0_x = %a * 3; %g0_x - %a }")
    executor = relay.create_executor("debug", mod)
    assert relay.to_python(mod).run("x_1", [5, 6]) == executor.evaluate("x_1")(5, 6) == 70
