"""Reads the type table of a JSON module. In: the document. Out: types by index."""

from __future__ import annotations

from typing import Any, Final

from relay_hw.ir.dims import ShapeVar, dim_add, dim_floordiv, dim_mul
from relay_hw.ir.types import (
    ANY,
    Comparison,
    Condition,
    Dim,
    DimType,
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    Kind,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    is_dtype,
)
from relay_hw.text.cursor import MAX_NESTING
from relay_hw.text.json.fields import Row, Rows, fault
from relay_hw.text.names import readable

_KINDS: Final = {kind.value: kind for kind in Kind}
_COMPARISONS: Final = {comparison.value: comparison for comparison in Comparison}


def _is_shape_row(row: Any) -> bool:
    return isinstance(row, dict) and row.get("kind") == "Shape" and isinstance(row.get("inside"), int)


class Types:
    """All types of a document; each is built from earlier ones."""

    def __init__(self, document: Row) -> None:
        names: list[Any] = document.get("dims", list)
        for name in names:
            if not isinstance(name, str):
                raise fault("dims must be strings", name)
        whole = {row.get("inside") for row in document.get("types", list) if _is_shape_row(row)}
        self._dims = [ShapeVar(name) if place in whole else DimVar(name) for place, name in enumerate(names)]
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
                return FuncType(args, result, self.variables(row, "params"), self.where(row))
            case "ref":
                return RefType(self._inner(row, "value"))
            case "var":
                return self._variable(row)
            case "dim":
                return DimType(self._dim(row.any("dim"), row))
            case "shape":
                return ShapeType(tuple(self._dim(dim, row) for dim in row.get("shape", list)))
            case "name":
                return GlobalTypeVar(readable(row.get("name", str), "a type's name", row.where))
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
        shape = [self._dim(dim, row) for dim in row.get("shape", list)]
        layout = row.get("layout", str, "")
        return TensorType(shape, self._dtype(row), layout and readable(layout, "a layout", row.where))

    def _dtype(self, row: Row) -> str:
        given = row.any("dtype")
        if isinstance(given, dict):
            var = Row(given, f"{row.where}.dtype").pick("var", self._types, "types")
            if not isinstance(var, TypeVar) or var.kind is not Kind.BASE_TYPE:
                raise fault(f"{row.where}: dtype must be a type variable of kind BaseType", str(var))
            return var.dtype
        if not isinstance(given, str) or not is_dtype(given):
            raise fault(f"{row.where}: dtype must be like int8, int32, float32 or bool", given)
        return given

    def _variable(self, row: Row) -> TypeVar:
        var = TypeVar(row.get("name", str), self._kind(row))
        if isinstance(var.inside, DimVar):
            inside: DimVar = row.pick("inside", self._dims, "dims")
            if isinstance(inside, ShapeVar) != (var.kind is Kind.SHAPE):
                raise fault(f"{row.where}: inside must be the dimensions of one variable", row.value["inside"])
            object.__setattr__(var, "inside", inside)
        return var

    def where(self, row: Row) -> tuple[Condition, ...]:
        """The conditions that a field lists."""
        found: list[Condition] = []
        for condition in row.get("where", list, []):
            if not isinstance(condition, list) or len(condition) != 3 or condition[1] not in _COMPARISONS:
                raise fault(f"{row.where}: where must list comparisons of two dims", condition)
            left, right = (DimType(self._dim(condition[side], row)) for side in (0, 2))
            found.append(Condition(left, _COMPARISONS[condition[1]], right))
        return tuple(found)

    def _dim(self, dim: Any, row: Row) -> Dim:
        if type(dim) is int and dim >= 0:
            return dim
        if dim == "?":
            return ANY
        if isinstance(dim, dict) and "sum" in dim:
            return self._sum(dim["sum"], row)
        if isinstance(dim, dict):
            return Row(dim, f"{row.where}.shape").pick("dim", self._dims, "dims")
        raise fault(f"{row.where}: dimension must be an integer of at least 0, ? or a dim", dim)

    def _sum(self, terms: Any, row: Row) -> Dim:
        """A sum of products, each a number and its factors."""
        total: Dim = 0
        for term in terms if isinstance(terms, list) else [terms]:
            if not isinstance(term, list) or not term or type(term[0]) is not int:
                raise fault(f"{row.where}: sum must list products that begin with a number", term)
            total = dim_add(total, dim_mul(term[0], *(self._atom(atom, row) for atom in term[1:])))
        return total

    def _atom(self, atom: Any, row: Row) -> Dim:
        if not isinstance(atom, dict) or "floordiv" not in atom:
            return self._dim(atom, row)
        parts = atom["floordiv"]
        if not isinstance(parts, list) or len(parts) != 2:
            raise fault(f"{row.where}: floordiv must have two dims", parts)
        left, right = (self._dim(part, row) for part in parts)
        if isinstance(right, int) and right < 1:
            raise fault(f"{row.where}: divisor must be at least 1", right)
        return dim_floordiv(left, right)
