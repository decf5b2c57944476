"""Bytes that the values of a straight-line function take: the most at a time, each freed behind its last use.

In: a typed function whose calls are bound by lets. Out: numbers of bytes.
"""

from __future__ import annotations

from math import prod

import numpy as np

from relay_hw.errors import UnsupportedError
from relay_hw.ir.expr import Expr, Function, Let, Tuple, TupleGetItem, Var
from relay_hw.ir.types import TensorType, TupleType, Type
from relay_hw.ir.visit import post_order


def bytes_of(ty: Type) -> int:
    """The bytes of a value of tensors and tuples. Raises UnsupportedError for sizes known only at run time."""
    if isinstance(ty, TupleType):
        return sum(map(bytes_of, ty.fields))
    if not isinstance(ty, TensorType) or not all(isinstance(dim, int) for dim in ty.shape):
        raise UnsupportedError(f"a bound on memory must be of tensors of static shape, not {ty}")
    return prod(ty.static_shape) * np.dtype(ty.dtype).itemsize


def peak_bytes(function: Function) -> int:
    """The most bytes of bound values that are needed at one time; arguments and constants do not count.

    Tuples and their fields are names of values that are there. Raises UnsupportedError as `bytes_of` does.
    """
    bound, result = _bindings(function.body)
    holders: dict[Var, frozenset[Var]] = {}
    last: dict[Var, int] = {}
    for place, (var, value) in enumerate([*bound, (None, result)]):
        used = {one for node in post_order(value) if isinstance(node, Var) for one in holders.get(node, ())}
        if var is not None:
            is_name = isinstance(value, (Tuple, TupleGetItem, Var))
            holders[var] = frozenset(used) if is_name else frozenset({var})
            used = used | holders[var]
        last.update(dict.fromkeys(used, place))
    return _most(bound, holders, last)


def _bindings(body: Expr) -> tuple[list[tuple[Var, Expr]], Expr]:
    found: list[tuple[Var, Expr]] = []
    while isinstance(body, Let):
        found.append((body.var, body.value))
        body = body.body
    return found, body


def _most(bound: list[tuple[Var, Expr]], holders: dict[Var, frozenset[Var]], last: dict[Var, int]) -> int:
    ends: dict[int, int] = {}
    for var, place in last.items():
        ends[place] = ends.get(place, 0) + bytes_of(var.type)
    live = most = 0
    for place, (var, value) in enumerate(bound):
        live += bytes_of(value.type) if var in holders[var] else 0
        most = max(most, live)
        live -= ends.get(place, 0)
    return most
