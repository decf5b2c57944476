"""Random well-typed programs: every node kind, shared nodes, closures, data types, references, loops, printing.

`modules()` is a hypothesis strategy; `random_module(seed)` is the same generator on a seed, many times faster.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.ir.expr import Constructor, Expr, Function, GlobalVar, Var
from relay_hw.ir.types import FuncType, RefType, TupleType, Type

T = TypeVar("T")

INT = relay.scalar_type("int32")
BOOL = relay.scalar_type("bool")
VEC = relay.TensorType((3,), "int64")
GRID = relay.TensorType((2, 3), "int64")
FLOAT = relay.scalar_type("float32")
PAIR = TupleType([INT, VEC])
SINGLE = TupleType([BOOL])
UNARY = FuncType((INT,), INT)
LIST = relay.TypeCall(relay.GlobalTypeVar("List"), (INT,))
TREE = relay.TypeCall(relay.GlobalTypeVar("Tree"), (VEC,))
CELL = RefType(INT)

_A = relay.TypeVar("A")
_HEADER = relay.GlobalTypeVar("List")
CONS = Constructor("Cons", [_A, relay.TypeCall(_HEADER, (_A,))], _HEADER, 0)
NIL = Constructor("Nil", [], _HEADER, 1)
_B = relay.TypeVar("B")
_TREE = relay.GlobalTypeVar("Tree")
LEAF = Constructor("Leaf", [_B], _TREE, 0)
NODE = Constructor("Node", [relay.TypeCall(_TREE, (_B,)), relay.TypeCall(_TREE, (_B,))], _TREE, 1)
TYPES = {
    "List": relay.TypeData(_HEADER, (_A,), (CONS, NIL)),
    "Tree": relay.TypeData(_TREE, (_B,), (LEAF, NODE)),
}

PLAIN: tuple[Type, ...] = (INT, BOOL, VEC, GRID, FLOAT, PAIR, SINGLE, UNARY, LIST, TREE)
RESULTS: tuple[Type, ...] = (INT, VEC, GRID, BOOL, FLOAT, PAIR, SINGLE, LIST, TREE)
INPUTS = {"x": np.int32(7), "v": np.array([1, -2, 3], "int64"), "b": np.bool_(True)}

_NAMES = ("x", "y", "v1", "a.b", "onnx::Conv_1", "1st", "fn", "")
_INTS = (0, 1, 3, -5, 2**31 - 1, -(2**31))


class Choices(Protocol):
    """Where the generator takes its decisions from."""

    def pick(self, items: Sequence[T]) -> T: ...

    def flip(self) -> bool: ...

    def number(self, low: int, high: int) -> int: ...

    def real(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Drawn:
    """Decisions that hypothesis takes, and shrinks."""

    draw: Callable[..., Any]

    def pick(self, items: Sequence[T]) -> T:
        return self.draw(st.sampled_from(items))

    def flip(self) -> bool:
        return self.draw(st.booleans())

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def real(self) -> float:
        return self.draw(st.floats(width=32))


@dataclass(frozen=True, slots=True)
class Seeded:
    """Decisions of a seeded generator of random numbers."""

    random: random.Random

    def pick(self, items: Sequence[T]) -> T:
        return items[int(self.random.random() * len(items))]

    def flip(self) -> bool:
        return self.random.random() < 0.5

    def number(self, low: int, high: int) -> int:
        return low + int(self.random.random() * (high - low + 1))

    def real(self) -> float:
        return self.pick((0.0, -0.0, 1.0, 0.5, -3.25, 1e30, float("inf"), self.random.uniform(-4, 4)))


@dataclass(slots=True)
class Builder:
    """Makes expressions of a wanted type. `pool` holds nodes that may be used again in this scope."""

    choose: Choices
    has_effects: bool
    pool: list[tuple[Type, Expr]] = field(default_factory=list)
    depth: int = 4

    def inner(self, bound: Sequence[tuple[Type, Expr]] = ()) -> Builder:
        """For a scope with more variables: what is made there stays there."""
        return replace(self, pool=[*self.pool, *bound], depth=self.depth - 1)

    def deeper(self) -> Builder:
        """For a part in this scope: what is made there may be shared."""
        return replace(self, depth=self.depth - 1)

    def part(self, ty: Type) -> Expr:
        return self.deeper().make(ty)

    def var(self, ty: Type) -> Var:
        name = self.choose.pick(_NAMES)
        return Var(name, ty if isinstance(ty, FuncType) or self.choose.flip() else None)

    def make(self, ty: Type) -> Expr:
        known = [node for known_type, node in self.pool if known_type == ty]
        if known and (self.depth <= 0 or self.choose.number(0, 3) == 0):
            return self.choose.pick(known)
        node = self.leaf(ty) if self.depth <= 0 else self.choose.pick(self.rules(ty))(ty)
        self.pool.append((ty, node))
        return node

    def leaf(self, ty: Type) -> Expr:
        choose = self.choose
        if ty == INT:
            return relay.Constant(np.int32(choose.pick(_INTS)))
        if ty == BOOL:
            return relay.Constant(np.bool_(choose.flip()))
        if ty == FLOAT:
            return relay.Constant(np.float32(choose.real()))
        if ty == VEC:
            return relay.Constant(np.array([choose.number(-9, 9) for _ in range(3)], "int64"))
        if ty == GRID:
            return relay.Constant(np.full((2, 3), choose.number(-2, 9), "int64"))
        if isinstance(ty, TupleType):
            return relay.Tuple([self.leaf(part) for part in ty.fields])
        if ty == LIST:
            # An empty list alone leaves its element type open.
            return relay.Call(CONS, [self.leaf(INT), relay.Call(NIL, [])])
        if ty == TREE:
            return relay.Call(LEAF, [self.leaf(VEC)])
        if isinstance(ty, RefType):
            return relay.RefCreate(self.leaf(ty.value))
        assert isinstance(ty, FuncType)
        param = Var("p", ty.arg_types[0])
        return Function([param], param, ty.ret_type)

    def rules(self, ty: Type) -> list[Callable[[Type], Expr]]:
        rules: list[Callable[[Type], Expr]] = [self.leaf, self.let, self.branch, self.call, self.match, self.project]
        if ty in (INT, VEC, GRID):
            rules += [self.arithmetic, self.arithmetic, self.loop]
        if ty in (VEC, GRID):
            rules += [self.tensor, self.tensor]
        if ty == INT:
            rules += [self.recurse]
        if ty == BOOL:
            rules += [self.compare]
        if ty == FLOAT:
            rules += [self.convert]
        if isinstance(ty, TupleType):
            rules += [self.tuple]
        if ty in (LIST, TREE):
            rules += [self.data, self.data]
        if isinstance(ty, FuncType):
            rules += [self.function, self.function]
        if self.has_effects and ty in (INT, VEC, BOOL):
            rules += [self.print]
        if self.has_effects and ty == INT:
            rules += [self.read, self.write]
        return rules

    def arithmetic(self, ty: Type) -> Expr:
        op = self.choose.pick((relay.add, relay.subtract, relay.multiply, relay.maximum))
        other = VEC if ty == GRID and self.choose.flip() else ty
        return op(self.part(ty), self.part(other))

    def tensor(self, ty: Type) -> Expr:
        """Reductions, movements and layers between vectors and grids."""
        kind = self.choose.number(0, 4)
        if ty == VEC:
            return (
                lambda: relay.sum(self.part(GRID), axis=0),
                lambda: relay.max(self.part(GRID), axis=[0]),
                lambda: relay.reverse(self.part(VEC), axis=0),
                lambda: relay.where(self.part(BOOL), self.part(VEC), self.part(VEC)),
                lambda: relay.TupleGetItem(relay.split(relay.reshape(self.part(GRID), (6,)), 2, axis=0), 1),
            )[kind]()
        return (
            lambda: relay.stack([self.part(VEC), self.part(VEC)], axis=0),
            lambda: relay.nn.relu(self.part(GRID)),
            lambda: relay.transpose(relay.reshape(self.part(GRID), (3, 2)), axes=[1, 0]),
            lambda: relay.nn.dense(self.part(GRID), relay.Constant(np.eye(3, dtype="int64")), units=None),
            lambda: relay.concatenate([relay.expand_dims(self.part(VEC), axis=0)] * 2, axis=0),
        )[kind]()

    def compare(self, ty: Type) -> Expr:
        op = self.choose.pick((relay.less, relay.equal, relay.greater_equal))
        return op(self.part(INT), self.part(INT))

    def convert(self, ty: Type) -> Expr:
        if self.choose.flip():
            return relay.cast(self.part(INT), "float32")
        return self.choose.pick((relay.negative, relay.nn.relu, relay.copy, relay.abs))(self.part(FLOAT))

    def tuple(self, ty: Type) -> Expr:
        assert isinstance(ty, TupleType)
        return relay.Tuple([self.part(part) for part in ty.fields])

    def project(self, ty: Type) -> Expr:
        if ty == VEC:
            return relay.TupleGetItem(self.part(PAIR), 1)
        return relay.TupleGetItem(relay.Tuple([self.part(INT), self.part(ty)]), 1)

    def let(self, ty: Type) -> Expr:
        kind = self.choose.pick((*PLAIN, CELL) if self.has_effects else PLAIN)
        value = self.part(kind)
        var = self.var(kind)
        return relay.Let(var, value, self.inner([(kind, var)]).make(ty))

    def branch(self, ty: Type) -> Expr:
        return relay.If(self.part(BOOL), self.part(ty), self.part(ty))

    def function(self, ty: Type) -> Expr:
        assert isinstance(ty, FuncType)
        if self.choose.number(0, 4) == 0:
            return GlobalVar(self.choose.pick(("even", "odd")))
        param = Var("p", ty.arg_types[0])
        return Function([param], self.inner([(ty.arg_types[0], param)]).make(ty.ret_type), ty.ret_type)

    def call(self, ty: Type) -> Expr:
        if ty == INT and self.choose.flip():
            return relay.Call(self.part(UNARY), [self.part(INT)])
        kind = self.choose.pick(PLAIN)
        param = Var("q", kind)
        return relay.Call(Function([param], self.inner([(kind, param)]).make(ty)), [self.part(kind)])

    def loop(self, ty: Type) -> Expr:
        """A local function that calls itself at most three times."""
        name, i, acc = Var("loop", FuncType((INT, ty), ty)), Var("i", INT), Var("acc", ty)
        step = self.inner([(INT, i), (ty, acc)]).make(ty)
        again = relay.Call(name, [relay.subtract(i, relay.const(1)), step])
        body = relay.If(relay.less_equal(i, relay.const(0)), acc, again)
        start = relay.Call(name, [relay.const(self.choose.number(0, 3)), self.part(ty)])
        return relay.Let(name, Function([i, acc], body, ty), start)

    def recurse(self, ty: Type) -> Expr:
        if self.choose.flip():
            return relay.Call(GlobalVar("length"), [self.part(LIST)])
        return relay.Call(GlobalVar(self.choose.pick(("even", "odd"))), [self.part(INT)])

    def data(self, ty: Type) -> Expr:
        if ty == TREE:
            if self.choose.flip():
                return relay.Call(LEAF, [self.part(VEC)])
            return relay.Call(NODE, [self.part(TREE), self.part(TREE)])
        if self.choose.number(0, 2) == 0:
            return relay.Call(GlobalVar("map"), [self.part(UNARY), self.part(LIST)])
        return relay.Call(CONS, [self.part(INT), self.part(LIST)])

    def match(self, ty: Type) -> Expr:
        return self.choose.pick((self.match_pair, self.match_list, self.match_tree))(ty)

    def match_pair(self, ty: Type) -> Expr:
        a, b = self.var(INT), self.var(VEC)
        pattern = relay.PatternTuple([relay.PatternVar(a), relay.PatternVar(b)])
        arm = self.inner([(INT, a), (VEC, b)]).make(ty)
        return relay.Match(self.part(PAIR), [relay.Clause(pattern, arm)])

    def match_list(self, ty: Type) -> Expr:
        head, tail = self.var(INT), self.var(LIST)
        cons = relay.PatternConstructor(CONS, [relay.PatternVar(head), relay.PatternVar(tail)])
        rest = relay.PatternWildcard() if self.choose.flip() else relay.PatternConstructor(NIL)
        arms = [
            relay.Clause(cons, self.inner([(INT, head), (LIST, tail)]).make(ty)),
            relay.Clause(rest, self.part(ty)),
        ]
        return relay.Match(self.part(LIST), arms, self.choose.flip())

    def match_tree(self, ty: Type) -> Expr:
        """A nested pattern, a second one that overlaps with it, and a variable for the rest."""
        a, b, whole = self.var(VEC), self.var(TREE), self.var(TREE)
        leaf = relay.PatternConstructor(LEAF, [relay.PatternVar(a)])
        node = relay.PatternConstructor(NODE, [leaf, relay.PatternVar(b)])
        arms = [
            relay.Clause(node, self.inner([(VEC, a), (TREE, b)]).make(ty)),
            relay.Clause(relay.PatternConstructor(LEAF, [relay.PatternWildcard()]), self.part(ty)),
            relay.Clause(relay.PatternVar(whole), self.inner([(TREE, whole)]).make(ty)),
        ]
        return relay.Match(self.part(TREE), arms)

    def print(self, ty: Type) -> Expr:
        return relay.debug(self.part(ty))

    def read(self, ty: Type) -> Expr:
        return relay.RefRead(self.part(CELL))

    def write(self, ty: Type) -> Expr:
        done = relay.RefWrite(self.part(CELL), self.part(INT))
        return relay.Let(Var("_"), done, self.part(ty))


def _length() -> Function:
    """Recursion on a polymorphic list, the recursive call inside an arm."""
    a = relay.TypeVar("A")
    ls, rest = Var("l", relay.TypeCall(_HEADER, (a,))), Var("rest")
    cons = relay.PatternConstructor(CONS, [relay.PatternWildcard(), relay.PatternVar(rest)])
    more = relay.add(relay.Call(GlobalVar("length"), [rest]), relay.const(1))
    arms = [relay.Clause(cons, more), relay.Clause(relay.PatternConstructor(NIL), relay.const(0))]
    return Function([ls], relay.Match(ls, arms), INT, [a])


def _map() -> Function:
    """A higher-order polymorphic function."""
    a, b = relay.TypeVar("A"), relay.TypeVar("B")
    f, ls = Var("f", FuncType((a,), b)), Var("l", relay.TypeCall(_HEADER, (a,)))
    head, tail = Var("head"), Var("tail")
    cons = relay.PatternConstructor(CONS, [relay.PatternVar(head), relay.PatternVar(tail)])
    more = relay.Call(CONS, [relay.Call(f, [head]), relay.Call(GlobalVar("map"), [f, tail])])
    arms = [relay.Clause(cons, more), relay.Clause(relay.PatternConstructor(NIL), relay.Call(NIL, []))]
    return Function([f, ls], relay.Match(ls, arms), relay.TypeCall(_HEADER, (b,)), [a, b])


def _parity(other: str, at_zero: int) -> Function:
    """Mutual recursion, at most seven calls deep."""
    n = Var("n", INT)
    small = relay.minimum(n, relay.const(7))
    again = relay.Call(GlobalVar(other), [relay.subtract(small, relay.const(1))])
    return Function([n], relay.If(relay.less_equal(small, relay.const(0)), relay.const(at_zero), again), INT)


def build_module(choose: Choices, has_effects: bool, depth: int) -> relay.IRModule:
    """A module with library functions and a `main` of an integer, a vector and a boolean."""
    x, v, b = Var("x", INT), Var("v", VEC), Var("b", BOOL)
    pool: list[tuple[Type, Expr]] = [(INT, x), (VEC, v), (BOOL, b)]
    body = Builder(choose, has_effects, pool, depth).make(choose.pick(RESULTS))
    functions = {"length": _length(), "map": _map(), "even": _parity("odd", 1), "odd": _parity("even", 0)}
    return relay.IRModule({**functions, "main": Function([x, v, b], body)}, TYPES)


@st.composite
def modules(draw: Callable[..., Any], has_effects: bool = True) -> relay.IRModule:
    """Random modules; their arguments are `INPUTS`."""
    return build_module(Drawn(draw), has_effects, 4)


def random_module(seed: int, has_effects: bool = True, depth: int = 5) -> relay.IRModule:
    """The module of this seed; its arguments are `INPUTS`."""
    return build_module(Seeded(random.Random(seed)), has_effects, depth)
