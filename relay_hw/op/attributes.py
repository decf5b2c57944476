"""Converts operator attributes. In: names and values from text. Out: the attribute record; and back."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from relay_hw.ir.expr import Op
from relay_hw.support.names import one_of


class AttributeFault(ValueError):
    """An error in attributes: `name` is the wrong one, empty for a missing one."""

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True, slots=True)
class _Field:
    """One field of an attribute record; `options` are the types that its annotation allows."""

    name: str
    options: tuple[Any, ...]
    default: Any
    factory: Any

    @property
    def is_required(self) -> bool:
        return self.default is MISSING and self.factory is MISSING

    def differs(self, value: Any) -> bool:
        """Whether `value` differs from the default, so that it must be printed."""
        default = self.default if self.factory is MISSING else self.factory()
        return default is MISSING or value != default or type(value) is not type(default)


@cache
def _record(attrs_type: type) -> dict[str, _Field]:
    """The fields of an attribute record by name, in order."""
    hints = get_type_hints(attrs_type)
    return {
        field.name: _Field(field.name, _options(hints[field.name]), field.default, field.default_factory)
        for field in fields(attrs_type)
    }


def attribute_options(op: Op) -> dict[str, tuple[Any, ...]]:
    """The attributes of `op` by name, each with the types that it may have."""
    return {} if op.attrs_type is None else {name: field.options for name, field in _record(op.attrs_type).items()}


def build_attributes(op: Op, given: Mapping[str, Any]) -> Any:
    """The attribute record of `op`, None for an operator without one. Raises AttributeFault."""
    if op.attrs_type is None:
        if given:
            name = next(iter(given))
            raise AttributeFault(f"attribute {name} must be left out: {op.name} has no attributes", name)
        return None
    known = _record(op.attrs_type)
    for name in given:
        if name not in known:
            raise AttributeFault(_unknown(op.name, name, list(known)), name)
    for name, field in known.items():
        if name not in given and field.is_required:
            raise AttributeFault(f"attribute {name} of {op.name} must be given")
    values = {name: _convert(value, known[name], op.name) for name, value in given.items()}
    try:
        return op.attrs_type(**values)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise AttributeFault(f"attributes of {op.name} must fit together: {error}") from error


def shown_attributes(op: Op, attrs: Any) -> dict[str, Any]:
    """The attributes that differ from their defaults or have none, in order of definition."""
    if op.attrs_type is None or attrs is None:
        return {}
    found: dict[str, Any] = {}
    for name, field in _record(type(attrs)).items():
        value = getattr(attrs, name)
        if field.differs(value):
            found[name] = _spelled(value, field.options)
    return found


def _spelled(value: Any, options: tuple[Any, ...]) -> Any:
    """`value` converted by its annotation: an integer for a float field becomes a float."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, int) and not isinstance(value, bool) and float in options and int not in options:
        return float(value)
    return value


def _unknown(op: str, name: str, known: list[str]) -> str:
    return one_of(f"attribute of {op}", known, name)


def _options(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _convert(value: Any, field: _Field, op: str) -> Any:
    for option in field.options:
        fits, converted = _try(value, option)
        if fits:
            return converted
    wanted = " or ".join(map(_name, field.options))
    raise AttributeFault(f"attribute {field.name} of {op} must be {wanted}, not {_show(value)}", field.name)


def _try(value: Any, option: Any) -> tuple[bool, Any]:
    origin = get_origin(option)
    if option is None or option is type(None):
        return value is None, None
    if option is Any or option is object:
        return True, value
    if option is float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number, value if not is_number else float(value)
    if option is int:
        # TVM writes booleans as 0 and 1.
        return isinstance(value, int), int(value) if isinstance(value, int) else value
    if option is bool:
        is_flag = isinstance(value, bool) or value in (0, 1)
        return is_flag, bool(value) if is_flag else value
    if origin is tuple or option is tuple:
        return _try_tuple(value, get_args(option))
    if isinstance(option, type) and issubclass(option, Enum):
        found = next((member for member in option if value in (member.value, member.name)), None)
        return found is not None, found
    if isinstance(option, type):
        return isinstance(value, option), value
    allowed = get_args(option)
    return bool(allowed) and value in allowed, value


def _try_tuple(value: Any, items: tuple[Any, ...]) -> tuple[bool, Any]:
    if not isinstance(value, tuple):
        return False, value
    if not items:
        return True, value
    is_open = len(items) == 2 and items[1] is Ellipsis
    if not is_open and len(items) != len(value):
        return False, value
    converted: list[Any] = []
    for index, part in enumerate(value):
        options = _options(items[0] if is_open else items[index])
        found = next((new for fits, new in (_try(part, option) for option in options) if fits), _NOTHING)
        if found is _NOTHING:
            return False, value
        converted.append(found)
    return True, tuple(converted)


_NOTHING = object()


def _name(option: Any) -> str:
    names = {int: "an integer", float: "a number", bool: "True or False", str: "a string", type(None): "None"}
    if option in names:
        return names[option]
    if get_origin(option) is tuple or option is tuple:
        parts = [part for part in get_args(option) if part is not Ellipsis]
        kinds = {int: "integers", float: "numbers", str: "strings"}
        return f"a list of {kinds.get(parts[0], 'values')}" if parts else "a list"
    if isinstance(option, type) and issubclass(option, Enum):
        return " or ".join(repr(member.value) for member in option)
    return " or ".join(map(repr, get_args(option))) if get_args(option) else getattr(option, "__name__", str(option))


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_show, value[:8]))}{', ...' if len(value) > 8 else ''}]"
    return f'"{value[:40]}"' if isinstance(value, str) else repr(value)[:40]
