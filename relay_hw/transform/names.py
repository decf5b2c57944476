"""Names that no function of a module has yet. In: a name or its beginning, names in use. Out: a new name."""

from __future__ import annotations

from collections.abc import Collection


def unused_name(name: str, taken: Collection[str]) -> str:
    """`name`, with as many underscores behind it as make it a new one."""
    while name in taken:
        name += "_"
    return name


def numbered_name(stem: str, taken: set[str], first: int = 0) -> str:
    """`stem` with a number behind it, `first` or the next that makes it a new one; the result is then in use."""
    number = first
    while f"{stem}_{number}" in taken:
        number += 1
    taken.add(f"{stem}_{number}")
    return f"{stem}_{number}"
