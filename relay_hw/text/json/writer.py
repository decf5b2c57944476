"""Writes modules as JSON. In: a module. Out: text of the schema that JSON.md describes; deterministic."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final

import numpy as np

from relay_hw.errors import WellFormedError
from relay_hw.ir.dims import Atom, DimExpr
from relay_hw.ir.expr import (
    Call,
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
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relay_hw.ir.module import IRModule, TypeData
from relay_hw.ir.types import (
    NARROW_DTYPES,
    Condition,
    Dim,
    DimType,
    DimVar,
    DtypeVar,
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    RefType,
    ShapeType,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
)
from relay_hw.ir.visit import post_order
from relay_hw.op.attributes import shown_attributes
from relay_hw.span import Span

FORMAT: Final = "relay-hw module"
VERSION: Final = 1

Row = dict[str, Any]


def save_json(mod: IRModule) -> str:
    """`mod` as JSON that `load_json` reads back, spans included; inferred types are left out.

    Attributes of the module that hold more than numbers, strings and lists are left out: they are records of passes.
    Raises WellFormedError for a constructor of a type that the module does not define.
    """
    return _Writer(mod).text()


class _Writer:
    """The tables of one module: each entry once, after the entries that it refers to."""

    def __init__(self, mod: IRModule) -> None:
        self._mod = mod
        self._types: dict[Type, int] = {}
        self._type_rows: list[Row] = []
        self._dims: dict[DimVar, int] = {}
        self._spans: dict[Span, int] = {}
        self._nodes: dict[Expr, int] = {}
        self._rows: list[Row] = []

    def text(self) -> str:
        data_types = [self._data_type(data) for data in self._mod.types.values()]
        functions = {name: self._graph(function) for name, function in self._mod.functions.items()}
        document = {
            "format": FORMAT,
            "version": VERSION,
            "dims": [dim.name for dim in self._dims],
            "types": self._type_rows,
            "data_types": data_types,
            "spans": [[s.source, s.line, s.column, s.end_line, s.end_column] for s in self._spans],
            "nodes": self._rows,
            "functions": functions,
            "attrs": {name: _value(value) for name, value in self._mod.attrs.items() if _is_plain(value)},
        }
        return "{\n" + ",\n".join(f"{_dump(key)}: {_table(value)}" for key, value in document.items()) + "\n}\n"

    # Types

    def _type(self, ty: Type) -> int:
        if ty not in self._types:
            row = self._type_row(ty)
            self._types[ty] = len(self._type_rows)
            self._type_rows.append(row)
        return self._types[ty]

    def _type_list(self, types: Iterable[Type]) -> list[int]:
        return [self._type(ty) for ty in types]

    def _type_row(self, ty: Type) -> Row:
        match ty:
            case TensorType(shape=shape, dtype=dtype):
                row = {"type": "tensor", "shape": [self._dim(dim) for dim in shape], "dtype": self._dtype(dtype)}
                return row | ({"layout": ty.layout} if ty.layout else {})
            case DimType(dim=dim):
                return {"type": "dim", "dim": self._dim(dim)}
            case ShapeType(shape=shape):
                return {"type": "shape", "shape": [self._dim(dim) for dim in shape]}
            case TupleType(fields=fields):
                return {"type": "tuple", "fields": self._type_list(fields)}
            case FuncType(arg_types=args, ret_type=ret, type_params=params, where=where):
                row = {"type": "function", "params": self._type_list(params)}
                return row | {"args": self._type_list(args), "result": self._type(ret), **self._where(where)}
            case RefType(value=value):
                return {"type": "ref", "value": self._type(value)}
            case TypeVar(name=name, kind=kind, inside=DimVar() as inside):
                return {"type": "var", "name": name, "kind": kind.value, "inside": self._variable(inside)}
            case TypeVar(name=name, kind=kind):
                return {"type": "var", "name": name, "kind": kind.value}
            case GlobalTypeVar(name=name):
                return {"type": "name", "name": name}
            case TypeCall(func=func, args=args):
                return {"type": "apply", "function": self._type(func), "args": self._type_list(args)}
            case IncompleteType(kind=kind):
                return {"type": "hole", "kind": kind.value}
            case _:
                raise TypeError(f"type must be one of Relay's, not {type(ty).__name__}")

    def _dim(self, dim: Dim) -> int | str | Row:
        match dim:
            case int():
                return dim
            case DimVar():
                return {"dim": self._variable(dim)}
            case DimExpr(terms=terms):
                return {"sum": [[factor, *map(self._atom, product)] for product, factor in terms]}
            case _:
                return "?"

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, DimVar):
            return self._dim(atom)
        return {"floordiv": [self._dim(atom.numerator), self._dim(atom.denominator)]}

    def _variable(self, var: DimVar) -> int:
        return self._dims.setdefault(var, len(self._dims))

    def _dtype(self, dtype: str) -> str | Row:
        """An element type; that of a type parameter by the parameter's index."""
        return {"var": self._type(dtype.var)} if isinstance(dtype, DtypeVar) else dtype

    def _where(self, where: Sequence[Condition]) -> Row:
        rows = [[self._dim(c.left.dim), c.comparison.value, self._dim(c.right.dim)] for c in where]
        return {"where": rows} if rows else {}

    def _data_type(self, data: TypeData) -> Row:
        row: Row = {"name": data.header.name, "params": self._type_list(data.type_vars)}
        row["constructors"] = [
            {"name": item.name_hint, "fields": self._type_list(item.inputs), **self._span(item)}
            for item in data.constructors
        ]
        return row | ({"extern": True} if data.extern else {})

    # Nodes

    def _graph(self, root: Expr) -> int:
        for node in post_order(root):
            if node not in self._nodes:
                row = self._node(node) | self._span(node)
                self._nodes[node] = len(self._rows)
                self._rows.append(row)
        return self._nodes[root]

    def _span(self, node: Expr) -> Row:
        if node.span is None:
            return {}
        return {"span": self._spans.setdefault(node.span, len(self._spans))}

    def _places(self, nodes: Sequence[Expr]) -> list[int]:
        return [self._nodes[node] for node in nodes]

    def _node(self, node: Expr) -> Row:
        at = self._nodes
        match node:
            case Var(name_hint=name, type_annotation=ty):
                return {"node": "var", "name": name, **self._annotation(ty)}
            case GlobalVar(name_hint=name):
                return {"node": "global", "name": name}
            case Op(name=name):
                return {"node": "op", "name": name}
            case Constructor():
                return {"node": "constructor", **self._constructor(node)}
            case Constant(data=data):
                return {"node": "constant", **_array(data)}
            case Call():
                return self._call(node)
            case Tuple(fields=fields):
                return {"node": "tuple", "fields": self._places(fields)}
            case TupleGetItem(tuple_value=value, index=index):
                return {"node": "get", "tuple": at[value], "index": index}
            case Let(var=var, value=value, body=body):
                return {"node": "let", "var": at[var], "value": at[value], "body": at[body]}
            case If(cond=cond, true_branch=then, false_branch=other):
                return {"node": "if", "cond": at[cond], "then": at[then], "else": at[other]}
            case Function():
                return self._function(node)
            case RefCreate(value=value):
                return {"node": "ref", "value": at[value]}
            case RefRead(ref=ref):
                return {"node": "read", "ref": at[ref]}
            case RefWrite(ref=ref, value=value):
                return {"node": "write", "ref": at[ref], "value": at[value]}
            case Match(data=data, clauses=clauses, complete=complete):
                arms = [{"pattern": self._pattern(arm.lhs), "body": at[arm.rhs]} for arm in clauses]
                return {"node": "match", "data": at[data], "arms": arms, "complete": complete}
            case _:
                raise TypeError(f"expression must be a node of Relay, not {type(node).__name__}")

    def _annotation(self, ty: Type | None, name: str = "type") -> Row:
        return {} if ty is None else {name: self._type(ty)}

    def _call(self, node: Call) -> Row:
        row: Row = {"node": "call", "op": self._nodes[node.op], "args": self._places(node.args)}
        if isinstance(node.op, Op):
            row |= _attrs(shown_attributes(node.op, node.attrs))
        return row | ({"type_args": self._type_list(node.type_args)} if node.type_args else {})

    def _function(self, node: Function) -> Row:
        row: Row = {"node": "function", "params": self._places(node.params), "body": self._nodes[node.body]}
        row |= self._annotation(node.ret_type, "result") | self._where(node.where)
        row |= {"type_params": self._type_list(node.type_params)} if node.type_params else {}
        return row | _attrs(node.attrs)

    def _constructor(self, node: Constructor) -> Row:
        owner = node.belong_to.name
        known = self._mod.types[owner].constructors if owner in self._mod.types else ()
        if all(item.name_hint != node.name_hint for item in known):
            raise WellFormedError(f"constructor {node.name_hint} must be one of type {owner} of the module", node.span)
        return {"of": owner, "name": node.name_hint}

    def _pattern(self, pattern: Pattern) -> Row | str:
        match pattern:
            case PatternVar(var=var):
                return {"var": self._nodes[var]}
            case PatternConstructor(constructor=constructor, patterns=inner):
                return {"constructor": self._constructor(constructor), "parts": [self._pattern(p) for p in inner]}
            case PatternTuple(patterns=inner):
                return {"tuple": [self._pattern(part) for part in inner]}
            case _:
                return "_"


