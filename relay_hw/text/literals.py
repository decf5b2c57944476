"""Prints values: as literals where the format has them, else as entries of the metadata section."""

from __future__ import annotations

import math
from enum import Enum

import numpy as np

from relay_hw.ir.expr import Constant
from relay_hw.text.metadata import CONSTANT, INTEGER, STRING, Entry, write_metadata


class Literals:
    """Prints values and collects the metadata section."""

    def __init__(self) -> None:
        self._entries: dict[str, list[Entry]] = {}
        self._constants: dict[Constant, str] = {}

    def section(self) -> str:
        """The metadata section, empty if nothing needs it."""
        return f"#[metadata]\n{write_metadata(self._entries)}" if self._entries else ""

    def constant(self, node: Constant) -> str:
        """A constant: a literal if the format has one, else a reference to the metadata section."""
        if node not in self._constants:
            self._constants[node] = _scalar(node.data) or self._reference(CONSTANT, node)
        return self._constants[node]

    def attribute(self, value: object) -> str:
        """The value of an attribute."""
        match value:
            case None | bool():
                return str(value)
            case Enum():
                return self.attribute(value.value)
            case int() if not -(2**63) <= value < 2**63:
                return self._reference(INTEGER, value)
            case int():
                return str(value)
            case float():
                return _real(repr(value)) + "f"
            case np.generic():
                return self.attribute(value.item())
            case Constant():
                return self._reference(CONSTANT, value)
            case list() | tuple():
                return f"[{', '.join(map(self.attribute, value))}]"
            case str() if '"' not in value:
                return f'"{value}"'
            case _:
                # Strings have no escapes.
                return self._reference(STRING, str(value))

    def _reference(self, key: str, entry: Entry) -> str:
        entries = self._entries.setdefault(key, [])
        entries.append(entry)
        return f"meta[{key}][{len(entries) - 1}]"


def _scalar(data: np.ndarray) -> str | None:
    if data.ndim:
        return None
    match str(data.dtype):
        case "bool":
            return str(bool(data))
        case "int32":
            return str(int(data))
        case "int16" | "int64" as dtype:
            return f"{int(data)}i{dtype[3:]}"
        case "float16" | "float32" | "float64" as dtype if not math.isnan(data):
            return _real(str(data[()])) + ("f" if dtype == "float32" else f"f{dtype[5:]}")
        case _:
            return None


def _real(text: str) -> str:
    return text.removesuffix(".0")
