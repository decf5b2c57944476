"""Matches patterns with backtracking. In: a pattern, a node, its graph. Out: the node of each part of the pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relay_hw.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)
from relay_hw.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Op,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.types import TensorType
from relay_hw.ir.visit import children, post_order
from relay_hw.op.base import freeze

Matches = dict[DFPattern, Expr]

_COMMUTATIVE = ("add", "multiply")


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether `expr` matches `pattern`."""
    return Matcher(expr).find(pattern, expr) is not None


class Matcher:
    """Matches patterns against nodes of one graph."""

    def __init__(self, root: Expr) -> None:
        self._root = root
        self._users: dict[Expr, list[Expr]] | None = None
        self._found: Matches = {}
        self._paths: list[Expr] = []

    def find(self, pattern: DFPattern, expr: Expr) -> Matches | None:
        """The node of each part of `pattern` if `expr` matches it, else None."""
        self._found, self._paths = {}, []
        for _ in self._match(pattern, expr):
            return dict(self._found)
        return None

    @property
    def path_nodes(self) -> Sequence[Expr]:
        """Nodes between a dominator and its parent in the last match found."""
        return tuple(self._paths)

    # Each generator yields once for every way to match; between two of them its bindings are taken back.

    def _match(self, pattern: DFPattern, expr: Expr) -> Iterator[None]:
        if pattern in self._found:
            if self._found[pattern] is expr:
                yield
            return
        for _ in _RULES[type(pattern)](self, pattern, expr):
            if pattern in self._found:
                yield
                continue
            self._found[pattern] = expr
            yield
            self._found.pop(pattern, None)

    def _match_all(self, patterns: Sequence[DFPattern], exprs: Sequence[Expr]) -> Iterator[None]:
        if len(patterns) != len(exprs):
            return
        if not patterns:
            yield
            return
        for _ in self._match(patterns[0], exprs[0]):
            yield from self._match_all(patterns[1:], exprs[1:])

    def _expr(self, pattern: ExprPattern, expr: Expr) -> Iterator[None]:
        if _same(pattern.expr, expr):
            yield

    def _var(self, pattern: VarPattern, expr: Expr) -> Iterator[None]:
        if isinstance(expr, Var) and pattern.name in ("", expr.name_hint):
            yield

    def _constant(self, pattern: ConstantPattern, expr: Expr) -> Iterator[None]:
        if isinstance(expr, Constant):
            yield

    def _wildcard(self, pattern: WildcardPattern, expr: Expr) -> Iterator[None]:
        if not pattern.target:
            yield
            return
        # Each turn of a recursive pattern binds anew.
        inner = Matcher(self._root)
        inner._users = self._users
        if inner.find(pattern.target[0], expr) is not None:
            yield

    def _call(self, pattern: CallPattern, expr: Expr) -> Iterator[None]:
        if not isinstance(expr, Call):
            return
        for _ in self._match(pattern.op, expr.op):
            if pattern.args is None:
                yield
                continue
            yield from self._match_all(pattern.args, expr.args)
            if len(expr.args) == 2 and _name(expr.op) in _COMMUTATIVE:
                yield from self._match_all(pattern.args, tuple(reversed(expr.args)))
        for other in _reassociated(pattern, expr):
            for _ in self._match(pattern.op, other.op):
                if pattern.args is not None:
                    yield from self._match_all(pattern.args, other.args)

    def _function(self, pattern: FunctionPattern, expr: Expr) -> Iterator[None]:
        if not isinstance(expr, Function):
            return
        if pattern.params is None:
            yield from self._match(pattern.body, expr.body)
            return
        for _ in self._match_all(tuple(pattern.params), expr.params):
            yield from self._match(pattern.body, expr.body)

    def _if(self, pattern: IfPattern, expr: Expr) -> Iterator[None]:
        if isinstance(expr, If):
            parts = (expr.cond, expr.true_branch, expr.false_branch)
            yield from self._match_all((pattern.cond, pattern.true_branch, pattern.false_branch), parts)

    def _let(self, pattern: LetPattern, expr: Expr) -> Iterator[None]:
        if isinstance(expr, Let):
            yield from self._match_all((pattern.var, pattern.value, pattern.body), (expr.var, expr.value, expr.body))

    def _tuple(self, pattern: TuplePattern, expr: Expr) -> Iterator[None]:
        if not isinstance(expr, Tuple):
            return
        if pattern.fields is None:
            yield
        else:
            yield from self._match_all(pattern.fields, expr.fields)

    def _tuple_get_item(self, pattern: TupleGetItemPattern, expr: Expr) -> Iterator[None]:
        if isinstance(expr, TupleGetItem) and pattern.index in (None, expr.index):
            yield from self._match(pattern.tuple_value, expr.tuple_value)

    def _alt(self, pattern: AltPattern, expr: Expr) -> Iterator[None]:
        yield from self._match(pattern.left, expr)
        yield from self._match(pattern.right, expr)

    def _type(self, pattern: TypePattern, expr: Expr) -> Iterator[None]:
        if _type_of(expr) == pattern.type:
            yield from self._match(pattern.pattern, expr)

    def _dtype(self, pattern: DataTypePattern, expr: Expr) -> Iterator[None]:
        ty = _type_of(expr)
        if isinstance(ty, TensorType) and ty.dtype == pattern.dtype:
            yield from self._match(pattern.pattern, expr)

    def _shape(self, pattern: ShapePattern, expr: Expr) -> Iterator[None]:
        ty = _type_of(expr)
        if isinstance(ty, TensorType) and ty.shape == tuple(pattern.shape):
            yield from self._match(pattern.pattern, expr)

    def _attr(self, pattern: AttrPattern, expr: Expr) -> Iterator[None]:
        if all(_has_attr(expr, name, wanted) for name, wanted in pattern.attrs.items()):
            yield from self._match(pattern.pattern, expr)

    def _dominator(self, pattern: DominatorPattern, expr: Expr) -> Iterator[None]:
        for _ in self._match(pattern.child, expr):
            for parent in self._above(expr):
                between = self._between(parent, expr)
                if between is None or not all(self._fits(pattern.path, node) for node in between):
                    continue
                for _ in self._match(pattern.parent, parent):
                    self._paths.extend(between)
                    yield
                    del self._paths[len(self._paths) - len(between) :]

    def _fits(self, pattern: DFPattern, expr: Expr) -> bool:
        inner = Matcher(self._root)
        inner._users = self._users
        return inner.find(pattern, expr) is not None

    def _above(self, expr: Expr) -> Iterator[Expr]:
        """The nodes that `expr` is made of, nearest first."""
        seen: set[Expr] = {expr}
        waiting = list(_operands(expr))
        while waiting:
            node = waiting.pop(0)
            if node not in seen:
                seen.add(node)
                yield node
                waiting.extend(_operands(node))

    def _between(self, parent: Expr, child: Expr) -> list[Expr] | None:
        """The nodes on the ways from `parent` to `child`; None if a way leads past `child`."""
        found: dict[Expr, None] = {}
        waiting = [parent]
        while waiting:
            node = waiting.pop()
            if node is self._root:
                return None
            for user in self._users_of(node):
                if user is not child and user not in found:
                    found[user] = None
                    waiting.append(user)
        return list(found)

    def _users_of(self, node: Expr) -> Sequence[Expr]:
        if self._users is None:
            self._users = {}
            for user in post_order(self._root):
                for part in children(user):
                    self._users.setdefault(part, []).append(user)
        return self._users.get(node, ())


