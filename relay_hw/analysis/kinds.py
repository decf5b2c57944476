"""Kind checking of types. In: a module. Out: nothing, or TypeCheckError."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from relay_hw.errors import TypeCheckError
from relay_hw.ir.dims import ShapeVar
from relay_hw.ir.expr import Call
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import (
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
from relay_hw.span import Span


def check_kinds(mod: IRModule) -> None:
    """Checks the type definitions of `mod`. Raises TypeCheckError."""
    for name, data in mod.types.items():
        _check_definition(name, data, mod.types)


def check_type(
    ty: Type, types: Mapping[str, TypeData], in_scope: Iterable[TypeVar] = (), span: Span | None = None
) -> None:
    """Checks that `ty` is the type of a value and all its names are defined. Raises TypeCheckError."""
    scope = set(in_scope)
    stack: list[tuple[Type, frozenset[TypeVar]]] = [(ty, frozenset())]
    while stack:
        part, bound = stack.pop()
        match part:
            case TypeVar(name=name, kind=kind):
                if part not in scope and part not in bound:
                    raise TypeCheckError(f"type parameter {name} must be declared by a function around it", span)
                if kind is not Kind.TYPE:
                    raise TypeCheckError(f"type parameter {name} must have kind Type here, not {kind.value}", span)
            case GlobalTypeVar():
                _check_call(TypeCall(part, ()), types, span)
            case TypeCall(args=args):
                _check_call(part, types, span)
                stack.extend((arg, bound) for arg in args)
            case TensorType():
                _check_tensor(part, scope | bound, span)
            case DimType() | ShapeType():
                raise TypeCheckError(f"type must have kind Type, not be the dimensions {part}", span)
            case TupleType(fields=fields):
                stack.extend((field, bound) for field in fields)
            case RefType(value=value):
                stack.append((value, bound))
            case FuncType(type_params=params):
                inner = bound | set(params)
                stack.extend((inner_part, inner) for inner_part in (*part.arg_types, part.ret_type))
            case _:
                pass


def has_kind(ty: Type, kind: Kind) -> bool:
    """Whether `ty` can be the argument for a type parameter of `kind`."""
    match kind:
        case Kind.DIM:
            return isinstance(ty, DimType)
        case Kind.SHAPE:
            return isinstance(ty, ShapeType)
        case Kind.BASE_TYPE:
            return isinstance(ty, TensorType) and not ty.shape
        case Kind.TYPE | Kind.CONSTRAINT | Kind.ADT_HANDLE | Kind.TYPE_DATA:
            return not isinstance(ty, (DimType, ShapeType))


def check_type_args(node: Call, callee: FuncType, name: str) -> None:
    """The type arguments of a call, if it has any, are as many as `callee` wants and of its kinds."""
    count = len(callee.type_params)
    if not node.type_args:
        return
    if len(node.type_args) != count:
        raise TypeCheckError(
            f"{name} must have {count} type argument{'s' * (count != 1)}, not {len(node.type_args)}", node.span
        )
    for param, given in zip(callee.type_params, node.type_args, strict=True):
        if not has_kind(given, param.kind):
            raise TypeCheckError(
                f"type argument {param.name} of {name} must have kind {param.kind.value}, not be {given}", node.span
            )


def _check_tensor(ty: TensorType, scope: AbstractSet[TypeVar], span: Span | None) -> None:
    """Shape and element type may be parameters of the functions around; single dimensions need no declaration."""
    inside = [dim for dim in ty.shape if isinstance(dim, ShapeVar)]
    known = {var.inside for var in scope}
    for var in [*inside, *([ty.dtype] if isinstance(ty.dtype, DtypeVar) else [])]:
        if var not in known:
            raise TypeCheckError(f"type parameter {var} must be declared by a function around it", span)
    if inside and ty.rank > 1:
        raise TypeCheckError(f"shape parameter {inside[0]} must be the whole shape, not one of {ty.rank} parts", span)


def _check_call(ty: TypeCall, types: Mapping[str, TypeData], span: Span | None) -> None:
    if not isinstance(ty.func, GlobalTypeVar):
        raise TypeCheckError(f"head of type {ty} must be a data type, not {ty.func}", span)
    data = types.get(ty.func.name)
    if data is None:
        known = ", ".join(types) or "none"
        raise TypeCheckError(f"type {ty.func.name} must be defined in the module (defined: {known})", span)
    if len(data.type_vars) != len(ty.args):
        wanted = f"{len(data.type_vars)} type argument{'s' * (len(data.type_vars) != 1)}"
        raise TypeCheckError(f"type {ty.func.name} must have {wanted}, not {len(ty.args)}", span)


def _check_definition(name: str, data: TypeData, types: Mapping[str, TypeData]) -> None:
    for var in data.type_vars:
        if var.kind is not Kind.TYPE:
            raise TypeCheckError(f"type parameter {var.name} of type {name} must have kind Type, not {var.kind.value}")
    for constructor in data.constructors:
        if constructor.belong_to != data.header:
            owner = constructor.belong_to.name
            raise TypeCheckError(f"constructor {constructor.name_hint} of {name} must belong to {name}, not {owner}")
        for field in constructor.inputs:
            check_type(field, types, data.type_vars, constructor.span)
