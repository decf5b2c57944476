"""Random well-typed programs: every node kind, shared nodes, closures, data types, references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw.ir.expr import Constructor, Expr, Function, Var
from relay_hw.ir.types import FuncType, RefType, TupleType, Type

INT = relay.scalar_type("int32")
BOOL = relay.scalar_type("bool")
VEC = relay.TensorType((3,), "int64")
FLOAT = relay.scalar_type("float32")
PAIR = TupleType([INT, VEC])
SINGLE = TupleType([BOOL])
UNARY = FuncType((INT,), INT)
LIST = relay.TypeCall(relay.GlobalTypeVar("List"), (INT,))
CELL = RefType(INT)

_A = relay.TypeVar("A")
_HEADER = relay.GlobalTypeVar("List")
CONS = Constructor("Cons", [_A, relay.TypeCall(_HEADER, (_A,))], _HEADER, 0)
NIL = Constructor("Nil", [], _HEADER, 1)
TYPES = {"List": relay.TypeData(_HEADER, (_A,), (CONS, NIL))}

PLAIN: tuple[Type, ...] = (INT, BOOL, VEC, FLOAT, PAIR, SINGLE, UNARY, LIST)


@dataclass(slots=True)
class Builder:
    """Makes expressions of a wanted type. `pool` holds nodes that may be used again in this scope."""

    draw: Callable
    has_effects: bool
    pool: list[tuple[Type, Expr]] = field(default_factory=list)
    depth: int = 4
    count: list[int] = field(default_factory=lambda: [0])

    def inner(self, bound: Sequence[tuple[Type, Expr]] = ()) -> Builder:
        """For a scope with more variables: what is made there stays there."""
        return replace(self, pool=[*self.pool, *bound], depth=self.depth - 1)

    def deeper(self) -> Builder:
        """For a part in this scope: what is made there may be shared."""
        return replace(self, depth=self.depth - 1)

    def var(self, ty: Type) -> Var:
        self.count[0] += 1
        name = self.draw(st.sampled_from(("x", "y", "v1", "a.b", "onnx::Conv_1", "1st", "fn", "")))
        return Var(name, ty if self.draw(st.booleans()) or isinstance(ty, FuncType) else None)

    def make(self, ty: Type) -> Expr:
        known = [node for known_type, node in self.pool if known_type == ty]
        if known and (self.depth <= 0 or self.draw(st.integers(0, 3)) == 0):
            return self.draw(st.sampled_from(known))
        node = self.leaf(ty) if self.depth <= 0 else self.draw(st.sampled_from(self.rules(ty)))(ty)
        self.pool.append((ty, node))
        return node

    def leaf(self, ty: Type) -> Expr:
        draw = self.draw
        if ty == INT:
            return relay.Constant(np.int32(draw(st.sampled_from((0, 1, -5, 2**31 - 1, -(2**31))))))
        if ty == BOOL:
            return relay.Constant(np.bool_(draw(st.booleans())))
        if ty == FLOAT:
            return relay.Constant(np.float32(draw(st.floats(width=32))))
        if ty == VEC:
            return relay.Constant(np.array(draw(st.lists(st.integers(-9, 9), min_size=3, max_size=3)), "int64"))
        if isinstance(ty, TupleType):
            return relay.Tuple([self.leaf(part) for part in ty.fields])
        if ty == LIST:
            # An empty list alone leaves its element type open.
            return relay.Call(CONS, [self.leaf(INT), relay.Call(NIL, [])])
        if isinstance(ty, RefType):
            return relay.RefCreate(self.leaf(ty.value))
        assert isinstance(ty, FuncType)
        param = Var("p", ty.arg_types[0])
        return Function([param], param, ty.ret_type)

    def rules(self, ty: Type) -> list[Callable[[Type], Expr]]:
        rules: list[Callable[[Type], Expr]] = [self.leaf, self.let, self.branch, self.call, self.match, self.project]
        if ty in (INT, VEC):
            rules += [self.arithmetic, self.arithmetic]
        if ty == INT:
            rules += [self.recurse]
        if ty == BOOL:
            rules += [self.compare]
        if ty == FLOAT:
            rules += [self.convert]
        if isinstance(ty, TupleType):
            rules += [self.tuple]
        if ty == LIST:
            rules += [self.cons, self.cons]
        if isinstance(ty, FuncType):
            rules += [self.function, self.function]
        if self.has_effects and ty == INT:
            rules += [self.read, self.write]
        return rules

    def arithmetic(self, ty: Type) -> Expr:
        op = self.draw(st.sampled_from((relay.add, relay.subtract, relay.multiply, relay.maximum)))
        other = ty if ty == INT or self.draw(st.booleans()) else VEC
        return op(self.deeper().make(ty), self.deeper().make(other))

    def compare(self, ty: Type) -> Expr:
        op = self.draw(st.sampled_from((relay.less, relay.equal, relay.greater_equal)))
        return op(self.deeper().make(INT), self.deeper().make(INT))

    def convert(self, ty: Type) -> Expr:
        return relay.cast(self.deeper().make(INT), "float32")

    def tuple(self, ty: Type) -> Expr:
        assert isinstance(ty, TupleType)
        return relay.Tuple([self.deeper().make(part) for part in ty.fields])

    def project(self, ty: Type) -> Expr:
        if ty == VEC:
            return relay.TupleGetItem(self.deeper().make(PAIR), 1)
        parts = [self.deeper().make(INT), self.deeper().make(ty)]
        return relay.TupleGetItem(relay.Tuple(parts), 1)

    def let(self, ty: Type) -> Expr:
        kind = self.draw(st.sampled_from((*PLAIN, CELL) if self.has_effects else PLAIN))
        value = self.deeper().make(kind)
        var = self.var(kind)
        return relay.Let(var, value, self.inner([(kind, var)]).make(ty))

    def branch(self, ty: Type) -> Expr:
        return relay.If(self.deeper().make(BOOL), self.deeper().make(ty), self.deeper().make(ty))

    def function(self, ty: Type) -> Expr:
        assert isinstance(ty, FuncType)
        param = Var("p", ty.arg_types[0])
        return Function([param], self.inner([(ty.arg_types[0], param)]).make(ty.ret_type), ty.ret_type)

    def call(self, ty: Type) -> Expr:
        if ty == INT and self.draw(st.booleans()):
            return relay.Call(self.deeper().make(UNARY), [self.deeper().make(INT)])
        kind = self.draw(st.sampled_from(PLAIN))
        param = Var("q", kind)
        return relay.Call(Function([param], self.inner([(kind, param)]).make(ty)), [self.deeper().make(kind)])

    def recurse(self, ty: Type) -> Expr:
        return relay.Call(relay.GlobalVar("length"), [self.deeper().make(LIST)])

    def cons(self, ty: Type) -> Expr:
        return relay.Call(CONS, [self.deeper().make(INT), self.deeper().make(LIST)])

    def match(self, ty: Type) -> Expr:
        if self.draw(st.booleans()):
            a, b = self.var(INT), self.var(VEC)
            pattern = relay.PatternTuple([relay.PatternVar(a), relay.PatternVar(b)])
            arm = self.inner([(INT, a), (VEC, b)]).make(ty)
            return relay.Match(self.deeper().make(PAIR), [relay.Clause(pattern, arm)])
        head, tail = self.var(INT), self.var(LIST)
        cons = relay.PatternConstructor(CONS, [relay.PatternVar(head), relay.PatternVar(tail)])
        rest = relay.PatternWildcard() if self.draw(st.booleans()) else relay.PatternConstructor(NIL)
        arms = [
            relay.Clause(cons, self.inner([(INT, head), (LIST, tail)]).make(ty)),
            relay.Clause(rest, self.deeper().make(ty)),
        ]
        return relay.Match(self.deeper().make(LIST), arms, self.draw(st.booleans()))

    def read(self, ty: Type) -> Expr:
        return relay.RefRead(self.deeper().make(CELL))

    def write(self, ty: Type) -> Expr:
        done = relay.RefWrite(self.deeper().make(CELL), self.deeper().make(INT))
        return relay.Let(Var("_"), done, self.deeper().make(ty))


def _length() -> Function:
    """Recursion on a polymorphic list, the recursive call inside an arm."""
    a = relay.TypeVar("A")
    ls, rest = Var("l", relay.TypeCall(_HEADER, (a,))), Var("rest")
    cons = relay.PatternConstructor(CONS, [relay.PatternWildcard(), relay.PatternVar(rest)])
    more = relay.add(relay.Call(relay.GlobalVar("length"), [rest]), relay.const(1))
    arms = [relay.Clause(cons, more), relay.Clause(relay.PatternConstructor(NIL), relay.const(0))]
    return Function([ls], relay.Match(ls, arms), INT, [a])


@st.composite
def modules(draw: Callable, has_effects: bool = True) -> relay.IRModule:
    """A module with `length` and a `main` of an integer, a vector and a boolean."""
    x, v, b = Var("x", INT), Var("v", VEC), Var("b", BOOL)
    pool: list[tuple[Type, Expr]] = [(INT, x), (VEC, v), (BOOL, b)]
    result = draw(st.sampled_from((INT, VEC, BOOL, FLOAT, PAIR, SINGLE, LIST)))
    body = Builder(draw, has_effects, pool).make(result)
    return relay.IRModule({"length": _length(), "main": Function([x, v, b], body)}, TYPES)


INPUTS = {"x": np.int32(7), "v": np.array([1, -2, 3], "int64"), "b": np.bool_(True)}
