"""Equality up to names, and its hash."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import relay_hw as relay
from relay_hw.analysis import structural_equal, structural_hash
from relay_hw.ir.expr import Expr
from tests.relay_hw.programs import modules

F = relay.TensorType((2,))
I32 = relay.scalar_type("int32")


def identity(name: str, ty: relay.Type | None = F, **attrs: Any) -> relay.Function:
    x = relay.Var(name, ty)
    return relay.Function([x], x, None, [], attrs)


def pair(shared: bool) -> Expr:
    one = relay.add(relay.const(1), relay.const(2))
    return relay.Tuple([one, one if shared else relay.add(relay.const(1), relay.const(2))])


def swapped(first: bool) -> relay.Function:
    x, y = relay.Var("x", F), relay.Var("y", F)
    return relay.Function([x, y], x if first else y)


def let(name: str) -> Expr:
    v = relay.var(name)
    return relay.Let(v, relay.const(1), relay.add(v, v))


def poly(name: str) -> relay.Function:
    a = relay.TypeVar(name)
    x = relay.Var("x", a)
    return relay.Function([x], x, a, [a])


FREE = relay.var("free", shape=(2,))

EQUAL = [
    (identity("x"), identity("y")),
    (pair(True), pair(True)),
    (let("a"), let("b")),
    (poly("A"), poly("B")),
    (relay.nn.relu(FREE), relay.nn.relu(FREE)),
    (identity("x", Primitive=1), identity("y", Primitive=1)),
    (relay.const(float("nan")), relay.const(float("nan"))),
    (relay.TupleType([F]), relay.TupleType([F])),
    (relay.GlobalTypeVar("T"), relay.TypeCall(relay.GlobalTypeVar("T"), ())),
    (I32, relay.scalar_type("int32")),
    (relay.clip(FREE, 0, 6), relay.clip(FREE, 0.0, 6.0)),
]

DIFFERENT = [
    (identity("x"), identity("x", I32)),
    (identity("x"), identity("x", None)),
    (pair(True), pair(False)),
    (pair(False), pair(True)),
    (swapped(True), swapped(False)),
    (relay.const(1), relay.const(2)),
    (relay.const(0.0), relay.const(-0.0)),
    (relay.const(1), relay.Constant(np.int64(1))),
    (relay.var("x"), relay.var("x")),
    (relay.nn.relu(FREE), relay.negative(FREE)),
    (relay.nn.softmax(FREE, axis=0), relay.nn.softmax(FREE, axis=1)),
    (identity("x", Primitive=1), identity("x")),
    (relay.TupleGetItem(FREE, 0), relay.TupleGetItem(FREE, 1)),
    (relay.Tuple([FREE]), relay.Tuple([FREE, FREE])),
    (relay.GlobalVar("f"), relay.GlobalVar("g")),
    (relay.RefCreate(FREE), relay.RefRead(FREE)),
    (relay.Match(FREE, []), relay.Match(FREE, [], complete=False)),
    (relay.TensorType((2,)), relay.TensorType((relay.ANY,))),
    (relay.TypeVar("A"), relay.TypeVar("A")),
    (I32, relay.const(1)),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal(left: Any, right: Any) -> None:
    assert structural_equal(left, right) and structural_equal(right, left)
    assert structural_hash(left) == structural_hash(right)


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_different(left: Any, right: Any) -> None:
    assert not structural_equal(left, right) and not structural_equal(right, left)


def test_hashes_of_different_programs_differ() -> None:
    """Not promised, but hashes that never differ would be useless. Sharing and free names are all they may miss."""
    pairs = [
        p
        for p in DIFFERENT
        if not isinstance(p[0], (relay.Var, relay.TypeVar)) and p[0] not in (DIFFERENT[2][0], DIFFERENT[3][0])
    ]
    assert all(structural_hash(left) != structural_hash(right) for left, right in pairs)


def test_hash_is_the_same_in_every_process() -> None:
    assert structural_hash(relay.IRModule.from_expr(identity("x"))) == structural_hash(
        relay.IRModule.from_expr(identity("z"))
    )
    code = "import relay_hw as r; x = r.var('x', shape=(2,)); print(r.analysis.structural_hash(r.Function([x], x)))"
    env = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert int(done.stdout) == structural_hash(identity("x"))


def test_match_patterns_count() -> None:
    header = relay.GlobalTypeVar("T")
    a, b = (relay.Constructor(name, [I32], header, tag) for tag, name in enumerate("AB"))

    def match(constructor: relay.Constructor, name: str) -> Expr:
        v = relay.var(name)
        return relay.Match(FREE, [relay.Clause(relay.PatternConstructor(constructor, [relay.PatternVar(v)]), v)])

    assert structural_equal(match(a, "x"), match(a, "y"))
    assert not structural_equal(match(a, "x"), match(b, "x"))
    wild = relay.Match(FREE, [relay.Clause(relay.PatternConstructor(a, [relay.PatternWildcard()]), FREE)])
    assert not structural_equal(match(a, "x"), wild)


def test_modules() -> None:
    mod = relay.IRModule({"f": identity("x"), "g": let_function()})
    assert structural_equal(mod, relay.IRModule({"g": let_function(), "f": identity("y")}))
    assert not structural_equal(mod, relay.IRModule({"f": identity("x")}))
    header = relay.GlobalTypeVar("T")
    one = relay.TypeData(header, (), (relay.Constructor("C", [I32], header),))
    two = relay.TypeData(header, (), (relay.Constructor("C", [F], header),))
    assert not structural_equal(relay.IRModule({}, {"T": one}), relay.IRModule({}, {"T": two}))


def let_function() -> relay.Function:
    return relay.Function([], let("a"))


def test_no_depth_limit_and_no_blow_up() -> None:
    def chain(name: str) -> Expr:
        x = relay.var(name)
        expr: Expr = x
        for _ in range(20_000):
            expr = relay.add(expr, expr)
        return relay.Function([x], expr)

    assert structural_equal(chain("a"), chain("b"))
    assert structural_hash(chain("a")) == structural_hash(chain("b"))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(modules())
def test_inference_keeps_programs_equal_to_themselves(mod: relay.IRModule) -> None:
    typed = relay.analysis.infer_type(mod)
    again = relay.analysis.infer_type(mod)
    assert structural_equal(typed, again) and structural_hash(typed) == structural_hash(again)
