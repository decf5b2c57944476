"""Dead code elimination: removes bindings of unused variables whose value has no effect."""

from __future__ import annotations

from collections.abc import Mapping

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Expr, Function, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, children, post_order
from relay_hw.transform.base import FunctionPass, map_functions
from relay_hw.transform.effects import Effect, Effects, module_effects, node_effects, pin_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.inline_let import inline_pure


class DeadCodeElimination(FunctionPass):
    """Removes every `let` that nothing needs, also those that only other removed ones needed.

    With `inline_once`, a pure value that is used once goes to the place of its use, unless that is in another
    function; with `ignore_impurity`, effects count for nothing.
    """

    name = "dead-code-elimination"
    opt_level = 1
    pins_effects = True

    def __init__(self, inline_once: bool = False, ignore_impurity: bool = False) -> None:
        self.inline_once = inline_once
        self.ignore_impurity = ignore_impurity

    def transform(self, mod: IRModule) -> IRModule:
        pinned = pin_effects(mod)
        known = module_effects(pinned)
        return map_functions(pinned, lambda function: self._without_dead(function, known))

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return self._without_dead(function, module_effects(mod))

    def _without_dead(self, function: Function, known: Mapping[str, Effect]) -> Function:
        if is_external(function):
            return function
        effects = node_effects(function, known)
        dead = _dead_lets(function, effects, Effect.WRITE if self.ignore_impurity else Effect.READ)
        new = _Remover(dead).rewrite(function) if dead else function
        assert isinstance(new, Function)
        return _inline_once(new, known) if self.inline_once else new


def _dead_lets(root: Expr, effects: Effects, most: Effect) -> set[Let]:
    """A value without effect is alive only once its variable has been met outside of it."""
    waiting: dict[Var, Let] = {}
    seen: set[Expr] = set()
    stack: list[Expr] = [root]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, Let) and effects[node.value] <= most:
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


def _inline_once(root: Function, known: Mapping[str, Effect]) -> Function:
    uses = find_scopes(root).uses
    lets = [node for node in post_order(root) if isinstance(node, Let) and uses.get(node.var) == 1]
    return inline_pure(root, lets, known)
