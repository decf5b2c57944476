"""Arguments of data types in reverse mode: functions that pair every real tensor in them with a reference, and that
read the adjoints back into data of the same form.

In: types of parameters. Out: Relay functions by name; those of one type call those of the types that it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constructor,
    Expr,
    Function,
    Match,
    PatternConstructor,
    PatternVar,
    RefCreate,
    RefRead,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import TypeData
from relay_hw.ir.types import GlobalTypeVar, TensorType, TupleType, Type, TypeCall, TypeVar, bind_type_vars
from relay_hw.op.gradients.accumulate import is_real
from relay_hw.op.gradients.common import zeros
from relay_hw.transform.reverse_types import ReverseTypes


class DataFunctions:
    """Makes functions on demand. `name` turns a proposed name into what calls refer to: a global or local variable."""

    def __init__(self, types: ReverseTypes, data: Mapping[str, TypeData], name: Callable[[str], Expr]) -> None:
        self._types = types
        self._data = data
        self._name = name
        self._known: dict[tuple[str, Type], Expr] = {}
        self._open: list[tuple[str, Type]] = []
        self.definitions: list[tuple[Expr, Function]] = []
        self.is_mutual = False

    @property
    def names(self) -> list[str]:
        """The names that are taken."""
        return [str(getattr(found, "name_hint", "")) for found in self._known.values()]

    def lift(self, value: Expr, ty: Type, where: str) -> Expr:
        """`value` with fresh references, of the reverse-mode type. Raises UnsupportedError for functions."""
        if is_real(ty):
            return Tuple([value, RefCreate(zeros(value))])
        if isinstance(ty, TupleType):
            parts = enumerate(ty.fields)
            return Tuple([self.lift(_item(value, at, part), part, where) for at, part in parts])
        if not self._types.has_real(ty) and not isinstance(ty, (TypeCall, GlobalTypeVar)):
            return self._plain(value, ty, where)
        return Call(self._function("lift", ty, where), (value,))

    def slopes(self, value: Expr, ty: Type, where: str) -> Expr:
        """The adjoints in a lifted `value`, of type `ty`; integers have zeros."""
        if is_real(ty):
            return RefRead(TupleGetItem(value, 1))
        if isinstance(ty, TupleType):
            parts = enumerate(ty.fields)
            return Tuple([self.slopes(_item(value, at, self._types.of(p)), p, where) for at, p in parts])
        if isinstance(ty, TensorType):
            return zeros(value)
        return Call(self._function("slopes", ty, where), (value,))

    def _plain(self, value: Expr, ty: Type, where: str) -> Expr:
        if not isinstance(ty, TensorType):
            self._refuse(ty, where)
        return value

    def _refuse(self, ty: Type, where: str) -> None:
        raise UnsupportedError(
            f"{where} of a differentiated function must be of tensors, tuples and data types, not {ty}"
        )

    def _function(self, kind: str, ty: Type, where: str) -> Expr:
        key = (kind, ty)
        found = self._known.get(key)
        if found is not None:
            # A function that is not finished and not the innermost: the two call each other.
            self.is_mutual |= key in self._open and self._open[-1] != key
            return found
        header, args = (ty.func, ty.args) if isinstance(ty, TypeCall) else (ty, ())
        if not isinstance(header, GlobalTypeVar):
            self._refuse(ty, where)
        assert isinstance(header, GlobalTypeVar)
        found = self._known[key] = self._name(f"{kind}_{header.name}")
        self._open.append(key)
        data = self._data[header.name]
        fields = dict(zip(data.type_vars, args, strict=True))
        if kind == "lift":
            function = self._match(data, fields, ty, self._types.of(ty), self.lift, where)
        else:
            function = self._match(data, fields, self._types.of(ty), ty, self.slopes, where)
        self._open.pop()
        self.definitions.append((found, function))
        return found

    def _match(
        self,
        data: TypeData,
        fields: Mapping[TypeVar, Type],
        given: Type,
        ret: Type,
        convert: Callable[[Expr, Type, str], Expr],
        where: str,
    ) -> Function:
        """Every constructor with its fields converted."""
        is_lift = convert == self.lift
        value = Var("data", given, checked_type=given)
        clauses: list[Clause] = []
        for item in data.constructors:
            types = [bind_type_vars(ty, fields) for ty in item.inputs]
            held = types if is_lift else [self._types.of(ty) for ty in types]
            parts = [Var("x", ty, checked_type=ty) for ty in held]
            source, target = self._ends(item, is_lift)
            made = [convert(part, ty, where) for part, ty in zip(parts, types, strict=True)]
            clauses.append(Clause(PatternConstructor(source, [PatternVar(part) for part in parts]), Call(target, made)))
        return Function((value,), Match(value, clauses), ret)

    def _ends(self, item: Constructor, is_lift: bool) -> tuple[Constructor, Constructor]:
        other = self._types.constructor(item)
        return (item, other) if is_lift else (other, item)


def _item(value: Expr, index: int, ty: Type) -> Expr:
    return TupleGetItem(value, index, checked_type=ty)
