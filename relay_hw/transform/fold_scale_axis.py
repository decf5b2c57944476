"""FoldScaleAxis: folds per-channel multiplications by constants into weights of the layer before or after them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Function
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, constant_value, is_external, is_float, is_op, remake, shape_of
from relay_hw.transform.linear import channel_vector, find_linear, has_weights, scale_linear
from relay_hw.transform.rewrite_rules import Rule, Uses, apply_rules

Vector = NDArray[np.float64]

# f(s * x) == s * f(x) for s > 0; those of _ANY_SIGN for every s.
_POSITIVE = ("nn.relu", "nn.leaky_relu", "nn.max_pool2d", "nn.global_max_pool2d")
_ANY_SIGN = ("nn.avg_pool2d", "nn.global_avg_pool2d", "negative")
# Chains longer than this keep their multiplication.
_MAX_CHAIN = 32


class BackwardFoldScaleAxis(FunctionPass):
    """`conv(x, w) * s` becomes `conv(x, w * s)`, through activations, poolings and additions between them."""

    name = "backward-fold-scale-axis"
    opt_level = 3
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (BACKWARD,))


class ForwardFoldScaleAxis(FunctionPass):
    """`conv(x * s, w)` becomes `conv(x, w * s)`, through activations and poolings between them."""

    name = "forward-fold-scale-axis"
    opt_level = 3
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (FORWARD,))


class FoldScaleAxis(FunctionPass):
    """Both directions, backward first. Weights and factors must be constants of floating-point type."""

    name = "fold-scale-axis"
    opt_level = 3
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, (BACKWARD, FORWARD))


def _backward(call: Call, uses: Uses) -> Expr | None:
    for data, factor in (call.args, tuple(reversed(call.args))):
        shape = shape_of(call)
        if constant_value(factor) is None or shape is None or shape != shape_of(data) or not is_float(call):
            continue
        for axis in range(len(shape)):
            scale = channel_vector(factor, shape, axis)
            if scale is None or not np.isfinite(scale).all():
                continue
            found = _absorb(data, scale.astype(np.float64), axis, uses, _MAX_CHAIN)
            if found is not None:
                return found
    return None


def _absorb(expr: Expr, scale: Vector, axis: int, uses: Uses, fuel: int) -> Expr | None:
    """`expr * scale` along `axis`, with the factor folded into weights; None if impossible."""
    if not isinstance(expr, Call) or not uses.is_single(expr) or not fuel:
        return None
    if has_weights(expr):
        linear = find_linear(expr, uses)
        fits = linear is not None and linear.axis == axis
        return scale_linear(linear, scale, np.zeros(linear.channels), expr.span) if linear and fits else None
    if is_op(expr, *_ANY_SIGN) or (is_op(expr, *_POSITIVE) and bool((scale > 0).all())):
        inner = _absorb(expr.args[0], scale, axis, uses, fuel - 1) if _keeps_axis(expr, axis) else None
        return None if inner is None else remake(expr, (inner, *expr.args[1:]))
    if is_op(expr, "nn.bias_add"):
        return _absorb_bias(expr, scale, axis, uses, fuel)
    if is_op(expr, "add", "subtract"):
        sides = [_absorb_side(expr, side, scale, axis, uses, fuel) for side in expr.args]
        return None if None in sides else remake(expr, [side for side in sides if side is not None])
    return None


def _absorb_bias(expr: Call, scale: Vector, axis: int, uses: Uses, fuel: int) -> Expr | None:
    bias, rank = constant_value(expr.args[1]), len(shape_of(expr) or ())
    if bias is None or not rank or expr.attrs.axis % rank != axis:
        return None
    inner = _absorb(expr.args[0], scale, axis, uses, fuel - 1)
    return None if inner is None else remake(expr, (inner, constant((bias * scale).astype(bias.dtype))))


def _absorb_side(call: Call, side: Expr, scale: Vector, axis: int, uses: Uses, fuel: int) -> Expr | None:
    value, shape = constant_value(side), shape_of(call)
    if value is None or shape is None:
        return _absorb(side, scale, axis, uses, fuel - 1) if shape_of(side) == shape else None
    factor = _along(scale, axis, len(shape))
    return constant((value.astype(np.float64) * factor).astype(value.dtype), side.span)


def _keeps_axis(expr: Call, axis: int) -> bool:
    layout: str = getattr(expr.attrs, "layout", "")
    return not layout or layout.find("C") == axis


def _along(vector: Vector, axis: int, rank: int) -> Vector:
    return vector.reshape((-1,) + (1,) * (rank - axis - 1))


@dataclass(frozen=True, slots=True)
class _Peeled:
    """`inner * scale` along an axis."""

    inner: Expr
    scale: Vector


def _forward(call: Call, uses: Uses) -> Expr | None:
    weight, shape = constant_value(call.args[1]), shape_of(call.args[0])
    axis = _input_axis(call)
    if weight is None or weight.dtype.kind != "f" or shape is None or axis is None or not is_float(call):
        return None
    found = _peel(call.args[0], axis, uses, _MAX_CHAIN)
    if found is None:
        return None
    factor = _weight_factor(call, weight, found.scale)
    if factor is None:
        return None
    scaled = (weight.astype(np.float64) * factor).astype(weight.dtype)
    return remake(call, (found.inner, constant(scaled, call.args[1].span)))


def _peel(expr: Expr, axis: int, uses: Uses, fuel: int) -> _Peeled | None:
    """`expr` without the multiplication that it starts with."""
    shape = shape_of(expr)
    if not isinstance(expr, Call) or not uses.is_single(expr) or not fuel or shape is None:
        return None
    if is_op(expr, "multiply"):
        for data, factor in (expr.args, tuple(reversed(expr.args))):
            scale = channel_vector(factor, shape, axis) if shape_of(data) == shape else None
            if scale is not None and np.isfinite(scale).all():
                return _Peeled(data, scale.astype(np.float64))
        return None
    if not is_op(expr, *_POSITIVE, *_ANY_SIGN) or not _keeps_axis(expr, axis):
        return None
    found = _peel(expr.args[0], axis, uses, fuel - 1)
    if found is None or not (is_op(expr, *_ANY_SIGN) or bool((found.scale > 0).all())):
        return None
    return _Peeled(remake(expr, (found.inner, *expr.args[1:])), found.scale)


def _input_axis(call: Call) -> int | None:
    if is_op(call, "nn.dense"):
        return len(shape_of(call.args[0]) or ()) - 1
    layout: str = call.attrs.data_layout
    return layout.find("C") if "C" in layout and layout.isalpha() else None


def _weight_factor(call: Call, weight: NDArray[Any], scale: Vector) -> Vector | None:
    if is_op(call, "nn.dense"):
        return scale
    layout: str = call.attrs.kernel_layout
    groups: int = call.attrs.groups
    if "I" not in layout or "O" not in layout or len(layout) != weight.ndim:
        return None
    if groups == 1 and weight.shape[layout.index("I")] == scale.size:
        return _along(scale, layout.index("I"), weight.ndim)
    outputs = weight.shape[layout.index("O")]
    if groups == scale.size and weight.shape[layout.index("I")] == 1 and outputs % groups == 0:
        return _along(np.repeat(scale, outputs // groups), layout.index("O"), weight.ndim)
    return None


BACKWARD = Rule("backward", ("multiply",), _backward)
FORWARD = Rule("forward", ("nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.dense"), _forward)
