"""Relay types: tensors, functions, tuples, references, algebraic data types, type variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from itertools import count
from typing import Final

import numpy as np

from relay_hw.ir.dims import ANY as ANY
from relay_hw.ir.dims import Any as Any
from relay_hw.ir.dims import Dim as Dim
from relay_hw.ir.dims import DimExpr, ShapeVar, substitute_dim
from relay_hw.ir.dims import DimVar as DimVar


class Kind(Enum):
    """Kinds of type variables."""

    TYPE = "Type"
    DIM = "Dim"
    SHAPE = "Shape"
    BASE_TYPE = "BaseType"
    CONSTRAINT = "Constraint"
    ADT_HANDLE = "AdtHandle"
    TYPE_DATA = "TypeData"


@dataclass(frozen=True, slots=True, eq=False)
class Type:
    """Base of every type. Types compare by structure; type variables and incomplete types by identity."""

    def __str__(self) -> str:
        from relay_hw.ir.type_text import type_text

        return type_text(self)


# Element types that numpy knows only with ml_dtypes.
NARROW_DTYPES: Final = frozenset(
    ("bfloat16", "float4_e2m1fn", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
    + ("float8_e8m0fnu", "int2", "int4", "uint2", "uint4")
)
# Names that are stored unchanged; numpy converts all others.
_DTYPES: Final = NARROW_DTYPES | frozenset(
    ("bool", "float16", "float32", "float64")
    + tuple(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))
)
_LANES: Final = re.compile(r"(.+?)x([1-9]\d{0,3})", re.A)


def is_dtype(name: str) -> bool:
    """Whether `name` is an element type: `int8`, `float32`, ..., also with lanes as in `int8x4`."""
    found = _LANES.fullmatch(name)
    return (found[1] if found else name) in _DTYPES


class DtypeVar(str):
    """An element type given by a type parameter of kind BaseType; equal only to the same parameter's."""

    __slots__ = ("var",)
    var: TypeVar

    def __new__(cls, var: TypeVar) -> DtypeVar:
        # No name that numpy knows.
        self = super().__new__(cls, f"<{var.name}>")
        self.var = var
        return self

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, DtypeVar) and other.var is self.var)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.var)

    def __str__(self) -> str:
        return self.var.name

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


@dataclass(frozen=True, slots=True, eq=False)
class TypeVar(Type):
    """A type parameter of a function or data type.

    `inside` is what stands for it inside of tensor types: a dimension, all dimensions, or an element type, by kind.
    """

    name: str
    kind: Kind = Kind.TYPE
    inside: DimVar | DtypeVar | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        match self.kind:
            case Kind.DIM:
                inside: DimVar | DtypeVar | None = DimVar(self.name)
            case Kind.SHAPE:
                inside = ShapeVar(self.name)
            case Kind.BASE_TYPE:
                inside = DtypeVar(self)
            case Kind.TYPE | Kind.CONSTRAINT | Kind.ADT_HANDLE | Kind.TYPE_DATA:
                inside = None
        object.__setattr__(self, "inside", inside)

    @property
    def dim(self) -> DimVar:
        """The dimension that this parameter of kind Dim is."""
        assert isinstance(self.inside, DimVar)
        return self.inside

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The shape that this parameter of kind Shape is."""
        assert isinstance(self.inside, ShapeVar)
        return (self.inside,)

    @property
    def dtype(self) -> str:
        """The element type that this parameter of kind BaseType is."""
        assert isinstance(self.inside, DtypeVar)
        return self.inside


@dataclass(frozen=True, slots=True)
class TensorType(Type):
    """A tensor: its shape (rank 0 is a scalar) and its element type (`float32`, `int8`, `bool`, ...).

    `layout` names what the dimensions are (`NCHW`); empty if unknown.
    """

    shape: tuple[Dim, ...]
    dtype: str = "float32"
    layout: str = ""

    def __init__(self, shape: Sequence[Dim], dtype: str = "float32", layout: str = "") -> None:
        object.__setattr__(self, "shape", tuple(d if isinstance(d, _SYMBOLIC) else int(d) for d in shape))
        object.__setattr__(self, "dtype", dtype if dtype in _DTYPES else _dtype(dtype))
        if dtype in NARROW_DTYPES:
            know_narrow_dtypes()
        object.__setattr__(self, "layout", layout)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def static_shape(self) -> tuple[int, ...]:
        """The shape as numbers. Raises ValueError for a symbolic or dynamic dimension."""
        dims = tuple(d for d in self.shape if isinstance(d, int))
        if len(dims) != len(self.shape):
            raise ValueError(f"shape must be static, not {self.shape}")
        return dims


_SYMBOLIC = (Any, DimVar, DimExpr)


def know_narrow_dtypes() -> None:
    """Register narrow types such as float8 with numpy. Without ml_dtypes, programs with them can only be typed."""
    with suppress(ImportError):
        import_module("ml_dtypes")


def _dtype(given: object) -> str:
    """The name of an element type, also given as numpy or Python type."""
    if isinstance(given, DtypeVar) or (isinstance(given, str) and is_dtype(given)):
        return given
    return str(np.dtype(given))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class DimType(Type):
    """A dimension as a type argument."""

    dim: Dim


@dataclass(frozen=True, slots=True)
class ShapeType(Type):
    """A shape as a type argument."""

    shape: tuple[Dim, ...]


class Comparison(Enum):
    """How a condition compares two dimensions."""

    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


@dataclass(frozen=True, slots=True)
class Condition:
    """A function's condition on its symbolic dimensions: `n == 2 * m`."""

    left: DimType
    comparison: Comparison
    right: DimType


