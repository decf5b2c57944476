"""Partitions by a pattern. In: a pattern, an expression. Out: the expression with matches as calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relay_hw.dataflow_pattern.grouping import Match, find_matches
from relay_hw.dataflow_pattern.patterns import DFPattern
from relay_hw.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Op, Tuple, TupleGetItem, Var
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import children, copy_with, post_order, readers_of, rebuild

Check = Callable[[Expr], bool]


def partition(
    pattern: DFPattern, expr: Expr, attrs: Mapping[str, Any] | None = None, check: Check | None = None
) -> Expr:
    """Turn each match into a call of a function with `attrs` and `PartitionedFromPattern`.

    Constants that a constant pattern matched lie in the function, everything else that it reads is a parameter. A
    match is left alone where something outside reads one of its inner nodes, or where `check(root)` refuses it.
    """
    found = [match for match in find_matches(pattern, expr) if check is None or check(match.root)]
    if not found:
        return expr
    users = readers_of(expr)
    matches = {match.root: match for match in found if _is_closed(match, users)}
    memo: dict[Expr, Expr] = {}
    for node in post_order(expr):
        new = rebuild(node, memo)
        if new is not node and node.checked_type is not None:
            new = copy_with(new, checked_type=node.checked_type)
        memo[node] = _call(matches[node], memo, attrs or {}) if node in matches else new
    return memo[expr]


def _is_closed(match: Match, users: Mapping[Expr, list[Expr]]) -> bool:
    return all(
        user in match.inside for node in match.inside if node is not match.root for user in users.get(node, ())
    ) and all(node is match.root or node in users for node in match.inside)


def _call(match: Match, memo: Mapping[Expr, Expr], attrs: Mapping[str, Any]) -> Expr:
    local: dict[Expr, Expr] = {}
    args: dict[Expr, Var] = {}
    for node in _within(match):
        if node in match.inside:
            new = rebuild(node, local)
            local[node] = new if new is node else copy_with(new, checked_type=node.checked_type)
        elif node in match.kept or isinstance(node, (Op, GlobalVar, Constructor)):
            local[node] = node
        else:
            local[node] = args.setdefault(node, _parameter(node, len(args)))
    body = local[match.root]
    types = [param.checked_type for param in args.values()]
    result = match.root.checked_type
    ty = (
        FuncType(tuple(t for t in types if t is not None), result) if result is not None and None not in types else None
    )
    tags = {**attrs, "PartitionedFromPattern": _title(match)}
    function = Function(tuple(args.values()), body, result, attrs=tags, span=match.root.span, checked_type=ty)
    return Call(function, tuple(memo[node] for node in args), span=match.root.span, checked_type=result)


def _parameter(node: Expr, index: int) -> Var:
    return Var(f"FunctionVar_0_{index}", node.checked_type, checked_type=node.checked_type)


def _within(match: Match) -> list[Expr]:
    """The nodes of a match and what they read, in post-order."""
    order: list[Expr] = []
    seen: set[Expr] = set()
    stack: list[tuple[Expr, bool]] = [(match.root, False)]
    while stack:
        node, is_done = stack.pop()
        if is_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if node in match.inside:
                stack.extend((part, False) for part in reversed(children(node)))
    return order


def _title(match: Match) -> str:
    names: list[str] = []
    for node in _within(match):
        match node:
            case Call(op=Op(name=name)) if node in match.inside:
                names.append(f"{name}_")
            case Tuple() if node in match.inside:
                names.append("Tuple_")
            case TupleGetItem(index=index) if node in match.inside:
                names.append(f"TupleGetItem{index}_")
            case _:
                pass
    return "".join(names)
