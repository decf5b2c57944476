"""Relay types as Python annotations: `Tensor[Float, (1, 28, 28)]`, `Float`, `tuple[...]`, `list[...]`, `Model`.

In: annotations of a decorated function, already evaluated by Python. Out: Relay types.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import Any

from relay_hw.ir.types import ANY, FuncType, GlobalTypeVar, TensorType, TupleType, Type, TypeCall

LIST = GlobalTypeVar("List")


@dataclass(frozen=True, slots=True)
class BaseType:
    """An element type; as an annotation by itself, a number of that type."""

    dtype: str

    def __repr__(self) -> str:
        return self.dtype


Float = BaseType("float32")
Float64 = BaseType("float64")
Int = BaseType("int32")
Bool = BaseType("bool")


@dataclass(frozen=True, slots=True)
class TensorAnnotation:
    """`Tensor[element type, shape]`."""

    type: TensorType


class Tensor:
    """`Tensor[Float, (1, 28, 28)]`; a single size needs no parentheses, None is a dynamic size."""

    def __class_getitem__(cls, item: Any) -> TensorAnnotation:
        base, shape = item if isinstance(item, tuple) and len(item) == 2 else (item, ())
        if not isinstance(base, BaseType):
            raise TypeError(f"element type of Tensor must be Float, Float64, Int or Bool, not {base!r}")
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        if not all(size is None or (isinstance(size, int) and size >= 0) for size in sizes):
            raise TypeError(f"shape of Tensor must be of sizes, not {shape!r}")
        return TensorAnnotation(TensorType([ANY if size is None else size for size in sizes], base.dtype))


class Model:
    """As an annotation: a model, made by `relay.create_model`."""


def list_of(item: Type) -> TypeCall:
    """The type of lists of `item`."""
    return TypeCall(LIST, (item,))


def type_of_annotation(annotation: Any) -> Type | None:
    """The Relay type of an annotation; None if it has none."""
    match annotation:
        case TensorAnnotation(type=ty):
            return ty
        case BaseType(dtype=dtype):
            return TensorType((), dtype)
        case Type():
            return annotation
        case GenericAlias() if annotation.__origin__ in (tuple, list):
            parts = [type_of_annotation(part) for part in annotation.__args__ if part != ()]
            known = [part for part in parts if part is not None]
            if len(known) != len(parts):
                return None
            return list_of(known[0]) if annotation.__origin__ is list else TupleType(known)
        case None:
            return TupleType(())
        case _ if annotation in _PLAIN:
            return TensorType((), _PLAIN[annotation])
        case _:
            return _function_type(annotation)


_PLAIN = {float: "float32", int: "int32", bool: "bool"}


def _function_type(annotation: Any) -> Type | None:
    """`Callable[[A, B], C]`."""
    if getattr(annotation, "__origin__", None) is not Callable:
        return None
    *args, ret = annotation.__args__
    types = [type_of_annotation(arg) for arg in args]
    result = type_of_annotation(ret)
    known = [ty for ty in types if ty is not None]
    return FuncType(tuple(known), result) if result is not None and len(known) == len(types) else None
