"""PartialEvaluate: what is known runs, what is not stays; gradients without decisions lose references and closures."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, If, Match, Op, RefCreate, RefRead, RefWrite
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


STREAMS = """type Stream[A] { More(A, fn () -> Stream[A]) }
def @from(%n: int32) -> Stream[int32] { More(%n, fn () -> Stream[int32] { @from(%n + 1) }) }
def @filter[A](%keep: fn (A) -> bool, %s: Stream[A]) -> Stream[A] {
  match (%s) {
    More(%head, %tail) => if (%keep(%head)) { More(%head, fn () -> Stream[A] { @filter(%keep, %tail()) }) }
      else { @filter(%keep, %tail()) }
  }
}
def @sieve(%s: Stream[int32]) -> Stream[int32] {
  match (%s) {
    More(%prime, %tail) => More(%prime, fn () -> Stream[int32] {
      @sieve(@filter(fn (%n: int32) -> bool { mod(%n, %prime) != 0 }, %tail()))
    })
  }
}
def @take[A](%n: int32, %s: Stream[A]) -> List[A] {
  match (%s) { More(%head, %tail) => if (%n == 0) { Nil } else { Cons(%head, @take(%n - 1, %tail())) } }
}
"""


def size(mod: relay.IRModule) -> int:
    """Nodes of all functions."""
    return sum(len(list(post_order(function.body))) for function in mod.functions.values())


def test_a_lazy_sieve_is_unfolded_as_far_as_it_pays() -> None:
    """Without a budget, each tail holds the code of the next one: 21 million characters."""
    mod, new = evaluated(STREAMS + "def @main(%n: int32) -> List[int32] { @take(%n, @sieve(@from(2))) }")
    same(run(mod, np.int32(8)), run(new, np.int32(8)))
    assert len(new.astext()) < 6_000 and [node.data for node in nodes(new["main"], Constant) if node.data == 5] == [5]


def test_known_streams_are_evaluated_altogether() -> None:
    """What surely runs has no budget but the number of calls: 25 primes, found by 96 tails of 25 filters."""
    mod, new = evaluated(STREAMS + "def @main() -> List[int32] { @take(25, @sieve(@from(2))) }")
    assert not nodes(new["main"].body, If, Match, Function, GlobalVar) and len(nodes(new["main"], Constant)) == 25
    same(run(mod), run(new))


def test_known_loops_in_branches_are_unrolled() -> None:
    """Once the branch runs, so does all of the loop: it pays, however long."""
    mod, new = evaluated(
        "def @power(%x: float64, %n: int32) -> float64 { if (%n == 0) { 1f64 } else { @power(%x, %n - 1) * %x } }"
        "def @choose(%b: bool, %x: float64) -> float64 { if (%b) { @power(%x, 700) } else { %x } }"
        "def @main(%b: bool, %x: float64) -> float64 { @choose(%b, %x) }"
    )
    products = [node for node in nodes(new["main"], Call) if node.op.name == "multiply"]
    assert len(products) == 700 and not nodes(new["main"], GlobalVar)
    assert run(new, True, 1.001) == run(mod, True, 1.001) and run(new, False, 3.0) == 3.0


def test_a_closure_is_not_specialised_inside_of_itself() -> None:
    """Local functions make the stream: the tail of a tail calls the function as it is written."""
    mod, new = evaluated(
        """type Stream[A] { More(A, fn () -> Stream[A]) }
def @third(%s: Stream[int32]) -> int32 {
  match (%s) { More(_, %t) => match (%t()) { More(_, %u) => match (%u()) { More(%x, _) => %x } } }
}
def @main(%k: int32) -> Stream[int32] {
  let %from = fn (%n: int32) -> Stream[int32] { More(%n, fn () -> Stream[int32] { %from(%n + %k) }) };
  %from(1)
}
def @run(%k: int32) -> int32 { @third(@main(%k)) }"""
    )
    assert run(new, 5, entry="run") == run(mod, 5, entry="run") == 11
    assert len(nodes(new["main"].body, Function)) <= 6


def test_what_multiplies_shares_one_allowance() -> None:
    """Each function calls the one below twice in a branch and once in the other: 3**12 calls if all were unfolded."""
    text = "def @f0(%n: int32) -> int32 { %n + 1 } "
    for k in range(1, 13):
        calls = f"@f{k - 1}(%n - 1) + @f{k - 1}(%n - 2)"
        text += f"def @f{k}(%n: int32) -> int32 {{ if (%n > 3) {{ {calls} }} else {{ @f{k - 1}(%n + 1) }} }} "
    text += "def @main(%n: int32) -> int32 { @f12(%n) }"
    mod = relay.fromtext(HEADER + text)
    sizes = []
    for growth in (0, 500, 1_000, 2_000):
        new = PartialEvaluate(max_growth=growth)(mod)
        assert run(new, 9) == run(mod, 9)
        sizes.append(len(list(post_order(new["main"].body))))
    assert sizes == sorted(sizes) and sizes[0] == 30 and all(150 < b - a < 1_000 for a, b in pairwise(sizes))


@st.composite
def lazy_modules(draw: Any) -> relay.IRModule:
    """Functions that call each other behind branches, and streams whose tails are made by them."""
    count = draw(st.integers(1, 4))

    def call() -> str:
        return f"@f{draw(st.integers(0, count - 1))}(%n - {draw(st.integers(1, 2))})"

    def stream(at: str) -> str:
        return f"@s{draw(st.integers(0, count - 1))}({at})"

    text = "type Stream { More(int32, fn () -> Stream) }\n"
    text += "def @sum(%k: int32, %s: Stream) -> int32 {"
    text += " match (%s) { More(%x, %t) => if (%k == 0) { %x } else { @sum(%k - 1, %t()) + %x } } }\n"
    for k in range(count):
        body = draw(
            st.sampled_from(
                ["{a} + {b}", "@sum(1, {s})", "let %g = fn (%n: int32) -> int32 {{ {a} }}; %g(%n - 1) + {b}"]
            )
        )
        inner = body.format(a=call(), b=call(), s=stream("%n - 1"))
        text += f"def @f{k}(%n: int32) -> int32 {{ if (%n <= 0) {{ {k} }} else {{ {inner} }} }}\n"
        tail = draw(
            st.sampled_from(
                [stream("%n + 1"), stream("%n"), f"if (%b) {{ {stream('%n')} }} else {{ {stream('%n - 1')} }}"]
            )
        )
        rest = f"let %b = %n < {draw(st.integers(0, 3))}; More({call()}, fn () -> Stream {{ {tail} }})"
        text += f"def @s{k}(%n: int32) -> Stream {{ {rest} }}\n"
    known = draw(st.integers(0, 3))
    main = draw(
        st.sampled_from([f"@sum(%n, {stream(str(known))})", "@f0(%n)", f"@sum({known}, {stream('%n')}) + @f0({known})"])
    )
    return relay.fromtext(f'#[version = "0.0.5"]\n{text}def @main(%n: int32) -> int32 {{ {main} }}')


@settings(max_examples=30)
@given(lazy_modules(), st.integers(0, 3))
def test_the_residual_program_is_bounded_and_computes_the_same(mod: relay.IRModule, n: int) -> None:
    new = PartialEvaluate(max_growth=300)(mod)
    assert run(new, n) == run(mod, n)
    assert size(new) < 8 * (size(mod) + 300)


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
