"""Random programs on real numbers, each with the same function in Python: control flow, closures, data, references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.ir.expr import Constructor, Expr, Function, Var
from relay_hw.ir.types import FuncType, TensorType, TupleType

VEC = TensorType((2,), "float64")
PAIR = TupleType([VEC, VEC])
UNARY = FuncType((VEC,), VEC)

_A = relay.TypeVar("A")
_HEADER = relay.GlobalTypeVar("List")
CONS = Constructor("Cons", [_A, relay.TypeCall(_HEADER, (_A,))], _HEADER, 0)
NIL = Constructor("Nil", [], _HEADER, 1)
TYPES = {"List": relay.TypeData(_HEADER, (_A,), (CONS, NIL))}
LIST = relay.TypeCall(_HEADER, (VEC,))

Env = dict[str, Any]
Meaning = Callable[[Env], Any]


@dataclass(frozen=True)
class Term:
    """An expression of a vector, and what it means to PyTorch."""

    expr: Expr
    meaning: Meaning


Pair = tuple[Callable[..., Expr], Callable[..., Any]]


def _unary(torch: Any) -> tuple[Pair, ...]:
    """Operators of one vector, and the same of PyTorch's."""
    return (
        (op.sin, torch.sin),
        (op.tanh, torch.tanh),
        (op.sigmoid, torch.sigmoid),
        (op.negative, torch.neg),
        (op.nn.softmax, lambda x: torch.softmax(x, -1)),
        (lambda x: op.cumprod(x, 0), lambda x: torch.stack([x[0], x[0] * x[1]])),
        (_turned, lambda x: torch.stack([x[1], x[0]])),
        (lambda x: op.signal.dft(x, op.sin(x))[0], lambda x: torch.stack([x[0] + x[1], x[0] - x[1]])),
        (lambda x: op.take(x, op.const(np.array([1, 1])), 0), lambda x: torch.stack([x[1], x[1]])),
    )


def _turned(x: Expr) -> Expr:
    """The elements from the last on, by places that are values."""
    begin, end, step = (op.const(np.array([at]), "int64") for at in (-1, -3, -1))
    return op.reshape(op.dynamic.strided_slice(x, begin, end, step), (2,))


def _binary(torch: Any) -> tuple[Pair, ...]:
    return (
        (op.add, torch.add),
        (op.multiply, torch.mul),
        (op.subtract, torch.sub),
        (op.maximum, lambda x, y: torch.where(x >= y, x, y)),
        (lambda x, y: op.einsum([x, y], "i,j->j"), lambda x, y: x.sum() * y),
        (lambda x, y: op.contraction.det(op.stack([x, y], 0)) * x, lambda x, y: (x[0] * y[1] - x[1] * y[0]) * x),
    )


