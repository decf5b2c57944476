"""Attributes of operators in TVM's JSON. In: texts and node numbers. Out: our records, by the types of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from relay_hw.compat.tvm.graph_nodes import OBJECT_INTEGERS
from relay_hw.errors import ParseError
from relay_hw.ir.expr import Op

_UNSET = object()
# The value of a node by its number.
Node = Callable[[int], Any]


def read_attrs(op: Op, kind: str, values: Mapping[str, Any], node: Node) -> Any:
    """The record of `op`. Fields that TVM has and we have not are left out. Raises ParseError for a missing one."""
    if op.attrs_type is None:
        return None
    found: dict[str, Any] = {}
    for field in fields(op.attrs_type):
        value = _value(field, kind, values.get(field.name, _UNSET), node)
        if value is not _UNSET:
            found[field.name] = value
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ParseError(f"attributes of {op.name} must have {field.name}")
    return op.attrs_type(**found)


def _value(field: Field[Any], kind: str, raw: Any, node: Node) -> Any:
    if raw is _UNSET:
        return _UNSET
    hint = str(field.type)
    text = str(raw)
    match hint:
        case "int" if (kind, field.name) not in OBJECT_INTEGERS:
            return int(text)
        case "float":
            return float(text)
        case "bool" if (kind, field.name) not in OBJECT_INTEGERS:
            return text not in ("0", "False")
        case "str" | "str | None":
            return _text(field, text, node)
        case _:
            return _plain(node(int(text)), field)


def _text(field: Field[Any], text: str, node: Node) -> Any:
    """A string is written as it is, or as a node in later versions; an element type always as it is."""
    if field.name.endswith("dtype"):
        return text if text not in ("", "void") else (None if str(field.type) != "str" else text)
    if text.isdigit():
        found = node(int(text))
        return found if isinstance(found, str) else ("" if found is None else text)
    return text


def _plain(value: Any, field: Field[Any]) -> Any:
    if value is None and "None" not in str(field.type):
        return _UNSET if field.default is not MISSING else None
    return value
