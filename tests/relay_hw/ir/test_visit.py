"""Walks: each node once, any depth, sharing kept."""

from __future__ import annotations

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.ir.expr import Call, Expr, Let, Var
from relay_hw.ir.visit import Rewriter, children, copy_with, pattern_vars, post_order, substitute

DEPTH = 20_000


def chain(x: Var, depth: int) -> Expr:
    expr: Expr = x
    for _ in range(depth):
        expr = relay.add(expr, x)
    return expr


def test_post_order_visits_each_node_once_and_parts_first() -> None:
    x, y = relay.var("x"), relay.var("y")
    shared = relay.add(x, y)
    root = relay.multiply(shared, relay.add(shared, x))
    order = list(post_order(root))
    assert len(order) == len(set(order))
    place = {node: index for index, node in enumerate(order)}
    assert all(place[part] < place[node] for node in order for part in children(node))
    assert order[-1] is root


def test_post_order_goes_left_to_right() -> None:
    names = [relay.var(name) for name in "abc"]
    assert [node for node in post_order(relay.Tuple(names)) if isinstance(node, Var)] == names


def test_children_of_match_hold_pattern_variables_before_the_arm() -> None:
    header = relay.GlobalTypeVar("P")
    pair = relay.Constructor("Pair", [relay.scalar_type("int32")] * 2, header)
    a, b = relay.var("a"), relay.var("b")
    pattern = relay.PatternConstructor(pair, [relay.PatternVar(a), relay.PatternTuple([relay.PatternVar(b)])])
    data = relay.var("d")
    assert pattern_vars(pattern) == (a, b)
    assert children(relay.Match(data, [relay.Clause(pattern, b)])) == (data, a, b, b)


def test_rewriter_keeps_identity_where_nothing_changes() -> None:
    root = chain(relay.var("x"), 50)
    assert Rewriter().rewrite(root) is root


def test_rewriter_keeps_sharing_and_drops_the_type_of_what_changes() -> None:
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    shared = relay.add(x, x)
    kept = relay.negative(y)
    typed = relay.analysis.infer_expr(relay.Tuple([shared, shared, kept]))
    assert isinstance(typed, relay.Tuple)
    old_x = next(node for node in post_order(typed) if isinstance(node, Var) and node.name_hint == "x")
    new = substitute(typed, {old_x: relay.var("z", shape=(2,))})
    assert isinstance(new, relay.Tuple)
    assert new.fields[0] is new.fields[1] and new.fields[0] is not typed.fields[0]
    assert new.fields[2] is typed.fields[2]
    assert new.checked_type is None and new.fields[0].checked_type is None and new.fields[2].checked_type is not None


def test_rewriter_rewrites_each_node_once() -> None:
    class Count(Rewriter):
        calls = 0

        def rewrite_call(self, old: Call, new: Call) -> Expr:
            self.calls += 1
            return new

    x = relay.var("x")
    expr: Expr = x
    for _ in range(60):
        expr = relay.add(expr, expr)
    count = Count()
    count.rewrite(expr)
    assert count.calls == 60


@pytest.mark.parametrize(
    "build",
    [
        lambda v: relay.Tuple([v, v]),
        lambda v: relay.TupleGetItem(v, 1),
        lambda v: relay.add(v, v),
        lambda v: relay.If(v, v, v),
        lambda v: relay.Let(relay.var("a"), v, v),
        lambda v: relay.Function([relay.var("a")], v),
        lambda v: relay.RefCreate(v),
        lambda v: relay.RefRead(v),
        lambda v: relay.RefWrite(v, v),
        lambda v: relay.Match(v, [relay.Clause(relay.PatternWildcard(), v)]),
    ],
)
def test_substitute_reaches_every_kind_of_node(build: object) -> None:
    old, new = relay.var("old"), relay.var("new")
    before = build(old)  # type: ignore[operator]
    after = substitute(before, {old: new})
    assert old not in set(post_order(after)) and new in set(post_order(after))
    assert old in set(post_order(before))


def test_a_binder_must_stay_a_variable() -> None:
    x = relay.var("x")
    with pytest.raises(TypeError, match=r"binder %x must be rewritten to a variable, not Constant"):
        substitute(relay.Function([x], x), {x: relay.const(1)})


def test_walks_have_no_depth_limit() -> None:
    x = relay.var("x")
    deep = chain(x, DEPTH)
    for index in range(DEPTH):
        deep = Let(relay.var(f"v{index}"), x, deep)
    y = relay.var("y")
    assert sum(1 for _ in post_order(substitute(deep, {x: y}))) == sum(1 for _ in post_order(deep))


def test_copy_with_changes_only_what_it_is_told() -> None:
    call = relay.add(relay.var("a"), relay.var("b"))
    new = copy_with(call, attrs=3)
    assert new.attrs == 3 and call.attrs is None and new.args is call.args and type(new) is Call


def test_repr_of_a_shared_graph_is_short() -> None:
    expr: Expr = relay.var("x")
    for _ in range(100):
        expr = relay.add(expr, expr)
    assert repr(expr) == "<Call>"


def test_constants_are_read_only_copies() -> None:
    data = np.zeros(3)
    constant = relay.Constant(data)
    data[0] = 1
    assert constant.data[0] == 0
    with pytest.raises(ValueError, match="read-only"):
        constant.data[0] = 1
