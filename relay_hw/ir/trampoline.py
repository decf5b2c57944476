"""Recursion without Python's stack: a step is a generator that yields the steps it calls and returns its value."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

T = TypeVar("T")

Recursion = Generator[Any, Any, T]


def run(root: Recursion[T]) -> T:
    """Run `root` and every step that it yields; depth is bounded by memory only."""
    stack: list[Recursion[Any]] = [root]
    value: Any = None
    while stack:
        try:
            child = stack[-1].send(value)
        except StopIteration as stop:
            stack.pop()
            value = stop.value
        else:
            stack.append(child)
            value = None
    return value
