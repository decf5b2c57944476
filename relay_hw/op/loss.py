"""Losses: nn.cross_entropy, nn.cross_entropy_with_logits, and nn.nll_loss of the numbers of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import Array, Attrs, call, rule, same_dim, same_dtype, show_shape
from relay_hw.op.gradients.common import (
    known_type,
    number,
    ops,
    sizes,
    zeros,
)
from relay_hw.op.gradients.selection import size_of

__all__ = ["cross_entropy", "cross_entropy_with_logits", "nll_loss"]


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


@dataclass(frozen=True, slots=True)
class NLLLossAttrs(Attrs):
    reduction: str = "mean"
    ignore_index: int = -100


@rule("nn.nll_loss", 3)
def _nll_type(attrs: NLLLossAttrs, predictions: TensorType, targets: TensorType, weights: TensorType) -> Type:
    same_dtype("nn.nll_loss", predictions, weights)
    if attrs.reduction not in ("mean", "sum", "none"):
        raise TypeCheckError(f"the reduction of nn.nll_loss must be mean, sum or none, not {attrs.reduction}")
    rest = (*predictions.shape[:1], *predictions.shape[2:])
    is_fit = predictions.rank >= 2 and targets.rank == len(rest) and all(map(same_dim, rest, targets.shape))
    if not is_fit or weights.rank != 1 or not same_dim(weights.shape[0], predictions.shape[1]):
        raise TypeCheckError(
            f"nn.nll_loss must get (N, C, ...), (N, ...) and (C,), "
            f"not {show_shape(predictions.shape)}, {show_shape(targets.shape)} and {show_shape(weights.shape)}"
        )
    if not targets.dtype.startswith(("int", "uint")):
        raise TypeCheckError(f"the targets of nn.nll_loss must be integers, not {targets.dtype}")
    return TensorType(targets.shape if attrs.reduction == "none" else (), predictions.dtype)


def _nll(attrs: NLLLossAttrs, values: Sequence[Array], result: Type) -> Array:
    predictions, targets, weights = (np.asarray(value) for value in values)
    is_used = targets != attrs.ignore_index
    classes = np.where(is_used, targets, 0).astype(np.int64)
    if classes.size and not 0 <= int(classes.min()) <= int(classes.max()) < len(weights):
        raise EvalError(
            f"the targets of nn.nll_loss must be in [0, {len(weights)}), not {targets.ravel().tolist()[:8]}"
        )
    scale = np.where(is_used, weights[classes], 0).astype(predictions.dtype)
    loss = -np.take_along_axis(predictions, classes[:, None], 1)[:, 0] * scale
    if attrs.reduction == "none":
        return loss
    total = np.sum(loss, dtype=loss.dtype)
    with np.errstate(all="ignore"):
        return np.asarray(total / np.sum(scale, dtype=scale.dtype) if attrs.reduction == "mean" else total)


def _nll_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """-weight to each prediction at its class, -prediction to the weight; of a mean, over the sum of the weights."""
    op, (predictions, targets, weights), attrs = ops(), call.args, call.attrs
    ty = predictions.tensor_type
    dtype, rank = ty.dtype, ty.rank
    is_used = op.not_equal(targets, op.const(attrs.ignore_index, targets.tensor_type.dtype))
    values = number(1, predictions), number(0, predictions)
    if isinstance(ty.shape[1], int):
        hits = op.one_hot(targets, *values, ty.shape[1], 1, dtype)
    else:
        hits = op.dynamic.one_hot(targets, *values, size_of(predictions, 1), 1, dtype)
    hits = hits * op.cast(op.expand_dims(is_used, 1), dtype)
    scale = hits * (op.expand_dims(weights, 1, rank - 2) if rank > 2 else weights)
    distance = predictions
    if attrs.reduction == "mean":
        adjoint, distance = adjoint / op.sum(scale), predictions + call
    outer = op.expand_dims(adjoint, 1) if attrs.reduction == "none" else adjoint
    to_weights = op.negative(op.sum(outer * hits * distance, 1, exclude=True))
    to_predictions = op.negative(outer * scale)
    if known_type(predictions) is None or known_type(weights) is None:
        to_predictions, to_weights = op.reshape_like(to_predictions, predictions), op.reshape_like(to_weights, weights)
    return to_predictions, zeros(targets), to_weights


NLL_LOSS = Op(
    "nn.nll_loss",
    3,
    _nll_type,
    _nll,
    attrs_type=NLLLossAttrs,
    gradient=_nll_gradient,
    doc="-weight * prediction at the class of each sample; their mean, their sum or all",
)


def nll_loss(
    predictions: Expr, targets: Expr, weights: Expr, reduction: str = "mean", ignore_index: int = -100
) -> Call:
    """The loss of logarithms `predictions` (N, C, ...) at classes `targets`; class `ignore_index` does not count."""
    return call(NLL_LOSS, (predictions, targets, weights), NLLLossAttrs(reduction, ignore_index))


OPS = (CROSS_ENTROPY, CROSS_ENTROPY_WITH_LOGITS, NLL_LOSS)
