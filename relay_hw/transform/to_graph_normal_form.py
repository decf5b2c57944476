"""ToGraphNormalForm: removes lets of pure values; sharing is in the graph."""

from __future__ import annotations

from relay_hw.ir.expr import Expr, Function, Let
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import post_order
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.effects import module_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.inline_let import inline_pure
from relay_hw.transform.redirect import monomorphic


class ToGraphNormalForm(FunctionPass):
    """Removes each `let` of a pure value, functions that do not call themselves included.

    A value with an effect keeps its `let`: that is what says when the effect happens. So does work that an inner
    function uses: that is what says that it is done once.
    """

    name = "to-graph-normal-form"
    opt_level = 1
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        lets = [node for node in post_order(function) if isinstance(node, Let) and not _needs_name(node)]
        return inline_pure(function, lets, module_effects(mod))


def _needs_name(let: Let) -> bool:
    return isinstance(let.value, Function) and (not monomorphic(let.value.checked_type) or _mentions(let.value, let))


def _mentions(root: Expr, let: Let) -> bool:
    return any(node is let.var for node in post_order(root))
