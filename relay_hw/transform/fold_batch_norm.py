"""FoldBatchNorm: folds batch normalisation into the layer before it, else into a multiplication and an addition."""

from __future__ import annotations

from math import prod

import numpy as np

from relay_hw.ir.expr import Call, Expr, Function, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, constant_value, is_external, is_op, make, remake, shape_of
from relay_hw.transform.linear import Float64, find_linear, scale_linear
from relay_hw.transform.rewrite_rules import TUPLE_ITEM, Rule, Uses, apply_rules


class FoldBatchNorm(FunctionPass):
    """Needs constant gamma, beta, mean and variance: bind parameters first."""

    name = "fold-batch-norm"
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (FOLD_BATCH_NORM,))


def _fold(item: TupleGetItem, uses: Uses) -> Expr | None:
    norm = item.tuple_value
    if item.index != 0 or not isinstance(norm, Call) or not is_op(norm, "nn.batch_norm"):
        return None
    data = norm.args[0]
    shape = shape_of(data)
    values = [constant_value(arg) for arg in norm.args[1:5]]
    if shape is None or any(value is None for value in values):
        return None
    gamma, beta, mean, variance = (np.asarray(value, np.float64) for value in values)
    scale = (gamma if norm.attrs.scale else 1.0) / np.sqrt(variance + norm.attrs.epsilon)
    shift = (beta if norm.attrs.center else 0.0) - mean * scale
    axis = norm.attrs.axis % len(shape)
    linear = find_linear(data, uses)
    if linear is not None and linear.axis == axis and uses.is_single(data):
        return scale_linear(linear, scale, shift, norm.span)
    reshaped = _before_reshape(data, shape, axis, scale, shift, uses)
    if reshaped is not None:
        return reshaped
    broadcast = [1] * len(shape)
    broadcast[axis] = shape[axis]
    dtype = gamma_dtype(norm)
    scaled = make("multiply", (data, constant(scale.reshape(broadcast).astype(dtype), norm.span)), span=norm.span)
    return make("add", (scaled, constant(shift.reshape(broadcast).astype(dtype), norm.span)), span=norm.span)


def _before_reshape(
    data: Expr, shape: tuple[int, ...], axis: int, scale: Float64, shift: Float64, uses: Uses
) -> Expr | None:
    """A vector of a dense layer that becomes a map: each of its elements gets the numbers of its channel."""
    if axis != 1 or not isinstance(data, Call) or not is_op(data, "reshape") or not uses.is_single(data):
        return None
    source = data.args[0]
    linear = find_linear(source, uses)
    if linear is None or not uses.is_single(source) or shape_of(source) != (shape[0], prod(shape[1:])):
        return None
    many = prod(shape[2:])
    return remake(data, (scale_linear(linear, np.repeat(scale, many), np.repeat(shift, many), data.span),))


def gamma_dtype(norm: Call) -> np.dtype:
    """The element type that a batch normalisation computes in."""
    gamma = constant_value(norm.args[1])
    assert gamma is not None
    return gamma.dtype


FOLD_BATCH_NORM = Rule("fold-batch-norm", (TUPLE_ITEM,), _fold)
