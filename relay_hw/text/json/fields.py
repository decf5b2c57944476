"""Checked access to fields of untrusted JSON objects; errors name the place in the document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from relay_hw.errors import ParseError

T = TypeVar("T")

_KINDS = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
_MISSING = object()


def fault(rule: str, found: object) -> ParseError:
    """The error for a value that breaks `rule`."""
    return ParseError(f"{rule}, not {str(found)[:60]}")


class Row:
    """An object and its place in the document."""

    __slots__ = ("value", "where")

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise fault(f"{where} must be an object", _shown(value))
        self.value: dict[str, Any] = value
        self.where = where

    def any(self, name: str) -> Any:
        """The field `name` of any type."""
        if name not in self.value:
            raise ParseError(f"{self.where} must have the field {name}")
        return self.value[name]

    def get(self, name: str, kind: type[T], default: Any = _MISSING) -> T:
        """The field `name`, which must be of `kind`."""
        if default is not _MISSING and name not in self.value:
            return default
        found = self.any(name)
        # In Python a bool is an int.
        if type(found) is not kind:
            raise fault(f"{self.where}: {name} must be {_KINDS[kind]}", _shown(found))
        return found

    def pick(self, name: str, table: Sequence[T], what: str) -> T:
        """The entry of `table` at the field, an index."""
        return self._at(self.any(name), name, table, what)

    def pick_all(self, name: str, table: Sequence[T], what: str) -> list[T]:
        """The entries of `table` at the field, a list of indices."""
        return [self._at(place, name, table, what) for place in self.get(name, list)]

    def _at(self, place: Any, name: str, table: Sequence[T], what: str) -> T:
        if type(place) is not int or not 0 <= place < len(table):
            raise fault(f"{self.where}: {name} must count within the {len(table)} {what}", _shown(place))
        return table[place]


class Rows:
    """The objects of a list."""

    def __init__(self, row: Row, name: str) -> None:
        self._items = row.get(name, list)
        self._where = name if row.where == "document" else f"{row.where}.{name}"

    def __iter__(self) -> Iterator[Row]:
        return (Row(item, f"{self._where}[{index}]") for index, item in enumerate(self._items))


def _shown(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f'"{value}"'
        case dict():
            return "an object"
        case list():
            return "a list"
        case _:
            return str(value)
