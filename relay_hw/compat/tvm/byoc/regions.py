"""Compiles modules that TVM's passes partitioned: each layer of a region becomes a composite of the target.

In: a module with functions of the attribute `Compiler`. Out: one graph with composites, and a build of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from relay_hw.dataflow_pattern.grouping import outside_fused
from relay_hw.errors import InputError
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, Op, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType
from relay_hw.ir.visit import copy_with, rebuild
from relay_hw.quantize.recipes import FLOAT
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.base import Target
from relay_hw.target.registry import find_target
from relay_hw.transform.base import Pass
from relay_hw.transform.graph import typed
from relay_hw.transform.infer_type import InferType
from relay_hw.transform.sequential import Pipeline

# Name of a composite of a single operator, without a pattern.
_SINGLE: Final = "SingleOperator"


class _AsPartitioned:
    """The target `inner` for a module that already has its composites."""

    def __init__(self, inner: Target) -> None:
        self._inner = inner

    def composites(self) -> Pass:
        """A pass that changes nothing."""
        return Pipeline([])

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def compilers_of(mod: IRModule) -> tuple[str, ...]:
    """Names of the compilers that functions of the module are for."""
    found = {str(function.attrs["Compiler"]) for function in mod.functions.values() if "Compiler" in function.attrs}
    return tuple(sorted(found))


def compile_partitioned(mod: IRModule, host_target: str | None = None) -> CompiledModel:
    """A build of a partitioned module, whose regions are compiled by the target that has their compiler's name.

    Neighbouring regions become one where that is legal. Raises InputError for regions of several compilers, or of our
    own accelerator, which finds its composites itself; RelayHwError.
    """
    names = compilers_of(mod)
    if len(names) != 1:
        raise InputError(f"functions of a module must be for one compiler, not for {', '.join(names) or 'none'}")
    if names[0] == ACCEL:
        raise InputError(
            f"functions must be for another compiler than {ACCEL}: relay_hw.build(mod, {ACCEL!r}) partitions"
        )
    target = cast(Target, _AsPartitioned(find_target(names[0])))
    whole = written_out(mod)
    options = CompileOptions(target=target, host_target=host_target, strategy=FLOAT)
    return compile_model(whole, options, quantized=whole)


def written_out(mod: IRModule) -> IRModule:
    """The module with regions in the places of their calls; operators outside of composites become some."""
    external = {name: function for name, function in mod.functions.items() if "Compiler" in function.attrs}
    rest = {name: function for name, function in mod.functions.items() if name not in external}

    def change(node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, GlobalVar) or new.op.name_hint not in external:
            return new
        function = external[new.op.name_hint]
        given: dict[Expr, Expr] = dict(zip(function.params, new.args, strict=True))
        return _copied(function.body, given, lambda _, inner: single(inner, str(function.attrs["Compiler"])))

    changed = {name: cast(Function, _copied(function, {}, change)) for name, function in rest.items()}
    return InferType()(IRModule(changed, mod.types, mod.attrs))


def single(node: Expr, compiler: str) -> Expr:
    """A call of an operator as a call of a composite that holds it; other nodes as they are."""
    if not isinstance(node, Call) or not isinstance(node.op, Op):
        return node
    outer: list[Expr] = []
    params: list[Var] = []

    def inside(arg: Expr) -> Expr:
        if isinstance(arg, Constant):
            return arg
        if isinstance(arg, Tuple):
            return Tuple([inside(part) for part in arg.fields], checked_type=arg.checked_type)
        outer.append(arg)
        params.append(Var(f"i{len(params)}", arg.checked_type, checked_type=arg.checked_type))
        return params[-1]

    body = copy_with(node, args=tuple(map(inside, node.args)))
    attrs = {"Composite": f"{compiler}.{node.op.name}", _SINGLE: 1}
    ty = FuncType(tuple(param.type for param in params), node.type)
    function = Function(tuple(params), body, node.type, attrs=attrs, checked_type=ty)
    return Call(function, outer, span=node.span, checked_type=node.checked_type)


def without_singles(function: Function) -> Function:
    """The opposite of `single` for all of a function: operators that no pattern asked for stand by themselves."""

    def change(node: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Function) or _SINGLE not in new.op.attrs:
            return new
        given: dict[Expr, Expr] = dict(zip(new.op.params, new.args, strict=True))
        return _copied(new.op.body, given, lambda _, inner: inner)

    return copy_with(function, body=_copied(function.body, {}, change))


def _copied(root: Expr, given: Mapping[Expr, Expr], change: Callable[[Expr, Expr], Expr]) -> Expr:
    """`root` with `given` in place of its variables, and what `change` makes of each node; composites stay closed."""
    memo: dict[Expr, Expr] = dict(given)
    for node in outside_fused(root):
        if node in memo:
            continue
        if isinstance(node, Function) and node.body not in memo:
            memo[node] = node
        else:
            memo[node] = change(node, typed(rebuild(node, memo), node.checked_type))
    return memo[root]
