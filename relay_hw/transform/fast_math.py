"""FastMath: replaces exp, tanh and erf by approximations."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, is_float, make, op_name
from relay_hw.transform.rewrite_rules import Rule, Uses, apply_rules

FAST: Final = MappingProxyType(
    {"exp": "fast_exp", "tanh": "fast_tanh", "erf": "fast_erf", "nn.softmax": "nn.fast_softmax"}
)


class FastMath(FunctionPass):
    """Results may differ from the exact ones by the error of the approximations: the only pass that trades accuracy."""

    name = "fast-math"
    opt_level = 4
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (FAST_MATH,))


def _fast(call: Call, uses: Uses) -> Expr | None:
    if not is_float(call):
        return None
    record = {"axis": call.attrs.axis} if op_name(call) == "nn.softmax" else {}
    return make(FAST[op_name(call)], call.args, span=call.span, **record)


FAST_MATH = Rule("fast-math", tuple(FAST), _fast)
