"""Softmax along an axis, and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import TypeCheckError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Gradient, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ALONG_AXIS,
    Array,
    Attrs,
    call,
    check_axis,
    rule,
)
from relay_hw.op.gradients.common import (
    one_argument,
    ops,
)

__all__ = ["fast_softmax", "log_softmax", "softmax"]


@dataclass(frozen=True, slots=True)
class SoftmaxAttrs(Attrs):
    axis: int = -1


def softmax_value(x: Array, axis: int) -> Array:
    """exp(x) / sum(exp(x)) along `axis`, in x's float type; computed in float64, so that every platform agrees.

    float16 stays: ONNX's own tests expect its roundings on the way.
    """
    if x.size == 0:  # numpy finds no largest one
        return x
    wide = x if x.dtype.itemsize == 2 else x.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=axis, keepdims=True))
    return (powers / powers.sum(axis=axis, keepdims=True)).astype(x.dtype)


def _log_softmax_value(x: Array, axis: int) -> Array:
    if x.size == 0:
        return x
    wide = x if x.dtype.itemsize == 2 else x.astype(np.float64)
    shifted = wide - wide.max(axis=axis, keepdims=True)
    return (shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))).astype(x.dtype)


def _softmax(name: str, function: AnyValue, gradient: Gradient, doc: str) -> Op:
    @rule(name, 1)
    def relation(attrs: SoftmaxAttrs, x: TensorType) -> Type:
        check_axis(name, attrs.axis, x.rank)
        if not x.dtype.startswith(("float", "bfloat")):
            raise TypeCheckError(f"the data of {name} must be floating point, not {x.dtype}")
        return x

    def reference(attrs: SoftmaxAttrs, values: Sequence[Array], result: Type) -> Array:
        return function(np.asarray(values[0]), attrs.axis)

    return Op(
        name,
        1,
        relation,
        reference,
        attrs_type=SoftmaxAttrs,
        pattern=FusionPattern.OUT_ELEMWISE_FUSABLE,
        gradient=gradient,
        traits=ALONG_AXIS,
        doc=doc,
    )


def _softmax_slope(call: Call, x: Expr, g: Expr) -> Expr:
    weighted = g * call
    return weighted - call * ops().sum(weighted, call.attrs.axis, keepdims=True)


def _log_softmax_slope(call: Call, x: Expr, g: Expr) -> Expr:
    return g - ops().exp(call) * ops().sum(g, call.attrs.axis, keepdims=True)


SOFTMAX = _softmax("nn.softmax", softmax_value, one_argument(_softmax_slope), "exp(x) / sum(exp(x)) along an axis")


FAST_SOFTMAX = _softmax(
    "nn.fast_softmax", softmax_value, one_argument(_softmax_slope), "nn.softmax; an implementation may approximate"
)


LOG_SOFTMAX = _softmax(
    "nn.log_softmax", _log_softmax_value, one_argument(_log_softmax_slope), "logarithm of nn.softmax"
)


def softmax(data: Expr, axis: int = -1) -> Call:
    """exp(data) / sum(exp(data)) along `axis`."""
    return call(SOFTMAX, (data,), SoftmaxAttrs(axis))


def fast_softmax(data: Expr, axis: int = -1) -> Call:
    """softmax that an implementation may approximate."""
    return call(FAST_SOFTMAX, (data,), SoftmaxAttrs(axis))


def log_softmax(data: Expr, axis: int = -1) -> Call:
    """The logarithm of softmax."""
    return call(LOG_SOFTMAX, (data,), SoftmaxAttrs(axis))


OPS = (SOFTMAX, FAST_SOFTMAX, LOG_SOFTMAX)
