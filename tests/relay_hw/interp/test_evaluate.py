"""The interpreter: each node's meaning, order of effects, sharing, errors, and a naive evaluator to compare with."""

# Tables hold one-line programs.
# ruff: noqa: E501

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import relay_hw as relay
from relay_hw.analysis import infer_type
from relay_hw.errors import EvalError, InputError, UnsupportedError
from relay_hw.interp import ConstructorValue, RefValue, create_executor, evaluate
from relay_hw.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    Tuple,
    TupleGetItem,
    Var,
)
from tests.relay_hw.programs import INPUTS, modules

LIST = "type List[A] { Cons(A, List[A]), Nil }\n"


def run(body: str, *args: Any) -> Any:
    return plain(evaluate(relay.fromtext(f'#[version = "0.0.5"]\n{body}', "p.relay"), args))


def plain(value: Any) -> Any:
    """Values as Python data, to compare them."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, ConstructorValue):
        return (value.name, *map(plain, value.fields))
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value


MEANINGS = [
    ("arithmetic", "def @main() { 7 - 2 * 3 }", 1),
    ("division is toward zero", "def @main() { -7 / 2 }", -3),
    ("precedence", "def @main() { 1 + 2 < 2 * 2 == True }", True),
    ("tuple", "def @main() { ((1, 2).1, ()) }", (2, ())),
    ("let", "def @main() { let %x = 3; let %y = %x * %x; %y + %x }", 12),
    ("shadowing", "def @main() { let %x = 3; let %y = %x; let %x = 4; (%x, %y) }", (4, 3)),
    ("if", "def @main() { (if (1 < 2) { 3 } else { 4 }, if (2 < 1) { 3 } else { 4 }) }", (3, 4)),
    ("closure", "def @main() { let %a = 10; let %f = fn (%x) { %x + %a }; let %a = 20; %f(1) }", 11),
    ("closures keep their own frame", "def @main() { let %add = fn (%a: int32) { fn (%b) { %a + %b } }; let %f = %add(1); let %g = %add(100); (%f(5), %g(5), %f(6)) }", (6, 105, 7)),
    ("function as value", "def @main() { let %t = (fn (%x) { %x * 2 }, 21); %t.0(%t.1) }", 42),
    ("local recursion", "def @main() { let %f = fn (%n: int32) { if (%n < 2) { 1 } else { %n * %f(%n - 1) } }; %f(5) }", 120),
    ("global recursion", "def @fib(%n: int32) -> int32 { if (%n < 2) { %n } else { @fib(%n - 1) + @fib(%n - 2) } }\ndef @main() { @fib(10) }", 55),
    ("mutual recursion", "def @e(%n: int32) { if (%n < 1) { True } else { @o(%n - 1) } }\ndef @o(%n: int32) { if (%n < 1) { False } else { @e(%n - 1) } }\ndef @main() { (@e(6), @o(6)) }", (True, False)),
    ("polymorphism", "def @id[A](%x: A) -> A { %x }\ndef @main() { (@id(1), @id((True,))) }", (1, (True,))),
    ("references", "def @main() { let %r = ref(1); let %s = %r; ref_write(%s, 5); ref_read(%r) }", 5),
    ("writing gives unit", "def @main() { let %r = ref(1); ref_write(%r, 5) }", ()),
    ("a counter in a closure", "def @main() { let %r = ref(0); let %next = fn () { ref_write(%r, ref_read(%r) + 1); ref_read(%r) }; (%next(), %next(), %next()) }", (1, 2, 3)),
    ("arguments from left to right", "def @main() { let %r = ref(1); let %f = fn (%k: int32) { ref_write(%r, ref_read(%r) * 10 + %k); %k }; (%f(2), (%f(3), %f(4)).0, ref_read(%r)) }", (2, 3, 1234)),
    ("a shared node is computed once", "def @main() { let %r = ref(0); %0 = (fn () { ref_write(%r, ref_read(%r) + 1); ref_read(%r) })(); (%0, %0, ref_read(%r)) }", (1, 1, 1)),
    ("a node shared by both branches is computed before the if", "def @main() { let %r = ref(0); %0 = (fn () { ref_write(%r, 7); 5 })(); %1 = if (ref_read(%r) == 0) { %0 + ref_read(%r) } else { %0 }; (%1, ref_read(%r)) }", (12, 7)),
    ("a node used in one branch only is computed there", "def @main() { let %r = ref(0); %0 = (fn () { ref_write(%r, 7); 5 })(); %1 = if (True) { 1 } else { %0 }; (%1, ref_read(%r)) }", (1, 0)),
    ("a node inside a closure is computed at each call", "def @main() { let %r = ref(0); let %f = fn () { ref_write(%r, ref_read(%r) + 1); () }; %f(); %f(); ref_read(%r) }", 2),
    ("a node shared with a closure is computed once, outside", "def @main() { let %r = ref(0); %0 = (fn () { ref_write(%r, ref_read(%r) + 1); ref_read(%r) })(); let %f = fn () { %0 }; (%f(), %f(), %0) }", (1, 1, 1)),
    ("match", LIST + "def @sum(%l: List[int32]) -> int32 { match (%l) { Cons(%x, %t) => %x + @sum(%t), Nil => 0 } }\ndef @main() { @sum(Cons(1, Cons(2, Cons(3, Nil)))) }", 6),
    ("first arm wins", LIST + "def @main() { match (Cons(1, Nil)) { Cons(%x, Nil) => 10, Cons(_, _) => 20, _ => 30 } }", 10),
    ("nested and tuple patterns", LIST + "def @main() { match ((Cons(1, Cons(2, Nil)), 5)) { (Cons(_, Cons(%x, Nil)), %y) => %x + %y, (_, %y) => %y } }", 7),
    ("constructor as function", LIST + "def @app(%f: fn (int32, List[int32]) -> List[int32]) { %f(1, Nil) }\ndef @main() { @app(Cons) }", ("Cons", 1, ("Nil",))),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), [m[1:] for m in MEANINGS], ids=[m[0] for m in MEANINGS])
def test_reference_semantics(body: str, expected: Any) -> None:
    assert run(body) == expected


def test_results_have_their_types() -> None:
    value = evaluate(
        relay.fromtext('#[version = "0.0.5"]\ndef @main(%x: Tensor[(2), int8]) { (%x + %x, 1f16) }'), [[100, 1]]
    )
    assert value[0].dtype == np.int8 and value[0].tolist() == [-56, 2] and value[1].dtype == np.float16


def test_arguments_by_name_and_by_position() -> None:
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%a: int32, %b: Tensor[(?), float32]) { (%a, %b) }')
    assert plain(evaluate(mod, {"b": [1.0], "a": 2})) == (2, [1.0])
    assert plain(evaluate(mod, (np.int32(2), np.zeros(0, "float32")))) == (2, [])


BAD_ARGUMENTS = [
    ([1], "@main must get 2 arguments, not 1"),
    ({"a": 1}, "inputs of @main must be a, b, not a"),
    ([np.int64(1), (1,)], "input a of @main must be int32, not int64"),
    ([[1], (1,)], "input a of @main must be int32, not Tensor[(1), int32]"),
    (["x", (1,)], "input a of @main must be int32, not 'x'"),
    ([object(), (1,)], "input a of @main must be int32, not <object"),
    ([1, 2], "input b of @main must be a tuple of 1, not 2"),
    ([1, (True, 2)], "input b of @main must be a tuple of 1, not (True, 2)"),
    ([1, (np.zeros(3, "float32"),)], "input b.0 of @main must be int32, not Tensor[(3), float32]"),
]


@pytest.mark.parametrize(("args", "sentence"), BAD_ARGUMENTS)
def test_bad_arguments(args: Any, sentence: str) -> None:
    mod = relay.fromtext('#[version = "0.0.5"]\ndef @main(%a: int32, %b: (int32,)) { %a }')
    with pytest.raises(InputError) as caught:
        evaluate(mod, args)
    assert str(caught.value).startswith(sentence.replace("input b.0 of @main", "input b of @main.0"))


def test_bad_arguments_of_other_kinds() -> None:
    text = LIST + "def @main(%r: ref(int32), %f: fn (int32) -> int32, %l: List[int32]) { ref_read(%r) }"
    mod = relay.fromtext(f'#[version = "0.0.5"]\n{text}')
    function = create_executor("debug", mod)._interpreter._global("main")
    for args, sentence in (
        ((1, function, 1), "input r of @main must be a reference, not 1"),
        ((RefValue(1), 1, 1), "input f of @main must be a function, not 1"),
        ((RefValue(1), function, 1), r"input l of @main must be a value of List\[int32\], not 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            evaluate(mod, args)


def test_unknown_entry() -> None:
    with pytest.raises(InputError, match="entry must be one of main, not other"):
        evaluate(relay.fromtext('#[version = "0.0.5"]\ndef @main() { 1 }'), entry="other")


RUNTIME_ERRORS = [
    (
        LIST + "def @main() { match? (Cons(1, Nil)) { Nil => 1 } }",
        "p.relay:3:15: match must have an arm for Cons of List",
    ),
    ("def @main() { 1 / 0 }", "p.relay:2:15: the divisor of divide must not be 0 in integers"),
]


@pytest.mark.parametrize(("body", "sentence"), RUNTIME_ERRORS)
def test_runtime_error(body: str, sentence: str) -> None:
    with pytest.raises(EvalError) as caught:
        run(body)
    assert str(caught.value) == sentence


def test_sizes_that_only_run_time_knows() -> None:
    body = "def @main(%x: Tensor[(?), int8], %y: Tensor[(?), int8]) { %x + %y }"
    assert run(body, np.array([1], "int8"), np.array([1, 2], "int8")) == [2, 3]
    with pytest.raises(
        EvalError, match=r"arguments of add must fit together, not \(Tensor\[\(2\), int8\], Tensor\[\(3\)"
    ):
        run(body, np.zeros(2, "int8"), np.zeros(3, "int8"))


def test_a_reference_must_keep_its_promise() -> None:
    op = Op("test.liar", 1, lambda types, attrs, solver: types[0], lambda attrs, values, ty: values[0].astype("int64"))
    x = relay.var("x", "int32")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.Call(op, [x])))
    with pytest.raises(EvalError, match=r"result of test\.liar must be int32, not int64"):
        evaluate(mod, [1])


def test_an_ill_scoped_program_ends_with_a_sentence() -> None:
    a, c = relay.var("a", "int32"), relay.var("c", "bool")
    inner = relay.Let(a, relay.const(1), a)
    mod = relay.IRModule.from_expr(relay.Function([c], relay.Tuple([relay.If(c, inner, relay.const(0)), a])))
    with pytest.raises(EvalError, match="%a must have a value before it is used"):
        evaluate(mod, [False])


def test_endless_recursion_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["relay_hw.interp.evaluate"], "MAX_CALL_DEPTH", 1000)
    with pytest.raises(EvalError, match=r"p\.relay:2:33: calls must be nested at most 1000 deep"):
        run("def @main(%n: int32) -> int32 { @main(%n + 1) + 1 }", 0)


def test_calls_that_come_last_are_not_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["relay_hw.interp.evaluate"], "MAX_CALL_DEPTH", 10)
    text = """type List[A] { Cons(A, List[A]), Nil, }
