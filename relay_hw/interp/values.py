"""Values of Relay programs: arrays, tuples, closures, data, references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from relay_hw.errors import InputError
from relay_hw.ir.expr import Constructor, Expr, Function
from relay_hw.ir.types import DtypeVar, FuncType, RefType, TensorType, TupleType, Type, TypeCall, has_unknown_rank

# numpy array, tuple of values, ConstructorValue, RefValue, Closure or Constructor
Value = Any


@dataclass(slots=True, eq=False)
class Frame:
    """Values of one run of a function body; `level` counts the functions around it."""

    level: int
    parent: Frame | None = None
    values: dict[Expr, Value] = field(default_factory=dict)

    def at(self, level: int) -> Frame:
        """This frame or the enclosing one of `level`."""
        frame = self
        while frame.level > level:
            assert frame.parent is not None
            frame = frame.parent
        return frame


@dataclass(frozen=True, slots=True, eq=False)
class Closure:
    """A function with the frame it was made in."""

    function: Function
    frame: Frame = field(repr=False)
    plan: Any = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class ConstructorValue:
    """A value of a data type."""

    constructor: Constructor
    fields: tuple[Value, ...] = ()

    @property
    def name(self) -> str:
        return self.constructor.name_hint


@dataclass(slots=True, eq=False)
class RefValue:
    """A mutable cell; every holder sees the same content."""

    value: Value


def to_value(given: Any, ty: Type, what: str) -> Value:
    """`given` as a value of type `ty`: lists and numbers become arrays. Raises InputError if it does not fit."""
    match ty:
        case TensorType():
            return _to_array(given, ty, what)
        case TupleType(fields=fields):
            if not isinstance(given, (tuple, list)) or len(given) != len(fields):
                raise InputError(f"{what} must be a tuple of {len(fields)}, not {show(given)}")
            parts = enumerate(zip(given, fields, strict=True))
            return tuple(to_value(part, field_type, f"{what}.{index}") for index, (part, field_type) in parts)
        case RefType():
            if not isinstance(given, RefValue):
                raise InputError(f"{what} must be a reference, not {show(given)}")
        case FuncType():
            if not isinstance(given, (Closure, Constructor)):
                raise InputError(f"{what} must be a function, not {show(given)}")
        case TypeCall():
            if not isinstance(given, ConstructorValue) or given.constructor.belong_to != ty.func:
                raise InputError(f"{what} must be a value of {ty}, not {show(given)}")
        case _:
            pass
    return given


def _to_array(given: Any, ty: TensorType, what: str) -> np.ndarray:
    is_numpy = isinstance(given, (np.ndarray, np.generic))
    array = np.asarray(given) if is_numpy else _from_python(given, ty, what)
    if not has_dtype(array, ty) or not fits(array.shape, ty):
        raise InputError(f"{what} must be {ty}, not {show(array)}")
    return array


def _from_python(given: Any, ty: TensorType, what: str) -> np.ndarray:
    try:
        plain = np.asarray(given)
        if plain.dtype.kind in "biuf":
            return plain if isinstance(ty.dtype, DtypeVar) else plain.astype(ty.dtype)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{what} must be {ty}, not {show(given)}")


def has_dtype(array: np.ndarray, ty: TensorType) -> bool:
    """Whether the elements of `array` are those of `ty`; a type parameter takes any."""
    return isinstance(ty.dtype, DtypeVar) or _dtype_name(array.dtype) == ty.dtype


@lru_cache(maxsize=256)
def _dtype_name(dtype: np.dtype[Any]) -> str:
    """The name of an element type, cached because numpy recomputes it each time."""
    return str(dtype)


def fits(shape: Sequence[int], ty: TensorType) -> bool:
    """Whether an array of `shape` is a value of `ty`; unknown dimensions take any size."""
    return has_unknown_rank(ty) or (
        len(shape) == ty.rank
        and all(size == dim or not isinstance(dim, int) for size, dim in zip(shape, ty.shape, strict=True))
    )


def type_of(value: Value) -> Type:
    """The type of a tensor or of a tuple of tensors."""
    if isinstance(value, tuple):
        return TupleType([type_of(part) for part in value])
    return TensorType(value.shape, str(value.dtype))


def show(value: Any) -> str:
    """A description of a value for messages: the type of an array, the kind of everything else."""
    match value:
        case np.ndarray() | np.generic():
            return str(TensorType(value.shape, str(value.dtype))) if value.dtype.kind in "biuf" else str(value.dtype)
        case tuple():
            return f"({', '.join(map(show, value[:8]))}{', ...' if len(value) > 8 else ''})"
        case ConstructorValue(constructor=constructor):
            return f"{constructor.name_hint} of {constructor.belong_to.name}"
        case RefValue():
            return "a reference"
        case Closure() | Constructor():
            return "a function"
        case _:
            return repr(value)[:60]
