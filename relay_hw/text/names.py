"""Chooses names for printing: legal for the lexer and unique in their definition."""

from __future__ import annotations

import re
from typing import Final

from relay_hw.errors import ParseError
from relay_hw.ir.expr import Var
from relay_hw.ir.types import DimVar, TypeVar
from relay_hw.text.lexer import KEYWORDS, LOCAL_NAME

# Names with another meaning in types.
_TAKEN_TYPES: Final = re.compile(r"(?:int|uint|float|bool|bfloat)\w*|Tensor|_|floordiv|floormod|where", re.A)
# Longest part of a wrong name in a message.
_SHOWN: Final = 80
_GLOBAL: Final = re.compile(r"[A-Za-z_](?:\w|/(?=\w))*(?:\.[A-Za-z_](?:\w|/(?=\w))*)*", re.A)


def readable(name: str, what: str, where: str) -> str:
    """Check a name that is printed unchanged: of a type, a constructor, a layout. Raises ParseError."""
    if not _GLOBAL.fullmatch(name):
        raise ParseError(f"{where}: {what} must be a word of Relay text, not {name[:_SHOWN]!r}")
    return name


class Names:
    """Gives out names; the same object always gets the same name."""

    def __init__(self, type_names: frozenset[str] = frozenset()) -> None:
        self._vars: dict[Var, str] = {}
        self._type_vars: dict[TypeVar | DimVar, str] = {}
        self._globals: dict[str, str] = {}
        self._used: set[str] = set()
        self._reserved = type_names | KEYWORDS
        self._used_types: set[str] = set(self._reserved)
        self._used_globals: set[str] = set()
        self._next: dict[str, int] = {}

    def begin_definition(self) -> None:
        """Reset names of variables and type parameters, but not those of global functions."""
        self._vars.clear()
        self._type_vars.clear()
        self._next.clear()
        self._used.clear()
        self._used_types = set(self._reserved)

    def var(self, var: Var) -> str:
        """The name of a local variable, with its `%`."""
        if var not in self._vars:
            self._vars[var] = self._unique(_readable(var.name_hint or "v"), self._used)
        return "%" + self._vars[var]

    def type_var(self, var: TypeVar | DimVar) -> str:
        """The name of a type parameter or symbolic dimension."""
        if var not in self._type_vars:
            name = re.sub(r"\W", "_", var.name, flags=re.A) or "A"
            if _TAKEN_TYPES.fullmatch(name) or not re.match(r"[A-Za-z_]", name):
                name = "T" + name
            self._type_vars[var] = self._unique(name, self._used_types)
        return self._type_vars[var]

    def global_var(self, name: str) -> str:
        """The name of a global function, with its `@`."""
        if name not in self._globals:
            readable = name if _GLOBAL.fullmatch(name) else "v" + re.sub(r"\W", "_", name, flags=re.A)
            self._globals[name] = self._unique(readable, self._used_globals)
        return "@" + self._globals[name]

    def _unique(self, name: str, used: set[str]) -> str:
        found = name
        while found in used:
            self._next[name] = self._next.get(name, 0) + 1
            found = f"{name}{self._next[name]}"
        used.add(found)
        return found


def _readable(name: str) -> str:
    if LOCAL_NAME.fullmatch(name):
        return name
    plain = re.sub(r"\W", "_", name, flags=re.A)
    return plain if re.match(r"[A-Za-z_]", plain) else "v" + plain
