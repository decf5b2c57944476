"""InlineLet: replaces variables of pure values by the values; sharing is in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Expr, Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.effects import Effect, module_effects, node_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.normal_form import ATOMS
from relay_hw.transform.redirect import redirect


class InlineLet(FunctionPass):
    """`let %x = value; body` becomes `body` with `value` in the place of every `%x`, where `value` is pure.

    Function values keep their names: they may call themselves by them. So does work that an inner function uses: it is
    done once, where the `let` stands, and not at each call.
    """

    name = "inline-let"
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        lets = [node for node in post_order(function) if isinstance(node, Let) and not isinstance(node.value, Function)]
        return inline_pure(function, lets, module_effects(mod))


def inline_pure(function: Function, lets: Sequence[Let], known: Mapping[str, Effect]) -> Function:
    """`function` without those of `lets` whose value is pure and is not moved into an inner function.

    `known`: the effects of global functions.
    """
    if not lets:
        return function
    effects = node_effects(function, known)
    pure = {let.var: let.value for let in lets if effects[let.value] is Effect.PURE}
    kept = _kept(pure, find_scopes(function).captured)
    values = {var: value for var, value in pure.items() if var not in kept}
    if not values:
        return function
    new = inline(function, values)
    assert isinstance(new, Function)
    return new


def _kept(values: Mapping[Var, Expr], captured: set[Expr]) -> set[Var]:
    """Those of the variables `values` that stand for work and are used in a function inside of the one that does it."""
    kept: set[Var] = set()
    stack = [var for var in values if var in captured]
    seen = set(stack)
    while stack:
        var = stack.pop()
        parts = _parts(values[var])
        if parts is None:
            kept.add(var)
            continue
        # What goes into a function takes its variables along.
        new = [part for part in parts if part in values and part not in seen]
        seen.update(new)
        stack.extend(new)
    return kept


def _parts(value: Expr) -> list[Var] | None:
    """The variables that a value is put together from; None if computing it is work."""
    found: list[Var] = []
    stack = [value]
    while stack:
        match stack.pop():
            case Var() as var:
                found.append(var)
            case Tuple(fields=fields):
                stack.extend(fields)
            case TupleGetItem(tuple_value=part):
                stack.append(part)
            case node if not isinstance(node, ATOMS):
                return None
            case _:
                pass
    return found


def inline(root: Expr, values: dict[Var, Expr]) -> Expr:
    """`root` with each variable of `values` standing for its value and its `let` for the body."""

    def alias(node: Expr) -> Expr | None:
        if isinstance(node, Var):
            return values.get(node)
        return node.body if isinstance(node, Let) and node.var in values else None

    return redirect(root, alias)
