"""Collects the constructors that a program knows: of its module's data types, those that it makes and those it matches.

In: flat functions, data types where they are known. Out: constructors in a fixed order; their places are their tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from relay_hw.backend.nodes import FlatConstruct, FlatFields, FlatFunction, FlatMatch, FlatPattern, nested
from relay_hw.ir.expr import Constructor
from relay_hw.ir.module import TypeData


@dataclass(frozen=True, slots=True)
class KnownConstructor:
    """`made`: the constructor itself, None where only patterns name it; `size`: how many fields it has."""

    name: str
    size: int
    made: Constructor | None = None

    def __str__(self) -> str:
        return self.name if self.made is None else f"{self.name} of {self.made.belong_to.name}"


def known_constructors(
    functions: Iterable[FlatFunction], types: Mapping[str, TypeData]
) -> tuple[KnownConstructor, ...]:
    """The constructors of `types`, then those that only the functions name."""
    found: dict[str, KnownConstructor] = {}
    made = [one for data in types.values() for one in data.constructors]
    nodes = [node for whole in functions for function in nested(whole) for node in function.nodes]
    made += [node.constructor for node in nodes if isinstance(node, FlatConstruct)]
    for one in made:
        found.setdefault(one.name_hint, KnownConstructor(one.name_hint, len(one.inputs), one))
    for node in nodes:
        if isinstance(node, FlatMatch):
            for name, size in _matched(arm.pattern for arm in node.arms):
                found.setdefault(name, KnownConstructor(name, size))
    return tuple(found.values())


def _matched(patterns: Iterable[FlatPattern]) -> Iterable[tuple[str, int]]:
    waiting = list(patterns)
    while waiting:
        pattern = waiting.pop()
        if isinstance(pattern, FlatFields):
            waiting += pattern.patterns
            if pattern.constructor is not None:
                yield pattern.constructor, len(pattern.patterns)
