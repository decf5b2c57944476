"""Finds disjoint matches of a pattern in a graph, outermost first, with the nodes inside each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relay_hw.dataflow_pattern.matcher import Matcher, Matches
from relay_hw.dataflow_pattern.patterns import (
    CallPattern,
    ConstantPattern,
    DFPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    TupleGetItemPattern,
    TuplePattern,
)
from relay_hw.ir.expr import Expr, Function, Let, Op
from relay_hw.ir.visit import children

_INNER = (CallPattern, FunctionPattern, IfPattern, LetPattern, TuplePattern, TupleGetItemPattern)


@dataclass(frozen=True, slots=True)
class Match:
    """`inside` holds what the pattern describes, from `root` down; `kept` the constants and names that go along."""

    root: Expr
    nodes: Matches
    inside: frozenset[Expr]
    kept: frozenset[Expr]


def outside_fused(root: Expr) -> Iterator[Expr]:
    """Post-order that does not enter functions which belong to a partition or are fused already."""
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            yield node
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack.extend((part, False) for part in (() if _is_closed(node, root) else reversed(children(node))))


def _is_closed(node: Expr, root: Expr) -> bool:
    if not isinstance(node, Function):
        return False
    return "Compiler" in node.attrs or (node is not root and bool({"Primitive", "Composite"} & node.attrs.keys()))


def find_matches(pattern: DFPattern, root: Expr) -> list[Match]:
    """Matches that share no inner node, a node nearer to the result first."""
    matcher = Matcher(root)
    taken: set[Expr] = set()
    found: list[Match] = []
    known: set[Expr] = set()
    for node in reversed(list(outside_fused(root))):
        known.add(node)
        if node in taken or isinstance(node, Op):
            continue
        nodes = matcher.find(pattern, node)
        if nodes is None:
            continue
        inside = {expr for part, expr in nodes.items() if isinstance(part, _INNER)}
        inside.update(matcher.path_nodes)
        inside.add(node)
        if inside & taken:
            continue
        kept = {expr for part, expr in nodes.items() if isinstance(part, ConstantPattern)}
        kept.update(expr.var for expr in inside if isinstance(expr, Let))
        taken |= inside
        found.append(Match(node, nodes, frozenset(inside), frozenset(kept)))
    return found
