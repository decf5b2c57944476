"""Dead code: bindings whose variable nobody reads, and whose value has no effect, disappear."""

from __future__ import annotations

from relay_hw.ir.expr import Expr, Function, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, children
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, is_pure


class DeadCodeElimination(FunctionPass):
    """Removes every `let` that nothing needs, also those that only other removed ones needed."""

    name = "dead-code-elimination"

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        dead = _dead_lets(function)
        if not dead:
            return function
        new = _Remover(dead).rewrite(function)
        assert isinstance(new, Function)
        return new


def _dead_lets(root: Expr) -> set[Let]:
    """A pure value is alive only once its variable has been met outside of it."""
    waiting: dict[Var, Let] = {}
    seen: set[Expr] = set()
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Let) and is_pure(node.value):
            waiting[node.var] = node
            stack.append(node.body)
            continue
        if isinstance(node, Var) and node in waiting:
            stack.append(waiting.pop(node).value)
        stack.extend(children(node))
    return set(waiting.values())


class _Remover(Rewriter):
    def __init__(self, dead: set[Let]) -> None:
        super().__init__()
        self._dead = dead

    def rewrite_let(self, old: Let, new: Let) -> Expr:
        return new.body if old in self._dead else new