@dataclass(frozen=True)
class Builder:
    draw: Callable
    torch: Any
    scope: tuple[Term, ...]
    depth: int
    count: list[int]
    is_static: bool = False

    def inner(self, *more: Term) -> Builder:
        return replace(self, scope=(*self.scope, *more), depth=self.depth - 1)

    def name(self) -> str:
        self.count[0] += 1
        return f"v{self.count[0]}"

    def make(self) -> Term:
        if self.depth <= 0:
            return self.draw(st.sampled_from(self.scope))
        rules = (self.apply, self.combine, self.combine, self.let, self.branch, self.closure, self.pair, self.cell,
                 self.fold, self.power, self.constant, self.twice)  # fmt: skip
        return self.draw(
            st.sampled_from([r for r in rules if not (self.is_static and r in (self.branch, self.twice))])
        )()

    def apply(self) -> Term:
        a, torch = self.inner().make(), self.torch
        relay_op, torch_op = self.draw(st.sampled_from(_unary(torch)))
        return Term(relay_op(a.expr), lambda env: torch_op(a.meaning(env)))

    def combine(self) -> Term:
        a, b, torch = self.inner().make(), self.inner().make(), self.torch
        relay_op, torch_op = self.draw(st.sampled_from(_binary(torch)))
        return Term(relay_op(a.expr, b.expr), lambda env: torch_op(a.meaning(env), b.meaning(env)))

    def constant(self) -> Term:
        number = np.array([0.5, -1.25])
        return Term(relay.Constant(number), lambda env: self.torch.tensor(number))

    def _var(self) -> tuple[str, Var, Term]:
        name = self.name()
        var = Var(name, VEC)
        return name, var, Term(var, lambda env: env[name])

    def let(self) -> Term:
        value = self.inner().make()
        name, var, term = self._var()
        body = self.inner(term).make()
        return Term(relay.Let(var, value.expr, body.expr), lambda env: body.meaning(env | {name: value.meaning(env)}))

    def branch(self) -> Term:
        cond, a, b = (self.inner().make() for _ in range(3))
        test = op.greater(op.sum(cond.expr), relay.const(0.1, "float64"))
        return Term(
            relay.If(test, a.expr, b.expr),
            lambda env: a.meaning(env) if cond.meaning(env).sum() > 0.1 else b.meaning(env),
        )

    def _closure(self) -> tuple[Function, Callable[[Env], Callable[[Any], Any]]]:
        name, var, term = self._var()
        body = self.inner(term).make()
        return Function([var], body.expr, VEC), lambda env: lambda x: body.meaning(env | {name: x})

    def closure(self) -> Term:
        function, meaning = self._closure()
        a, f = self.inner().make(), Var(self.name(), UNARY)
        call = relay.Let(f, function, op.add(relay.Call(f, [a.expr]), relay.Call(f, [relay.Call(f, [a.expr])])))
        return Term(call, lambda env: meaning(env)(a.meaning(env)) + meaning(env)(meaning(env)(a.meaning(env))))

    def twice(self) -> Term:
        """A function that is chosen at run time, from a tuple."""
        (f, first), (g, second) = self._closure(), self._closure()
        a = self.inner().make()
        test = op.less(op.sum(a.expr), relay.const(0.0, "float64"))
        chosen = relay.If(test, relay.TupleGetItem(relay.Tuple([f, g]), 0), g)
        return Term(
            relay.Call(chosen, [a.expr]),
            lambda env: (first if a.meaning(env).sum() < 0 else second)(env)(a.meaning(env)),
        )

    def pair(self) -> Term:
        a, b = self.inner().make(), self.inner().make()
        index = self.draw(st.integers(0, 1))
        var = Var(self.name(), PAIR)
        swapped = relay.Tuple([relay.TupleGetItem(var, 1), relay.TupleGetItem(var, 0)])
        body = relay.Let(var, relay.Tuple([a.expr, b.expr]), relay.TupleGetItem(swapped, index))
        return Term(body, (b, a)[index].meaning)

    def cell(self) -> Term:
        a, b = self.inner().make(), self.inner().make()
        ref, done = Var(self.name()), Var("_")
        write = relay.RefWrite(ref, op.multiply(relay.RefRead(ref), b.expr))
        body = relay.Let(ref, relay.RefCreate(a.expr), relay.Let(done, write, relay.RefRead(ref)))
        return Term(body, lambda env: a.meaning(env) * b.meaning(env))

    def fold(self) -> Term:
        """Recursion over a list: @fold(f, start, list) = f(f(start, x1), x2)."""
        function, meaning = self._closure()
        items = [self.inner().make() for _ in range(self.draw(st.integers(0, 3)))]
        ls: Expr = relay.Call(NIL, [])
        for item in reversed(items):
            ls = relay.Call(CONS, [item.expr, ls])

        def total(env: Env) -> Any:
            found = self.torch.zeros(2, dtype=self.torch.float64)
            for item in reversed(items):
                found = meaning(env)(item.meaning(env)) + found * 0.5
            return found

        return Term(relay.Call(relay.GlobalVar("fold"), [function, ls]), total)

    def power(self) -> Term:
        a, n = self.inner().make(), self.draw(st.integers(0, 3))
        call = relay.Call(relay.GlobalVar("power"), [a.expr, relay.const(n)])
        return Term(call, lambda env: a.meaning(env) ** n if n else self.torch.ones(2, dtype=self.torch.float64))


FUNCTIONS = """#[version = "0.0.5"]
def @fold(%f: fn (Tensor[(2), float64]) -> Tensor[(2), float64], %l: List[Tensor[(2), float64]])
    -> Tensor[(2), float64] {
  match (%l) {
    Cons(%x, %rest) => { %f(%x) + @fold(%f, %rest) * 0.5f64 },
    Nil => { zeros(shape=[2], dtype="float64") },
  }
}
def @power(%x: Tensor[(2), float64], %n: int32) -> Tensor[(2), float64] {
  if (%n == 0) { ones(shape=[2], dtype="float64") } else { @power(%x, %n - 1) * %x }
}
"""


@st.composite
def real_programs(
    draw: Callable, torch: Any, depth: int = 4, is_static: bool = False
) -> tuple[relay.IRModule, Callable[..., Any]]:
    """A module whose `main` takes two vectors and gives a number, and the same function of two torch tensors.

    With `is_static` no decision depends on the vectors.
    """
    x, y = Var("x", VEC), Var("y", VEC)
    scope = (Term(x, lambda env: env["x"]), Term(y, lambda env: env["y"]))
    term = Builder(draw, torch, scope, depth, [0], is_static).make()
    library = relay.fromtext(FUNCTIONS, init_module=relay.IRModule(types=TYPES))
    main = Function([x, y], op.sum(term.expr), TensorType((), "float64"))
    return library.with_functions({"main": main}), lambda a, b: term.meaning({"x": a, "y": b}).sum()
