"""PartialEvaluate: what is known runs, what is not stays; gradients without decisions lose references and closures."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Expr, Function, If, Match, Op, RefCreate, RefRead, RefWrite
from relay_hw.ir.visit import post_order
from relay_hw.transform import DeadCodeElimination, PartialEvaluate, Sequential, gradient, gradient_module
from tests.relay_hw.programs import INPUTS, modules
from tests.relay_hw.transform.real_programs import real_programs
from tests.relay_hw.transform.test_lambda_lift import same

HEADER = '#[version = "0.0.5"]\ntype List[A] { Cons(A, List[A]), Nil, }\n'


def evaluated(text: str) -> tuple[relay.IRModule, relay.IRModule]:
    mod = relay.fromtext(HEADER + text)
    new = PartialEvaluate()(mod)
    assert new["main"].checked_type == mod["main"].checked_type
    return mod, new


def run(mod: relay.IRModule, *values: Any, entry: str = "main") -> Any:
    return relay.create_executor("debug", mod).evaluate(entry)(*values)


def nodes(root: Expr, *kinds: type[Expr]) -> list[Expr]:
    return [node for node in post_order(root) if isinstance(node, kinds)]


def is_straight(function: Function) -> bool:
    """Only operators, tuples and lets."""
    calls = [node for node in nodes(function, Call) if not isinstance(node.op, Op)]
    others = nodes(function.body, RefCreate, RefRead, RefWrite, Function, If, Match)
    return not calls and not others


def test_known_recursion_is_unrolled() -> None:
    mod, new = evaluated(
        "def @pow(%x: float64, %n: int32) -> float64 { if (%n == 0) { 1f64 } else { @pow(%x, %n - 1) * %x } }"
        "def @main(%x: float64) -> float64 { @pow(%x, 4) }"
    )
    assert is_straight(new["main"]) and run(new, 2.0) == run(mod, 2.0) == 16
    assert len([n for n in nodes(new["main"], Call) if n.op.name == "multiply"]) == 4


def test_unknown_recursion_stays_and_ends() -> None:
    mod, new = evaluated(
        "def @pow(%x: float64, %n: int32) -> float64 { if (%n == 0) { 1f64 } else { @pow(%x, %n - 1) * %x } }"
        "def @main(%x: float64, %n: int32) -> float64 {"
        " let %f = fn (%k: int32) -> float64 { if (%k == 0) { 0f64 } else { @pow(%x, %n) + %f(%k - 1) } }; %f(%n) }"
    )
    assert run(new, 2.0, 3) == run(mod, 2.0, 3) == 24
    assert nodes(new["main"], If)


def test_data_and_closures_are_taken_apart() -> None:
    mod, new = evaluated(
        """def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @sum(%l: List[float64]) -> float64 { match (%l) { Cons(%h, %t) => { %h + @sum(%t) }, Nil => { 0f64 } } }
def @main(%x: float64, %y: float64) -> float64 {
  let %f = fn (%a: (float64, float64)) -> float64 { %a.0 * %a.1 };
  @sum(@map(%f, Cons((%x, %y), Cons((%y, 2f64), Nil))))
}"""
    )
    assert is_straight(new["main"]) and run(new, 3.0, 4.0) == run(mod, 3.0, 4.0) == 20


def test_references_that_nobody_else_sees_disappear() -> None:
    mod, new = evaluated(
        """def @main(%x: float64, %b: bool) -> float64 {
  let %r = ref(%x);
  let %f = fn (%a: float64) -> () { ref_write(%r, ref_read(%r) * %a) };
  let %u = %f(2f64);
  let %k = if (%b) { %x } else { 1f64 };
  let %v = %f(%k);
  ref_read(%r)
}"""
    )
    assert not nodes(new["main"], RefCreate, RefRead, RefWrite)
    assert run(new, 3.0, True) == run(mod, 3.0, True) == 18 and run(new, 3.0, False) == 6


def test_references_that_a_branch_writes_stay() -> None:
    mod, new = evaluated(
        """def @main(%x: float64, %b: bool) -> float64 {
  let %r = ref(%x);
  let %s = ref(%x);
  let %u = if (%b) { ref_write(%r, ref_read(%r) * 2f64) } else { () };
  let %v = ref_write(%s, 5f64);
  ref_read(%r) + ref_read(%s)
}"""
    )
    assert len(nodes(new["main"], RefCreate)) == 1
    assert run(new, 3.0, True) == run(mod, 3.0, True) == 11 and run(new, 3.0, False) == 8


def test_unknown_functions_may_change_what_they_can_see() -> None:
    text = """def @main(%f: fn (ref(int32)) -> int32, %g: fn () -> int32) -> int32 {
  let %seen = ref(1);
  let %hidden = ref(10);
  let %a = %f(%seen);
  let %u = ref_write(%seen, ref_read(%seen) + 1);
  let %b = %g();
  let %v = ref_write(%hidden, ref_read(%hidden) + 1);
  ref_read(%seen) * 1000 + ref_read(%hidden) * 100 + %a + %b
}
def @run(%x: int32) -> int32 {
  let %keep = ref(ref(%x));
  let %f = fn (%r: ref(int32)) -> int32 { let %u = ref_write(%keep, %r); let %v = ref_write(%r, 5); 1 };
  let %g = fn () -> int32 { let %u = ref_write(ref_read(%keep), 7); 2 };
  @main(%f, %g)
}"""
    mod, new = evaluated(text)
    assert run(new, 0, entry="run") == run(mod, 0, entry="run") == 7000 + 1100 + 3
    assert len(nodes(new["main"], RefCreate)) == 1 and not nodes(new["run"], RefCreate, Function)[:-1]
    main_only = mod.with_functions({"main": new["main"]})
    assert run(main_only, 0, entry="run") == 8103


def test_a_function_that_calls_itself_through_a_reference() -> None:
    mod, new = evaluated(
        """def @main(%n: int32) -> int32 {
  let %r = ref(fn (%k: int32) -> int32 { %k });
  let %f = fn (%k: int32) -> int32 { if (%k == 0) { 0 } else { let %g = ref_read(%r); %g(%k - 1) + 2 } };
  let %u = ref_write(%r, %f);
  %f(%n)
}"""
    )
    assert run(new, 5) == run(mod, 5) == 10


def test_endless_recursion_is_not_unrolled_for_ever() -> None:
    mod = relay.fromtext(
        HEADER + "def @loop(%n: int32) -> int32 { @loop(%n + 1) } "
        "def @main(%b: bool) -> int32 { if (%b) { 1 } else { @loop(0) } }"
    )
    assert run(PartialEvaluate(max_recursion=50)(mod), True) == 1


def test_calls_that_double_are_written_out_so_far_and_no_farther() -> None:
    """Twelve functions, each of which calls the one before twice: 8,190 calls if all were expanded."""
    text = HEADER + "def @f0(%n: int32) -> int32 { %n + 1 } "
    text += " ".join(f"def @f{k}(%n: int32) -> int32 {{ @f{k - 1}(@f{k - 1}(%n)) }}" for k in range(1, 13))
    mod = relay.fromtext(text + " def @main(%n: int32) -> int32 { @f12(%n) }")
    new = PartialEvaluate(max_calls=100)(mod)
    assert run(new, 1) == run(mod, 1) == 1 + 2**12
    calls = [node for node in post_order(new["main"].body) if isinstance(node, Call)]
    assert 0 < sum(isinstance(node.op, relay.GlobalVar) for node in calls) < len(calls) < 200


def test_a_failing_operator_fails_at_run_time() -> None:
    mod, new = evaluated("def @main(%b: bool) -> int32 { if (%b) { 1 } else { 1 / 0 } }")
    assert run(new, True) == 1
    for one in (mod, new):
        try:
            run(one, False)
        except EvalError as error:
            assert "must not be 0" in error.message
        else:
            raise AssertionError


def outcome(mod: relay.IRModule, values: Any) -> Any:
    try:
        return run(mod, *values)
    except EvalError as error:
        return error.message


@settings(max_examples=40)
@given(modules())
def test_programs_keep_type_and_value(mod: relay.IRModule) -> None:
    typed = relay.transform.InferType()(mod)
    new = PartialEvaluate()(typed)
    assert new["main"].checked_type == typed["main"].checked_type
    same(outcome(typed, INPUTS.values()), outcome(new, INPUTS.values()))


class NoTorch:
    """The generator's Python side is not needed here."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


