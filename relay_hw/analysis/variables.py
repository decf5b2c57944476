"""Variables of an expression: free, bound, all, each once and in order of appearance."""

from __future__ import annotations

from relay_hw.analysis.scope import find_scopes
from relay_hw.ir.dims import dim_vars
from relay_hw.ir.expr import Expr, Function, Let, Match, Var
from relay_hw.ir.types import FuncType, RefType, TensorType, TupleType, Type, TypeCall, TypeVar, type_leaves
from relay_hw.ir.visit import pattern_vars, post_order


def all_vars(expr: Expr) -> tuple[Var, ...]:
    """Every variable that `expr` uses or binds."""
    return tuple(node for node in post_order(expr) if isinstance(node, Var))


def bound_vars(expr: Expr) -> tuple[Var, ...]:
    """Every variable that `expr` binds: parameters, let variables, pattern variables."""
    found: dict[Var, None] = {}
    for node in post_order(expr):
        match node:
            case Function(params=params):
                found.update(dict.fromkeys(params))
            case Let(var=var):
                found[var] = None
            case Match(clauses=clauses):
                found.update((var, None) for clause in clauses for var in pattern_vars(clause.lhs))
            case _:
                pass
    return tuple(var for var in all_vars(expr) if var in found)


def free_vars(expr: Expr) -> tuple[Var, ...]:
    """Every variable that has a use in `expr` outside of the scope that binds it."""
    scopes = find_scopes(expr)
    return tuple(
        var
        for var in all_vars(expr)
        if scopes.uses.get(var) and not (var in scopes.binders and scopes.binders[var].holds(scopes.of[var]))
    )


def free_type_vars(ty: Type) -> tuple[TypeVar, ...]:
    """The type variables of kind Type in `ty` that no function type in it binds, in order of appearance."""
    found: dict[TypeVar, None] = {}
    _collect(ty, frozenset(), found)
    return tuple(found)


def mentions(ty: Type, var: TypeVar) -> bool:
    """Whether the type parameter `var`, of any kind, occurs in `ty`."""
    for leaf in type_leaves(ty):
        match leaf:
            case TensorType(shape=shape, dtype=dtype):
                inside: list[object] = [dtype, *(part for dim in shape for part in dim_vars(dim))]
            case _:
                inside = []
        if leaf is var or any(part is var.inside for part in inside if part is not None):
            return True
    return False


def _collect(ty: Type, bound: frozenset[TypeVar], found: dict[TypeVar, None]) -> None:
    match ty:
        case TypeVar() if ty not in bound:
            found[ty] = None
        case FuncType(type_params=params):
            for part in (*ty.arg_types, ty.ret_type):
                _collect(part, bound | set(params), found)
        case TupleType(fields=parts) | TypeCall(args=parts):
            for part in parts:
                _collect(part, bound, found)
        case RefType(value=value):
            _collect(value, bound, found)
        case _:
            return
