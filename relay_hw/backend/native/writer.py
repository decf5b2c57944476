"""Writes the statements of one function: new locals, and values brought into the form that a place needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from relay_hw.backend.native.nodes import (
    Block,
    Box,
    Constant,
    Field,
    Fill,
    Kind,
    Local,
    Make,
    Number,
    Piece,
    Read,
    Scalar,
    Statement,
    Unbox,
)
from relay_hw.backend.native.values import C_TYPES, Fields, Known, Lazy, Value, dtype_of, native_type, row_major, whole
from relay_hw.ir.types import TensorType, Type


@dataclass(slots=True)
class Tables:
    """What all functions of a program share: constants by place, and which functions are values."""

    constants: list[np.ndarray] = field(default_factory=list[np.ndarray])
    places: dict[int, int] = field(default_factory=dict[int, int])

    def constant(self, data: np.ndarray) -> int:
        """The place of an array in the table."""
        if id(data) not in self.places:
            self.places[id(data)] = len(self.constants)
            self.constants.append(data)
        return self.places[id(data)]


class Writer:
    """The statements of a function as they grow."""

    def __init__(self, tables: Tables, labels: Sequence[str] = ()) -> None:
        """`labels`: what messages call the quantizations of the function, in order; none to quantize without checks."""
        self.tables = tables
        self._labels = iter(labels)
        self._numbers = count()
        self._lines: list[list[Statement]] = [[]]

    def fresh(self, dtype: str | None = None) -> Local:
        """A new local."""
        return Local(next(self._numbers), dtype)

    def emit(self, statement: Statement) -> None:
        """Add a statement."""
        self._lines[-1].append(statement)

    def label(self) -> str | None:
        """What messages call the next quantization."""
        return next(self._labels, None)

    def open(self) -> None:
        """Begin a block."""
        self._lines.append([])

    def close(self) -> Block:
        """End the block begun last."""
        return tuple(self._lines.pop())

    def constant(self, data: np.ndarray) -> Value:
        """A constant: a number where C has its type, else an entry of the table."""
        if data.ndim == 0 and str(data.dtype) in C_TYPES:
            return Lazy(Number(data.item(), str(data.dtype)), ())
        to = self.fresh()
        self.emit(Constant(to, self.tables.constant(data)))
        return to

    # Forms of values

    def object(self, value: Value) -> Local:
        """`value` as an object."""
        match value:
            case Local(dtype=None):
                return value
            case Local():
                to = self.fresh()
                self.emit(Box(to, value))
                return to
            case Lazy(shape=()):
                return self.object(self.number(value, value.value.dtype))
            case Lazy(value=expression, shape=shape):
                to = self.fresh()
                self.emit(Fill(to, shape, expression.dtype, (Piece(expression, shape, 0, row_major(shape)),)))
                return to
            case Known(function=function, held=held):
                return self.make(Kind.FUNCTION, function, held)
            case Fields(values=values):
                return self.make(Kind.TUPLE, 0, values)

    def make(self, kind: Kind, tag: int, values: Sequence[Value]) -> Local:
        """A new object with fields."""
        fields = tuple(self.object(value) for value in values)
        to = self.fresh()
        self.emit(Make(to, kind, tag, fields))
        return to

    def number(self, value: Value, dtype: str) -> Local:
        """`value`, a tensor of rank 0, as a number."""
        match value:
            case Local(dtype=None):
                to = self.fresh(dtype)
                self.emit(Unbox(to, value))
                return to
            case Local():
                return value
            case Lazy(value=Read(local=local)):
                return local
            case Lazy(value=expression):
                to = self.fresh(dtype)
                self.emit(Scalar(to, expression))
                return to
            case _:
                raise ValueError("a number must be a tensor")

    def form(self, value: Value, dtype: str | None) -> Local:
        """`value` as a number of `dtype`, or as an object where that is None."""
        return self.object(value) if dtype is None else self.number(value, dtype)

    def held(self, value: Value, ty: Type) -> Value:
        """`value` in a form that costs nothing to use again, wherever its uses are."""
        match value:
            case Lazy() if not value.is_view:
                return self.form(value, dtype_of(ty))
            case Fields(values=values):
                parts = getattr(ty, "fields", (ty,) * len(values))
                return Fields(tuple(self.held(part, one) for part, one in zip(values, parts, strict=True)))
            case _:
                return value

    def lazy(self, value: Value, ty: TensorType) -> Lazy:
        """A tensor of known type as an expression."""
        if isinstance(value, Lazy):
            return value
        if not ty.shape:
            return Lazy(Read(self.number(value, ty.dtype), ty.dtype), ())
        return whole(self.object(value), ty)

    def view(self, value: Value, ty: TensorType) -> Lazy:
        """A tensor of known type as an expression that costs nothing to use again."""
        found = self.lazy(value, ty)
        if found.is_view:
            return found
        return self.lazy(self.form(found, dtype_of(ty)), ty)

    def field(self, value: Value, index: int, ty: Type) -> Value:
        """A field of a tuple; `ty` is that of the field."""
        if isinstance(value, Fields):
            return value.values[index]
        to = self.fresh()
        self.emit(Field(to, self.object(value), index))
        return self.typed(to, ty)

    def typed(self, value: Local, ty: Type) -> Value:
        """An object of a type in its usual form."""
        tensor = native_type(ty)
        return value if tensor is None or tensor.shape else self.number(value, tensor.dtype)
