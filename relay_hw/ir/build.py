"""Builds variables with Relay's `var` function."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Var
from relay_hw.ir.types import Dim, TensorType, Type


def var(
    name_hint: str,
    type_annotation: Type | str | None = None,
    shape: Sequence[Dim] | None = None,
    dtype: str = "float32",
) -> Var:
    """A variable: with a type, with a scalar's element type as a string, with `shape` and `dtype`, or without type.

    Raises ValueError if both a type and a shape are given.
    """
    if type_annotation is not None and shape is not None:
        raise ValueError(f"variable {name_hint} must have a type or a shape, not both")
    if isinstance(type_annotation, str):
        return Var(name_hint, TensorType((), type_annotation))
    if shape is not None:
        return Var(name_hint, TensorType(shape, dtype))
    return Var(name_hint, type_annotation)
