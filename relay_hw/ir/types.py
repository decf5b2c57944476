"""Relay types: tensors, functions, tuples, references, algebraic data types, type variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """Base of every type. Types compare by structure; type variables and incomplete types by identity."""

    def __str__(self) -> str:
        return type_text(self)


@dataclass(frozen=True, slots=True, eq=False)
class DimVar:
    """A symbolic dimension; equal only to itself."""

    name: str

    def __str__(self) -> str:
        return self.name


Dim = int | Any | DimVar

# Spelled as they are kept; all else is asked of numpy.
_DTYPES: Final = frozenset(
    ("bool", "bfloat16", "float16", "float32", "float64")
    + tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
)


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A tensor: its shape (rank 0 is a scalar) and its element type (`float32`, `int8`, `bool`, ...)."""

    shape: tuple[Dim, ...]
    dtype: str = "float32"

    def __init__(self, shape: Sequence[Dim], dtype: str = "float32") -> None:
        object.__setattr__(self, "shape", tuple(d if isinstance(d, (Any, DimVar)) else int(d) for d in shape))
        object.__setattr__(self, "dtype", dtype if dtype in _DTYPES else str(np.dtype(dtype)))

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


def map_type(ty: Type, leaf: Callable[[Type], Type]) -> Type:
    """`ty` with `leaf` applied to each tensor type, type variable, type name and hole; unchanged parts are kept."""
    match ty:
        case TupleType(fields=fields):
            new = tuple(map_type(field_type, leaf) for field_type in fields)
            return ty if _same(new, fields) else TupleType(new)
        case FuncType(arg_types=args, ret_type=ret, type_params=params):
            new = tuple(map_type(arg, leaf) for arg in args)
            new_ret = map_type(ret, leaf)
            return ty if new_ret is ret and _same(new, args) else FuncType(new, new_ret, params)
        case RefType(value=value):
            new_value = map_type(value, leaf)
            return ty if new_value is value else RefType(new_value)
        case TypeCall(func=func, args=args):
            new = tuple(map_type(arg, leaf) for arg in args)
            return ty if _same(new, args) else TypeCall(func, new)
        case _:
            return leaf(ty)


def _same(new: Sequence[Type], old: Sequence[Type]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def bind_type_vars(ty: Type, mapping: Mapping[TypeVar, Type]) -> Type:
    """`ty` with type variables replaced."""
    if not mapping:
        return ty
    return map_type(ty, lambda leaf: mapping.get(leaf, leaf) if isinstance(leaf, TypeVar) else leaf)


def type_leaves(ty: Type) -> Iterator[Type]:
    """The tensor types, type variables, type names and holes in `ty`, left to right."""
    match ty:
        case TupleType(fields=parts):
            pass
        case FuncType(arg_types=args, ret_type=ret):
            parts = (*args, ret)
        case RefType(value=value):
            parts = (value,)
        case TypeCall(func=func, args=args):
            parts = (func, *args)
        case _:
            yield ty
            return
    for part in parts:
        yield from type_leaves(part)


def type_text(ty: Type, var_name: Callable[[TypeVar], str] = lambda var: var.name) -> str:
    """`ty` as Relay's text format writes it. `var_name` names the type variables."""

    def write(part: Type) -> str:
        return type_text(part, var_name)

    match ty:
        case TensorType(shape=(), dtype=dtype):
            return dtype
        case TensorType(shape=shape, dtype=dtype):
            return f"Tensor[({', '.join(map(str, shape))}), {dtype}]"
        case TupleType(fields=(only,)):
            return f"({write(only)},)"
        case TupleType(fields=fields):
            return f"({', '.join(map(write, fields))})"
        case FuncType(arg_types=args, ret_type=ret, type_params=params):
            header = f"fn [{', '.join(map(var_name, params))}]" if params else "fn "
            return f"{header}({', '.join(map(write, args))}) -> {write(ret)}"
        case RefType(value=value):
            return f"ref({write(value)})"
        case TypeVar():
            return var_name(ty)
        case GlobalTypeVar(name=name):
            return name
        case TypeCall(func=func, args=args):
            return f"{write(func)}[{', '.join(map(write, args))}]" if args else write(func)
        case _:
            return "_"
