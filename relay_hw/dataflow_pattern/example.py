"""Patterns from example expressions. In: an expression. Out: a pattern in which variables are wildcards."""

from __future__ import annotations

from relay_hw.dataflow_pattern.patterns import (
    CallPattern,
    ConstantPattern,
    DFPattern,
    ExprPattern,
    IfPattern,
    TupleGetItemPattern,
    TuplePattern,
    WildcardPattern,
)
from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Constructor, Expr, GlobalVar, If, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.visit import post_order


def expr_pattern(root: Expr) -> DFPattern:
    """A wildcard for each variable, a constant for each constant. Raises UnsupportedError for other nodes than calls,
    tuples, projections and conditionals."""
    memo: dict[Expr, DFPattern] = {}
    for node in post_order(root):
        memo[node] = _pattern(node, memo)
    return memo[root]


def _pattern(node: Expr, memo: dict[Expr, DFPattern]) -> DFPattern:
    match node:
        case Var():
            return WildcardPattern()
        case Constant():
            return ConstantPattern()
        case Op() | GlobalVar() | Constructor():
            return ExprPattern(node)
        case Call(op=op, args=args):
            return CallPattern(memo[op], tuple(memo[arg] for arg in args))
        case Tuple(fields=fields):
            return TuplePattern(tuple(memo[part] for part in fields))
        case TupleGetItem(tuple_value=value, index=index):
            return TupleGetItemPattern(memo[value], index)
        case If(cond=cond, true_branch=then, false_branch=other):
            return IfPattern(memo[cond], memo[then], memo[other])
        case _:
            kind = type(node).__name__
            raise UnsupportedError(
                f"a pattern must be made of calls, tuples and conditionals, not of {kind}", node.span
            )
