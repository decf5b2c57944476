"""The last step of type inference. In: expressions and their types. Out: nodes that carry their types."""

from __future__ import annotations

from typing import Any, cast

from relay_hw.analysis.describe import describe
from relay_hw.analysis.rules import Inference
from relay_hw.analysis.unify import TypeSolver
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Op, Var
from relay_hw.ir.types import FuncType, IncompleteType, Type, type_leaves
from relay_hw.ir.visit import copy_with, post_order, rebuild


class Retyper:
    """Writes inferred types into new nodes; a node that has its type already stays the same object."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._solver: TypeSolver = inference.solver
        self._memo: dict[Expr, Expr] = {}
        self._globals: dict[str, GlobalVar] = {}

    def rewrite(self, root: Expr) -> Expr:
        """The typed graph. Raises TypeCheckError if a type is still unknown."""
        for node in post_order(root):
            if node not in self._memo:
                self._memo[node] = self._retype(node)
        return self._memo[root]

    def rewrite_function(self, function: Function) -> Function:
        """The typed function."""
        return cast(Function, self.rewrite(function))

    def _retype(self, node: Expr) -> Expr:
        if isinstance(node, Op):
            return node
        ty = self._final(node)
        changes = self._annotations(node, ty)
        new = rebuild(node, self._memo)
        if new is node and not changes and node.checked_type == ty:
            return node
        return copy_with(new, checked_type=ty, **changes)

    def _annotations(self, node: Expr, ty: Type) -> dict[str, Any]:
        match node:
            case Var(type_annotation=given):
                wanted = node in self._inference.params or (given is not None and _has_hole(given))
                return {"type_annotation": ty} if wanted and given != ty else {}
            case Function(ret_type=given):
                assert isinstance(ty, FuncType)
                return {"ret_type": ty.ret_type} if given != ty.ret_type else {}
            case Call():
                chosen = self._inference.type_args.get(node)
                if chosen is None:
                    return {}
                final = tuple(self._complete(arg, node) for arg in chosen)
                return {"type_args": final} if final != tuple(node.type_args) else {}
            case _:
                return {}

    def _final(self, node: Expr) -> Type:
        found = self._inference.types.get(node)
        assert found is not None, f"{node} was not typed"
        return self._complete(found, node)

    def _complete(self, ty: Type, node: Expr) -> Type:
        final = self._solver.final(ty)
        if self._solver.is_open(final):
            raise TypeCheckError(_unknown(node, final), node.span)
        return final


def _has_hole(ty: Type) -> bool:
    return any(isinstance(leaf, IncompleteType) for leaf in type_leaves(ty))


def _unknown(node: Expr, ty: Type) -> str:
    what = describe(node) if isinstance(node, (Var, GlobalVar, Constructor)) else f"the result of {describe(node)}"
    return f"type of {what} must be annotated: the program leaves it open ({ty})"
