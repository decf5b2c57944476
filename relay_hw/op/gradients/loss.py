"""Gradients of the losses. In: a call, its result's adjoint. Out: the arguments' adjoints."""

from __future__ import annotations

from collections.abc import Sequence

from relay_hw.ir.expr import Call, Expr
from relay_hw.op.gradients.common import number, ops, sizes


def _scaled(call: Call, adjoint: Expr) -> Expr:
    x = call.args[0]
    return adjoint * number(-1 / max(sizes(call, x)[0], 1), x)


def cross_entropy(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """-target / prediction over the batch, and -log(prediction)."""
    x, targets = call.args
    g = _scaled(call, adjoint)
    return g * targets / x, g * ops().log(x)


def cross_entropy_with_logits(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each side gets the other one, over the batch."""
    x, targets = call.args
    g = _scaled(call, adjoint)
    return g * targets, g * x
