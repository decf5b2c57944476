"""CanonicalizeCast: copies widening casts to each reader, so that they fuse there instead of being stored."""

from __future__ import annotations

import numpy as np

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter, copy_with
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import count_uses, dtype_of, is_external, is_op


class CanonicalizeCast(FunctionPass):
    """A widening `cast` with several readers becomes one cast for each of them."""

    name = "canonicalize-cast"
    opt_level = 3
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        uses = count_uses(function)
        wide: set[Expr] = {
            node for node, count in uses.items() if count > 1 and isinstance(node, Call) and _widens(node)
        }
        if not wide:
            return function
        new = _Splitter(wide).rewrite(function)
        assert isinstance(new, Function)
        return new


def _widens(node: Expr) -> bool:
    if not isinstance(node, Call) or not is_op(node, "cast"):
        return False
    source, target = dtype_of(node.args[0]), dtype_of(node)
    return bool(source and target) and np.dtype(target).itemsize > np.dtype(source).itemsize


class _Splitter(Rewriter):
    def __init__(self, wide: set[Expr]) -> None:
        super().__init__()
        self._wide = wide

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        args = tuple(copy_with(self._memo[arg]) if arg in self._wide else self._memo[arg] for arg in old.args)
        if all(mine is theirs for mine, theirs in zip(args, old.args, strict=True)):
            return new
        return copy_with(new, args=args)
