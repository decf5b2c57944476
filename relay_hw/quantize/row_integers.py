"""Writes softmax and norms of rows in integers.

In: a function of rows, its operand in integers, scales. Out: a call of `fixed.softmax`, `fixed.layer_norm` or
`fixed.rms_norm`; None where its numbers are beyond what these hold.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.rows import EPSILON_BITS, FRACTION_BITS, MOST_COLUMNS, MOST_EPSILON, MOST_SHIFT, WHOLE, exponentials
from relay_hw.quantize.number import QParams, normalise
from relay_hw.quantize.rows import Norm, Softmax, columns_of
from relay_hw.transform.graph import constant, is_op, make, shape_of

_MULTIPLIER_BITS = 16
_MOST_DOWN = 15


def softmax_in_integers(
    x: Expr, one: Softmax, given: QParams, result: QParams, lengths: Expr | None = None
) -> Expr | None:
    """Softmax of int8 `x`; its factor is part of the table. `lengths`: int32, how many columns count."""
    units = 1 / Fraction(result.scale)
    if not 1 <= units < 1 << _MULTIPLIER_BITS + _MOST_DOWN - 1 or columns_of(x) > MOST_COLUMNS["fixed.softmax"]:
        return None
    multiplier, shift = normalise(units / (1 << _MOST_DOWN), _MULTIPLIER_BITS)
    table = constant(exponentials(given.scale * one.factor))
    columns = constant(np.full(1, WHOLE, np.int32)) if lengths is None else make("reshape", (lengths,), newshape=(-1,))
    numbers = {"multiplier": multiplier, "shift": shift - _MOST_DOWN, "zero_point": result.zero_point}
    matrices = _matrices(x)
    made = make("fixed.softmax", (matrices, table, columns), span=one.output.span, causal=one.causal, **numbers)
    return reshaped(_kept(made, result), shape_of(x) or ())


def _matrices(x: Expr) -> Expr:
    """One sample's matrices on the first axis, as products have them: what has several axes of them lost them there."""
    shape = shape_of(x)
    return x if shape is None or len(shape) != 4 or shape[0] != 1 else reshaped(x, shape[1:])


def reshaped(x: Expr, shape: tuple[int, ...]) -> Expr:
    """`x` in another shape, without reshapes in front that this one makes useless."""
    while isinstance(x, Call) and is_op(x, "reshape") and shape_of(x) != shape:
        x = x.args[0]
    return x if shape_of(x) == shape else make("reshape", (x,), newshape=shape, span=x.span)


def norm_in_integers(x: Expr, one: Norm, given: QParams, result: QParams) -> Expr | None:
    """The norm of int8 `x`."""
    columns, name = columns_of(x), "fixed.layer_norm" if one.centered else "fixed.rms_norm"
    epsilon = round(Fraction(one.epsilon) / Fraction(given.scale) ** 2 * columns**2 * (1 << EPSILON_BITS))
    gain, bias = one.gamma / result.scale / (1 << FRACTION_BITS), one.beta / result.scale
    shift = min(_room(gain, 15), _room(bias, 31), MOST_SHIFT)
    if columns > MOST_COLUMNS[name] or epsilon > MOST_EPSILON or shift < 0:
        return None
    args = (
        x,
        constant(np.rint(gain * 2.0**shift).astype(np.int16)),
        constant(np.rint(bias * 2.0**shift).astype(np.int32)),
    )
    numbers = {"shift": shift, "epsilon": epsilon, "zero_point": result.zero_point}
    numbers |= {} if one.centered else {"input_zero_point": given.zero_point}
    return _kept(make(name, args, span=one.output.span, **numbers), result)


def _room(values: np.ndarray, bits: int) -> int:
    """How far values can be shifted left to be of `bits` bits and a sign."""
    largest = float(np.abs(values).max(initial=0.0))
    return MOST_SHIFT if largest == 0 else math.floor(math.log2(((1 << bits) - 1) / largest))


def _kept(value: Expr, result: QParams) -> Expr:
    """Within the bounds of fewer bits than 8."""
    if (result.low, result.high) in ((-128, 127), (-127, 127)):
        return value
    return make("clip", (value,), a_min=result.low, a_max=result.high, span=value.span)
