"""What stands for a Relay value while it is lowered: a local, or something that has not been written down yet.

A chain of elementwise operators stays an expression until something needs the tensor; a local function that is only
called and a tuple that is only taken apart never become objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from relay_hw.backend.native.nodes import C_TYPES, Element, Expression, Local, Number, Read
from relay_hw.backend.nodes import FlatConstant, FlatFunction, FlatGet, FlatNode, FlatRefWrite, FlatTuple
from relay_hw.ir.expr import Op
from relay_hw.ir.types import TensorType, TupleType, Type


@dataclass(frozen=True, slots=True)
class Lazy:
    """A tensor of `shape` whose elements are `value`; `size` counts the operators in it."""

    value: Expression
    shape: tuple[int, ...]
    size: int = 0

    @property
    def is_view(self) -> bool:
        """Whether computing it twice costs nothing."""
        return isinstance(self.value, (Element, Number, Read))


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A function of the program, and the values of its first parameters."""

    function: int
    held: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fields:
    """A tuple."""

    values: tuple[Value, ...]


Value = Local | Lazy | Known | Fields

# Elements of a tensor whose moves are followed one by one.
_MOST_FOLLOWED = 1 << 20


def native_type(ty: Type) -> TensorType | None:
    """The type, if it is a tensor of known shape and of an element type that C has."""
    if isinstance(ty, TensorType) and ty.dtype in C_TYPES and all(isinstance(dim, int) for dim in ty.shape):
        return ty
    return None


def dtype_of(ty: Type) -> str | None:
    """The element type of the local that holds a value of a type: None for an object."""
    tensor = native_type(ty)
    return tensor.dtype if tensor is not None and not tensor.shape else None


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides of a tensor without gaps, in elements."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def whole(local: Local, ty: TensorType) -> Lazy:
    """The tensor in an object."""
    shape = ty.static_shape
    return Lazy(Element(local, ty.dtype, prod(shape), 0, row_major(shape)), shape)


def spread(value: Expression, shape: tuple[int, ...], to: tuple[int, ...]) -> Expression:
    """A view of `shape`, broadcast to `to`."""
    if not isinstance(value, Element):
        return value
    strides = [0 if size == 1 else stride for size, stride in zip(shape, value.strides, strict=True)]
    return with_strides(value, value.offset, (*[0] * (len(to) - len(shape)), *strides))


def with_strides(value: Element, offset: int, strides: tuple[int, ...]) -> Element:
    """Another view of the same tensor."""
    return Element(value.local, value.dtype, value.count, offset, strides, value.shift)


def moved(source: Lazy, op: Op, attrs: object, results: list[TensorType], ty: Type) -> list[Lazy] | None:
    """The views that an operator which moves elements gives of a view; None where strides cannot say them.

    Found by moving the places of the elements instead of these. `ty`: the type of the call.
    """
    if not isinstance(source.value, Element):
        return [Lazy(source.value, one.static_shape) for one in results]
    if prod(source.shape) > _MOST_FOLLOWED or any(prod(one.static_shape) > _MOST_FOLLOWED for one in results):
        return None
    element = source.value
    places = np.full(source.shape, element.offset, np.int64)
    for axis, stride in enumerate(element.strides):
        places += (np.arange(source.shape[axis]) * stride).reshape([-1, *[1] * (len(source.shape) - axis - 1)])
    given = op.reference(attrs, (places,), TensorType(ty.shape, "int64") if isinstance(ty, TensorType) else ty)
    parts = list(given) if isinstance(given, (tuple, list)) else [given]
    found = [_affine(element, np.asarray(part)) for part in parts]
    if any(one is None for one in found):
        return None
    return [one for one in found if one is not None]


def _affine(element: Element, places: np.ndarray) -> Lazy | None:
    shape = tuple(places.shape)
    if places.size == 0:
        return Lazy(with_strides(element, 0, (0,) * len(shape)), shape)
    first = places.reshape(-1)[0]
    strides = tuple(
        int(places[tuple(int(k == axis) for k in range(len(shape)))] - first) if size > 1 else 0
        for axis, size in enumerate(shape)
    )
    again = np.full(shape, first)
    for axis, stride in enumerate(strides):
        again = again + (np.arange(shape[axis]) * stride).reshape([-1, *[1] * (len(shape) - axis - 1)])
    return Lazy(with_strides(element, int(first), strides), shape) if np.array_equal(again, places) else None


# Numbers of element types in C; those behind them are only handed on.
_NUMBERS = tuple(C_TYPES)


def tag_of(dtype: str) -> int:
    """An element type in C: its number, and its bytes from bit 8 on. For those of `C_TYPES`."""
    return _NUMBERS.index(dtype) | np.dtype(dtype).itemsize << 8


def type_of(types: Sequence[Type], node: FlatNode) -> Type:
    """The type of a node, from those of the nodes before it."""
    match node:
        case FlatConstant(data=data):
            return TensorType(data.shape, str(data.dtype))
        case FlatTuple(fields=fields):
            return TupleType([types[i] for i in fields])
        case FlatGet(source=source, index=index):
            held = types[source]
            assert isinstance(held, TupleType)
            return held.fields[index]
        case FlatRefWrite():
            return TupleType([])
        case _:
            return node.type


def result_type(flat: FlatFunction) -> Type:
    """The type of what a function returns."""
    types: list[Type] = []
    for node in flat.nodes[: flat.result + 1]:
        types.append(type_of(types, node))
    return types[flat.result]
