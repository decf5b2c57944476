"""Rewrites graphs by substituting nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Let, Match, Var
from relay_hw.ir.types import FuncType, Type, TypeVar, bind_type_vars
from relay_hw.ir.visit import Rewriter, children, copy_with, pattern_vars, post_order, rebuild


def redirect(root: Expr, target: Callable[[Expr], Expr | None]) -> Expr:
    """`root` with each node for which `target` names another one replaced by that one, itself redirected.

    What only replaced nodes lead to disappears. The targets must not lead back to the nodes that they replace.
    """
    memo: dict[Expr, Expr] = {}
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if node in memo:
            continue
        alias = target(node)
        if is_done:
            memo[node] = memo[alias] if alias is not None else rebuild(node, memo)
            continue
        stack.append((node, True))
        parts: Sequence[Expr] = children(node) if alias is None else (alias,)
        stack.extend((part, False) for part in reversed(parts))
    return memo[root]


def instantiate(function: Function, args: Sequence[Expr], type_args: Sequence[Type] = ()) -> Expr:
    """The body of `function` for these arguments: every node new, every variable in it bound anew, not typed."""
    types = dict(zip(function.type_params, type_args, strict=True)) if function.type_params else {}
    return _Copy(dict(zip(function.params, args, strict=True)), _binders(function), types).rewrite(function.body)


def _binders(root: Expr) -> set[Var]:
    found: set[Var] = set()
    for node in post_order(root):
        match node:
            case Let(var=var):
                found.add(var)
            case Function(params=params):
                found.update(params)
            case Match(clauses=clauses):
                found.update(var for clause in clauses for var in pattern_vars(clause.lhs))
            case _:
                pass
    return found


class _Copy(Rewriter):
    def __init__(self, values: dict[Var, Expr], binders: set[Var], types: dict[TypeVar, Type]) -> None:
        super().__init__()
        self._values = values
        self._binders = binders
        self._types = types

    def rewrite_var(self, old: Var, new: Var) -> Expr:
        if old in self._values:
            return self._values[old]
        if old not in self._binders:
            return old
        return Var(old.name_hint, self._bound(old.type_annotation), span=old.span)

    def _rewrite_node(self, node: Expr) -> Expr:
        new = super()._rewrite_node(node)
        # Two copies of a body are two computations.
        if new is node and children(node):
            new = copy_with(node)
        if isinstance(new, GlobalVar) or not self._types:
            return new
        return self._with_types(new)

    def _with_types(self, node: Expr) -> Expr:
        match node:
            case Call(type_args=given) if given:
                chosen = tuple(bind_type_vars(arg, self._types) for arg in given)
                return copy_with(node, type_args=chosen, checked_type=None)
            case Function():
                return copy_with(node, ret_type=self._bound(node.ret_type), checked_type=None)
            case _:
                return copy_with(node, checked_type=None) if children(node) else node

    def _bound(self, ty: Type | None) -> Type | None:
        return None if ty is None else bind_type_vars(ty, self._types)


def monomorphic(ty: Type | None) -> bool:
    """Whether `ty` is not a polymorphic function's."""
    return not (isinstance(ty, FuncType) and ty.type_params)
