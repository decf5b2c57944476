"""Gradients of operators whose sizes are values. In: a call, its result's adjoint. Out: the arguments' adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import in_type, ops, zeros


def reshape(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The same elements in the data's shape; what says the shape gets nothing."""
    x, sizes = call.args
    return ops().reshape_like(adjoint, x), zeros(sizes)


def broadcast_to(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The repetitions add up."""
    x, sizes = call.args
    return ops().collapse_sum_like(adjoint, x), zeros(sizes)


def full(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The value gets the sum."""
    value, sizes = call.args
    return in_type(ops().sum(adjoint), value, call), zeros(sizes)
