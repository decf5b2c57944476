"""LambdaLift: turns local functions into global ones that take the captured variables and return the function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from relay_hw.analysis.variables import free_type_vars, free_vars
from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import Type, TypeVar
from relay_hw.ir.visit import Rewriter, copy_with, post_order, substitute
from relay_hw.transform.base import Pass
from relay_hw.transform.to_basic_block_normal_form import ToBasicBlockNormalForm


class LambdaLift(Pass):
    """`fn (%x) { %x + %y }` becomes `@main_lifted(%y)`, and `@main_lifted(%y)` gives that function; without captured
    variables it becomes the global function itself. Lifted functions carry the attribute `Closure`.

    Fused functions and those of an external compiler stay where they are.
    """

    name = "lambda-lift"
    opt_level = 1

    def transform(self, mod: IRModule) -> IRModule:
        # Nodes that a closure shares with its surroundings get names, which can be captured.
        named = ToBasicBlockNormalForm()(mod)
        lifter = _Lifter(named)
        functions = {name: lifter.lift(name, function) for name, function in named.functions.items()}
        return named.with_functions({**functions, **lifter.lifted}) if lifter.lifted else mod


class _Lifter(Rewriter):
    def __init__(self, mod: IRModule) -> None:
        super().__init__()
        self.lifted: dict[str, Function] = {}
        self._taken = set(mod.functions)
        self._named: dict[Function, Var] = {}
        self._root: Function | None = None
        self._prefix = ""

    def lift(self, name: str, function: Function) -> Function:
        """`@name` without local functions."""
        self._root, self._prefix = function, name
        for node in post_order(function):
            if isinstance(node, Let) and isinstance(node.value, Function):
                self._named[node.value] = node.var
        return cast(Function, self.rewrite(function))

    def rewrite_function(self, old: Function, new: Function) -> Expr:
        if old is self._root or "Primitive" in old.attrs or "Compiler" in old.attrs:
            return new
        own = self._named.get(old)
        captured = [var for var in free_vars(new) if var is not own]
        name = self._fresh(own)
        params = [Var(var.name_hint, var.type) for var in captured]
        quantified = _type_vars(old, captured)
        whole = Call(GlobalVar(name), captured, type_args=quantified) if captured else GlobalVar(name)
        inside = Call(GlobalVar(name), params, type_args=quantified) if captured else GlobalVar(name)
        mapping: dict[Var, Expr] = dict(zip(captured, params, strict=True))
        body = substitute(new, {**mapping, **({own: inside} if own is not None else {})})
        assert isinstance(body, Function)
        self.lifted[name] = _quantified(self._close(body, params, old), quantified)
        return whole

    def _close(self, function: Function, params: Sequence[Var], old: Function) -> Function:
        attrs = {**function.attrs, "Closure": 1}
        if not params:
            return copy_with(function, attrs=attrs)
        return Function(params, function, old.type, (), attrs)

    def _fresh(self, own: Var | None) -> str:
        stem = f"{self._prefix}_{own.name_hint}" if own is not None and own.name_hint else f"{self._prefix}_lifted"
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name


def _type_vars(function: Function, captured: Sequence[Var]) -> tuple[TypeVar, ...]:
    """Type parameters of the functions around it."""
    found: dict[TypeVar, None] = {}
    for ty in (function.type, *(var.type for var in captured), *_annotations(function)):
        found.update(dict.fromkeys(free_type_vars(ty)))
    return tuple(found)


def _annotations(function: Function) -> Sequence[Type]:
    own = {param for node in post_order(function) if isinstance(node, Function) for param in node.type_params}
    found: list[Type] = []
    for node in post_order(function):
        if node.checked_type is not None:
            found += [leaf for leaf in free_type_vars(node.checked_type) if leaf not in own]
    return found


def _quantified(function: Function, quantified: Sequence[TypeVar]) -> Function:
    """`function` with fresh type parameters in the place of those around it."""
    if not quantified:
        return function
    return copy_with(function, type_params=(*quantified, *function.type_params), checked_type=None)
