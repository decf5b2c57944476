"""Writes lengths of softmaxes that are computed as the bytes that the accelerator reads.

In: an integer graph. Out: one of the same result. A length is a number of columns, int32; a program loads it, from a
tensor of int8 like all others, into an entry of coefficients.
"""

from __future__ import annotations

import numpy as np

from relay_hw.accel.isa.config import EXPONENTIALS, AccelConfig
from relay_hw.ir.expr import Call, Constant, Expr, Function
from relay_hw.ir.visit import post_order
from relay_hw.op.rows import LENGTH_BYTES
from relay_hw.transform.graph import constant, dtype_of, is_op, make, rebuilt, remake, shape_of, typed_tuple, with_body

_MOST = (1 << 8 * LENGTH_BYTES) - 1


def length_bytes(function: Function, config: AccelConfig) -> Function:
    """`function`, whose softmaxes with one computed length take its bytes, where there is room for these."""
    if config.cof_depth <= EXPONENTIALS:
        return function
    plain: dict[Expr, Expr] = {}
    made: dict[Expr, Expr] = {}
    for node in post_order(function.body):
        plain[node] = rebuilt(node, plain)
        if isinstance(node, Call) and is_op(node, "fixed.softmax") and _is_computed(node.args[2]):
            length = plain[node.args[2]]
            made.setdefault(length, _bytes(length, config.cof_bytes))
            plain[node] = remake(node, (plain[node.args[0]], plain[node.args[1]], made[length]))
    return with_body(function, plain[function.body]) if made else function


def _is_computed(lengths: Expr) -> bool:
    return not isinstance(lengths, Constant) and dtype_of(lengths) == "int32" and shape_of(lengths) == (1,)


def _bytes(length: Expr, count: int) -> Expr:
    """int8 [1, count]: the bytes of a length, then zeros. More columns than two bytes say are as many as these say."""
    number = make("clip", (length,), a_min=0.0, a_max=float(_MOST), span=length.span)
    parts = [_signed(_number("right_shift", number, 8 * at)) for at in range(LENGTH_BYTES)]
    parts.append(constant(np.zeros((1, count - LENGTH_BYTES), np.int8), length.span))
    return make("concatenate", (typed_tuple(parts),), axis=1, span=length.span)


def _signed(number: Expr) -> Expr:
    """The low byte of int32 numbers as int8."""
    byte = _number("bitwise_and", _number("add", number, 128), 255)
    cast = make("cast", (_number("subtract", byte, 128),), dtype="int8", span=number.span)
    return make("reshape", (cast,), newshape=(1, 1), span=number.span)


def _number(name: str, data: Expr, value: int) -> Expr:
    return make(name, (data, constant(np.full(1, value, np.int32), data.span)), span=data.span)