_RULES: Mapping[type[DFPattern], Callable[[Matcher, Any, Expr], Iterator[None]]] = {
    ExprPattern: Matcher._expr,
    VarPattern: Matcher._var,
    ConstantPattern: Matcher._constant,
    WildcardPattern: Matcher._wildcard,
    CallPattern: Matcher._call,
    FunctionPattern: Matcher._function,
    IfPattern: Matcher._if,
    LetPattern: Matcher._let,
    TuplePattern: Matcher._tuple,
    TupleGetItemPattern: Matcher._tuple_get_item,
    AltPattern: Matcher._alt,
    TypePattern: Matcher._type,
    DataTypePattern: Matcher._dtype,
    ShapePattern: Matcher._shape,
    AttrPattern: Matcher._attr,
    DominatorPattern: Matcher._dominator,
}


def _name(expr: Expr) -> str:
    return expr.name if isinstance(expr, Op) else ""


def _same(wanted: Expr, expr: Expr) -> bool:
    match wanted, expr:
        case Op(), Op():
            return wanted.name == expr.name
        case (GlobalVar(), GlobalVar()) | (Constructor(), Constructor()):
            return wanted.name_hint == expr.name_hint
        case Constant(data=a), Constant(data=b):
            return a.dtype == b.dtype and a.shape == b.shape and bool(np.array_equal(a, b))
        case _:
            return wanted is expr


def _type_of(expr: Expr) -> Any:
    if expr.checked_type is not None:
        return expr.checked_type
    return expr.type_annotation if isinstance(expr, Var) else None


def _has_attr(expr: Expr, name: str, wanted: Any) -> bool:
    missing = object()
    match expr:
        case Op(pattern=pattern):
            found: Any = int(pattern) if name == "TOpPattern" else missing
        case Call(op=op, attrs=attrs):
            found = getattr(attrs, name, missing)
            if found is missing and isinstance(op, Op):
                return _has_attr(op, name, wanted)
        case Function(attrs=attrs):
            found = attrs.get(name, missing)
        case _:
            return False
    return found is not missing and freeze(found) == freeze(wanted)


def _operands(expr: Expr) -> Sequence[Expr]:
    match expr:
        case Call(args=args):
            return args
        case Tuple(fields=fields):
            return fields
        case TupleGetItem(tuple_value=value):
            return (value,)
        case _:
            return ()


def _reassociated(pattern: CallPattern, expr: Call) -> Iterator[Call]:
    """a * (b / c) and (a * b) / c as each other, where the pattern has one and the program the other."""
    wanted = _name(pattern.op.expr) if isinstance(pattern.op, ExprPattern) else ""
    if wanted == "divide" and _name(expr.op) == "multiply":
        for quotient, other in ((expr.args[0], expr.args[1]), (expr.args[1], expr.args[0])):
            if isinstance(quotient, Call) and _name(quotient.op) == "divide":
                yield Call(quotient.op, (Call(expr.op, (quotient.args[0], other)), quotient.args[1]))
    if wanted == "multiply" and _name(expr.op) == "divide":
        product = expr.args[0]
        if isinstance(product, Call) and _name(product.op) == "multiply":
            for one, other in (product.args, tuple(reversed(product.args))):
                yield Call(product.op, (Call(expr.op, (one, expr.args[1])), other))
                yield Call(product.op, (other, Call(expr.op, (one, expr.args[1]))))
