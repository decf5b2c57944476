"""What each kind of node in TVM's JSON is made of, and how. In: fields of a node. Out: expressions, types, patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeVar

from relay_hw.errors import ParseError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import (
    ANY,
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    is_dtype,
)
from relay_hw.ir.types import TypeVar as RelayTypeVar
from relay_hw.text.attributes import AttributeFault, attribute_options, build_attributes
from relay_hw.text.json_fields import fault

T = TypeVar("T")


class Source(Protocol):
    """What a node may ask of its graph."""

    def built(self, place: int, name: str) -> Any: ...
    def text(self, place: int, name: str) -> str: ...
    def literal(self, place: int, name: str) -> str: ...
    def reference(self, place: int, name: str) -> int: ...
    def head(self, place: int, names: Iterable[str]) -> str: ...
    def attrs(self, place: int) -> dict[str, Any]: ...
    def constant(self, place: int) -> Constant: ...
    def attributes(self, place: int, op: str, fields: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]: ...
    def dictionary(self, place: int) -> dict[str, Any]: ...


class Parts:
    """One node: its parts, built already, each of the kind that it must have."""

    def __init__(self, graph: Source, place: int) -> None:
        self.graph = graph
        self.place = place

    def one(self, name: str, kind: type[T]) -> T:
        """The part `name`."""
        found = self.graph.built(self.place, name)
        if not isinstance(found, kind):
            raise fault(f"nodes[{self.place}]: {name} must be a node of kind {kind.__name__}", type(found).__name__)
        return found

    def optional(self, name: str, kind: type[T]) -> T | None:
        """The part `name`, None where there is none."""
        return None if self.graph.built(self.place, name) is None else self.one(name, kind)

    def all(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """The parts in the list `name`."""
        found = self.graph.built(self.place, name) or ()
        if not isinstance(found, tuple) or not all(isinstance(part, kind) for part in found):
            raise ParseError(f"nodes[{self.place}]: {name} must be a list of nodes of kind {kind.__name__}")
        return found

    def text(self, name: str) -> str:
        return self.graph.text(self.place, name)

    def integer(self, name: str, default: int | None = None) -> int:
        if default is not None and name not in self.graph.attrs(self.place):
            return default
        text = self.graph.literal(self.place, name)
        if not text.lstrip("-").isdecimal() or len(text) > 20:
            raise fault(f"nodes[{self.place}]: {name} must be an integer", text)
        return int(text)


# Kind of node -> the fields that name nodes to be built before it.
PARTS: Final = MappingProxyType(
    {
        "IRModule": ("functions", "type_definitions"),
        "Module": ("functions", "type_definitions"),
        "Function": ("params", "body", "ret_type", "type_params"),
        "Call": ("op", "args", "type_args"),
        "Var": ("vid", "type_annotation"),
        "Id": (),
        "GlobalVar": (),
        "Constant": (),
        "Tuple": ("fields",),
        "TupleGetItem": ("tuple_value",),
        "Let": ("var", "value", "body"),
        "If": ("cond", "true_branch", "false_branch"),
        "RefCreate": ("value",),
        "RefRead": ("ref",),
        "RefWrite": ("ref", "value"),
        "Match": ("data", "clauses"),
        "Clause": ("lhs", "rhs"),
        "PatternWildcard": (),
        "PatternVar": ("var",),
        "PatternConstructor": ("constructor", "patterns"),
        "PatternTuple": ("patterns",),
        "Constructor": ("inputs", "belong_to"),
        "TypeData": ("header", "type_vars", "constructors"),
        "TensorType": ("shape",),
        "TupleType": ("fields",),
        "FuncType": ("arg_types", "ret_type", "type_params"),
        "TypeVar": (),
        "GlobalTypeVar": (),
        "TypeCall": ("func", "args"),
        "RefType": ("value",),
        "RelayRefType": ("value",),
        "IncompleteType": (),
        "Op": (),
        "IntImm": (),
        "tir.IntImm": (),
        "FloatImm": (),
        "runtime.String": (),
        "String": (),
        "Any": (),
        "tir.Any": (),
        "SizeVar": (),
        "tir.SizeVar": (),
        "tir.Var": (),
        "Variable": (),
    }
)


def _module(parts: Parts) -> IRModule:
    functions = {var.name_hint: function for var, function in _pairs(parts, "functions", GlobalVar, Function)}
    types = {var.name: data for var, data in _pairs(parts, "type_definitions", GlobalTypeVar, TypeData)}
    return IRModule(functions, types)


def _pairs(parts: Parts, name: str, key: type[T], value: type[Any]) -> list[tuple[T, Any]]:
    found = parts.graph.built(parts.place, name) or []
    if not isinstance(found, list) or not all(isinstance(k, key) and isinstance(v, value) for k, v in found):
        raise ParseError(f"nodes[{parts.place}]: {name} must map {key.__name__} to {value.__name__}")
    return found


def _function(parts: Parts) -> Function:
    attrs = parts.graph.dictionary(parts.graph.reference(parts.place, "attrs"))
    result, type_params = parts.optional("ret_type", Type), parts.all("type_params", RelayTypeVar)
    return Function(parts.all("params", Var), parts.one("body", Expr), result, type_params, attrs)


def _call(parts: Parts) -> Call:
    op, args = parts.one("op", Expr), parts.all("args", Expr)
    types = tuple(ty for ty in parts.all("type_args", Type))
    if not isinstance(op, Op):
        return Call(op, args, None, types)
    place = parts.graph.reference(parts.place, "attrs")
    given = parts.graph.attributes(place, op.name, attribute_options(op))
    try:
        # The type arguments of operators say nothing that inference does not find.
        return Call(op, args, build_attributes(op, given))
    except AttributeFault as error:
        raise ParseError(f"nodes[{parts.place}]: {error}") from None


def _var(parts: Parts) -> Var:
    return Var(parts.one("vid", str), parts.optional("type_annotation", Type))


def _op(parts: Parts) -> Op:
    from relay_hw.op import get

    return get(parts.graph.head(parts.place, ("repr_str", "global_key")))


def _tensor(parts: Parts) -> TensorType:
    dtype = parts.text("dtype")
    if not is_dtype(dtype):
        raise fault(f"nodes[{parts.place}]: dtype must be like int8, int32, float32 or bool", dtype)
    shape = parts.graph.built(parts.place, "shape") or ()
    if not all(dim is ANY or isinstance(dim, (int, DimVar)) for dim in shape):
        raise ParseError(f"nodes[{parts.place}]: shape must be a list of sizes")
    return TensorType(shape, dtype)


def _dim(parts: Parts) -> DimVar:
    return DimVar(parts.text("name"))


def _real(parts: Parts) -> float:
    text = parts.graph.literal(parts.place, "value")
    try:
        return float(text)
    except ValueError:
        raise fault(f"nodes[{parts.place}]: value must be a number", text) from None


def _type_name(parts: Parts) -> str:
    if "name_hint" in parts.graph.attrs(parts.place):
        return parts.text("name_hint")
    # Before TVM 0.7 type variables were named by a variable.
    return parts.graph.text(parts.graph.reference(parts.place, "var"), "name")


def _pattern(parts: Parts) -> Pattern:
    return PatternConstructor(parts.one("constructor", Constructor), parts.all("patterns", Pattern))


BUILDERS: Final[Mapping[str, Callable[[Parts], Any]]] = MappingProxyType(
    {
        "IRModule": _module,
        "Module": _module,
        "Function": _function,
        "Call": _call,
        "Var": _var,
        "Id": lambda p: p.text("name_hint"),
        "GlobalVar": lambda p: GlobalVar(p.text("name_hint")),
        "Constant": lambda p: p.graph.constant(p.place),
        "Tuple": lambda p: Tuple(p.all("fields", Expr)),
        "TupleGetItem": lambda p: TupleGetItem(p.one("tuple_value", Expr), p.integer("index")),
        "Let": lambda p: Let(p.one("var", Var), p.one("value", Expr), p.one("body", Expr)),
        "If": lambda p: If(p.one("cond", Expr), p.one("true_branch", Expr), p.one("false_branch", Expr)),
        "RefCreate": lambda p: RefCreate(p.one("value", Expr)),
        "RefRead": lambda p: RefRead(p.one("ref", Expr)),
        "RefWrite": lambda p: RefWrite(p.one("ref", Expr), p.one("value", Expr)),
        "Match": lambda p: Match(p.one("data", Expr), p.all("clauses", Clause), bool(p.integer("complete", 1))),
        "Clause": lambda p: Clause(p.one("lhs", Pattern), p.one("rhs", Expr)),
        "PatternWildcard": lambda p: PatternWildcard(),
        "PatternVar": lambda p: PatternVar(p.one("var", Var)),
        "PatternConstructor": _pattern,
        "PatternTuple": lambda p: PatternTuple(p.all("patterns", Pattern)),
        "Constructor": lambda p: Constructor(
            p.text("name_hint"), p.all("inputs", Type), p.one("belong_to", GlobalTypeVar), p.integer("tag", -1)
        ),
        "TypeData": lambda p: TypeData(
            p.one("header", GlobalTypeVar), p.all("type_vars", RelayTypeVar), p.all("constructors", Constructor)
        ),
        "TensorType": _tensor,
        "TupleType": lambda p: TupleType(p.all("fields", Type)),
        "FuncType": lambda p: FuncType(
            p.all("arg_types", Type), p.one("ret_type", Type), p.all("type_params", RelayTypeVar)
        ),
        "TypeVar": lambda p: RelayTypeVar(_type_name(p)),
        "GlobalTypeVar": lambda p: GlobalTypeVar(_type_name(p)),
        "TypeCall": lambda p: TypeCall(p.one("func", GlobalTypeVar), p.all("args", Type)),
        "RefType": lambda p: RefType(p.one("value", Type)),
        "RelayRefType": lambda p: RefType(p.one("value", Type)),
        "IncompleteType": lambda p: IncompleteType(),
        "Op": _op,
        "IntImm": lambda p: p.integer("value"),
        "tir.IntImm": lambda p: p.integer("value"),
        "FloatImm": _real,
        "runtime.String": lambda p: p.graph.head(p.place, ("repr_str",)),
        "String": lambda p: p.graph.head(p.place, ("repr_str",)),
        "Any": lambda p: ANY,
        "tir.Any": lambda p: ANY,
        "SizeVar": _dim,
        "tir.SizeVar": _dim,
        "tir.Var": _dim,
        "Variable": _dim,
    }
)
