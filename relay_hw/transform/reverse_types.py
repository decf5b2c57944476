"""Types of reverse-mode programs: each tensor of real numbers is paired with a reference to its adjoint.

In: types and type definitions of a program. Out: those of its reverse-mode version; everything else stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from relay_hw.ir.expr import Constructor
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import UNIT, FuncType, GlobalTypeVar, RefType, TupleType, Type, TypeCall, type_leaves
from relay_hw.op.gradients.accumulate import is_real

# The chain of steps that run backwards: a reference to the latest one.
BACK: Final = RefType(FuncType((), UNIT))


class ReverseTypes:
    """Reverse-mode versions of the data types of a module that hold real numbers."""

    def __init__(self, types: Mapping[str, TypeData]) -> None:
        self._real = _real_types(types)
        self._suffix = _suffix(types)
        self._headers = {name: GlobalTypeVar(name + self._suffix) for name in self._real}
        self.types: dict[str, TypeData] = {}
        for name in self._real:
            self._define(types[name])

    def of(self, ty: Type) -> Type:
        """The type of the values that stand for those of type `ty`."""
        match ty:
            case TupleType(fields=fields):
                return TupleType(tuple(map(self.of, fields)))
            case FuncType(arg_types=args, ret_type=ret, type_params=params, where=where):
                return FuncType(tuple(map(self.of, args)), self.of(ret), params, where)
            case RefType(value=value):
                return RefType(self.of(value))
            case TypeCall(func=func, args=args):
                return TypeCall(self._leaf(func), tuple(map(self.of, args)))
            case _:
                return self._leaf(ty)

    def has_real(self, ty: Type | None) -> bool:
        """Whether values of this type hold real numbers, or functions of them."""
        return ty is not None and any(self._is_real_leaf(leaf) for leaf in type_leaves(ty))

    def has_real_data(self, ty: Type | None) -> bool:
        """Whether a data type that has a reverse-mode version occurs in `ty`."""
        if ty is None:
            return False
        return any(isinstance(leaf, GlobalTypeVar) and leaf.name in self._real for leaf in type_leaves(ty))

    def constructor(self, old: Constructor) -> Constructor:
        """The constructor of the reverse-mode version of its type."""
        if old.belong_to.name not in self._real:
            return old
        new = self.types[self._headers[old.belong_to.name].name]
        return next(item for item in new.constructors if item.name_hint == old.name_hint + self._suffix)

    def extend(self, mod: IRModule) -> IRModule:
        """`mod` with the reverse-mode types."""
        return replace(mod, types={**mod.types, **self.types}) if self.types else mod

    def _leaf(self, ty: Type) -> Type:
        if is_real(ty):
            return TupleType((ty, RefType(ty)))
        if isinstance(ty, GlobalTypeVar):
            return self._headers.get(ty.name, ty)
        return ty

    def _is_real_leaf(self, ty: Type) -> bool:
        return is_real(ty) or (isinstance(ty, GlobalTypeVar) and ty.name in self._real)

    def _define(self, data: TypeData) -> None:
        header = self._headers[data.header.name]
        items = [
            replace(item, name_hint=item.name_hint + self._suffix, inputs=inputs, belong_to=header)
            for item in data.constructors
            for inputs in (tuple(map(self.of, item.inputs)),)
        ]
        self.types[header.name] = TypeData(header, data.type_vars, items)


def _suffix(types: Mapping[str, TypeData]) -> str:
    """One that no name of a type or constructor ends with: of an earlier derivative there may be some."""
    names = [*types, *(item.name_hint for data in types.values() for item in data.constructors)]
    suffix, count = "_reverse", 1
    while any(name.endswith(suffix) for name in names):
        count += 1
        suffix = f"_reverse{count}"
    return suffix


def _real_types(types: Mapping[str, TypeData]) -> set[str]:
    """The data types whose own constructors hold real numbers, or such a type again."""
    found: set[str] = set()
    while True:
        more = {
            name
            for name, data in types.items()
            if name not in found
            and any(
                is_real(leaf) or (isinstance(leaf, GlobalTypeVar) and leaf.name in found)
                for item in data.constructors
                for ty in item.inputs
                for leaf in type_leaves(ty)
            )
        }
        if not more:
            return found
        found |= more
