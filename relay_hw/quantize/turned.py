"""Writes products with broadcast tensors as products of two tensors of one shape, as rotary embeddings have them.

In: the body of a float graph, its tensors in integers. Out: what replaces products. A rotary embedding multiplies by
cosines and sines of all heads; the half of the channels that is negated before has its sign moved to the sines.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Tuple
from relay_hw.ir.visit import post_order
from relay_hw.quantize.rules import GATED
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dtype_of,
    is_op,
    make,
    remake,
    scalar_value,
    shape_of,
    typed_tuple,
)

Array = NDArray[Any]


def turned_products(body: Expr, integers: Collection[Expr]) -> dict[Expr, Expr]:
    """For each product of a tensor in integers with a smaller one, or of a join of such with negative ones, another."""
    writer = _Writer(integers)
    found: dict[Expr, Expr] = {}
    for node in post_order(body):
        if isinstance(node, Call) and is_op(node, "multiply") and dtype_of(node) == "float32":
            sides = (node.args, node.args[::-1])
            new = next((made for side in sides if (made := writer.product(node, *side)) is not None), None)
            found |= {} if new is None else {node: new}
    return found


class _Writer:
    """Keeps what the smaller tensors became: all heads and layers share them."""

    def __init__(self, integers: Collection[Expr]) -> None:
        self._integers = integers
        self._made: dict[object, Expr] = {}

    def product(self, call: Call, data: Expr, other: Expr) -> Expr | None:
        """The product of `data` and `other` in another form, None if it has none."""
        if shape_of(call) != shape_of(data):
            return None
        new = self._without_sign(data, other) or self._spread(data, other)
        return None if new is None else make("multiply", new, span=call.span)

    def _without_sign(self, data: Expr, other: Expr) -> tuple[Expr, Expr] | None:
        """A join of parts of which none is negated, and what has their signs."""
        shape, given = shape_of(data), shape_of(other)
        if not isinstance(data, Call) or not is_op(data, "concatenate") or shape is None or given is None:
            return None
        joined, axis = data.args[0], data.attrs.axis % len(shape)
        if not isinstance(joined, Tuple) or len(given) != len(shape) or given[axis] != shape[axis]:
            return None
        signs, parts = zip(*map(_sign, joined.fields), strict=True)
        if min(signs) > 0 or not all(part in self._integers for part in parts):
            return None
        along = np.repeat(np.asarray(signs, np.float32), [_length(part, axis) for part in parts])
        sign = along.reshape([-1 if at == axis else 1 for at in range(len(shape))])
        return remake(data, (typed_tuple(parts),)), self._times(other, sign)

    def _times(self, other: Expr, sign: Array) -> Expr:
        key, value = (other, sign.tobytes()), constant_value(other)
        if key not in self._made:
            if value is None:
                self._made[key] = make("multiply", (other, constant(sign)), span=other.span)
            else:
                self._made[key] = constant(value * sign, other.span)
        return self._made[key]

    def _spread(self, data: Expr, other: Expr) -> tuple[Expr, Expr] | None:
        """A tensor, and all of one that is smaller along some axes."""
        shape, given = shape_of(data), shape_of(other)
        if data not in self._integers or shape is None or not given or len(shape) < GATED or given == shape:
            return None
        if not _is_for_rows(given, shape, other) or scalar_value(other) is not None:
            return None
        key, value = (other, shape), constant_value(other)
        if key not in self._made:
            if value is None:
                self._made[key] = make("broadcast_to", (other,), shape=shape, span=other.span)
            else:
                self._made[key] = constant(np.broadcast_to(value, shape).copy(), other.span)
        return data, self._made[key]


def _sign(part: Expr) -> tuple[float, Expr]:
    """-1 and what is negated, or 1 and the tensor."""
    return (-1.0, part.args[0]) if isinstance(part, Call) and is_op(part, "negative") else (1.0, part)


def _length(part: Expr, axis: int) -> int:
    shape = shape_of(part)
    assert shape is not None
    return shape[axis]


def _is_for_rows(given: tuple[int, ...], shape: tuple[int, ...], other: Expr) -> bool:
    """Whether a tensor has a number for each element of a row, as one that norms multiply by has not; layers stand for
    constants that differ along no other axis."""
    return given[-1] == shape[-1] and (constant_value(other) is None or sum(size > 1 for size in given) > 1)
