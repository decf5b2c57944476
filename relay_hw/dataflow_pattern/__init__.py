"""The dataflow pattern language under Relay's names: finds, rewrites and partitions parts of programs."""

from collections.abc import Callable, Mapping
from typing import Any

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
    dominates,
    from_expr,
    has_attr,
    has_dtype,
    has_shape,
    has_type,
    is_constant,
    is_expr,
    is_if,
    is_let,
    is_op,
    is_tuple,
    is_tuple_get_item,
    is_var,
    wildcard,
)
from relay_hw.dataflow_pattern.rewriting import DFPatternCallback, NodeMap, rewrite
from relay_hw.ir.expr import Expr


def match(pattern: DFPattern, expr: Expr) -> bool:
    """Whether `expr` matches `pattern`."""
    return pattern.match(expr)


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[Expr], bool] | None = None,
) -> Expr:
    """`expr` with each match of `pattern` as a call of a function literal; see `DFPattern.partition`."""
    return pattern.partition(expr, attrs, check)


__all__ = [
    "AltPattern",
    "AttrPattern",
    "CallPattern",
    "ConstantPattern",
    "DFPattern",
    "DFPatternCallback",
    "DataTypePattern",
    "DominatorPattern",
    "ExprPattern",
    "FunctionPattern",
    "IfPattern",
    "LetPattern",
    "NodeMap",
    "ShapePattern",
    "TupleGetItemPattern",
    "TuplePattern",
    "TypePattern",
    "VarPattern",
    "WildcardPattern",
    "dominates",
    "from_expr",
    "has_attr",
    "has_dtype",
    "has_shape",
    "has_type",
    "is_constant",
    "is_expr",
    "is_if",
    "is_let",
    "is_op",
    "is_tuple",
    "is_tuple_get_item",
    "is_var",
    "match",
    "partition",
    "rewrite",
    "wildcard",
]
