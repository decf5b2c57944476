"""Relay types: tensors, functions, tuples, references, algebraic data types, type variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import count
from typing import Final

import numpy as np


class Kind(Enum):
    """Kinds of type variables."""

    TYPE = "Type"
    SHAPE = "Shape"
    BASE_TYPE = "BaseType"
    CONSTRAINT = "Constraint"
    ADT_HANDLE = "AdtHandle"
    TYPE_DATA = "TypeData"


class Any:
    """A dimension whose size is known only at run time. One value, `ANY`; prints as `?`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "?"


ANY: Final = Any()


@dataclass(frozen=True, slots=True)
class Type:
    """Base of every type. Types compare by structure; type variables and incomplete types by identity."""


@dataclass(frozen=True, slots=True, eq=False)
class DimVar:
    """A symbolic dimension; equal only to itself."""

    name: str


Dim = int | Any | DimVar


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A tensor: its shape (rank 0 is a scalar) and its element type (`float32`, `int8`, `bool`, ...)."""

    shape: tuple[Dim, ...]
    dtype: str = "float32"

    def __init__(self, shape: Sequence[Dim], dtype: str = "float32") -> None:
        object.__setattr__(self, "shape", tuple(d if isinstance(d, (Any, DimVar)) else int(d) for d in shape))
        object.__setattr__(self, "dtype", str(np.dtype(dtype)) if dtype not in ("bool", "bfloat16") else dtype)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape, all of it numbers. Raises ValueError for a symbolic or unknown dimension."""
        dims = tuple(d for d in self.shape if isinstance(d, int))
        if len(dims) != len(self.shape):
            raise ValueError(f"shape must be static, not {self.shape}")
        return dims


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    fields: tuple[Type, ...]

    def __init__(self, fields: Sequence[Type]) -> None:
        object.__setattr__(self, "fields", tuple(fields))


@dataclass(frozen=True, slots=True, eq=False)
class TypeVar(Type):
    """A type parameter of a function or data type."""

    name: str
    kind: Kind = Kind.TYPE


@dataclass(frozen=True, slots=True)
class FuncType(Type):
    arg_types: tuple[Type, ...]
    ret_type: Type
    type_params: tuple[TypeVar, ...] = ()


@dataclass(frozen=True, slots=True)
class RefType(Type):
    value: Type


@dataclass(frozen=True, slots=True)
class GlobalTypeVar(Type):
    """The name of a data type of the module."""

    name: str


@dataclass(frozen=True, slots=True)
class TypeCall(Type):
    """A data type applied to arguments: `List[int32]`."""

    func: Type
    args: tuple[Type, ...]


_serial = count()


@dataclass(frozen=True, slots=True, eq=False)
class IncompleteType(Type):
    """A hole that inference fills."""

    kind: Kind = Kind.TYPE
    serial: int = field(default_factory=lambda: next(_serial))


UNIT: Final = TupleType(())


def scalar_type(dtype: str) -> TensorType:
    """The type of a rank-0 tensor."""
    return TensorType((), dtype)
