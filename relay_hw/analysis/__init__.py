"""Program analyses: types, variables, scopes, calls, equality."""

from __future__ import annotations

from collections.abc import Callable

from relay_hw.analysis.call_graph import call_graph, call_order, globals_used
from relay_hw.analysis.infer import infer_expr, infer_type
from relay_hw.analysis.kinds import check_kinds
from relay_hw.analysis.scope import Scopes, find_scopes
from relay_hw.analysis.structural import structural_equal, structural_hash
from relay_hw.analysis.unmatched import pattern_text
from relay_hw.analysis.unmatched import unmatched_cases as _unmatched
from relay_hw.analysis.variables import all_vars, bound_vars, free_type_vars, free_vars
from relay_hw.analysis.well_formed import check_well_formed, well_formed
from relay_hw.ir.expr import Expr, Match, Pattern
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order

__all__ = [
    "Scopes",
    "all_vars",
    "bound_vars",
    "call_graph",
    "call_order",
    "check_kinds",
    "check_well_formed",
    "find_scopes",
    "free_type_vars",
    "free_vars",
    "globals_used",
    "infer_expr",
    "infer_type",
    "pattern_text",
    "post_order_visit",
    "structural_equal",
    "structural_hash",
    "unmatched_cases",
    "well_formed",
]


def post_order_visit(expr: Expr, visit: Callable[[Expr], object]) -> None:
    """Call `visit` on every node of `expr`, sub-expressions first, each once."""
    for node in post_order(expr):
        visit(node)


def unmatched_cases(match: Match, mod: IRModule) -> list[Pattern]:
    """Patterns that no arm of `match` takes; `mod` defines the data types."""
    return _unmatched(match, lambda constructor: mod.types[constructor.belong_to.name].constructors)
