"""The table of types of a JSON module. In: the document. Out: types by index."""

from __future__ import annotations

from typing import Any, Final

from relay_hw.ir.types import (
    ANY,
    Dim,
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    Kind,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.text.cursor import MAX_NESTING
from relay_hw.text.json_fields import Row, Rows, fault
from relay_hw.text.type_parser import DTYPES

_KINDS: Final = {kind.value: kind for kind in Kind}


class Types:
    """All types of a document; each is built from earlier ones."""

    def __init__(self, document: Row) -> None:
        names: list[Any] = document.get("dims", list)
        for name in names:
            if not isinstance(name, str):
                raise fault("dims must be strings", name)
        self._dims = [DimVar(name) for name in names]
        self._types: list[Type] = []
        self._depths: list[int] = []
        for row in Rows(document, "types"):
            self._depth = 0
            self._types.append(self._read(row))
            self._depths.append(self._depth + 1)
            if self._depth >= MAX_NESTING:
                raise fault(f"{row.where}: types must be nested at most {MAX_NESTING} deep", self._depth + 1)

    def one(self, row: Row, name: str) -> Type:
        """The type that a field gives."""
        return row.pick(name, self._types, "types")

    def optional(self, row: Row, name: str) -> Type | None:
        """The type that a field gives, None without the field."""
        return self.one(row, name) if name in row.value else None

    def all(self, row: Row, name: str) -> tuple[Type, ...]:
        """The types that a field lists."""
        return tuple(row.pick_all(name, self._types, "types"))

    def variables(self, row: Row, name: str) -> tuple[TypeVar, ...]:
        """The type variables that a field lists."""
        found = self.all(row, name)
        variables = tuple(ty for ty in found if isinstance(ty, TypeVar))
        if len(variables) != len(found):
            raise fault(f"{row.where}: {name} must be type variables", row.value[name])
        return variables

    def _inner(self, row: Row, name: str) -> Type:
        found = self.one(row, name)
        self._depth = max(self._depth, self._depths[row.value[name]])
        return found

    def _inner_all(self, row: Row, name: str) -> tuple[Type, ...]:
        found = self.all(row, name)
        self._depth = max([self._depth, *(self._depths[place] for place in row.value[name])])
        return found

    def _read(self, row: Row) -> Type:
        match row.get("type", str):
            case "tensor":
                return self._tensor(row)
            case "tuple":
                return TupleType(self._inner_all(row, "fields"))
            case "function":
                args, result = self._inner_all(row, "args"), self._inner(row, "result")
                return FuncType(args, result, self.variables(row, "params"))
            case "ref":
                return RefType(self._inner(row, "value"))
            case "var":
                return TypeVar(row.get("name", str), self._kind(row))
            case "name":
                return GlobalTypeVar(row.get("name", str))
            case "apply":
                return TypeCall(self._inner(row, "function"), self._inner_all(row, "args"))
            case "hole":
                return IncompleteType(self._kind(row))
            case other:
                raise fault(f"{row.where}: type must be a kind of the schema", other)

    def _kind(self, row: Row) -> Kind:
        name = row.get("kind", str)
        if name not in _KINDS:
            raise fault(f"{row.where}: kind must be one of {', '.join(_KINDS)}", name)
        return _KINDS[name]

    def _tensor(self, row: Row) -> TensorType:
        dtype = row.get("dtype", str)
        if dtype not in DTYPES:
            raise fault(f"{row.where}: dtype must be like int8, int32, float32 or bool", dtype)
        return TensorType([self._dim(dim, row) for dim in row.get("shape", list)], dtype)

    def _dim(self, dim: Any, row: Row) -> Dim:
        if type(dim) is int and dim >= 0:
            return dim
        if dim == "?":
            return ANY
        if isinstance(dim, dict):
            return Row(dim, f"{row.where}.shape").pick("dim", self._dims, "dims")
        raise fault(f"{row.where}: dimension must be an integer of at least 0, ? or a dim", dim)
