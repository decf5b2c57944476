"""Values of Python names during translation: Relay values with their types, or Python objects.

In: expressions. Out: `Value`s. A block collects the lets of one sequence of statements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relay_hw.ir.expr import Constant, Expr, Let, Var
from relay_hw.ir.types import FuncType, TensorType, TupleType, Type


@dataclass(frozen=True, slots=True)
class Value:
    """A Relay expression, an atom, of known type. `model` is set for the parameters of a model.

    `is_weak` marks a loop variable that began as a Python number: it becomes what the loop makes of it.
    """

    expr: Expr
    type: Type
    model: Any = None
    is_weak: bool = False


@dataclass(frozen=True, slots=True)
class Static:
    """A Python object that is known while the function is translated: a number, a layer, a list of sizes."""

    value: Any


@dataclass(frozen=True, slots=True)
class EmptyList:
    """A list that has no elements yet; `name` is the loop variable that holds it."""

    name: str | None = None


Symbol = Value | Static | EmptyList
Env = dict[str, Symbol]


@dataclass(slots=True)
class LetBlock:
    """The lets of a sequence."""

    bound: list[tuple[Var, Expr]] = field(default_factory=list)

    def emit(self, expr: Expr, ty: Type, name: str) -> Var:
        """A variable of type `ty` for `expr`."""
        var = Var(name, ty, checked_type=ty)
        self.bound.append((var, expr))
        return var

    def close(self, body: Expr) -> Expr:
        """`body` under the lets."""
        for var, expr in reversed(self.bound):
            body = expr if body is var else Let(var, expr, body, span=expr.span)
        return body


def constant(number: Any, dtype: str | None = None) -> Value:
    """A Python number as a Relay constant."""
    if dtype is None:
        dtype = "bool" if isinstance(number, bool) else "int32" if isinstance(number, int) else "float32"
    data = np.asarray(number, dtype)
    ty = TensorType(data.shape, str(data.dtype))
    return Value(Constant(data, checked_type=ty), ty)


def is_number(ty: Type) -> bool:
    """Whether a type is that of a number, a tensor of rank 0."""
    return isinstance(ty, TensorType) and ty.rank == 0


def fields_of(ty: Type | None) -> tuple[Type, ...]:
    """The types of a tuple's fields."""
    return ty.fields if isinstance(ty, TupleType) else ()


def result_of(ty: Type) -> Type | None:
    """The result type of a function type."""
    return ty.ret_type if isinstance(ty, FuncType) else None
