"""Gradients of operators that keep or turn round elements. In: a call, its result's adjoint. Out: the adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import ops, zeros
from relay_hw.op.gradients.shape import nothing as nothing


def trilu(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """What was kept gets its adjoint."""
    x, k = call.args
    assert x is not None
    return ops().trilu(adjoint, k, call.attrs.upper), zeros(k)


def reverse_sequence(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Turning round undoes itself."""
    lengths = call.args[1]
    return (
        ops().reverse_sequence(adjoint, lengths, call.attrs.seq_axis, call.attrs.batch_axis),
        zeros(lengths),
    )
