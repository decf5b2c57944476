"""FoldExplicitPadding: merges nn.pad into the convolution or pooling that reads it."""

from __future__ import annotations

from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.rewrite_rules import apply_rules
from relay_hw.transform.rules.padding import PADDING_RULES


class FoldExplicitPadding(FunctionPass):
    """`nn.pad` before nn.conv2d, nn.avg_pool2d and nn.max_pool2d goes where the value that it pads with is theirs."""

    name = "fold-explicit-padding"
    opt_level = 0
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, PADDING_RULES)
