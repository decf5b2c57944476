"""DeadCodeElimination, RemoveUnusedFunctions and InlineLet."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Call, Function, GlobalVar, Let, RefCreate, RefRead, RefWrite, Tuple, Var
from relay_hw.ir.types import FuncType, TensorType
from relay_hw.ir.visit import post_order
from relay_hw.transform import DeadCodeElimination, InlineLet, RemoveUnusedFunctions
from tests.relay_hw.transform.checks import (
    assert_close,
    assert_keeps_result,
    assert_same_module,
    module,
    operators,
    var,
)


def _lets(mod):
    return [node.var.name_hint for node in post_order(mod["main"]) if isinstance(node, Let)]


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([DeadCodeElimination(), InlineLet(), RemoveUnusedFunctions()]))
def test_keeps_the_result(seed, step):
    assert_keeps_result(step, seed)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6), st.integers(0, 6))
def test_chains_of_bindings(pairs, last):
    """Each binding adds two earlier values; some are dead. Both passes keep the result, and only live ones stay."""
    x = var("x", 3)
    names = [x]
    bound = []
    for index, (a, b) in enumerate(pairs):
        new = Var(f"v{index}")
        bound.append((new, op.add(names[a % len(names)], names[b % len(names)])))
        names.append(new)
    body = op.negative(names[last % len(names)])
    for new, value in reversed(bound):
        body = Let(new, value, body)
    mod, inputs = module(body, x), {"x": np.arange(3, dtype="float32")}
    live = DeadCodeElimination()(mod)
    assert_close(evaluate(mod, inputs), evaluate(live, inputs), str(pairs))
    for node in post_order(live["main"]):
        if isinstance(node, Let):
            assert any(part is node.var for part in post_order(node.body))
    inlined = InlineLet()(mod)
    assert not _lets(inlined)
    assert_close(evaluate(mod, inputs), evaluate(inlined, inputs), str(pairs))


def test_effects_stay():
    r, unit, dead = Var("r"), Var("unit"), Var("dead")
    one, two = op.const(np.float32(1)), op.const(np.float32(2))
    body = Let(r, RefCreate(one), Let(unit, RefWrite(r, two), Let(dead, op.add(one, two), RefRead(r))))
    new = DeadCodeElimination()(module(body))
    assert _lets(new) == ["unit", "r"]
    assert evaluate(new, []) == 2
    kept = InlineLet()(module(body))
    assert _lets(kept) == ["unit", "r"]
    assert evaluate(kept, []) == 2


def test_a_call_of_an_unknown_function_stays():
    ty = FuncType((), TensorType(()))
    f, dead = Var("f", ty), Var("dead")
    body = Let(dead, Call(f, []), op.const(np.float32(1)))
    assert _lets(DeadCodeElimination()(module(body, f))) == ["dead"]


def test_a_dead_recursive_function_goes():
    loop, n = Var("loop", FuncType((TensorType(()),), TensorType(()))), var("n")
    body = Let(loop, Function([n], Call(loop, [n])), op.const(np.float32(1)))
    new = DeadCodeElimination()(module(body))
    assert _lets(new) == []


def test_a_recursive_function_keeps_its_name():
    loop, n = Var("loop", FuncType((TensorType(()),), TensorType(()))), var("n")
    body = Let(loop, Function([n], Call(loop, [n])), Tuple([loop, op.const(np.float32(1))]))
    assert _lets(InlineLet()(module(body))) == ["loop"]


def test_inlining_keeps_sharing():
    x, a = var("x", 2), Var("a")
    body = Let(a, op.exp(x), op.add(a, op.multiply(a, a)))
    new = InlineLet()(module(body, x))
    assert operators(new) == ["exp", "multiply", "add"]


def test_unused_functions_go_and_called_ones_stay():
    x, y, z = var("x", 2), var("y", 2), var("z", 2)
    mod = module(Call(GlobalVar("used"), [x]), x).with_functions(
        {
            "used": Function([y], Call(GlobalVar("inner"), [y])),
            "inner": Function([z], op.exp(z)),
            "unused": Function([var("w", 2)], op.const(np.float32(0))),
        }
    )
    assert list(RemoveUnusedFunctions()(mod).functions) == ["main", "used", "inner"]
    assert "unused" in RemoveUnusedFunctions(("main", "unused"))(mod).functions
    assert_same_module(RemoveUnusedFunctions(), RemoveUnusedFunctions()(mod))
