"""Writes programs as the JSON of TVM's save_json. In: modules, expressions, types. Out: the text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from relay_hw.errors import InputError
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
from relay_hw.ir.trampoline import Recursion, run
from relay_hw.ir.types import (
    Any as AnyDim,
)
from relay_hw.ir.types import (
    DimVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.op.attributes import attribute_options
from relay_hw.text.metadata import encode_array
from relay_hw.text.tvm.attributes import is_node, is_text_node, record_key

_NO_SPAN = {"span": "0"}
_EXPR = {"_checked_type_": "0", "span": "0", "virtual_device_": "0"}


def save_tvm_json(node: IRModule | Expr | Type) -> str:
    """`node` as TVM 0.18 writes it. Raises InputError for nodes that TVM lacks."""
    writer = _Writer()
    root = run(writer.put(node))
    document = {
        "root": root,
        "nodes": writer.nodes,
        "b64ndarrays": writer.blobs,
        "attrs": {"tvm_version": "0.18.0"},
    }
    return json.dumps(document, indent=2)


class _Writer:
    def __init__(self) -> None:
        self.nodes: list[dict[str, Any]] = [{"type_key": ""}]
        self.blobs: list[str] = []
        self._known: dict[Any, int] = {}

    def put(self, value: Any) -> Recursion[int]:
        """The number of the node for `value`; shared values are one node."""
        if value is None:
            return 0
        key = value if isinstance(value, (Expr, Type, DimVar, Pattern, Clause, IRModule, TypeData)) else None
        if key is not None and key in self._known:
            return self._known[key]
        made = yield self._make(value)
        place = self._add(made)
        if key is not None:
            self._known[key] = place
        return place

    def _add(self, node: dict[str, Any]) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def _make(self, value: Any) -> Recursion[dict[str, Any]]:
        match value:
            case bool():
                return {"type_key": "IntImm", "attrs": {"dtype": "bool", **_NO_SPAN, "value": str(int(value))}}
            case int() | np.integer():
                return {"type_key": "IntImm", "attrs": {"dtype": "int32", **_NO_SPAN, "value": str(int(value))}}
            case float():
                return {"type_key": "FloatImm", "attrs": {"dtype": "float32", **_NO_SPAN, "value": repr(value)}}
            case str():
                return {"type_key": "runtime.String", "repr_str": value}
            case list() | tuple():
                return {"type_key": "Array", "data": (yield self._all(value))}
            case Mapping():
                return (yield self._map(value))
            case AnyDim():
                return {"type_key": "tir.Any", "attrs": {"dtype": "int32", **_NO_SPAN}}
            case Op(name=name):
                return {"type_key": "Op", "repr_str": name}
            case Constant(data=data):
                self.blobs.append(encode_array(data))
                return {"type_key": "relay.Constant", "attrs": {**_EXPR, "data": str(len(self.blobs) - 1)}}
            case Var(name_hint=name, type_annotation=ty):
                identity = {"name_hint": str((yield self.put(name)))}
                vid = self._add({"type_key": "relay.Id", "attrs": identity})
                attrs = {**_EXPR, "type_annotation": str((yield self.put(ty))), "vid": str(vid)}
                return {"type_key": "relay.Var", "attrs": attrs}
            case IRModule():
                return (yield self._module(value))
            case _:
                return (yield self._generic(value))

    def _all(self, values: Sequence[Any]) -> Recursion[list[int]]:
        found: list[int] = []
        for value in values:
            found.append((yield self.put(value)))
        return found

    def _map(self, values: Mapping[Any, Any]) -> Recursion[dict[str, Any]]:
        if all(isinstance(key, str) for key in values):
            return {"type_key": "Map", "keys": list(values), "data": (yield self._all(list(values.values())))}
        pairs = [part for pair in values.items() for part in pair]
        return {"type_key": "Map", "data": (yield self._all(pairs))}

    def _module(self, mod: IRModule) -> Recursion[dict[str, Any]]:
        functions = {GlobalVar(name): function for name, function in mod.functions.items()}
        types = {data.header: data for data in mod.types.values()}
        parts = {"functions": functions, "type_definitions": types, "attrs": None, "source_map": None}
        return {"type_key": "IRModule", "attrs": (yield self._refs(parts))}

    def _refs(self, parts: Mapping[str, Any]) -> Recursion[dict[str, str]]:
        found: dict[str, str] = {}
        for name, value in parts.items():
            found[name] = str((yield self.put(value)))
        return found

    def _generic(self, value: Any) -> Recursion[dict[str, Any]]:
        rule = _RULES.get(type(value))
        if rule is None:
            raise InputError(f"a program for TVM must be made of its nodes, not of {type(value).__name__}")
        type_key, plain, parts = rule(value)
        attrs = {**(_EXPR if isinstance(value, Expr) else _NO_SPAN), **plain, **(yield self._refs(parts))}
        if isinstance(value, Call):
            attrs["attrs"] = str((yield self._attrs(value)))
        return {"type_key": type_key, "attrs": dict(sorted(attrs.items()))}

    def _attrs(self, call: Call) -> Recursion[int]:
        """The attributes of a call of an operator, each as TVM's record has it."""
        op = call.op
        if call.attrs is None or not isinstance(op, Op):
            return 0
        found: dict[str, str] = {}
        for name, options in attribute_options(op).items():
            value = getattr(call.attrs, name)
            is_text = isinstance(value, str) and is_text_node(op.name, name)
            is_reference = is_text or is_node(op.name, name, options)
            found[name] = str((yield self.put(value))) if is_reference else _plain(value)
        return self._add({"type_key": record_key(op.name, type(call.attrs).__name__), "attrs": found})


