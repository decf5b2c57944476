"""Type inference. In: a module or expression, typed in part or not at all. Out: a new one, every node typed.

Functions are inferred in the order of their calls, mutually recursive ones together. `rules.py` holds the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relay_hw.analysis.call_graph import call_order
from relay_hw.analysis.kinds import check_kinds
from relay_hw.analysis.retype import Retyper
from relay_hw.analysis.rules import Inference
from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType


def infer_type(mod: IRModule) -> IRModule:
    """The module with every node typed; nodes that are already right stay the same objects.

    Fills the missing annotations of parameters and results and the type arguments of calls. Raises TypeCheckError
    for a program without a type, WellFormedError for a name that nothing binds.
    """
    try:
        return _infer_module(mod)
    except RecursionError:
        raise TypeCheckError("type must be nested less deeply than this program builds it") from None


def infer_expr(expr: Expr, mod: IRModule | None = None) -> Expr:
    """`expr` with every node typed. Free variables must carry annotations; globals and data types come from `mod`."""
    typed = infer_type(mod) if mod is not None else IRModule()
    known = {name: function.func_type for name, function in typed.functions.items()}
    inference = Inference(typed, known)
    try:
        inference.infer(expr)
        inference.solve()
        return Retyper(inference).rewrite(expr)
    except RecursionError:
        raise TypeCheckError("type must be nested less deeply than this program builds it") from None


def _infer_module(mod: IRModule) -> IRModule:
    check_kinds(mod)
    known: dict[str, FuncType] = {}
    done: dict[str, Function] = {}
    for group in call_order(mod):
        done.update(_infer_group(mod, group, known))
        known.update((name, done[name].func_type) for name in group)
    if all(done[name] is function for name, function in mod.functions.items()):
        return mod
    return mod.with_functions({name: done[name] for name in mod.functions})


def _infer_group(mod: IRModule, group: Sequence[str], known: Mapping[str, FuncType]) -> dict[str, Function]:
    inference = Inference(mod, known)
    for name in group:
        inference.declare_global(name, mod.functions[name])
    for name in group:
        inference.infer_global(name, mod.functions[name])
    inference.solve()
    retyper = Retyper(inference)
    return {name: retyper.rewrite_function(mod.functions[name]) for name in group}