@dataclass(frozen=True, slots=True)
class TupleType(Type):
    fields: tuple[Type, ...]

    def __init__(self, fields: Sequence[Type]) -> None:
        object.__setattr__(self, "fields", tuple(fields))


@dataclass(frozen=True, slots=True)
class FuncType(Type):
    arg_types: tuple[Type, ...]
    ret_type: Type
    type_params: tuple[TypeVar, ...] = ()
    where: tuple[Condition, ...] = ()


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
    """`ty` with `leaf` applied to each tensor type, type variable, type name and hole; unchanged parts are kept.

    Dimensions and shapes that stand alone are leaves too; `leaf` must give one of the same kind.
    """
    match ty:
        case TupleType(fields=fields):
            new = tuple(map_type(field_type, leaf) for field_type in fields)
            return ty if _same(new, fields) else TupleType(new)
        case FuncType(arg_types=args, ret_type=ret, type_params=params, where=where):
            new = tuple(map_type(arg, leaf) for arg in args)
            new_ret = map_type(ret, leaf)
            new_where = tuple(map_condition(condition, leaf) for condition in where)
            if new_ret is ret and _same(new, args) and all(a is b for a, b in zip(new_where, where, strict=True)):
                return ty
            return FuncType(new, new_ret, params, new_where)
        case RefType(value=value):
            new_value = map_type(value, leaf)
            return ty if new_value is value else RefType(new_value)
        case TypeCall(func=func, args=args):
            new = tuple(map_type(arg, leaf) for arg in args)
            return ty if _same(new, args) else TypeCall(func, new)
        case _:
            return leaf(ty)


def map_condition(condition: Condition, leaf: Callable[[Type], Type]) -> Condition:
    """`condition` with `leaf` applied to both sides."""
    left, right = leaf(condition.left), leaf(condition.right)
    if left is condition.left and right is condition.right:
        return condition
    assert isinstance(left, DimType) and isinstance(right, DimType)
    return Condition(left, condition.comparison, right)


def _same(new: Sequence[Type], old: Sequence[Type]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def map_dims(ty: Type, lookup: Callable[[DimVar], Dim]) -> Type:
    """A tensor type, dimension or shape with its symbolic dimensions replaced; other types stay."""
    match ty:
        case TensorType(shape=shape) if any(isinstance(dim, (DimVar, DimExpr)) for dim in shape):
            new = tuple(substitute_dim(dim, lookup) for dim in shape)
            return ty if new == shape else TensorType(new, ty.dtype, ty.layout)
        case DimType(dim=dim):
            found = substitute_dim(dim, lookup)
            return ty if found == dim else DimType(found)
        case ShapeType(shape=shape):
            new = tuple(substitute_dim(dim, lookup) for dim in shape)
            return ty if new == shape else ShapeType(new)
        case _:
            return ty


def bind_type_vars(ty: Type, mapping: Mapping[TypeVar, Type]) -> Type:
    """`ty` with type variables replaced: those of kind Type by types, others by DimType, ShapeType, a scalar's type."""
    if not mapping:
        return ty
    inside = {var.inside: value for var, value in mapping.items() if var.inside is not None}
    if not inside:
        return map_type(ty, lambda leaf: mapping.get(leaf, leaf) if isinstance(leaf, TypeVar) else leaf)

    def dim_of(var: DimVar) -> Dim:
        value = inside.get(var)
        return value.dim if isinstance(value, DimType) else var

    def leaf(part: Type) -> Type:
        match part:
            case TypeVar():
                return mapping.get(part, part)
            case TensorType(shape=shape, dtype=dtype, layout=layout):
                whole = inside.get(shape[0]) if len(shape) == 1 and isinstance(shape[0], ShapeVar) else None
                element = inside.get(dtype) if isinstance(dtype, DtypeVar) else None
                if whole is not None or element is not None:
                    new = whole.shape if isinstance(whole, ShapeType) else shape
                    part = TensorType(new, element.dtype if isinstance(element, TensorType) else dtype, layout)
                return map_dims(part, dim_of)
            case ShapeType(shape=(ShapeVar() as var,)):
                return inside.get(var, part)
            case _:
                return map_dims(part, dim_of)

    return map_type(ty, leaf)


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


def has_unknown_rank(ty: TensorType) -> bool:
    """Whether the shape is a type parameter as a whole."""
    return len(ty.shape) == 1 and isinstance(ty.shape[0], ShapeVar)
