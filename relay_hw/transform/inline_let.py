"""InlineLet: names of pure values disappear; the graph itself says what is shared."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Expr, Function, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import children, post_order, rebuild
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, is_pure


class InlineLet(FunctionPass):
    """`let %x = value; body` becomes `body` with `value` in the place of every `%x`, where `value` is pure.

    Function values keep their names: they may call themselves by them.
    """

    name = "inline-let"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        lets = [node for node in post_order(function) if isinstance(node, Let)]
        values = {let.var: let.value for let in lets if not isinstance(let.value, Function) and is_pure(let.value)}
        if not values:
            return function
        new = _inline(function, values)
        assert isinstance(new, Function)
        return new


def _inline(root: Expr, values: dict[Var, Expr]) -> Expr:
    """Bottom-up, a variable of `values` standing for its value and its `let` for the body."""
    memo: dict[Expr, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if node in memo:
            continue
        alias = _alias(node, values)
        if is_done:
            memo[node] = memo[alias] if alias is not None else rebuild(node, memo)
            continue
        stack.append((node, True))
        parts: Sequence[Expr] = children(node) if alias is None else (alias,)
        stack.extend((part, False) for part in reversed(parts))
    return memo[root]


def _alias(node: Expr, values: dict[Var, Expr]) -> Expr | None:
    if isinstance(node, Var):
        return values.get(node)
    return node.body if isinstance(node, Let) and node.var in values else None
