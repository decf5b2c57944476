"""Moves numbers that operands of a product are multiplied by behind it, where a softmax takes them.

In: the body of a float graph. Out: what replaces its products. PyTorch's exporter multiplies queries and keys by a root
each, and either is then a layer of its own with a rounding of its own; a factor of scores is part of a softmax's table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relay_hw.ir.expr import Call, Expr
from relay_hw.ir.visit import post_order, readers_of
from relay_hw.quantize.rows import times_number
from relay_hw.quantize.rules import MOVES
from relay_hw.transform.graph import constant, dtype_of, is_op, make, remake

_ON_THE_WAY = ("add", "divide", "multiply", "where")
_SOFTMAX = ("nn.softmax", "nn.fast_softmax")
_Readers = Mapping[Expr, Sequence[Expr]]


def scaled_products(body: Expr) -> dict[Expr, Expr]:
    """For each product of scaled tensors, or what moves its elements, the scaled product of the tensors."""
    readers = {body: [body], **readers_of(body)}
    found: dict[Expr, Expr] = {}
    for node in post_order(body):
        if isinstance(node, Call) and is_op(node, "nn.batch_matmul") and dtype_of(node) == "float32":
            plain, factor = zip(*(_unscaled(arg, readers) for arg in node.args), strict=True)
            moved = _moved(node, readers)
            if factor != (1.0, 1.0) and _reaches_softmax(moved[-1], readers):
                found[moved[-1]] = _scaled(moved, remake(node, plain), factor[0] * factor[1])
    return found


def _unscaled(expr: Expr, readers: _Readers) -> tuple[Expr, float]:
    """A tensor without the positive number that it is multiplied by, in front of moves or behind, and that number."""
    if not isinstance(expr, Call) or len(readers[expr]) != 1:
        return expr, 1.0
    factor, data = times_number(expr)
    if data is not None and factor > 0:
        inner, more = _unscaled(data, readers)
        return inner, factor * more
    if is_op(expr, *MOVES):
        inner, factor = _unscaled(expr.args[0], readers)
        return (expr if factor == 1 else remake(expr, (inner, *expr.args[1:]))), factor
    return expr, 1.0


def _moved(product: Call, readers: _Readers) -> list[Call]:
    """The product and the moves that alone read one another."""
    path = [product]
    while isinstance(reader := _only(path[-1], readers), Call) and is_op(reader, *MOVES):
        path.append(reader)
    return path


def _scaled(moved: Sequence[Call], product: Expr, factor: float) -> Expr:
    for move in moved[1:]:
        product = remake(move, (product, *move.args[1:]))
    return make("multiply", (product, constant(np.float32(factor))), span=moved[0].span)


def _reaches_softmax(expr: Expr, readers: _Readers) -> bool:
    """Whether nothing but a softmax reads it, perhaps through a mask or another factor."""
    reader = _only(expr, readers)
    while reader is not None and is_op(reader, *_ON_THE_WAY):
        reader = _only(reader, readers)
    return reader is not None and is_op(reader, *_SOFTMAX)


def _only(expr: Expr, readers: _Readers) -> Expr | None:
    found = readers[expr]
    return found[0] if len(found) == 1 and found[0] is not expr else None
