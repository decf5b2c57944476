"""Prints types. In: types, names for their variables. Out: Relay text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relay_hw.ir.dims import Dim, DimVar, ShapeVar, dim_text
from relay_hw.ir.types import (
    Condition,
    DimType,
    DtypeVar,
    FuncType,
    GlobalTypeVar,
    Kind,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)

Naming = Callable[[TypeVar | DimVar], str]


def type_text(ty: Type, var_name: Naming = lambda var: var.name) -> str:
    """`ty` as Relay's text format writes it. `var_name` names type variables and symbolic dimensions."""

    def write(part: Type) -> str:
        return type_text(part, var_name)

    match ty:
        case TensorType():
            return _tensor_text(ty, var_name)
        case TupleType(fields=(only,)):
            return f"({write(only)},)"
        case TupleType(fields=fields):
            return f"({', '.join(map(write, fields))})"
        case FuncType():
            return _function_text(ty, var_name, False)
        case RefType(value=value):
            return f"ref({write(value)})"
        case TypeVar(inside=DimVar() as inside):
            return var_name(inside)
        case TypeVar():
            return var_name(ty)
        case GlobalTypeVar(name=name):
            return name
        case TypeCall(func=func, args=args):
            return f"{write(func)}[{', '.join(map(write, args))}]" if args else write(func)
        case DimType(dim=dim):
            return dim_text(dim, var_name)
        case ShapeType(shape=shape):
            return _shape_text(shape, var_name)
        case _:
            return "_"


def _function_text(ty: FuncType, var_name: Naming, closed: bool) -> str:
    args = ", ".join(type_text(arg, var_name) for arg in ty.arg_types)
    params = type_params_text(ty.type_params, var_name)
    return f"fn {params}({args}) -> {result_text(ty.ret_type, ty.where, var_name, closed)}"


def result_text(ret: Type, where: Sequence[Condition], var_name: Naming, closed: bool = False) -> str:
    """`int32 where (n == m)`: a function's result and conditions. `closed`: conditions of another function follow.

    Conditions belong to the nearest function type, so one without any that others follow ends in `where ()`.
    """
    follows = closed or bool(where)
    text = _function_text(ret, var_name, True) if follows and isinstance(ret, FuncType) else type_text(ret, var_name)
    return text + (where_text(where, var_name) or (" where ()" if closed else ""))


def _tensor_text(ty: TensorType, var_name: Naming) -> str:
    dtype = var_name(ty.dtype.var) if isinstance(ty.dtype, DtypeVar) else ty.dtype
    if not ty.shape and not ty.layout and not isinstance(ty.dtype, DtypeVar):
        return dtype
    return f"Tensor[{_shape_text(ty.shape, var_name)}, {dtype}{f', {ty.layout}' if ty.layout else ''}]"


def _shape_text(shape: Sequence[Dim], var_name: Naming) -> str:
    match shape:
        case (ShapeVar() as var,):
            return var_name(var)
        case _:
            return f"({', '.join(dim_text(dim, var_name) for dim in shape)})"


def type_params_text(params: Sequence[TypeVar], var_name: Naming) -> str:
    """`[A, n: Dim]`: the kind is written unless it is Type; empty without parameters."""
    if not params:
        return ""
    written = (
        type_text(var, var_name) + (f": {var.kind.value}" if var.kind is not Kind.TYPE else "") for var in params
    )
    return f"[{', '.join(written)}]"


def where_text(where: Sequence[Condition], var_name: Naming) -> str:
    """` where (n == 2 * m)`; empty without conditions."""
    if not where:
        return ""
    sides = ((type_text(c.left, var_name), c.comparison.value, type_text(c.right, var_name)) for c in where)
    return f" where ({', '.join(' '.join(side) for side in sides)})"
