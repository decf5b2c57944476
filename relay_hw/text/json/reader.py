"""Reads modules from untrusted JSON. In: text of the schema that JSON.md describes. Out: a typed module."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from relay_hw.analysis import check_well_formed, infer_type
from relay_hw.errors import ParseError, RelayHwError, UnsupportedError
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
from relay_hw.ir.types import NARROW_DTYPES, GlobalTypeVar, Type, is_dtype, know_narrow_dtypes
from relay_hw.limits import is_countable, is_shape
from relay_hw.op.attributes import AttributeFault, build_attributes
from relay_hw.span import Span
from relay_hw.support.documents import DocumentError, parse_json
from relay_hw.text.json.fields import Row, Rows, fault
from relay_hw.text.json.types import Types
from relay_hw.text.json.writer import FORMAT, VERSION
from relay_hw.text.names import readable
from relay_hw.text.tvm.reader import is_tvm_json, read_tvm_json

T = TypeVar("T")


def load_json(text: str, source_name: str = "<json>") -> IRModule:
    """The typed module in JSON written by `save_json`, ours or TVM's.

    Raises ParseError for text that does not follow the schema, with the place in it, TypeCheckError and
    WellFormedError for an ill-formed program, UnsupportedError for an unknown operator.
    """
    document = read_document(text, source_name)
    try:
        mod = read_tvm_json(document) if is_tvm_json(document) else _Reader(Row(document, "document")).module()
    except RecursionError:
        raise ParseError(f"{source_name}: JSON must be nested less deeply") from None
    except (ParseError, UnsupportedError) as error:
        raise type(error)(f"{source_name}: {error.message}") from None
    except ValueError as error:
        raise ParseError(f"{source_name}: file must be JSON as save_json writes it: {error}") from None
    try:
        check_well_formed(mod)
        return infer_type(mod)
    except RelayHwError as error:
        if error.span is not None:
            raise
        raise type(error)(f"{source_name}: {error.message}") from None


def read_document(text: str, source_name: str = "<json>") -> Any:
    """Parse any JSON. Raises ParseError with the place."""
    try:
        return parse_json(text)
    except DocumentError as error:
        place = None if error.line is None else Span(source_name, error.line, error.column or 0)
        raise ParseError(f"{'' if place else f'{source_name}: '}file must be JSON: {error.sentence}", place) from None


class _Reader:
    """One document."""

    def __init__(self, document: Row) -> None:
        if document.get("format", str) != FORMAT:
            raise fault(f'document must have the format "{FORMAT}"', document.value["format"])
        if document.get("version", int) != VERSION:
            raise fault(f"version of the document must be {VERSION}", document.value["version"])
        self._document = document
        self._types = Types(document)
        self._spans = [self._place(row, f"spans[{i}]") for i, row in enumerate(document.get("spans", list))]
        self._data: dict[str, TypeData] = {}
        self._nodes: list[Expr] = []

    def module(self) -> IRModule:
        for row in Rows(self._document, "data_types"):
            self._data_type(row)
        for row in Rows(self._document, "nodes"):
            try:
                self._nodes.append(self._node(row, self._span(row)))
            except UnsupportedError as error:
                raise UnsupportedError(f"{row.where}: {error.message}") from None
        functions: dict[str, Function] = {}
        named = Row(self._document.get("functions", dict), "functions")
        for name in named.value:
            functions[name] = self._as(named, name, Function, "a function")
        attrs = Row(self._document.get("attrs", dict), "attrs")
        return IRModule(functions, self._data, {name: _value(value, attrs) for name, value in attrs.value.items()})

    def _place(self, row: Any, where: str) -> Span:
        is_place = isinstance(row, list) and len(row) == 5 and isinstance(row[0], str)
        if not is_place or any(type(number) is not int for number in row[1:]):
            raise fault(f"{where} must be a name and four integers", row)
        return Span(*row)

    def _span(self, row: Row) -> Span | None:
        if "span" not in row.value:
            return None
        return row.pick("span", self._spans, "spans")

    # Data types

    def _data_type(self, row: Row) -> None:
        header = GlobalTypeVar(readable(row.get("name", str), "a type's name", row.where))
        if header.name in self._data:
            raise fault(f"{row.where}: type must have a name of its own", header.name)
        constructors: list[Constructor] = []
        for tag, item in enumerate(Rows(row, "constructors")):
            fields = self._types.all(item, "fields")
            name = readable(item.get("name", str), "a constructor's name", item.where)
            constructors.append(Constructor(name, fields, header, tag, span=self._span(item)))
        params = self._types.variables(row, "params")
        is_extern = row.get("extern", bool, False)
        self._data[header.name] = TypeData(header, params, tuple(constructors), is_extern)

    def _constructor(self, row: Row) -> Constructor:
        owner, name = row.get("of", str), row.get("name", str)
        known = self._data[owner].constructors if owner in self._data else ()
        for item in known:
            if item.name_hint == name:
                return item
        raise fault(f"{row.where} must be a constructor of the document", f"{name} of {owner}")

    # Nodes

    def _part(self, row: Row, name: str) -> Expr:
        return row.pick(name, self._nodes, "earlier nodes")

    def _parts(self, row: Row, name: str) -> list[Expr]:
        return row.pick_all(name, self._nodes, "earlier nodes")

    def _as(self, row: Row, name: str, kind: type[T], what: str) -> T:
        found: Expr = self._part(row, name)
        if not isinstance(found, kind):
            raise fault(f"{row.where}: {name} must be {what}", type(found).__name__)
        return found

    def _node(self, row: Row, span: Span | None) -> Expr:
        match row.get("node", str):
            case "var":
                return Var(row.get("name", str), self._types.optional(row, "type"), span=span)
            case "global":
                return GlobalVar(row.get("name", str), span=span)
            case "op":
                return _operator(row.get("name", str))
            case "constructor":
                return self._constructor(row)
            case "constant":
                return Constant(_array(row), span=span)
            case "call":
                return self._call(row, span)
            case "tuple":
                return Tuple(self._parts(row, "fields"), span=span)
            case "get":
                return TupleGetItem(self._part(row, "tuple"), row.get("index", int), span=span)
            case "let":
                var = self._as(row, "var", Var, "a variable")
                return Let(var, self._part(row, "value"), self._part(row, "body"), span=span)
            case "if":
                return If(self._part(row, "cond"), self._part(row, "then"), self._part(row, "else"), span=span)
            case "function":
                return self._function(row, span)
            case "ref":
                return RefCreate(self._part(row, "value"), span=span)
            case "read":
                return RefRead(self._part(row, "ref"), span=span)
            case "write":
                return RefWrite(self._part(row, "ref"), self._part(row, "value"), span=span)
            case "match":
                arms = [self._arm(arm) for arm in Rows(row, "arms")]
                return Match(self._part(row, "data"), tuple(arms), row.get("complete", bool), span=span)
            case other:
                raise fault(f"{row.where}: node must be a kind of the schema", other)

    def _call(self, row: Row, span: Span | None) -> Call:
        op = self._part(row, "op")
        attrs = _attributes(row)
        if attrs and not isinstance(op, Op):
            raise fault(f"{row.where}: attrs must be left out where no operator is called", attrs)
        try:
            record = build_attributes(op, attrs) if isinstance(op, Op) else None
        except AttributeFault as error:
            raise ParseError(f"{row.where}: {error}") from None
        types: Sequence[Type] = self._types.all(row, "type_args") if "type_args" in row.value else ()
        return Call(op, self._parts(row, "args"), record, types, span=span)

    def _function(self, row: Row, span: Span | None) -> Function:
        params = self._parts(row, "params")
        variables = [param for param in params if isinstance(param, Var)]
        if len(variables) != len(params):
            raise fault(f"{row.where}: params must be variables", row.value["params"])
        result = self._types.optional(row, "result")
        type_params = self._types.variables(row, "type_params") if "type_params" in row.value else ()
        where = self._types.where(row)
        return Function(variables, self._part(row, "body"), result, type_params, _attributes(row), where, span=span)

    def _arm(self, row: Row) -> Clause:
        return Clause(self._pattern(row.any("pattern"), f"{row.where}.pattern"), self._part(row, "body"))

    def _pattern(self, value: Any, where: str) -> Pattern:
        if value == "_":
            return PatternWildcard()
        row = Row(value, where)
        if "var" in row.value:
            return PatternVar(self._as(row, "var", Var, "a variable"))
        if "tuple" in row.value:
            return PatternTuple(self._patterns(row, "tuple"))
        constructor = self._constructor(Row(row.any("constructor"), f"{where}.constructor"))
        return PatternConstructor(constructor, self._patterns(row, "parts"))

    def _patterns(self, row: Row, name: str) -> tuple[Pattern, ...]:
        return tuple(self._pattern(part, f"{row.where}.{name}[{i}]") for i, part in enumerate(row.get(name, list)))


def _operator(name: str) -> Op:
    from relay_hw.op import get

    return get(name)


def _attributes(row: Row) -> dict[str, Any]:
    given = Row(row.get("attrs", dict, {}), f"{row.where}.attrs")
    return {name: _value(value, given) for name, value in given.value.items()}


def _value(value: Any, row: Row) -> Any:
    if isinstance(value, list):
        return tuple(_value(part, row) for part in value)
    if not isinstance(value, dict):
        return value
    if "constant" in value:
        return Constant(_array(Row(value["constant"], f"{row.where}.constant")))
    if value.get("float") not in ("nan", "inf", "-inf"):
        raise fault(f"{row.where}: attribute must be a number, a string, a list or null", value)
    return float(value["float"])


def _array(row: Row) -> np.ndarray:
    name = row.get("dtype", str)
    if not is_dtype(name) or "x" in name:
        raise fault(f"{row.where}: dtype must be an element type of numpy", name)
    if name in NARROW_DTYPES:
        know_narrow_dtypes()
    dtype = np.dtype(name)
    shape = row.get("shape", list)
    if not is_shape(shape):
        raise fault(f"{row.where}: shape must be at most 32 integers of at least 0", shape)
    try:
        raw = base64.b64decode(row.get("data", str), validate=True)
    except binascii.Error as error:
        raise ParseError(f"{row.where}: data must be base64: {error}") from None
    if len(raw) != math.prod(shape) * dtype.itemsize:
        raise fault(f"{row.where}: data must hold {math.prod(shape) * dtype.itemsize} bytes", len(raw))
    if not is_countable(shape, dtype.itemsize):
        raise fault(f"{row.where}: shape must have a size that fits into 64 bits", shape)
    if dtype.kind == "b" and raw.strip(b"\0\1"):
        raise fault(f"{row.where}: data of booleans must be bytes 0 and 1", "others")
    return np.frombuffer(raw, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape)