def _plain(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return str(int(value))
        case float():
            return repr(value)
        case _:
            return str(value)


_Row = tuple[str, dict[str, str], dict[str, Any]]


class _DictAttrs:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values


def _function(node: Function) -> _Row:
    attrs = _DictAttrs(dict(node.attrs))
    parts: dict[str, Any] = {"params": node.params, "body": node.body, "ret_type": node.ret_type}
    return "relay.Function", {}, {**parts, "type_params": node.type_params, "attrs": attrs}


def _constructor(node: Constructor) -> _Row:
    parts = {"name_hint": node.name_hint, "inputs": node.inputs, "belong_to": node.belong_to}
    return "relay.Constructor", {"tag": str(node.tag)}, parts


def _func_type(node: FuncType) -> _Row:
    parts = {"arg_types": node.arg_types, "ret_type": node.ret_type, "type_params": node.type_params}
    return "FuncType", {}, {**parts, "type_constraints": ()}


def _typed(type_key: str, *names: str, **numbers: str) -> Callable[[Any], _Row]:
    """Nodes whose fields have TVM's names: `names` are nodes, `numbers` plain values by our name."""

    def row(node: Any) -> _Row:
        plain = {name: str(int(getattr(node, ours))) for name, ours in numbers.items()}
        return type_key, plain, {name: getattr(node, name) for name in names}

    return row


_RULES: Mapping[type, Callable[[Any], _Row]] = {
    GlobalVar: _typed("GlobalVar", "name_hint"),
    Tuple: _typed("relay.Tuple", "fields"),
    TupleGetItem: _typed("relay.TupleGetItem", "tuple_value", index="index"),
    Call: _typed("relay.Call", "op", "args", "type_args"),
    Let: _typed("relay.Let", "var", "value", "body"),
    If: _typed("relay.If", "cond", "true_branch", "false_branch"),
    Function: _function,
    _DictAttrs: lambda n: ("DictAttrs", {}, {"__dict__": n.values}),
    RefCreate: _typed("relay.RefCreate", "value"),
    RefRead: _typed("relay.RefRead", "ref"),
    RefWrite: _typed("relay.RefWrite", "ref", "value"),
    Constructor: _constructor,
    Match: _typed("relay.Match", "data", "clauses", complete="complete"),
    Clause: _typed("relay.Clause", "lhs", "rhs"),
    PatternWildcard: _typed("relay.PatternWildcard"),
    PatternVar: _typed("relay.PatternVar", "var"),
    PatternConstructor: _typed("relay.PatternConstructor", "constructor", "patterns"),
    PatternTuple: _typed("relay.PatternTuple", "patterns"),
    DimVar: lambda n: ("tir.SizeVar", {"dtype": "int32"}, {"name": n.name}),
    TensorType: lambda n: ("relay.TensorType", {"dtype": n.dtype}, {"shape": n.shape}),
    TupleType: _typed("TupleType", "fields"),
    FuncType: _func_type,
    TypeVar: lambda n: ("TypeVar", {"kind": "0"}, {"name_hint": n.name}),
    GlobalTypeVar: lambda n: ("GlobalTypeVar", {"kind": "5"}, {"name_hint": n.name}),
    TypeCall: _typed("TypeCall", "func", "args"),
    RefType: _typed("relay.RefType", "value"),
    IncompleteType: lambda n: ("IncompleteType", {"kind": "0"}, {}),
    TypeData: _typed("relay.TypeData", "header", "type_vars", "constructors"),
}
