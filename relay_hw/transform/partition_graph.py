"""PartitionGraph: turns the regions of a compiler into global functions for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Call, Constant, Expr, Function, GlobalVar, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TupleType, Type
from relay_hw.ir.visit import children, copy_with, rebuild
from relay_hw.transform.base import Pass
from relay_hw.transform.compiler_regions import Region, find_regions_of_compilers
from relay_hw.transform.effects import pin_effects
from relay_hw.transform.graph import is_external


class PartitionGraph(Pass):
    """Each region becomes `@tvmgen_<mod_name>_<compiler>_<function>_<number>` with the attributes `Compiler`,
    `global_symbol`, `Primitive` and `Inline`. Several results become a tuple.

    With `bind_constants`, constants that a region reads lie inside. Raises UnsupportedError for a region that depends
    on itself.
    """

    name = "partition-graph"
    opt_level = 0

    def __init__(self, mod_name: str = "default", bind_constants: bool = True) -> None:
        self.mod_name = mod_name
        self.bind_constants = bind_constants

    def transform(self, mod: IRModule) -> IRModule:
        mod = pin_effects(mod)
        new: dict[str, Function] = {}
        made: dict[str, Function] = {}
        for name, function in mod.functions.items():
            regions = [] if is_external(function) else find_regions_of_compilers(function)
            new[name] = _Outliner(self, name, regions, made).outline(function) if regions else function
        return mod.with_functions({**made, **new}) if made else mod

    def function_name(self, target: str, caller: str, number: int) -> str:
        """The name of a new global function."""
        prefix = f"tvmgen_{self.mod_name}" if self.mod_name else "tvmgen"
        return f"{prefix}_{target}_{caller}_{number}".replace("-", "_").replace(".", "_")


class _Outliner:
    def __init__(self, step: PartitionGraph, caller: str, regions: Sequence[Region], made: dict[str, Function]) -> None:
        self._step = step
        self._caller = caller
        self._regions = regions
        self._made = made
        self._of_end: dict[Expr, Region] = {end: region for region in regions for end in region.ends}
        self._memo: dict[Expr, Expr] = {}
        self._calls: dict[Region, Expr] = {}

    def outline(self, root: Function) -> Function:
        stack: list[tuple[Expr, bool]] = [(root, False)]
        open_nodes: set[Expr] = set()
        while stack:
            node, is_done = stack.pop()
            if is_done:
                self._memo[node] = self._new(node)
                open_nodes.discard(node)
            elif node not in self._memo:
                if node in open_nodes:
                    raise UnsupportedError("a region of a compiler must not depend on its own results", node.span)
                open_nodes.add(node)
                stack.append((node, True))
                stack.extend((part, False) for part in reversed(self._parts(node)))
        new = self._memo[root]
        assert isinstance(new, Function)
        return new

    def _parts(self, node: Expr) -> Sequence[Expr]:
        region = self._of_end.get(node)
        parts = children(node) if region is None else [begin.args[0] for begin in region.begins]
        return [part for part in parts if part not in self._memo]

    def _new(self, node: Expr) -> Expr:
        region = self._of_end.get(node)
        if region is None:
            new = rebuild(node, self._memo)
            return new if new is node else copy_with(new, checked_type=node.checked_type)
        if region not in self._calls:
            self._calls[region] = self._call(region)
        call = self._calls[region]
        if len(region.ends) == 1:
            return call
        index = next(number for number, end in enumerate(region.ends) if end is node)
        return TupleGetItem(call, index, checked_type=node.checked_type)

    def _call(self, region: Region) -> Call:
        name = self._step.function_name(region.target, self._caller, len(self._made))
        params: dict[Expr, Var] = {}
        local: dict[Expr, Expr] = {}
        for begin in region.begins:
            source = begin.args[0]
            if isinstance(source, Constant) and self._step.bind_constants:
                local[begin] = source
                continue
            ty = source.checked_type
            hint = f"{region.target}_{len(self._made)}_i{len(params)}"
            local[begin] = params.setdefault(source, Var(hint, ty, checked_type=ty))
        # Regions that were annotated by hand may read variables directly.
        results = [_copy(end.args[0], local, lambda var: params.setdefault(var, _renewed(var))) for end in region.ends]
        body, ty = _joined(results)
        func_type = FuncType(tuple(param.type for param in params.values()), ty)
        attrs = {"Compiler": region.target, "global_symbol": name, "Primitive": 1, "Inline": 1}
        self._made[name] = Function(tuple(params.values()), body, ty, attrs=attrs, checked_type=func_type)
        args = [self._memo.get(source, source) for source in params]
        return Call(GlobalVar(name, checked_type=func_type), args, span=region.ends[-1].span, checked_type=ty)


def _joined(results: Sequence[Expr]) -> tuple[Expr, Type]:
    if len(results) == 1:
        return results[0], results[0].type
    ty = TupleType([result.type for result in results])
    return Tuple(results, checked_type=ty), ty


def _renewed(var: Var) -> Var:
    return Var(var.name_hint, var.checked_type, checked_type=var.checked_type)


def _copy(root: Expr, local: dict[Expr, Expr], outside: Callable[[Var], Expr]) -> Expr:
    """`root` with what `local` names in place, `outside` its variables; called functions are not entered."""
    stack: list[tuple[Expr, bool]] = [(root, False)]
    while stack:
        node, is_done = stack.pop()
        if node in local:
            continue
        if isinstance(node, Function):
            local[node] = node
        elif isinstance(node, Var):
            local[node] = outside(node)
        elif is_done:
            new = rebuild(node, local)
            local[node] = new if new is node else copy_with(new, checked_type=node.checked_type)
        else:
            stack.append((node, True))
            stack.extend((part, False) for part in reversed(children(node)))
    return local[root]
