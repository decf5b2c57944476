"""Parses untrusted JSON and TOML: one exception, one sentence, limits on size and depth.

In: text or bytes. Out: the value, or a record whose fields have the types that it declares. It imports no other
package of this project, so that all can use it.
"""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Final, TypeVar, Union, cast, get_args, get_origin, get_type_hints

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# A document of a network holds its weights; the largest that tests write has a tenth of this.
MOST_BYTES: Final = 1 << 30
# Limits for files that people write: configurations, strategies, maps of boards.
MOST_SETTINGS: Final = 1 << 24
# Lists and objects inside one another: a type inside a type inside a pattern needs some thirty.
MOST_NESTED: Final = 200
# Names with dots between them, which are a key of TOML.
MOST_PARTS: Final = 32
# Texts and comments of TOML, closed or not: dots in them are no key's.
_ASIDE: Final = re.compile(
    r'"""(?:[^"\\]|\\.?|"(?!""))*(?:"{3,5}|\Z)'
    r"|'''(?:[^']|'(?!''))*(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n]?)*(?:"|$)'
    r"|'[^'\n]*(?:'|$)"
    r"|#[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_DOTTED: Final = re.compile(r"(?<![\w-])[\w-]+(?:[ \t]*\.[ \t]*[\w-]+)+")
# Beyond them are numbers that no field counts, which arrays and machines refuse in ways of their own.
_MOST_INTEGER: Final = 1 << 63
_KINDS: Final = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
_SHOWN: Final = 60
T = TypeVar("T")


