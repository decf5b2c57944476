"""ToANormalForm: binds every computation by a `let`, which makes the order of evaluation explicit."""

from __future__ import annotations

from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.normal_form import ATOMS, normalize


class ToANormalForm(FunctionPass):
    """Binds every node but variables, constants and names by a `let`, in the innermost block common to its uses.

    Fused functions keep their bodies: they are one operator to everything around them.
    """

    name = "to-a-normal-form"
    opt_level = 1

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        return normalize(function, lambda node: not isinstance(node, ATOMS))
