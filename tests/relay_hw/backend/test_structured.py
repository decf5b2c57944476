"""Flat functions with branches, arms, closures, data and references: their values, and that storing keeps them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import relay_hw as relay
from relay_hw.backend.flat import FlatFunction, FlatIf, Machine, evaluate, flatten
from relay_hw.backend.store import ConstantPool, flat_from_json, flat_to_json
from relay_hw.errors import ArtifactError, EvalError, UnsupportedError
from relay_hw.ir.expr import Function, Var
from relay_hw.transform import InferType
from tests.relay_hw.programs import INPUTS, modules, random_module
from tests.relay_hw.transform.reference import plain

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def flats(mod: relay.IRModule) -> dict[str, FlatFunction]:
    typed = InferType()(mod)
    return {name: flatten(function, name) for name, function in typed.functions.items()}


def stored(functions: dict[str, FlatFunction]) -> dict[str, FlatFunction]:
    pool = ConstantPool()
    rows = json.loads(json.dumps({name: flat_to_json(one, pool) for name, one in functions.items()}, allow_nan=False))
    pool = ConstantPool(bytes(pool))
    return {name: flat_from_json(row, pool) for name, row in rows.items()}


def outcome(function: Any) -> Any:
    try:
        return plain(function())
    except EvalError as error:
        return error.message


def check(mod: relay.IRModule, capfd: Any = None) -> None:
    values = list(INPUTS.values())
    typed = InferType()(mod)
    functions = flats(typed)
    expected = outcome(lambda: relay.create_executor("debug", typed).evaluate()(*values))
    assert outcome(lambda: evaluate(functions["main"], values, functions)) == expected
    back = stored(functions)
    assert outcome(lambda: evaluate(back["main"], values, back)) == expected


@settings(max_examples=40)
@given(modules())
def test_programs_have_the_interpreters_value_before_and_after_storing(mod: relay.IRModule) -> None:
    check(mod)


@pytest.mark.parametrize("seed", range(30))
def test_larger_programs_have_the_interpreters_value(seed: int) -> None:
    check(random_module(seed, depth=6))


@pytest.mark.parametrize("seed", range(10))
def test_effects_come_in_the_interpreters_order(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    typed = InferType()(random_module(seed))
    values, functions = list(INPUTS.values()), flats(typed)
    outcome(lambda: relay.create_executor("debug", typed).evaluate()(*values))
    expected = capfd.readouterr().out
    outcome(lambda: evaluate(functions["main"], values, functions))
    assert capfd.readouterr().out == expected


def test_calls_in_tail_position_need_no_stack() -> None:
    functions = flats(
        relay.fromtext(
            HEADER + "def @even(%n: int32) -> bool { if (%n == 0) { True } else { @odd(%n - 1) } }"
            "def @odd(%n: int32) -> bool { if (%n == 0) { False } else { @even(%n - 1) } }"
            "def @main(%n: int32) -> int32 {"
            " let %f = fn (%k: int32, %l: List[int32]) -> int32 {"
            "   match (%l) { Cons(%h, _) => { if (%k == 0) { %h } else { %f(%k - 1, Cons(%k, %l)) } },"
            "                Nil => { %f(%k, Cons(%k, Nil)) } } };"
            " if (@even(%n)) { %f(%n, Nil) } else { -1 } }"
        )
    )
    deepest = 0

    class Watching(Machine):
        def steps(self, function: FlatFunction, args: Any) -> Any:
            nonlocal deepest
            deepest += 1
            value = yield from super().steps(function, args)
            deepest -= 1
            assert deepest < 4
            return value

    for machine in (functions, stored(functions)):
        assert Watching(machine).call(machine["main"], [np.int32(5_000)]) == 1


def test_calls_nest_as_deep_as_the_interpreters() -> None:
    text = "def @main(%n: int32) -> int32 { if (%n == 0) { 0 } else { @main(%n - 1) + 1 } }"
    functions = flats(relay.fromtext(HEADER + text))
    assert evaluate(functions["main"], [np.int32(5_000)], functions) == 5_000
    forever = flats(relay.fromtext(HEADER + "def @main(%n: int32) -> int32 { @main(%n) + 1 }"))
    with pytest.raises(EvalError, match="calls must be nested at most 200000 deep"):
        evaluate(forever["main"], [np.int32(1)], forever)


def test_deep_nesting_of_branches_is_no_recursion_of_python() -> None:
    n = Var("n", relay.scalar_type("int32"))
    body: Any = n
    for k in range(1500):
        body = relay.If(relay.less(n, relay.const(k)), relay.const(k), body)
    functions = flats(relay.IRModule({"main": Function([n], body)}))
    assert evaluate(stored(functions)["main"], [np.int32(7)]) == 1499


def test_failures_have_the_interpreters_sentences() -> None:
    mod = relay.fromtext(
        HEADER + "def @first(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h } } }"
        "def @main() -> int32 { @first(Nil) }"
    )
    functions = flats(mod)
    with pytest.raises(EvalError, match="match must have an arm for Nil of List"):
        evaluate(functions["main"], [], functions)
    with pytest.raises(EvalError, match="@first must be a function of the module"):
        evaluate(functions["main"], [])


def test_functions_of_the_module_are_values() -> None:
    mod = relay.fromtext(
        HEADER + "def @inc(%x: int32) -> int32 { %x + 1 }"
        "def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }"
        "def @main(%x: int32) -> (int32, List[int32]) { (@twice(@inc, %x), @twice(fn (%l: List[int32]) -> List[int32]"
        " { Cons(%x, %l) }, Nil)) }"
    )
    functions = stored(flats(mod))
    assert plain(evaluate(functions["main"], [np.int32(3)], functions)) == outcome(
        lambda: relay.create_executor("debug", mod).evaluate()(np.int32(3))
    )


def test_inlined_functions_are_written_out_once_a_call() -> None:
    mod = InferType()(
        relay.fromtext(
            HEADER + "def @f(%x: int32) -> int32 { let %y = %x * 2; if (%y < 5) { %y } else { %y - %x } }"
            "def @main(%x: int32) -> int32 { @f(@f(%x)) + @f(%x) }"
        )
    )
    function = flatten(mod["main"], "main", {"f": mod["f"]})
    assert sum(isinstance(node, FlatIf) for node in function.nodes) == 3
    for x in range(6):
        assert evaluate(function, [np.int32(x)]) == relay.create_executor("debug", mod).evaluate()(np.int32(x))


def test_unbound_variables_and_bare_operators_are_refused() -> None:
    x = Var("x", relay.scalar_type("int32"), checked_type=relay.scalar_type("int32"))
    with pytest.raises(UnsupportedError, match="%x must be bound where @main uses it"):
        flatten(Function([], x), "main")
    with pytest.raises(UnsupportedError, match="@main must not have a Op as a value"):
        flatten(Function([], relay.Tuple([relay.op.get("exp")])), "main")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"if": 9}, "node 2 must use earlier nodes only"),
        ({"captured": []}, "an inner function must have 0 parameters, not 1"),
        ({"then": 7}, "a stored host function must have name, nodes and result"),
        ({"then": None}, "a stored host function must have name, nodes and result"),
    ],
)
def test_damaged_branches_are_refused(change: dict[str, Any], sentence: str) -> None:
    text = "def @main(%c: bool, %x: int32) -> int32 { if (%c) { %x } else { %x + 1 } }"
    pool = ConstantPool()
    row = flat_to_json(flats(relay.fromtext(HEADER + text))["main"], pool)
    assert "if" in row["nodes"][2]
    row["nodes"][2] |= change
    with pytest.raises(ArtifactError, match=sentence):
        flat_from_json(row, pool)