def @even(%n: int32, %l: List[int32]) -> int32 {
  let %m = %n - 1;
  let %next = fn (%k: int32) -> int32 { @odd(%k, Cons(%m, Nil)) };
  if (%n == 0) { match (%l) { Cons(%h, _) => { %h }, Nil => { 7 } } } else { %next(%m) }
}
def @odd(%n: int32, %l: List[int32]) -> int32 {
  match (%l) { Cons(_, %rest) => { if (%n == 0) { 1 } else { @even(%n - 1, %rest) } }, Nil => { 2 } }
}
def @main(%n: int32) -> int32 { @even(%n, Nil) }"""
    assert run(text, 3_000) == 7 and run(text, 3_001) == 1


def test_deep_patterns_need_no_deep_stack() -> None:
    x = relay.var("x", "int32")
    value: Expr = x
    kept = relay.var("kept")
    pattern: relay.Pattern = relay.PatternVar(kept)
    for _ in range(60):
        value, pattern = relay.Tuple([value]), relay.PatternTuple([pattern])
    body = relay.Match(value, [relay.Clause(pattern, kept)])
    assert evaluate(relay.IRModule.from_expr(relay.Function([x], body)), [5]) == 5


def test_observer_sees_calls_and_variables() -> None:
    seen: list[tuple[str, Any]] = []
    body = "def @main(%x: int32) { let %y = %x + 1; %0 = %y * 2; (%0, %0) }"
    mod = relay.fromtext(f'#[version = "0.0.5"]\n{body}')

    def observe(node: Expr, value: Any) -> None:
        name = node.op.name if isinstance(node, Call) and isinstance(node.op, Op) else getattr(node, "name_hint", "?")
        seen.append((name, plain(value)))

    evaluate(mod, [3], observe=observe)
    assert seen == [("x", 3), ("add", 4), ("y", 4), ("multiply", 8)]


def test_executor() -> None:
    mod = relay.fromtext(
        '#[version = "0.0.5"]\ndef @f(%a: int32, %b: int32) { %a - %b }\ndef @main(%x: int32) { @f(%x, 1) }'
    )
    executor = create_executor("debug", mod)
    assert executor.evaluate()(5) == 4
    assert executor.evaluate("f")(5, b=2) == 3
    assert executor.evaluate(relay.GlobalVar("f"))(b=2, a=5) == 3
    x = relay.var("x", "int32")
    assert executor.evaluate(relay.add(x, relay.const(1)), {x: 4}) == 5
    double = executor.evaluate(relay.Function([x], relay.add(x, x)))
    assert double(4) == 8
    with pytest.raises(InputError, match="@the function must get 1 argument, not 0"):
        double()
    with pytest.raises(InputError, match="inputs of @f must be a, b, not a, c"):
        executor.evaluate("f")(1, c=3)
    with pytest.raises(UnsupportedError, match=r"executor must be debug, not vm"):
        create_executor("vm", mod)


def test_no_depth_limit() -> None:
    x = relay.var("x", "int64")
    chain: Expr = x
    for _ in range(20_000):
        chain = relay.add(chain, relay.Constant(np.int64(1)))
    names = [relay.var(f"v{index}") for index in range(20_000)]
    body: Expr = names[-1]
    for index in reversed(range(20_000)):
        body = relay.Let(names[index], relay.add(names[index - 1] if index else chain, x), body)
    assert evaluate(relay.IRModule.from_expr(relay.Function([x], body)), [2]) == 2 + 20_000 + 40_000
    count = "def @main(%n: int32) -> int32 { if (%n < 1) { 0 } else { 1 + @main(%n - 1) } }"
    assert run(count, 10_000) == 10_000


# A naive evaluator: no sharing, no frames, one dictionary of variables. Right for programs without effects.


def naive(mod: relay.IRModule, node: Expr, env: dict[Var, Any]) -> Any:
    match node:
        case Var():
            return env[node]
        case Constant(data=data):
            return data
        case GlobalVar(name_hint=name):
            return lambda *args: naive(mod, mod[name].body, dict(zip(mod[name].params, args, strict=True)))
        case Tuple(fields=fields):
            return tuple(naive(mod, part, env) for part in fields)
        case TupleGetItem(tuple_value=value, index=index):
            return naive(mod, value, env)[index]
        case Let(var=var, value=value, body=body):
            inner = dict(env)
            # A function finds itself under the name that the let gives it.
            inner[var] = naive(mod, value, inner)
            return naive(mod, body, inner)
        case If():
            return naive(mod, node.true_branch if naive(mod, node.cond, env) else node.false_branch, env)
        case Function(params=params, body=body):
            return lambda *args: naive(mod, body, {**env, **dict(zip(params, args, strict=True))})
        case Match(data=data, clauses=clauses):
            value = naive(mod, data, env)
            for clause in clauses:
                found = naive_match(clause.lhs, value)
                if found is not None:
                    return naive(mod, clause.rhs, {**env, **found})
            raise AssertionError("no arm")
        case Call(op=Op() as op):
            with np.errstate(all="ignore"):
                return np.asarray(op.reference(node.attrs, [naive(mod, arg, env) for arg in node.args], node.type))
        case Call(op=Constructor(name_hint=name)):
            return ("data", name, *(naive(mod, arg, env) for arg in node.args))
        case Call():
            return naive(mod, node.op, env)(*(naive(mod, arg, env) for arg in node.args))
    raise AssertionError(node)


def naive_match(pattern: Pattern, value: Any) -> dict[Var, Any] | None:
    match pattern:
        case PatternVar(var=var):
            return {var: value}
        case PatternTuple(patterns=inner):
            parts = [naive_match(part, item) for part, item in zip(inner, value, strict=True)]
        case PatternConstructor(patterns=inner):
            if value[1] != pattern.constructor.name_hint:
                return None
            parts = [naive_match(part, item) for part, item in zip(inner, value[2:], strict=True)]
        case _:
            return {}
    return None if None in parts else {var: item for part in parts if part for var, item in part.items()}


def same(value: Any, expected: Any) -> bool:
    if isinstance(value, ConstructorValue):
        return expected[:2] == ("data", value.name) and all(map(same, value.fields, expected[2:]))
    if isinstance(value, tuple):
        return len(value) == len(expected) and all(map(same, value, expected))
    return value.dtype == expected.dtype and value.tobytes() == np.asarray(expected).tobytes()


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules(has_effects=False))
def test_agrees_with_a_naive_evaluator(mod: relay.IRModule) -> None:
    typed = infer_type(mod)
    args = [INPUTS[param.name_hint] for param in typed["main"].params]
    expected = naive(typed, typed["main"].body, dict(zip(typed["main"].params, args, strict=True)))
    assert same(evaluate(typed, INPUTS), expected)
