"""Legalization: replaces operators that a target lacks by ones that it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, make
from relay_hw.transform.rewrite_rules import Rule, Uses, apply_rules

# From a typed call to an expression of its type and value, or to None if it is legal.
Legalization = Callable[[Call], "Expr | None"]


class Legalize(FunctionPass):
    """`legalizations` maps names of operators to functions that replace their calls; without it, matrix products
    become `nn.dense`, and `nn.batch_flatten` and `squeeze` become `reshape`."""

    name = "legalize"
    opt_level = 1
    pins_effects = True

    def __init__(self, legalizations: Mapping[str, Legalization] | None = None) -> None:
        self.legalizations = dict(GENERIC if legalizations is None else legalizations)

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        rules = [Rule(name, (name,), _ignoring_uses(apply)) for name, apply in self.legalizations.items()]
        return apply_rules(function, rules)


def _ignoring_uses(apply: Legalization) -> Callable[[Call, Uses], Expr | None]:
    return lambda call, uses: apply(call)


def _matmul(call: Call) -> Expr | None:
    left, right = call.args
    if left.tensor_type.rank != 2 or right.tensor_type.rank != 2:
        return None
    if call.attrs.transpose_a:
        left = make("transpose", (left,), axes=(1, 0))
    if not call.attrs.transpose_b:
        right = make("transpose", (right,), axes=(1, 0))
    return make("nn.dense", (left, right), units=None, out_dtype=call.attrs.out_dtype, span=call.span)


def _as_reshape(call: Call) -> Expr | None:
    shape = call.tensor_type.shape
    if 0 in shape or not all(isinstance(dim, int) for dim in shape):
        return None
    return make("reshape", (call.args[0],), newshape=shape, span=call.span)


GENERIC: Mapping[str, Legalization] = {
    "nn.matmul": _matmul,
    "nn.batch_flatten": _as_reshape,
    "squeeze": _as_reshape,
}