@settings(max_examples=8)
@given(real_programs(NoTorch(), 4, True), st.integers(1, 2))
def test_gradients_without_decisions_lose_references_and_closures(program: Any, order: int) -> None:
    mod, _ = program
    for step in range(order):
        mod = gradient_module(mod, "main", f"g{step}")
        mod = mod.with_functions({"main": slopes_of(f"g{step}", mod)})
    new = PartialEvaluate()(mod)
    assert is_straight(new["main"])
    values = [np.array([0.3, -1.2]), np.array([1.1, 0.4])]
    same_numbers(run(mod, *values), run(new, *values))
    small = DeadCodeElimination()(new)
    same_numbers(run(mod, *values), run(small, *values))


def slopes_of(name: str, mod: relay.IRModule) -> Function:
    """The sum of the slopes that the gradient `@name` gives, as a function again."""
    params = [relay.Var(param.name_hint, param.type) for param in mod[name].params]
    slopes = relay.TupleGetItem(relay.Call(relay.GlobalVar(name), params), 1)
    return Function(params, op.sum(op.add(relay.TupleGetItem(slopes, 0), relay.TupleGetItem(slopes, 1))))


def same_numbers(a: Any, b: Any) -> None:
    if isinstance(a, tuple):
        for left, right in zip(a, b, strict=True):
            same_numbers(left, right)
    else:
        np.testing.assert_allclose(a, b, rtol=1e-10)


@settings(max_examples=15)
@given(real_programs(NoTorch(), 4))
def test_gradients_keep_their_values(program: Any) -> None:
    mod, _ = program
    mod = gradient_module(mod, "main")
    new = Sequential([PartialEvaluate(), DeadCodeElimination()])(mod)
    values = [np.array([0.3, -1.2]), np.array([1.1, 0.4])]
    same_numbers(run(mod, *values), run(new, *values))


def test_the_gradient_of_a_network_becomes_what_first_order_gives() -> None:
    x, w = relay.var("x", shape=(1, 2, 6, 6), dtype="float64"), relay.var("w", shape=(3, 2, 3, 3), dtype="float64")
    v = relay.var("v", shape=(4, 12), dtype="float64")
    pooled = op.nn.max_pool2d(op.tanh(op.nn.conv2d(x, w)), (2, 2), (2, 2))
    function = Function([x, w, v], op.nn.log_softmax(op.nn.dense(op.nn.batch_flatten(pooled), v)))
    mod = relay.IRModule.from_expr(gradient(function))
    new = Sequential([PartialEvaluate(), DeadCodeElimination()])(mod)
    assert nodes(mod["main"], RefCreate) and is_straight(new["main"])
    rng = np.random.default_rng(0)
    values = [rng.normal(size=s) for s in ((1, 2, 6, 6), (3, 2, 3, 3), (4, 12))]
    direct = relay.IRModule.from_expr(gradient(function, mode="first_order"))
    same_numbers(run(new, *values), run(direct, *values))