def _attrs(attrs: Mapping[str, Any]) -> Row:
    return {"attrs": {name: _value(value) for name, value in attrs.items()}} if attrs else {}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str, Enum, np.generic, Constant))


def _value(value: Any) -> Any:
    """The value of an attribute; values that JSON lacks become an object of one field."""
    match value:
        case Enum():
            return _value(value.value)
        case np.generic():
            return _value(value.item())
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else {"float": str(value)}
        case Constant(data=data):
            return {"constant": _array(data)}
        case list() | tuple():
            return [_value(part) for part in value]
        case _:
            raise WellFormedError(f"attribute must be a number, a string or a list of them, not {value!r}")


def _array(data: np.ndarray) -> Row:
    if data.dtype.kind not in "biuf" and str(data.dtype) not in NARROW_DTYPES:
        raise WellFormedError(f"constant must hold numbers or booleans, not {data.dtype}")
    little = np.ascontiguousarray(data).astype(data.dtype.newbyteorder("<"), copy=False)
    coded = base64.b64encode(little.tobytes()).decode("ascii")
    return {"dtype": str(data.dtype), "shape": list(data.shape), "data": coded}


def _table(value: Any) -> str:
    """A table with one row per line."""
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(map(_dump, value)) + "\n]"
    return _dump(value)


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
