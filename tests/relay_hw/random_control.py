"""Random float programs with layers, branches, loops, closures, lists and references: what an accelerator can share in.

All values are of one shape; every loop ends. `random_program(seed)` gives a module of `x` and `k`, and its weights are
constants.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np

import relay_hw as relay
from relay_hw.ir.expr import Expr, Function, GlobalVar, Let, Var

WIDTH = 16
VALUE = relay.TensorType((1, WIDTH), "float32")
INT = relay.scalar_type("int32")
_LIST = relay.GlobalTypeVar("List")
_A = relay.TypeVar("A")
CONS = relay.Constructor("Cons", [_A, relay.TypeCall(_LIST, (_A,))], _LIST, 0)
NIL = relay.Constructor("Nil", [], _LIST, 1)
VALUES = relay.TypeCall(_LIST, (VALUE,))
TYPES = {"List": relay.TypeData(_LIST, (_A,), (CONS, NIL))}


class Generator:
    """Builds expressions of type VALUE from what is in scope."""

    def __init__(self, seed: int) -> None:
        self._choose = random.Random(seed)
        self._rng = np.random.default_rng(seed)
        self.functions: dict[str, Function] = {"sum": _sum()}

    def value(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """An expression; `counts` are integers in scope."""
        if depth == 0:
            return self._choose.choice(scope)
        rules: list[Callable[[list[Expr], list[Expr], int], Expr]] = [
            self._layer, self._layer, self._layer, self._sum_of_layers, self._arithmetic, self._branch, self._branch,
            self._loop, self._shared, self._closure, self._list, self._reference, self._join,
        ]  # fmt: skip
        return self._choose.choice(rules)(scope, counts, depth - 1)

    def _weights(self, *shape: int) -> Expr:
        return relay.const(self._rng.uniform(-1, 1, shape).astype("float32") / math.sqrt(shape[-1]))

    def _dense(self, data: Expr, inputs: int = WIDTH) -> Expr:
        layer = relay.nn.dense(data, self._weights(WIDTH, inputs), units=WIDTH)
        if self._choose.random() < 0.5:
            layer = relay.nn.bias_add(layer, self._weights(WIDTH))
        return relay.nn.relu(layer) if self._choose.random() < 0.5 else layer

    def _layer(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        return self._dense(self.value(scope, counts, depth))

    def _sum_of_layers(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        left, right = (
            relay.nn.dense(self.value(scope, counts, depth), self._weights(WIDTH, WIDTH), units=WIDTH) for _ in range(2)
        )
        return relay.tanh(relay.add(left, right))

    def _join(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        parts = relay.Tuple([self.value(scope, counts, depth), self._choose.choice(scope)])
        return self._dense(relay.concatenate(parts, axis=1), 2 * WIDTH)

    def _arithmetic(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        left, right = self.value(scope, counts, depth), self._choose.choice(scope)
        return self._choose.choice((relay.add, relay.multiply, relay.maximum))(left, right)

    def _test(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        if counts and self._choose.random() < 0.5:
            return relay.less(self._choose.choice(counts), relay.const(self._choose.randint(0, 3)))
        total = relay.sum(self.value(scope, counts, min(depth, 1)))
        return relay.less(total, relay.const(np.float32(self._choose.uniform(-1, 1))))

    def _branch(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        cond = self._test(scope, counts, depth)
        return relay.If(cond, self.value(scope, counts, depth), self.value(scope, counts, depth))

    def _loop(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A global or local function that calls itself last, up to three times, with its state and what it captured."""
        name = f"loop_{len(self.functions)}"
        n, state, kept = Var("n", INT), Var("state", VALUE), Var("kept", VALUE)
        is_local = self._choose.random() < 0.5
        own: Expr = Var(name) if is_local else GlobalVar(name)
        around = scope if is_local else []
        self.functions[name] = _sum()  # the name is taken
        step = self.value([*around, state, kept], [n], depth)
        again = relay.Call(own, [relay.subtract(n, relay.const(1)), relay.tanh(step), kept])
        if self._choose.random() < 0.3:
            again = relay.add(again, kept)
        function = Function([n, state, kept], relay.If(relay.less(n, relay.const(1)), state, again), VALUE)
        start = self._choose.choice([relay.const(self._choose.randint(0, 3)), *counts])
        bounded = relay.minimum(start, relay.const(3))
        call = relay.Call(own, [bounded, self.value(scope, counts, depth), self._choose.choice(scope)])
        if not is_local:
            self.functions[name] = function
            return call
        del self.functions[name]
        assert isinstance(own, Var)
        return Let(own, function, call)

    def _shared(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        """A value used several times, with and without a name."""
        value = self.value(scope, counts, depth)
        if self._choose.random() < 0.5:
            return self.value([*scope, value, value], counts, depth)
        name = Var("v", VALUE)
        return Let(name, value, self.value([*scope, name, name], counts, depth))

    def _closure(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        a, f = Var("a", VALUE), Var("f")
        function = Function([a], self.value([*scope, a], counts, depth), VALUE)
        once = relay.Call(f, [self._choose.choice(scope)])
        return Let(f, function, relay.Call(f, [once]) if self._choose.random() < 0.5 else once)

    def _list(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        items: Expr = relay.Call(NIL, [])
        for _ in range(self._choose.randint(0, 3)):
            items = relay.Call(CONS, [self.value(scope, counts, min(depth, 1)), items])
        head, rest = Var("head"), Var("rest")
        cons = relay.PatternConstructor(CONS, [relay.PatternVar(head), relay.PatternVar(rest)])
        first = relay.tanh(relay.Call(GlobalVar("sum"), [rest, self._dense(head)]))
        arms = [relay.Clause(cons, first), relay.Clause(relay.PatternWildcard(), self._choose.choice(scope))]
        return relay.Match(items, arms)

    def _reference(self, scope: list[Expr], counts: list[Expr], depth: int) -> Expr:
        cell, unit = Var("cell"), Var("unit")
        new = self.value([*scope, relay.RefRead(cell)], counts, depth)
        body = Let(unit, relay.RefWrite(cell, new), relay.add(relay.RefRead(cell), self._choose.choice(scope)))
        return Let(cell, relay.RefCreate(self.value(scope, counts, min(depth, 1))), body)


def _sum() -> Function:
    """The sum of a list and a value."""
    items, total, head, rest = Var("items", VALUES), Var("total", VALUE), Var("head"), Var("rest")
    cons = relay.PatternConstructor(CONS, [relay.PatternVar(head), relay.PatternVar(rest)])
    more = relay.Call(GlobalVar("sum"), [rest, relay.add(total, head)])
    arms = [relay.Clause(cons, more), relay.Clause(relay.PatternConstructor(NIL), total)]
    return Function([items, total], relay.Match(items, arms), VALUE)


def random_program(seed: int, depth: int = 5) -> relay.IRModule:
    """A module whose `main` takes a value `x` and an integer `k`."""
    x, k = Var("x", VALUE), Var("k", INT)
    generator = Generator(seed)
    body = generator.value([x], [k], depth)
    return relay.IRModule({**generator.functions, "main": Function([x, k], body, VALUE)}, TYPES)


def inputs(count: int, seed: int) -> dict[str, Any]:
    """Samples of `x` and `k`."""
    rng = np.random.default_rng(seed)
    return {"x": rng.normal(size=(count, WIDTH)).astype("float32"), "k": np.arange(count, dtype="int32") % 4}
