"""Free and bound variables, scopes, well-formedness."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

import relay_hw as relay
from relay_hw.analysis import (
    all_vars,
    bound_vars,
    call_order,
    check_well_formed,
    find_scopes,
    free_type_vars,
    free_vars,
    post_order_visit,
    well_formed,
)
from relay_hw.errors import WellFormedError
from relay_hw.ir.expr import Expr, Var
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import children
from tests.relay_hw.programs import modules

X, Y, Z = relay.var("x"), relay.var("y"), relay.var("z")
ONE = relay.const(1)
PAIR = relay.PatternTuple([relay.PatternVar(X), relay.PatternVar(Y)])

CASES = [
    ("variable", X, [X], []),
    ("let", relay.Let(X, Y, relay.add(X, Z)), [Y, Z], [X]),
    ("let does not bind in its own value", relay.Let(X, relay.negative(X), X), [X], [X]),
    ("but in a function it does", relay.Let(X, relay.Function([], X(ONE)), X), [], [X]),
    ("function", relay.Function([X, Y], relay.add(X, Z)), [Z], [X, Y]),
    ("match", relay.Match(Z, [relay.Clause(PAIR, relay.add(X, Y))]), [Z], [X, Y]),
    ("outside of its let", relay.Tuple([relay.Let(X, ONE, X), X]), [X], [X]),
    ("outside of its arm", relay.Match(X, [relay.Clause(PAIR, Y)]), [X], [X, Y]),
    ("unused", relay.Let(X, ONE, ONE), [], [X]),
    ("other arm", relay.Match(Z, [relay.Clause(PAIR, X), relay.Clause(relay.PatternWildcard(), Y)]), [Z, Y], [X, Y]),
]


@pytest.mark.parametrize(("expr", "free", "bound"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_variables(expr: Expr, free: list[Var], bound: list[Var]) -> None:
    assert set(free_vars(expr)) == set(free)
    assert set(bound_vars(expr)) == set(bound)
    assert set(all_vars(expr)) == {*free, *bound}


def test_order_of_appearance() -> None:
    assert free_vars(relay.Tuple([Z, X, Y, X])) == (Z, X, Y)


def test_a_shared_node_that_leaves_the_scope_of_its_variable() -> None:
    shared = relay.negative(X)
    assert free_vars(relay.Tuple([relay.Let(X, ONE, shared), shared])) == (X,)
    assert free_vars(relay.Let(X, ONE, relay.Tuple([shared, shared]))) == ()


def test_free_type_variables() -> None:
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    ty = FuncType((a, relay.RefType(b), relay.TypeCall(relay.GlobalTypeVar("L"), (a,))), relay.TupleType([a]), (a,))
    assert free_type_vars(ty) == (b,)


def naive_free(expr: Expr, bound: frozenset[Var] = frozenset()) -> set[Var]:
    """By the book: one path at a time."""
    match expr:
        case relay.Var():
            return set() if expr in bound else {expr}
        case relay.Let(var=var, value=value, body=body):
            inner = bound | {var}
            return naive_free(value, inner if isinstance(value, relay.Function) else bound) | naive_free(body, inner)
        case relay.Function(params=params, body=body):
            return naive_free(body, bound | set(params))
        case relay.Match(data=data, clauses=clauses):
            found = naive_free(data, bound)
            for clause in clauses:
                found |= naive_free(clause.rhs, bound | set(relay.ir.visit.pattern_vars(clause.lhs)))
            return found
        case _:
            return {var for part in children(expr) for var in naive_free(part, bound)}


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules())
def test_free_variables_of_every_part(mod: relay.IRModule) -> None:
    parts: list[Expr] = []
    post_order_visit(mod["main"].body, parts.append)
    for part in parts[-40:]:
        assert set(free_vars(part)) == naive_free(part)
    assert well_formed(mod)


def test_hoisted_nodes() -> None:
    shared = relay.add(ONE, ONE)
    branch = relay.If(relay.const(True), relay.negative(shared), shared)
    inner = relay.If(relay.const(False), relay.Tuple([shared]), relay.Tuple([relay.const(2)]))
    outer = relay.If(relay.const(True), inner, relay.Tuple([shared]))
    closure = relay.Function([], shared)
    assert find_scopes(branch).hoisted == {branch: [shared]}
    assert find_scopes(outer).hoisted == {outer: [shared]}
    assert find_scopes(relay.Tuple([closure, shared])).hoisted == {closure: [shared]}
    assert find_scopes(relay.Tuple([shared, branch])).hoisted == {}
    assert find_scopes(relay.Function([], branch)).hoisted == {branch: [shared]}


def test_well_formed() -> None:
    check_well_formed(relay.IRModule.from_expr(relay.Function([X], X)))
    check_well_formed(X)
    bad = [
        (relay.Function([X], relay.Let(X, ONE, X)), "%x in @main must be bound once, not twice"),
        (relay.Function([X, X], X), "%x in @main must be bound once, not twice"),
        (relay.Function([], relay.Tuple([relay.Let(X, ONE, X), X])), "%x in @main must be used only where it is bound"),
        (relay.Function([], X), "%x in @main must be bound before it is used"),
        (relay.Function([], relay.GlobalVar("g")), r"@g in @main must be a function of the module \(@main\)"),
    ]
    for function, sentence in bad:
        mod = relay.IRModule.from_expr(function)
        assert not well_formed(mod)
        with pytest.raises(WellFormedError, match=sentence):
            check_well_formed(mod)
    with pytest.raises(WellFormedError, match="%x must be bound once, not twice"):
        check_well_formed(relay.Tuple([relay.Let(X, ONE, X), relay.Let(X, ONE, X)]))


def test_call_order() -> None:
    text = (
        "def @a() { @b() }\ndef @b() -> int32 { if (True) { @c() } else { @d() } }\n"
        "def @c() { @b() }\ndef @d() { 1 }\ndef @e() -> int32 { @e() }"
    )
    mod = relay.fromtext(f'#[version = "0.0.5"]\n{text}')
    assert call_order(mod) == [("d",), ("b", "c"), ("a",), ("e",)]


def test_no_depth_limit() -> None:
    names = [relay.var(f"v{index}") for index in range(20_000)]
    body: Expr = relay.Tuple(names)
    for index in reversed(range(20_000)):
        body = relay.Let(names[index], relay.add(names[index - 1] if index else X, X), body)
    assert free_vars(body) == (X,)
    assert len(bound_vars(body)) == 20_000
    assert well_formed(relay.IRModule.from_expr(relay.Function([X], body)))
