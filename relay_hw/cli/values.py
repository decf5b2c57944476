"""Reads and prints interpreter values on the command line. In: arguments as text, values. Out: values, text, JSON."""

from __future__ import annotations

import ast
import math
from typing import Any

import numpy as np

from relay_hw.errors import InputError
from relay_hw.interp.evaluate import Interpreter
from relay_hw.interp.values import ConstructorValue, RefValue, Value, to_value
from relay_hw.ir.expr import Let, Var
from relay_hw.ir.types import TensorType, TupleType, Type, TypeVar, type_leaves
from relay_hw.support.quote import line

# Errors of ast.literal_eval for text that is no Python literal.
_NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


def read_argument(text: str, ty: Type, what: str, interpreter: Interpreter) -> Value:
    """Read an argument of type `ty`: numbers and nested lists for tensors, else a Relay expression.

    Raises InputError if it does not fit the type, ParseError and EvalError for a wrong expression.
    """
    if isinstance(ty, (TensorType, TupleType)):
        try:
            literal = ast.literal_eval(text.strip())
        except _NO_LITERAL:
            pass
        else:
            return _literal_value(literal, ty, what)
    from relay_hw.text import parse_expr

    expr = parse_expr(text, what, init_module=interpreter.mod)
    if not any(isinstance(leaf, TypeVar) for leaf in type_leaves(ty)):
        # The parameter's type completes that of an expression such as `Nil`.
        var = Var(what.split()[-1], ty, span=expr.span)
        expr = Let(var, expr, var, span=expr.span)
    return to_value(interpreter.evaluate(expr), ty, what)


def _literal_value(given: Any, ty: Type, what: str) -> Value:
    if isinstance(ty, TupleType) and isinstance(given, (tuple, list)) and len(given) == len(ty.fields):
        pairs = enumerate(zip(given, ty.fields, strict=True))
        return tuple(_literal_value(part, part_type, f"{what}.{index}") for index, (part, part_type) in pairs)
    value = to_value(given, ty, what)
    if isinstance(ty, TensorType) and value.dtype.kind in "biu":
        plain = np.asarray(given)
        # Numbers that do not fit the integer type would silently wrap.
        is_kept = plain.size == 0 or (plain.dtype.kind == "b") == (value.dtype.kind == "b")
        if not is_kept or not np.array_equal(plain, value):
            raise InputError(f"{what} must hold values of {ty.dtype}, not {str(given)[:60]}")
    return value


def value_text(value: Value) -> str:
    """`value` as Relay text; large tensors are shortened."""
    pieces: list[str] = []
    seen: set[int] = set()
    stack: list[Any] = [_Value(value)]
    while stack:
        top = stack.pop()
        if isinstance(top, str):
            pieces.append(top)
        else:
            stack.extend(reversed(_spelled(top.content, seen)))
    return "".join(pieces)


class _Value:
    """A value that is not printed yet."""

    __slots__ = ("content",)

    def __init__(self, content: Value) -> None:
        self.content = content


def _spelled(value: Value, seen: set[int]) -> list[str | _Value]:
    """The text of `value`, with parts that are still to be printed."""
    match value:
        case np.ndarray():
            return [_tensor_text(value)]
        case tuple():
            return ["(", *_listed(value), ",)" if len(value) == 1 else ")"]
        case ConstructorValue(fields=()):
            return [line(value.name)]
        case ConstructorValue(fields=fields):
            return [f"{line(value.name)}(", *_listed(fields), ")"]
        case RefValue() if id(value) in seen:
            return ["ref(...)"]
        case RefValue(value=content):
            seen.add(id(value))
            return ["ref(", _Value(content), ")"]
        case _:
            return ["<function>"]


def _listed(values: tuple[Value, ...]) -> list[str | _Value]:
    found: list[str | _Value] = []
    for value in values:
        found += [", ", _Value(value)] if found else [_Value(value)]
    return found


def _tensor_text(value: np.ndarray) -> str:
    if value.ndim == 0:
        return str(value[()])
    return np.array2string(value, separator=", ", threshold=1000, max_line_width=120)


def plain_value(value: Value) -> Any:
    """Tensors and tuples of them as nested lists for JSON, None for all other values."""
    if isinstance(value, np.ndarray):
        return _finite(value.tolist())
    if isinstance(value, tuple):
        parts = [plain_value(part) for part in value]
        return None if any(part is None for part in parts) else parts
    return None


def _finite(value: Any) -> Any:
    """Replace infinities and NaN, which JSON lacks, by strings."""
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
