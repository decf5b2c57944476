"""Builds each kind of node of TVM's JSON. In: fields of a node. Out: expressions, types, patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
from relay_hw.op.attributes import AttributeFault, attribute_options, build_attributes
from relay_hw.text.json.fields import fault
from relay_hw.text.names import readable

T = TypeVar("T")

# Names of rooms that TVM puts before a kind, differently in its versions.
_ROOMS: Final = ("relay.", "runtime.", "tir.", "ir.", "node.", "ffi.")
_ALIASES: Final = MappingProxyType(
    {
        "tir.Var": "SizeVar",
        "Variable": "SizeVar",
        "Module": "IRModule",
        "RelayRefType": "RefType",
        "StrMap": "Map",
    }
)


def kind_of(type_key: str) -> str:
    """The kind of a node without its namespace: `relay.Call` and `Call` are the same."""
    if type_key in _ALIASES:
        return _ALIASES[type_key]
    for room in _ROOMS:
        if type_key.startswith(room):
            return _ALIASES.get(type_key.removeprefix(room), type_key.removeprefix(room))
    return type_key


@dataclass(frozen=True, slots=True)
class Foreign:
    """An unsupported node. It may be attached to a program, for example in attributes, but not be part of it."""

    kind: str
    place: int

    def refusal(self) -> ParseError:
        return fault(f"nodes[{self.place}]: kind of node must be one of Relay's", self.kind)


class Source(Protocol):
    """The interface of the graph for nodes."""

    def built(self, place: int, name: str) -> Any: ...
    def text(self, place: int, name: str) -> str: ...
    def literal(self, place: int, name: str) -> str: ...
    def reference(self, place: int, name: str) -> int: ...
    def head(self, place: int, names: Iterable[str]) -> str: ...
    def attrs(self, place: int) -> dict[str, Any]: ...
    def constant(self, place: int) -> Constant: ...
    def attributes(self, place: int, op: str, fields: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]: ...


class Parts:
    """A node's parts, built already, with their kinds checked."""

    def __init__(self, graph: Source, place: int) -> None:
        self.graph = graph
        self.place = place

    def one(self, name: str, kind: type[T]) -> T:
        """The part `name`."""
        found = self.graph.built(self.place, name)
        if isinstance(found, Foreign):
            raise found.refusal()
        if not isinstance(found, kind):
            raise fault(f"nodes[{self.place}]: {name} must be a node of kind {kind.__name__}", type(found).__name__)
        return found

    def optional(self, name: str, kind: type[T]) -> T | None:
        """The part `name`; None if there is none."""
        return None if self.graph.built(self.place, name) is None else self.one(name, kind)

    def all(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """The parts in the list `name`."""
        found = self.graph.built(self.place, name) or ()
        for part in found if isinstance(found, tuple) else (found,):
            if isinstance(part, Foreign):
                raise part.refusal()
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


def _module(parts: Parts) -> IRModule:
    return IRModule(
        _named(parts, "functions", GlobalVar, Function), _named(parts, "type_definitions", GlobalTypeVar, TypeData)
    )


def _named(parts: Parts, name: str, key: type[Expr] | type[Type], value: type[T]) -> dict[str, T]:
    """The map `name`, whose keys are strings or have names. Functions of other IRs, such as TIR, are left out."""
    found = parts.graph.built(parts.place, name) or {}
    if not isinstance(found, dict):
        raise ParseError(f"nodes[{parts.place}]: {name} must be a Map")
    known: dict[str, T] = {}
    for var, item in found.items():
        if isinstance(item, Foreign):
            continue
        if not isinstance(var, (str, key)) or not isinstance(item, value):
            raise ParseError(f"nodes[{parts.place}]: {name} must map {key.__name__} to {value.__name__}")
        known[_name(var)] = item
    return known


def _name(key: Any) -> str:
    match key:
        case GlobalVar(name_hint=name) | GlobalTypeVar(name=name):
            return name
        case _:
            return key


def _function(parts: Parts) -> Function:
    attrs = parts.optional("attrs", dict) or {}
    result, type_params = parts.optional("ret_type", Type), parts.all("type_params", RelayTypeVar)
    return Function(parts.all("params", Var), parts.one("body", Expr), _known(result), type_params, attrs)


def _known(ty: Type | None) -> Type | None:
    """A type; one that TVM left incomplete counts as missing."""
    return None if isinstance(ty, IncompleteType) else ty


def _dictionary(parts: Parts) -> dict[str, Any]:
    """The attributes of a function; values without a plain form are left out."""
    found = parts.optional("__dict__", dict) or {}
    return {str(name): value for name, value in found.items() if _is_plain(value)}


def _is_plain(value: Any) -> bool:
    match value:
        case bool() | int() | float() | str():
            return True
        case tuple():
            return all(map(_is_plain, value))
        case dict():
            return all(isinstance(name, str) and _is_plain(part) for name, part in value.items())
        case _:
            return False


def _call(parts: Parts) -> Call:
    op, args = parts.one("op", Expr), parts.all("args", Expr)
    if not isinstance(op, Op):
        return Call(op, args, None, parts.all("type_args", Type))
    place = parts.graph.reference(parts.place, "attrs")
    given = parts.graph.attributes(place, op.name, attribute_options(op))
    try:
        # The type arguments of operators say nothing that inference does not find.
        return Call(op, args, build_attributes(op, given))
    except AttributeFault as error:
        raise ParseError(f"nodes[{parts.place}]: {error}") from None


def _var(parts: Parts) -> Var:
    has_identity = "vid" in parts.graph.attrs(parts.place)
    name = parts.one("vid", str) if has_identity else parts.text("name_hint")
    return Var(name, _known(parts.optional("type_annotation", Type)))


def _op(parts: Parts) -> Op:
    from relay_hw.op import get

    return get(parts.graph.head(parts.place, ("repr_str", "global_key")) or parts.text("name"))


def _tensor(parts: Parts) -> TensorType:
    dtype = parts.text("dtype")
    if not is_dtype(dtype):
        raise fault(f"nodes[{parts.place}]: dtype must be like int8, int32, float32 or bool", dtype)
    shape = parts.graph.built(parts.place, "shape") or ()
    if not isinstance(shape, tuple) or not all(dim is ANY or isinstance(dim, (int, DimVar)) for dim in shape):
        raise ParseError(f"nodes[{parts.place}]: shape must be a list of sizes")
    return TensorType(shape, dtype)


def _dim(parts: Parts) -> DimVar:
    return DimVar(parts.text("name"))


def _number(parts: Parts) -> int:
    value = parts.integer("value")
    return bool(value) if parts.graph.attrs(parts.place).get("dtype") == "bool" else value


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


def _type_data(parts: Parts) -> TypeData:
    constructors = parts.all("constructors", Constructor)
    header, type_vars = parts.one("header", GlobalTypeVar), parts.all("type_vars", RelayTypeVar)
    return TypeData(header, type_vars, constructors, extern=not constructors)


def _constructor(parts: Parts) -> Constructor:
    inputs, owner = parts.all("inputs", Type), parts.one("belong_to", GlobalTypeVar)
    name = readable(parts.text("name_hint"), "a constructor's name", f"nodes[{parts.place}]")
    return Constructor(name, inputs, owner, parts.integer("tag", -1))


def _func_type(parts: Parts) -> FuncType:
    return FuncType(parts.all("arg_types", Type), parts.one("ret_type", Type), parts.all("type_params", RelayTypeVar))


def _match(parts: Parts) -> Match:
    return Match(parts.one("data", Expr), parts.all("clauses", Clause), bool(parts.integer("complete", 1)))


Builder = Callable[[Parts], Any]

# Kind of node -> the fields that name nodes to be built before it, and what it is then. The attributes of a call are
# not among them: only its operator knows which of them are nodes.
NODES: Final[Mapping[str, tuple[tuple[str, ...], Builder]]] = MappingProxyType(
    {
        "IRModule": (("functions", "type_definitions"), _module),
        "Function": (("params", "body", "ret_type", "type_params", "attrs"), _function),
        "DictAttrs": (("__dict__",), _dictionary),
        "Call": (("op", "args", "type_args"), _call),
        "Var": (("vid", "type_annotation"), _var),
        "Id": ((), lambda p: p.text("name_hint")),
        "GlobalVar": ((), lambda p: GlobalVar(p.text("name_hint"))),
        "Constant": ((), lambda p: p.graph.constant(p.place)),
        "Tuple": (("fields",), lambda p: Tuple(p.all("fields", Expr))),
        "TupleGetItem": (("tuple_value",), lambda p: TupleGetItem(p.one("tuple_value", Expr), p.integer("index"))),
        "Let": (("var", "value", "body"), lambda p: Let(p.one("var", Var), p.one("value", Expr), p.one("body", Expr))),
        "If": (
            ("cond", "true_branch", "false_branch"),
            lambda p: If(p.one("cond", Expr), p.one("true_branch", Expr), p.one("false_branch", Expr)),
        ),
        "RefCreate": (("value",), lambda p: RefCreate(p.one("value", Expr))),
        "RefRead": (("ref",), lambda p: RefRead(p.one("ref", Expr))),
        "RefWrite": (("ref", "value"), lambda p: RefWrite(p.one("ref", Expr), p.one("value", Expr))),
        "Match": (("data", "clauses"), _match),
        "Clause": (("lhs", "rhs"), lambda p: Clause(p.one("lhs", Pattern), p.one("rhs", Expr))),
        "PatternWildcard": ((), lambda p: PatternWildcard()),
        "PatternVar": (("var",), lambda p: PatternVar(p.one("var", Var))),
        "PatternConstructor": (("constructor", "patterns"), _pattern),
        "PatternTuple": (("patterns",), lambda p: PatternTuple(p.all("patterns", Pattern))),
        "Constructor": (("inputs", "belong_to"), _constructor),
        "TypeData": (("header", "type_vars", "constructors"), _type_data),
        "TensorType": (("shape",), _tensor),
        "TupleType": (("fields",), lambda p: TupleType(p.all("fields", Type))),
        "FuncType": (("arg_types", "ret_type", "type_params"), _func_type),
        "TypeVar": ((), lambda p: RelayTypeVar(_type_name(p))),
        "GlobalTypeVar": ((), lambda p: GlobalTypeVar(readable(_type_name(p), "a type's name", f"nodes[{p.place}]"))),
        "TypeCall": (("func", "args"), lambda p: TypeCall(p.one("func", GlobalTypeVar), p.all("args", Type))),
        "RefType": (("value",), lambda p: RefType(p.one("value", Type))),
        "IncompleteType": ((), lambda p: IncompleteType()),
        "Op": ((), _op),
        "IntImm": ((), _number),
        "FloatImm": ((), _real),
        "String": ((), lambda p: p.graph.head(p.place, ("repr_str",))),
        "Any": ((), lambda p: ANY),
        "SizeVar": ((), _dim),
    }
)
