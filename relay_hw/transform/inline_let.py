"""InlineLet: names of pure values disappear; the graph itself says what is shared."""

from __future__ import annotations

from relay_hw.ir.expr import Expr, Function, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.effects import Effect, module_effects, node_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.redirect import redirect


class InlineLet(FunctionPass):
    """`let %x = value; body` becomes `body` with `value` in the place of every `%x`, where `value` is pure.

    Function values keep their names: they may call themselves by them.
    """

    name = "inline-let"
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        lets = [node for node in post_order(function) if isinstance(node, Let) and not isinstance(node.value, Function)]
        return inline_pure(function, lets, mod)


def inline_pure(function: Function, lets: list[Let], mod: IRModule) -> Function:
    """`function` without those of `lets` whose value is pure."""
    if not lets:
        return function
    effects = node_effects(function, module_effects(mod))
    values = {let.var: let.value for let in lets if effects[let.value] is Effect.PURE}
    if not values:
        return function
    new = inline(function, values)
    assert isinstance(new, Function)
    return new


def inline(root: Expr, values: dict[Var, Expr]) -> Expr:
    """`root` with each variable of `values` standing for its value and its `let` for the body."""

    def alias(node: Expr) -> Expr | None:
        if isinstance(node, Var):
            return values.get(node)
        return node.body if isinstance(node, Let) and node.var in values else None

    return redirect(root, alias)
