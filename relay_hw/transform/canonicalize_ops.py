"""CanonicalizeOps: turns bias_add into an addition."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external, make
from relay_hw.transform.rewrite_rules import Rule, Uses, apply_rules


class CanonicalizeOps(FunctionPass):
    """`nn.bias_add(x, b)` becomes `add(x, expand_dims(b))`."""

    name = "canonicalize-ops"
    opt_level = 3
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (BIAS_ADD,))


def _bias_add(call: Call, uses: Uses) -> Expr | None:
    data, bias = call.args
    rank = data.tensor_type.rank
    after = rank - call.attrs.axis % rank - 1
    wide = make("expand_dims", (bias,), axis=1, num_newaxis=after) if after else bias
    return make("add", (data, wide), span=call.span)


BIAS_ADD = Rule("bias-add", ("nn.bias_add",), _bias_add)
