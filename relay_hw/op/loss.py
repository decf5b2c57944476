"""Losses: nn.cross_entropy and nn.cross_entropy_with_logits, means over the first axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import Array, call, rule, same_dim, same_dtype, show_shape
from relay_hw.op.gradients.common import (
    known_type,
    number,
    ops,
    sizes,
)
from relay_hw.op.gradients.selection import size_of

__all__ = ["cross_entropy", "cross_entropy_with_logits"]


def _scaled(call: Call, adjoint: Expr) -> Expr:
    x = call.args[0]
    if known_type(x) is None:
        return adjoint * number(-1, x) / ops().cast_like(size_of(x, 0), x)
    return adjoint * number(-1 / max(sizes(call, x)[0], 1), x)


def _cross_entropy_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """-target / prediction over the batch, and -log(prediction)."""
    x, targets = call.args
    g = _scaled(call, adjoint)
    return g * targets / x, g * ops().log(x)


def _logits_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each side gets the other one, over the batch."""
    x, targets = call.args
    g = _scaled(call, adjoint)
    return g * targets, g * x


def _loss(name: str, is_logarithm: bool, doc: str) -> Op:
    @rule(name, 2)
    def relation(attrs: None, predictions: TensorType, targets: TensorType) -> Type:
        dtype = same_dtype(name, predictions, targets)
        both = predictions.shape, targets.shape
        if predictions.rank != 2 or targets.rank != 2 or not all(map(same_dim, *both)):
            shown = " and ".join(map(show_shape, both))
            raise TypeCheckError(f"the arguments of {name} must have one shape of 2 axes, not {shown}")
        return TensorType((), dtype)

    def reference(attrs: None, values: Sequence[Array], result: Type) -> Array:
        x, targets = np.asarray(values[0]), np.asarray(values[1])
        total = np.sum((x if is_logarithm else np.log(x)) * targets, dtype=x.dtype)
        return np.asarray(-total / x.dtype.type(x.shape[0])).astype(x.dtype)

    gradient = _logits_gradient if is_logarithm else _cross_entropy_gradient
    return Op(name, 2, relation, reference, gradient=gradient, doc=doc)


CROSS_ENTROPY = _loss("nn.cross_entropy", False, "-sum(targets * log(predictions)) / batch")

CROSS_ENTROPY_WITH_LOGITS = _loss(
    "nn.cross_entropy_with_logits", True, "-sum(targets * predictions) / batch; the predictions are logarithms"
)


def cross_entropy(predictions: Expr, targets: Expr) -> Call:
    """Mean over the batch of -sum(targets * log(predictions)); both are [batch, classes]."""
    return call(CROSS_ENTROPY, (predictions, targets))


def cross_entropy_with_logits(predictions: Expr, targets: Expr) -> Call:
    """Mean over the batch of -sum(targets * predictions), of log_softmax for example."""
    return call(CROSS_ENTROPY_WITH_LOGITS, (predictions, targets))


OPS = (CROSS_ENTROPY, CROSS_ENTROPY_WITH_LOGITS)
