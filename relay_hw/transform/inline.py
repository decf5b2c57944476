"""Inlining: calls of global functions that are marked `Inline` become their bodies."""

from __future__ import annotations

from dataclasses import replace

from relay_hw.analysis.call_graph import call_order, globals_used
from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.expr import Call, Expr, Function, GlobalVar, Let, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.visit import Rewriter
from relay_hw.transform.base import Pass
from relay_hw.transform.effects import pin_effects
from relay_hw.transform.graph import is_external
from relay_hw.transform.normal_form import ATOMS
from relay_hw.transform.redirect import instantiate


class Inline(Pass):
    """Inlines functions with the attribute `Inline=1` into their callers, then removes those that nothing mentions.

    Functions of an external compiler and recursive ones are never inlined.
    """

    name = "inline"
    opt_level = 1

    def transform(self, mod: IRModule) -> IRModule:
        marked = {name for name, function in mod.functions.items() if _is_marked(function)}
        if not marked:
            return mod
        done = dict(pin_effects(mod).functions)
        ready: dict[str, Function] = {}
        for group in call_order(mod):
            for name in group:
                if not is_external(done[name]) and ready:
                    new = _Inliner(ready).rewrite(done[name])
                    assert isinstance(new, Function)
                    done[name] = new
            if len(group) == 1 and group[0] in marked and group[0] not in globals_used(mod[group[0]]):
                ready[group[0]] = done[group[0]]
        used = {name for function in done.values() for name in globals_used(function)}
        kept = {
            name: function for name, function in done.items() if name not in ready or name in used or name == "main"
        }
        return replace(mod, functions={name: kept[name] for name in mod.functions if name in kept})


def _is_marked(function: Function) -> bool:
    return bool(function.attrs.get("Inline")) and not is_external(function)


class _Inliner(Rewriter):
    def __init__(self, functions: dict[str, Function]) -> None:
        super().__init__()
        self._functions = functions

    def rewrite_call(self, old: Call, new: Call) -> Expr:
        if not isinstance(new.op, GlobalVar) or new.op.name_hint not in self._functions:
            return new
        return _written_out(self._functions[new.op.name_hint], new)


def _written_out(function: Function, call: Call) -> Expr:
    """The body of `function` for the arguments of `call`. What its inner functions use gets a name before them."""
    captured = find_scopes(function).captured
    args = list(call.args)
    lets: list[tuple[Var, Expr]] = []
    for k, (param, arg) in enumerate(zip(function.params, call.args, strict=True)):
        if param in captured and not isinstance(arg, ATOMS):
            args[k] = var = Var(param.name_hint)
            lets.append((var, arg))
    body = instantiate(function, args, call.type_args)
    for var, arg in reversed(lets):
        body = Let(var, arg, body, span=arg.span)
    return body
