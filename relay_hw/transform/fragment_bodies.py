"""Builds the bodies of fragments, graphs of operators on parameters that are tensors.

In: variables of a block, and the values of all of them. Out: `Body`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from relay_hw.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, Var
from relay_hw.ir.types import ANY, DtypeVar, TensorType, TupleType, Type
from relay_hw.ir.visit import copy_with
from relay_hw.transform.graph import typed

# A variable outside, and the fields that lead to a part of it.
_Key = tuple[Expr, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Body:
    """`members`: the calls of a fragment by variable; `params`: a parameter for each part of a variable outside."""

    members: Mapping[Expr, Expr]
    params: Mapping[_Key, Var]


def build_body(members: Sequence[Var], values: Mapping[Expr, Expr]) -> Body:
    """The graph of `members`, which are in order. `values`: of each variable of the block that has one."""
    builder = _Builder(values)
    for var in members:
        builder.add(var)
    return Body(builder.local, builder.params)


class _Builder:
    def __init__(self, values: Mapping[Expr, Expr]) -> None:
        self.local: dict[Expr, Expr] = {}
        self.params: dict[_Key, Var] = {}
        self._values = values

    def add(self, var: Var) -> None:
        """One more member, behind those that it reads."""
        call = cast(Call, self._values[var])
        self.local[var] = copy_with(call, args=tuple(self._operand(arg, ()) for arg in call.args))

    def _operand(self, expr: Expr, path: tuple[int, ...]) -> Expr:
        """The part of an operand that `path` leads to, seen from inside."""
        while True:
            if isinstance(expr, Constant):
                return expr
            value = self._values.get(expr)
            match value:
                case Tuple(fields=fields) if path:
                    expr, path = fields[path[0]], path[1:]
                case Tuple(fields=fields) if is_closed(value.type):
                    return typed(Tuple([self._operand(part, ()) for part in fields]), value.type)
                case TupleGetItem(tuple_value=inner, index=index):
                    expr, path = inner, (index, *path)
                case Var() | Constant():
                    expr = value
                case _:
                    return self._projection(expr, path)

    def _projection(self, expr: Expr, path: tuple[int, ...]) -> Expr:
        found = self.local.get(expr)
        if found is not None:
            return projected(found, path)
        ty = _part_type(expr.type, path)
        if isinstance(ty, TupleType):
            return typed(Tuple([self._projection(expr, (*path, k)) for k in range(len(ty.fields))]), ty)
        if (expr, path) not in self.params:
            self.params[expr, path] = Var(f"x{len(self.params)}", ty, checked_type=ty)
        return self.params[expr, path]


def is_closed(ty: Type) -> bool:
    """Whether a type is that of tensors whose element type and rank are known."""
    match ty:
        case TensorType():
            return not isinstance(ty.dtype, DtypeVar) and all(isinstance(dim, int) or dim is ANY for dim in ty.shape)
        case TupleType():
            return all(map(is_closed, ty.fields))
        case _:
            return False


def _part_type(ty: Type, path: tuple[int, ...]) -> Type:
    for index in path:
        assert isinstance(ty, TupleType)
        ty = ty.fields[index]
    return ty


def projected(expr: Expr, path: tuple[int, ...]) -> Expr:
    """The part of a value that `path` leads to."""
    for index in path:
        ty = _part_type(expr.type, (index,))
        expr = expr.fields[index] if isinstance(expr, Tuple) else typed(TupleGetItem(expr, index), ty)
    return expr


def leaves(expr: Expr) -> list[Expr]:
    """The tensors of a value, left to right."""
    if not isinstance(expr.type, TupleType):
        return [expr]
    return [leaf for k in range(len(expr.type.fields)) for leaf in leaves(projected(expr, (k,)))]


def packed(ty: Type, leaves: Sequence[Expr]) -> tuple[Expr, Sequence[Expr]]:
    """A value of type `ty` from its tensors, and the tensors that are left."""
    if not isinstance(ty, TupleType):
        return leaves[0], leaves[1:]
    fields: list[Expr] = []
    for part in ty.fields:
        found, leaves = packed(part, leaves)
        fields.append(found)
    return typed(Tuple(fields), ty), leaves