class DocumentError(ValueError):
    """Text that is not JSON or TOML, or exceeds a limit. `line`, `column`: where, if known."""

    def __init__(self, sentence: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(sentence if line is None else f"{sentence}, line {line}, column {column}")
        self.sentence, self.line, self.column = sentence, line, column


def parse_json(text: str | bytes, most_bytes: int = MOST_BYTES) -> Any:
    """Parse JSON text, or bytes in UTF-8. Raises DocumentError with the place, if known."""
    if len(text) > most_bytes:
        raise DocumentError(f"JSON must be at most {most_bytes:,} bytes long, not {len(text):,}")
    try:
        value = json.loads(text if isinstance(text, str) else text.decode())
    except RecursionError:
        raise DocumentError(_too_deep()) from None
    except json.JSONDecodeError as error:
        raise DocumentError(error.msg, error.lineno, error.colno) from None
    except UnicodeDecodeError as error:
        raise DocumentError(f"JSON must be UTF-8: byte {error.start:,} is not") from None
    except ValueError:
        # Python turns no more digits than this into an integer, since the time grows with their square.
        raise DocumentError("integers of JSON must have at most 4,300 digits") from None
    _check_depth(value)
    return value


def reason(error: Exception) -> str:
    """An error's message without the number and path that the operating system adds."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML text. Raises DocumentError with the place, if known."""
    _check_keys(text)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise DocumentError("it must have fewer tables and lists inside one another") from None
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(str(error)) from None
    except ValueError:
        raise DocumentError("integers must have at most 4,300 digits") from None
    _check_integers(table)
    return table


def _check_integers(table: dict[str, Any]) -> None:
    """Limit hexadecimal integers, as Python cannot print more than 4,300 digits."""
    level: list[Any] = [table]
    while level:
        inside = [item for outer in level for item in _items(outer)]
        if any(isinstance(item, int) and abs(item) >= _MOST_INTEGER for item in inside):
            raise DocumentError("integers must be less than 2^63")
        level = [item for item in inside if isinstance(item, list | dict)]


def _check_keys(text: str) -> None:
    """Limit dotted keys, as tomllib takes quadratic time in their parts."""
    bare = _ASIDE.sub(lambda found: "" if found[0][0] == "#" else "s", text)
    for key in _DOTTED.finditer(bare):
        parts = 1 + key[0].count(".")
        if parts > MOST_PARTS:
            raise DocumentError(f"keys must have at most {MOST_PARTS} parts, not {parts:,}")


def _check_depth(value: Any) -> None:
    """Limit nesting, since readers recurse; this check goes level by level and does not."""
    level: list[Any] = [value]
    for _ in range(MOST_NESTED + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise DocumentError(_too_deep())


def _inside(value: Any) -> list[Any]:
    """What lies in a list or an object, and can hold something itself; nothing in another value."""
    return [item for item in _items(value) if isinstance(item, list | dict)]


def _items(value: Any) -> list[Any]:
    """What lies in a list or an object; nothing in another value."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def _too_deep() -> str:
    return f"JSON must have at most {MOST_NESTED} lists and objects inside one another, not more"


def read_record(kind: type[T], row: object, where: str) -> T:
    """Read a dataclass `kind` from an object, which messages call `where`; fields may be nested records.

    Lists become tuples, words members of enumerations. Raises DocumentError for a field that is unknown, missing or of
    another type than the one declared.
    """
    if not isinstance(row, dict):
        raise _wanted(where, "an object", row)
    given = cast("dict[str, object]", row)
    known, hints = _fields(kind)
    for name in given:
        if name not in known:
            raise DocumentError(f"{where} must have the fields {', '.join(known)}, not {name[:_SHOWN]}")
    for name, one in known.items():
        if name not in given and one.default is MISSING and one.default_factory is MISSING:
            raise DocumentError(f"{where} must have the field {name}")
    return kind(**{name: _typed(hints[name], value, f"{where}.{name}") for name, value in given.items()})


@cache
def _fields(kind: Any) -> tuple[dict[str, Field[Any]], dict[str, Any]]:
    """The fields of a dataclass and their types, by name."""
    return {one.name: one for one in fields(kind)}, get_type_hints(kind)


def _typed(hint: Any, value: object, where: str) -> Any:
    """`value` converted to the type `hint`."""
    if hint is Any:
        return value
    if hint in _KINDS:
        return _plain(hint, value, where)
    if is_dataclass(hint):
        return value if isinstance(value, cast(type, hint)) else read_record(cast("type[Any]", hint), value, where)
    if get_origin(hint) in (Union, types.UnionType):
        return None if value is None else _typed(get_args(hint)[0], value, where)
    if get_origin(hint) is tuple:
        return _tuple(get_args(hint), value, where)
    if get_origin(hint) is Mapping:
        if not isinstance(value, dict):
            raise _wanted(where, "an object", value)
        inner = get_args(hint)[1]
        items = cast("dict[str, object]", value).items()
        return {name: _typed(inner, item, f"{where}.{name[:_SHOWN]}") for name, item in items}
    return _member(hint, value, where)


def _plain(hint: type, value: object, where: str) -> Any:
    # In Python a bool is an int.
    if type(value) is hint or (hint is float and type(value) is int):
        if not isinstance(value, int) or abs(value) < _MOST_INTEGER:
            return float(cast(float, value)) if hint is float else value
        raise DocumentError(f"{where} must be less than 2^63, not {len(str(value))} digits long")
    raise _wanted(where, _KINDS[hint], value)


def _tuple(hints: tuple[Any, ...], value: object, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise _wanted(where, "a list", value)
    items = cast("list[object]", value)
    if hints[-1] is Ellipsis:
        return tuple(_typed(hints[0], item, f"{where}[{k}]") for k, item in enumerate(items))
    if len(items) != len(hints):
        raise DocumentError(f"{where} must be a list of {len(hints)}, not of {len(items)}")
    return tuple(_typed(hint, item, f"{where}[{k}]") for k, (hint, item) in enumerate(zip(hints, items, strict=True)))


def _member(hint: type[Enum], value: object, where: str) -> Enum:
    known = {member.value: member for member in hint}
    if not isinstance(value, str) or value not in known:
        raise _wanted(where, f"one of {', '.join(map(str, known))}", value)
    return known[value]


def _wanted(where: str, what: str, value: object) -> DocumentError:
    return DocumentError(f"{where} must be {what}, not {json.dumps(value)[:_SHOWN]}")
