"""Converts lists and natural numbers between Python and the library's types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relay_hw.errors import InputError
from relay_hw.interp.values import ConstructorValue, Value, show
from relay_hw.prelude.library import load_library


def list_value(items: Sequence[Any]) -> ConstructorValue:
    """`Cons(items[0], ... Nil)`, for arguments of the interpreter; the items are values already."""
    cons, nil = load_library("prelude").types["List"].constructors
    value = ConstructorValue(nil)
    for item in reversed(items):
        value = ConstructorValue(cons, (item, value))
    return value


def list_items(value: Value) -> list[Value]:
    """The elements of a list value. Raises InputError."""
    found: list[Value] = []
    while _is_from("List", value) and value.name == "Cons":
        found.append(value.fields[0])
        value = value.fields[1]
    if not (_is_from("List", value) and value.name == "Nil"):
        raise InputError(f"value must be a list, not {show(value)}")
    return found


def nat_value(count: int) -> ConstructorValue:
    """The natural number `count`. Raises InputError for a negative one."""
    if count < 0:
        raise InputError(f"natural number must be at least 0, not {count}")
    zero, succ = load_library("nat").types["nat"].constructors
    value = ConstructorValue(zero)
    for _ in range(count):
        value = ConstructorValue(succ, (value,))
    return value


def nat_count(value: Value) -> int:
    """The number that a value of type nat stands for. Raises InputError."""
    count = 0
    while _is_from("nat", value) and value.name == "succ":
        count += 1
        value = value.fields[0]
    if not (_is_from("nat", value) and value.name == "zero"):
        raise InputError(f"value must be a natural number, not {show(value)}")
    return count


def _is_from(type_name: str, value: Value) -> bool:
    return isinstance(value, ConstructorValue) and value.constructor.belong_to.name == type_name
