"""TVM's recursive visitors, with one method per kind of node: `visit_call`, `visit_let`, ...

`relay_hw.ir.visit` has the iterative ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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
from relay_hw.ir.visit import children, copy_with, rebuild, rebuild_pattern

_METHODS: Mapping[type[Expr], str] = {
    Function: "visit_function",
    Call: "visit_call",
    Let: "visit_let",
    Var: "visit_var",
    GlobalVar: "visit_global_var",
    If: "visit_if",
    Tuple: "visit_tuple",
    TupleGetItem: "visit_tuple_getitem",
    Constant: "visit_constant",
    RefCreate: "visit_ref_create",
    RefRead: "visit_ref_read",
    RefWrite: "visit_ref_write",
    Constructor: "visit_constructor",
    Match: "visit_match",
    Op: "visit_op",
}


class ExprFunctor:
    """Calls the method of a node's kind, once a node."""

    def __init__(self) -> None:
        self.memo_map: dict[Expr, Any] = {}

    def visit(self, expr: Expr) -> Any:
        """The method's result for `expr`."""
        if expr not in self.memo_map:
            method: Callable[[Expr], Any] = getattr(self, _METHODS[type(expr)])
            self.memo_map[expr] = method(expr)
        return self.memo_map[expr]


class ExprVisitor(ExprFunctor):
    """Visits every part of every node. Override `visit_<kind>`."""

    def _visit_parts(self, node: Expr) -> None:
        for part in children(node):
            self.visit(part)

    visit_function = visit_call = visit_let = visit_var = visit_global_var = visit_if = _visit_parts
    visit_tuple = visit_tuple_getitem = visit_constant = visit_constructor = visit_match = visit_op = _visit_parts
    visit_ref_create = visit_ref_read = visit_ref_write = _visit_parts


class ExprMutator(ExprFunctor):
    """Rebuilds every node from its visited parts; a node whose parts stay the same stays. Override `visit_<kind>`."""

    def _rebuild(self, node: Expr) -> Expr:
        for part in children(node):
            self.visit(part)
        return rebuild(node, self.memo_map)

    def visit_match(self, node: Match) -> Expr:
        """Arms keep their patterns, with variables rewritten."""
        data = self.visit(node.data)
        for part in children(node):
            self.visit(part)
        arms = tuple(Clause(rebuild_pattern(c.lhs, self.memo_map), self.visit(c.rhs)) for c in node.clauses)
        return copy_with(node, data=data, clauses=arms, checked_type=None)

    visit_function = visit_call = visit_let = visit_var = visit_global_var = visit_if = _rebuild
    visit_tuple = visit_tuple_getitem = visit_constant = visit_constructor = visit_op = _rebuild
    visit_ref_create = visit_ref_read = visit_ref_write = _rebuild
