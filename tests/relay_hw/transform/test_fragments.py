"""OutlineFragments: every operator is in a fragment, fragments are maximal, and nothing is computed more often."""

from __future__ import annotations

from collections import Counter

import pytest

import relay_hw as relay
from relay_hw.ir.expr import Call, Constant, Expr, Op, Trait
from relay_hw.ir.visit import post_order
from relay_hw.transform import InferType, OutlineFragments, Pipeline, ToANormalForm, simplify_pipeline
from relay_hw.transform.fragment_bodies import is_closed
from relay_hw.transform.fragments import FRAGMENT, fragments_of, is_graph
from relay_hw.transform.graph import dataflow_order
from tests.relay_hw import recurrent
from tests.relay_hw.programs import random_module
from tests.relay_hw.random_control import random_program
from tests.relay_hw.transform.reference import reference_result

HEADER = '#[version = "0.0.5"]\n'


def operators(mod: relay.IRModule) -> Counter[str]:
    """How often each operator is called in the text of a module."""
    return Counter(
        node.op.name
        for function in mod.functions.values()
        for node in post_order(function)
        if isinstance(node, Call) and isinstance(node.op, Op)
    )


def is_work(node: Expr) -> bool:
    if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.has(Trait.EFFECT):
        return False
    return all(is_closed(part.type) for part in (node, *node.args) if not isinstance(part, Constant))


@pytest.mark.parametrize("seed", range(30))
def test_every_operator_is_in_a_fragment_once(seed: int) -> None:
    mod = InferType()(random_module(seed, depth=5) if seed % 2 else random_program(seed))
    if is_graph(mod):
        assert OutlineFragments()(mod) is mod
        return
    plain = ToANormalForm()(mod)
    new = OutlineFragments()(plain)
    for name, function in new.functions.items():
        if FRAGMENT in function.attrs:
            dataflow_order(function.body, name)
            assert all(is_closed(param.type) for param in function.params)
        else:
            assert not [node for node in post_order(function) if is_work(node)], name
    before, after = operators(plain), operators(new)
    # A value that nothing reads is not computed.
    assert all(after[op] <= before[op] for op in after), (before, after)


def test_a_second_time_changes_nothing() -> None:
    once = OutlineFragments()(InferType()(random_program(3)))
    assert OutlineFragments()(once) is once


def test_fragments_are_maximal() -> None:
    """A cell of an LSTM is one fragment, its test another; so are leaves and nodes of a tree."""
    for program, count in ((recurrent.lstm(), 2), (recurrent.treelstm(), 2), (recurrent.newton(), 2)):
        mod = OutlineFragments()(simplify_pipeline()(InferType()(program[0])))
        assert len(fragments_of(mod)) == count


def test_what_calls_separate_is_separate() -> None:
    mod = relay.fromtext(
        HEADER + "def @f(%x: float32) -> float32 { if (%x < 0f) { %x } else { @f(%x - 1f) } }"
        "def @main(%x: float32, %y: float32) -> (float32, float32) {"
        " let %a = exp(%x); let %b = @f(%a); let %c = exp(%y) * %a; let %d = %b + %c; (%d, @f(%c)) }"
    )
    new = OutlineFragments()(InferType()(mod))
    fragments = [operators(relay.IRModule({"main": new[name]})) for name in fragments_of(new)]
    assert Counter({"exp": 2, "multiply": 1}) in fragments and Counter({"add": 1}) in fragments
    assert reference_result(new, args=[2.5, 0.5]) == reference_result(InferType()(mod), args=[2.5, 0.5])


def test_type_parameters_stay_outside() -> None:
    mod = relay.fromtext(
        HEADER + "def @twice[t: BaseType](%x: Tensor[(2), t]) -> Tensor[(2), t] { %x + %x }"
        "def @main(%x: Tensor[(2), float32]) { exp(@twice(%x)) }"
    )
    new = OutlineFragments()(InferType()(mod))
    assert [operators(relay.IRModule({"main": new[name]})) for name in fragments_of(new)] == [Counter({"exp": 1})]


def test_long_blocks_need_no_stack() -> None:
    x, c = relay.var("x", shape=(2,)), relay.var("c", dtype="bool", shape=())
    body: Expr = relay.If(c, relay.exp(x), x)
    for k in range(2000):
        body = relay.add(body, x) if k % 100 else relay.If(c, body, x)
    mod = InferType()(relay.IRModule({"main": relay.Function([x, c], body)}))
    new = Pipeline([OutlineFragments()])(mod)
    assert len(fragments_of(new)) > 10
