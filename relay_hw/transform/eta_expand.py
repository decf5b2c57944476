"""Eta expansion: wraps constructors and global functions that are used as values into functions."""

from __future__ import annotations

from relay_hw.ir.expr import Call, Constructor, Expr, Function, GlobalVar, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import FuncType, TypeCall, TypeVar, bind_type_vars
from relay_hw.ir.visit import post_order, rebuild
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import is_external


class EtaExpand(FunctionPass):
    """Wraps unapplied constructors (`expand_constructor`) and global functions (`expand_global_var`)."""

    name = "eta-expand"
    opt_level = 1

    def __init__(self, expand_constructor: bool = True, expand_global_var: bool = False) -> None:
        self.expand_constructor = expand_constructor
        self.expand_global_var = expand_global_var

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        if is_external(function):
            return function
        memo: dict[Expr, Expr] = {}
        for node in post_order(function):
            if self._is_wanted(node):
                memo[node] = _expand(node, mod)
            elif isinstance(node, Call) and self._is_wanted(node.op):
                # A callee is not used as a value.
                memo[node] = rebuild(node, {**_parts(node, memo), node.op: node.op})
            else:
                memo[node] = rebuild(node, memo)
        new = memo[function]
        assert isinstance(new, Function)
        return new

    def _is_wanted(self, node: Expr) -> bool:
        if isinstance(node, Constructor):
            return self.expand_constructor
        return isinstance(node, GlobalVar) and self.expand_global_var


def _parts(node: Call, memo: dict[Expr, Expr]) -> dict[Expr, Expr]:
    return {arg: memo[arg] for arg in node.args}


def _expand(node: Expr, mod: IRModule) -> Expr:
    ty = _type(node, mod)
    fresh = {param: TypeVar(param.name, param.kind) for param in ty.type_params}
    params = [Var(f"eta{index}", bind_type_vars(arg, fresh)) for index, arg in enumerate(ty.arg_types)]
    result = bind_type_vars(ty.ret_type, fresh)
    return Function(params, Call(node, params), result, tuple(fresh.values()), span=node.span)


def _type(node: Expr, mod: IRModule) -> FuncType:
    ty = mod[node].func_type if isinstance(node, GlobalVar) else node.type
    assert isinstance(ty, FuncType)
    if not isinstance(node, Constructor):
        return ty
    data = mod.types[node.belong_to.name]
    return FuncType(tuple(node.inputs), TypeCall(data.header, tuple(data.type_vars)), tuple(data.type_vars))
