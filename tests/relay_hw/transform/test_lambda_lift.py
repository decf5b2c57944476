"""LambdaLift: no local functions are left, and every program keeps its value, type and effects."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings

import relay_hw as relay
from relay_hw.errors import EvalError
from relay_hw.ir.expr import Function
from relay_hw.ir.visit import post_order
from relay_hw.transform import LambdaLift
from tests.relay_hw.programs import INPUTS, modules

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def lifted(text: str) -> tuple[relay.IRModule, relay.IRModule]:
    mod = relay.fromtext(HEADER + text)
    return mod, LambdaLift()(mod)


def locals_of(mod: relay.IRModule) -> list[Function]:
    """Function literals that are not what a lifted function returns."""
    found: list[Function] = []
    for function in mod.functions.values():
        own = {function, function.body} if "Closure" in function.attrs else {function}
        found += [node for node in post_order(function) if isinstance(node, Function) and node not in own]
    return found


def run(mod: relay.IRModule, *values: Any) -> Any:
    return relay.create_executor("debug", mod).evaluate()(*values)


def test_without_captured_variables_the_function_becomes_global() -> None:
    mod, new = lifted("def @main(%x: int32) -> int32 { let %f = fn (%a: int32) -> int32 { %a * %a }; %f(%f(%x)) }")
    assert list(new.functions) == ["main", "main_f"] and new["main_f"].attrs["Closure"] == 1
    assert not locals_of(new) and run(new, 3) == run(mod, 3) == 81


def test_captured_variables_become_parameters() -> None:
    mod, new = lifted("def @main(%x: int32, %y: int32) -> int32 { let %f = fn (%a: int32) { %a * %x + %y }; %f(%y) }")
    assert [param.name_hint for param in new["main_f"].params] == ["x", "y"]
    assert not locals_of(new) and run(new, 3, 4) == run(mod, 3, 4) == 16


def test_recursion_goes_through_the_global_function() -> None:
    mod, new = lifted(
        "def @main(%n: int32, %k: int32) -> int32 {"
        " let %f = fn (%a: int32) -> int32 { if (%a == 0) { %k } else { %f(%a - 1) * 2 } }; %f(%n) }"
    )
    assert not locals_of(new) and run(new, 3, 5) == run(mod, 3, 5) == 40


def test_functions_in_functions_and_type_parameters() -> None:
    mod, new = lifted(
        """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  let %go = fn (%m: List[A]) -> List[B] { match (%m) { Cons(%h, %t) => { Cons(%f(%h), %go(%t)) }, Nil => { Nil } } };
  %go(%l)
}
def @main(%x: int32, %y: int32) -> List[int32] {
  %0 = %x * %x;
  let %f = fn (%z: int32) -> int32 { let %g = fn (%w: int32) -> int32 { %w + %0 + %z }; %g(%y) };
  @map(fn (%a: int32) -> int32 { %f(%a) + %0 }, Cons(%0, Cons(%y, Nil)))
}"""
    )
    assert not locals_of(new)
    assert list(map(int, relay.prelude.list_items(run(new, 2, 3)))) == [15, 14]
    assert list(map(int, relay.prelude.list_items(run(mod, 2, 3)))) == [15, 14]
    assert relay.fromtext(new.astext()).astext() == new.astext()


def test_fused_functions_stay() -> None:
    p, x = relay.var("p", shape=(2,)), relay.var("x", shape=(2,))
    fused = Function([p], relay.exp(p), attrs={"Primitive": 1})
    mod = relay.transform.InferType()(relay.IRModule.from_expr(Function([x], relay.Call(fused, [x]))))
    assert LambdaLift()(mod) is mod


@settings(max_examples=25)
@given(modules())
def test_programs_keep_type_and_value(mod: relay.IRModule) -> None:
    typed = relay.transform.InferType()(mod)
    new = LambdaLift()(typed)
    assert not locals_of(new)
    assert new["main"].checked_type == typed["main"].checked_type
    same(outcome(typed), outcome(new))


def outcome(mod: relay.IRModule) -> Any:
    try:
        return run(mod, *INPUTS.values())
    except EvalError as error:
        return str(error.message)


def same(a: Any, b: Any) -> None:
    if isinstance(a, tuple):
        assert isinstance(b, tuple)
        for left, right in zip(a, b, strict=True):
            same(left, right)
    elif isinstance(a, np.ndarray):
        np.testing.assert_array_equal(a, b)
    elif hasattr(a, "fields"):
        assert a.name == b.name
        same(a.fields, b.fields)
    else:
        assert a == b


def test_a_name_that_is_taken_gets_a_number() -> None:
    _, new = lifted(
        "def @main_f(%x: int32) -> int32 { %x }"
        "def @main(%x: int32) -> int32 { let %f = fn (%a: int32) { %a }; %f(@main_f(%x)) }"
    )
    assert list(new.functions) == ["main_f", "main", "main_f_1"]
    assert run(new, 7) == 7
