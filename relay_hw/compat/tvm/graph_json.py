"""TVM's JSON of programs, as `tvm.ir.save_json` writes it. In: the text. Out: modules, functions, types."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relay_hw.compat.tvm.graph_attrs import read_attrs
from relay_hw.compat.tvm.graph_nodes import REFERENCES, kind_of
from relay_hw.compat.tvm.module import IRModule, as_module
from relay_hw.errors import ParseError, UnsupportedError
from relay_hw.ir.expr import (
    Call,
    Clause,
    Constant,
    Constructor,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    Op,
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
from relay_hw.ir.module import TypeData
from relay_hw.ir.types import (
    ANY,
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    TypeCall,
    TypeVar,
)
from relay_hw.op import get
from relay_hw.text import load_json as load_own_json
from relay_hw.text.metadata import MetadataError, decode_array


def load_json(json_str: str) -> Any:
    """What TVM saved: a module, a function or expression, a type, or a map of them; also our own JSON of a module.

    Raises ParseError for text that cannot be read, UnsupportedError for nodes and operators that have no meaning here.
    """
    try:
        document = json.loads(json_str)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"program must be JSON: {error}") from None
    if not isinstance(document, dict) or "nodes" not in document or "root" not in document:
        return as_module(load_own_json(json_str))
    try:
        return _Reader(document).root()
    except (ParseError, UnsupportedError):
        raise
    except MetadataError as error:
        raise ParseError(str(error)) from None
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ParseError(f"JSON must be a graph of nodes as save_json writes it: {error!r}") from None


class _Reader:
    def __init__(self, document: Mapping[str, Any]) -> None:
        self._nodes: Sequence[Mapping[str, Any]] = document["nodes"]
        self._root = int(document["root"])
        self._blobs: Sequence[str] = document.get("b64ndarrays", [])
        self._done: dict[int, Any] = {0: None}

    def root(self) -> Any:
        """Everything below the root, operands first."""
        open_nodes: set[int] = set()
        stack: list[tuple[int, bool]] = [(self._root, False)]
        while stack:
            index, is_ready = stack.pop()
            if is_ready:
                self._done[index] = self._read(index)
                open_nodes.discard(index)
                continue
            if index in self._done:
                continue
            if index in open_nodes:
                raise ParseError(f"node {index} must not be made of itself")
            open_nodes.add(index)
            stack.append((index, True))
            stack.extend((part, False) for part in reversed(self._parts(index)) if part not in self._done)
        return self._done[self._root]

    def _parts(self, index: int) -> list[int]:
        node = self._nodes[index]
        kind = kind_of(node["type_key"])
        if kind in ("Array", "Map"):
            return [int(part) for part in node.get("data", ())]
        attrs = node.get("attrs", {})
        if kind in REFERENCES:
            return [int(attrs[name]) for name in REFERENCES[kind] if name in attrs]
        # Only the operator knows which attributes are numbers and which are numbers of nodes: they are read with it.
        return []

    def _read(self, index: int) -> Any:
        node = self._nodes[index]
        type_key: str = node["type_key"]
        kind = kind_of(type_key)
        attrs = _Fields(node, self._done)
        if kind == "Map":
            return self._map(node)
        if kind == "Array":
            return tuple(self._done[int(part)] for part in node.get("data", ()))
        if kind == "Constant":
            return Constant(decode_array(self._blobs[int(attrs.text("data"))]))
        if kind in _READERS:
            return _READERS[kind](attrs)
        if type_key.startswith("relay.attrs."):
            return _LateAttrs(kind, node.get("attrs", {}), self._value)
        # Other nodes may hang on a module without being part of the program.
        return None

    def _value(self, index: int) -> Any:
        """A number, text or nested list of them; None for what is no value."""
        if index in self._done or not 0 <= index < len(self._nodes):
            return self._done.get(index)
        node = self._nodes[index]
        kind = kind_of(node["type_key"])
        if kind == "Array":
            return tuple(self._value(int(part)) for part in node.get("data", ()))
        return self._read(index) if kind in ("IntImm", "FloatImm", "String") else None

    def _map(self, node: Mapping[str, Any]) -> dict[Any, Any]:
        data = [self._done[int(part)] for part in node.get("data", ())]
        if "keys" in node:
            return dict(zip(node["keys"], data, strict=True))
        return dict(zip(data[::2], data[1::2], strict=True))


class _Fields:
    """The fields of one node: texts, numbers, and nodes that are read already."""

    def __init__(self, node: Mapping[str, Any], done: Mapping[int, Any]) -> None:
        self.node = node
        self._attrs: Mapping[str, Any] = node.get("attrs", {})
        self._done = done

    def text(self, name: str) -> str:
        return str(self._attrs[name])

    def number(self, name: str) -> int:
        return int(self._attrs[name])

    def ref(self, name: str) -> Any:
        return self._done[int(self._attrs[name])] if name in self._attrs else None

    def refs(self, name: str) -> Sequence[Any]:
        return self.ref(name) or ()


class _LateAttrs:
    """Attributes that only the operator of their call can give meaning to."""

    def __init__(self, kind: str, values: Mapping[str, Any], node: Callable[[int], Any]) -> None:
        self.kind = kind
        self.values = values
        self.node = node


def _call(fields: _Fields) -> Call:
    op, attrs = fields.ref("op"), fields.ref("attrs")
    if isinstance(attrs, _LateAttrs):
        attrs = read_attrs(op, attrs.kind, attrs.values, attrs.node) if isinstance(op, Op) else None
    elif isinstance(op, Op) and op.attrs_type is not None:
        attrs = read_attrs(op, "", {}, lambda index: None)
    return Call(op, fields.refs("args"), attrs, [ty for ty in fields.refs("type_args") if ty is not None])


def _function(fields: _Fields) -> Function:
    attrs = fields.ref("attrs")
    return Function(
        fields.refs("params"),
        fields.ref("body"),
        _known(fields.ref("ret_type")),
        fields.refs("type_params"),
        attrs or {},
    )


def _known(ty: Any) -> Any:
    return None if isinstance(ty, IncompleteType) else ty


def _var(fields: _Fields) -> Var:
    name = fields.ref("vid") if "vid" in fields.node["attrs"] else fields.text("name_hint")
    return Var(name, _known(fields.ref("type_annotation")))


def _module(fields: _Fields) -> IRModule:
    types = {_name(key): data for key, data in (fields.ref("type_definitions") or {}).items()}
    functions = {_name(key): function for key, function in (fields.ref("functions") or {}).items()}
    return IRModule({name: f for name, f in functions.items() if isinstance(f, Function)}, types)


def _name(key: Any) -> str:
    return key if isinstance(key, str) else getattr(key, "name_hint", None) or key.name


def _tensor_type(fields: _Fields) -> TensorType:
    return TensorType(tuple(fields.refs("shape")), fields.text("dtype"))


def _op(fields: _Fields) -> Op:
    return get(str(fields.node.get("repr_str") or fields.text("name")))


def _type_data(fields: _Fields) -> TypeData:
    header, constructors = fields.ref("header"), fields.refs("constructors")
    return TypeData(header, fields.refs("type_vars"), constructors, extern=not constructors)


def _type_call(fields: _Fields) -> TypeCall:
    return TypeCall(fields.ref("func"), tuple(fields.refs("args")))


def _match(fields: _Fields) -> Match:
    return Match(fields.ref("data"), fields.refs("clauses"), bool(fields.number("complete")))


def _constructor(fields: _Fields) -> Constructor:
    return Constructor(fields.text("name_hint"), fields.refs("inputs"), fields.ref("belong_to"), fields.number("tag"))


def _number(fields: _Fields) -> Any:
    value = fields.number("value")
    return bool(value) if fields.text("dtype") == "bool" else value


_READERS: Mapping[str, Callable[[_Fields], Any]] = {
    "Var": _var,
    "Id": lambda f: f.text("name_hint"),
    "GlobalVar": lambda f: GlobalVar(f.text("name_hint")),
    "Tuple": lambda f: Tuple(f.refs("fields")),
    "TupleGetItem": lambda f: TupleGetItem(f.ref("tuple_value"), f.number("index")),
    "Call": _call,
    "Let": lambda f: Let(f.ref("var"), f.ref("value"), f.ref("body")),
    "If": lambda f: If(f.ref("cond"), f.ref("true_branch"), f.ref("false_branch")),
    "Function": _function,
    "RefCreate": lambda f: RefCreate(f.ref("value")),
    "RefRead": lambda f: RefRead(f.ref("ref")),
    "RefWrite": lambda f: RefWrite(f.ref("ref"), f.ref("value")),
    "Constructor": _constructor,
    "Match": _match,
    "Clause": lambda f: Clause(f.ref("lhs"), f.ref("rhs")),
    "PatternWildcard": lambda f: PatternWildcard(),
    "PatternVar": lambda f: PatternVar(f.ref("var")),
    "PatternConstructor": lambda f: PatternConstructor(f.ref("constructor"), f.refs("patterns")),
    "PatternTuple": lambda f: PatternTuple(f.refs("patterns")),
    "TensorType": _tensor_type,
    "TupleType": lambda f: TupleType(f.refs("fields")),
    "FuncType": lambda f: FuncType(tuple(f.refs("arg_types")), f.ref("ret_type"), tuple(f.refs("type_params"))),
    "TypeVar": lambda f: TypeVar(f.text("name_hint")),
    "GlobalTypeVar": lambda f: GlobalTypeVar(f.text("name_hint")),
    "TypeCall": _type_call,
    "RefType": lambda f: RefType(f.ref("value")),
    "IncompleteType": lambda f: IncompleteType(),
    "TypeData": _type_data,
    "IRModule": _module,
    "DictAttrs": lambda f: f.ref("__dict__") or {},
    "IntImm": _number,
    "FloatImm": lambda f: float(np.float64(f.text("value"))),
    "Any": lambda f: ANY,
    "SizeVar": lambda f: DimVar(f.text("name")),
    "Op": _op,
    "String": lambda f: str(f.node.get("repr_str", "")),
}
