"""Straight-through derivatives of simulated quantization (Bengio 2013): rounding counts as the identity."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import choose, ops, zeros


def quantize(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint where the data lies within the limits; scale and limits get none."""
    x, scale, low, high = call.args
    if call.attrs.kind == 0:
        return adjoint, zeros(scale), zeros(low), zeros(high)
    op = ops()
    is_inside = op.logical_and(op.greater_equal(x, low * scale), op.less_equal(x, high * scale))
    return choose(is_inside, adjoint, like=x), zeros(scale), zeros(low), zeros(high)


def same(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint as it is."""
    return (adjoint,)
