"""DefuseOps, the inverse of fusion: inlines calls of fused functions."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external
from relay_hw.transform.redirect import instantiate


class DefuseOps(FunctionPass):
    """Replaces each call of a function literal marked `Primitive` by its body. Composites stay."""

    name = "defuse-ops"
    opt_level = 3

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        new = _Defuser().rewrite(function)
        assert isinstance(new, Function)
        return new


class _Defuser(Rewriter):
    def rewrite_call(self, old: Call, new: Call) -> Expr:
        op = new.op
        if isinstance(op, Function) and op.attrs.get("Primitive") and "Composite" not in op.attrs:
            return instantiate(op, new.args)
        return new
