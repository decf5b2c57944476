"""Simplification of inference graphs by a table of rules; each keeps the value and the type of what it replaces."""

from __future__ import annotations

from typing import Final

from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.rewrite_rules import Rule, apply_rules
from relay_hw.transform.rules.activation import ACTIVATION_RULES
from relay_hw.transform.rules.arithmetic import ARITHMETIC_RULES
from relay_hw.transform.rules.identity import IDENTITY_RULES
from relay_hw.transform.rules.padding import PADDING_RULES
from relay_hw.transform.rules.shape import SHAPE_RULES

SIMPLIFY_RULES: Final[tuple[Rule, ...]] = (
    *IDENTITY_RULES,
    *SHAPE_RULES,
    *ACTIVATION_RULES,
    *PADDING_RULES,
    *ARITHMETIC_RULES,
)


class SimplifyExpr(FunctionPass):
    """Applies `SIMPLIFY_RULES` until none holds any more.

    Rules on floating-point constants reassociate (a product or sum of constants is rounded once instead of twice);
    everything else keeps every bit.
    """

    name = "simplify-expr"
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, SIMPLIFY_RULES)
