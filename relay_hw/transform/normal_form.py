"""Converts functions to a normal form: binds chosen nodes by `let`, in the order of evaluation.

In: a function and a choice of nodes. Out: the same function in which every `let` stands in the sequence of a block (a
function body, a branch, an arm), and each chosen node is the value of one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.visit import copy_with

ATOMS = (Var, GlobalVar, Constant, Constructor, Op)


def normalize(function: Function, binds: Callable[[Expr], bool], names_results: bool = True) -> Function:
    """`function` with each node that `binds` chooses bound by a `let` of its block; atoms never are.

    A shared node is bound in the innermost block that holds all its uses, before the branch or closure in which it is
    met first: where the interpreter computes it. Without `names_results` the result of a block stays without name
    where nothing else uses it. Nodes keep their types.
    """
    return cast(Function, run(_Normalizer(function, binds, names_results).function(function)))


class _Normalizer:
    def __init__(self, root: Function, binds: Callable[[Expr], bool], names_results: bool) -> None:
        self._names_results = names_results
        self._plan = find_scopes(root)
        self._binds = binds
        self._memo: dict[Expr, Expr] = {}
        self._block: list[tuple[Var, Expr, Expr]] = []

    def visit(self, node: Expr) -> Recursion[Expr]:
        """What stands for `node` from here on: its new name, an atom, or the rewritten node."""
        if node in self._memo:
            return self._memo[node]
        new = yield self._rule(node)
        if self._binds(node) and not isinstance(new, ATOMS):
            var = Var("x", checked_type=node.checked_type)
            self._block.append((var, new, node))
            new = var
        self._memo[node] = new
        return new

    def _rule(self, node: Expr) -> Recursion[Expr]:
        return _RULES[type(node)](self, node)

    def _visit_all(self, nodes: Sequence[Expr]) -> Recursion[tuple[Expr, ...]]:
        found: list[Expr] = []
        for node in nodes:
            found.append((yield self.visit(node)))
        return tuple(found)

    def _sequence(self, root: Expr) -> Recursion[Expr]:
        """`root` as a block of its own."""
        outer, self._block = self._block, []
        body = yield self._result(root)
        bound, self._block = self._block, outer
        for var, value, origin in reversed(bound):
            body = Let(var, value, body, span=origin.span, checked_type=body.checked_type)
        return body

    def _result(self, node: Expr) -> Recursion[Expr]:
        """What stands for the last node of a block."""
        while isinstance(node, Let) and node not in self._memo and self._plan.uses[node] == 1:
            yield self._bind_let(node)
            node = node.body
        is_alone = node not in self._memo and self._plan.uses[node] == 1 and not isinstance(node, Let)
        return (yield self._rule(node) if is_alone and not self._names_results else self.visit(node))

    def _hoisted(self, node: Expr) -> Recursion[None]:
        for shared in self._plan.hoisted.get(node, ()):
            yield self.visit(shared)

    # Nodes

    def _atom(self, node: Expr) -> Recursion[Expr]:
        return node
        yield

    def _let(self, node: Let) -> Recursion[Expr]:
        yield self._bind_let(node)
        return (yield self.visit(node.body))

    def _bind_let(self, node: Let) -> Recursion[None]:
        value = node.value
        is_alone = value not in self._memo and self._plan.uses[value] == 1 and not isinstance(value, Let)
        # The name that is there already is as good as a new one.
        new = yield self._rule(value) if is_alone else self.visit(value)
        self._block.append((node.var, new, node))

    def _function(self, node: Function) -> Recursion[Expr]:
        # A fused function is one operator to everything around it.
        if "Primitive" in node.attrs:
            return node
        return (yield self.function(node))

    def function(self, node: Function) -> Recursion[Expr]:
        yield self._hoisted(node)
        return _changed(node, body=(yield self._sequence(node.body)))

    def _if(self, node: If) -> Recursion[Expr]:
        cond = yield self.visit(node.cond)
        yield self._hoisted(node)
        then = yield self._sequence(node.true_branch)
        other = yield self._sequence(node.false_branch)
        return _changed(node, cond=cond, true_branch=then, false_branch=other)

    def _match(self, node: Match) -> Recursion[Expr]:
        data = yield self.visit(node.data)
        yield self._hoisted(node)
        clauses: list[Clause] = []
        for clause in node.clauses:
            rhs = yield self._sequence(clause.rhs)
            clauses.append(clause if rhs is clause.rhs else Clause(clause.lhs, rhs))
        same = all(map(_is, clauses, node.clauses))
        return _changed(node, data=data, clauses=node.clauses if same else tuple(clauses))

    def _call(self, node: Call) -> Recursion[Expr]:
        op = yield self.visit(node.op)
        return _changed(node, op=op, args=_kept((yield self._visit_all(node.args)), node.args))

    def _tuple(self, node: Tuple) -> Recursion[Expr]:
        return _changed(node, fields=_kept((yield self._visit_all(node.fields)), node.fields))

    def _tuple_get_item(self, node: TupleGetItem) -> Recursion[Expr]:
        return _changed(node, tuple_value=(yield self.visit(node.tuple_value)))

    def _ref_create(self, node: RefCreate) -> Recursion[Expr]:
        return _changed(node, value=(yield self.visit(node.value)))

    def _ref_read(self, node: RefRead) -> Recursion[Expr]:
        return _changed(node, ref=(yield self.visit(node.ref)))

    def _ref_write(self, node: RefWrite) -> Recursion[Expr]:
        ref = yield self.visit(node.ref)
        return _changed(node, ref=ref, value=(yield self.visit(node.value)))


def _is(a: object, b: object) -> bool:
    return a is b


def _kept(new: Sequence[Expr], old: Sequence[Expr]) -> Sequence[Expr]:
    return old if all(map(_is, new, old)) else new


def _changed(node: Expr, **parts: Any) -> Expr:
    """`node` with these parts; the same object where they are the ones that it has."""
    if all(getattr(node, name) is part for name, part in parts.items()):
        return node
    return copy_with(node, **parts)


_RULES: Mapping[type[Expr], Callable[[_Normalizer, Any], Recursion[Expr]]] = {
    **dict.fromkeys(ATOMS, _Normalizer._atom),
    Tuple: _Normalizer._tuple,
    TupleGetItem: _Normalizer._tuple_get_item,
    Call: _Normalizer._call,
    Let: _Normalizer._let,
    If: _Normalizer._if,
    Function: _Normalizer._function,
    RefCreate: _Normalizer._ref_create,
    RefRead: _Normalizer._ref_read,
    RefWrite: _Normalizer._ref_write,
    Match: _Normalizer._match,
}
