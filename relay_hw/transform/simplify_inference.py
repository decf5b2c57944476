"""SimplifyInference: turns normalisations into arithmetic, and dropout into its input."""

from __future__ import annotations

import numpy as np

from relay_hw.ir.expr import Call, Expr, Function, TupleGetItem
from relay_hw.ir.module import IRModule
from relay_hw.transform.base import FunctionPass
from relay_hw.transform.graph import constant, dtype_of, is_external, is_float, is_op, make, shape_of
from relay_hw.transform.rewrite_rules import TUPLE_ITEM, Rule, Uses, apply_rules


class SimplifyInference(FunctionPass):
    """Rewrites nn.batch_norm (its first result), nn.layer_norm, nn.instance_norm, nn.group_norm, nn.l2_normalize and
    nn.dropout for inference. Shapes must be static; other calls stay."""

    name = "simplify-inference"
    opt_level = 0
    pins_effects = True

    def transform_function(self, function: Function, mod: IRModule) -> Function:
        return function if is_external(function) else apply_rules(function, RULES)


def _scalar(value: float, like: Expr) -> Expr:
    return constant(np.asarray(value, dtype_of(like)))


def _along(vector: Expr, axis: int, rank: int) -> Expr:
    """A vector of channels shaped so that it broadcasts along `axis`."""
    after = rank - axis - 1
    return make("expand_dims", (vector,), axis=1, num_newaxis=after) if after else vector


def _first_item(item: TupleGetItem, uses: Uses) -> Expr | None:
    call = item.tuple_value
    if item.index != 0 or not isinstance(call, Call):
        return None
    if is_op(call, "nn.dropout"):
        return call.args[0]
    return _batch_norm(call) if is_op(call, "nn.batch_norm") else None


def _batch_norm(call: Call) -> Expr | None:
    """x * g + b with g = gamma / sqrt(variance + epsilon) and b = beta - mean * g."""
    data, gamma, beta, mean, variance = call.args
    shape = shape_of(data)
    if shape is None or not is_float(data):
        return None
    axis = call.attrs.axis % len(shape)
    shifted = make("add", (variance, _scalar(call.attrs.epsilon, data)))
    scale = make("divide", (_scalar(1.0, data), make("sqrt", (shifted,))))
    if call.attrs.scale:
        scale = make("multiply", (scale, gamma))
    shift = make("multiply", (make("negative", (mean,)), scale))
    if call.attrs.center:
        shift = make("add", (shift, beta))
    scaled = make("multiply", (data, _along(scale, axis, len(shape))), span=call.span)
    return make("add", (scaled, _along(shift, axis, len(shape))), span=call.span)


def _standardized(data: Expr, axes: tuple[int, ...], epsilon: float) -> Expr:
    mean = make("mean", (data,), axis=axes, keepdims=True, exclude=False)
    centered = make("subtract", (data, mean))
    square = make("multiply", (centered, centered))
    variance = make("mean", (square,), axis=axes, keepdims=True, exclude=False)
    return make("divide", (centered, make("sqrt", (make("add", (variance, _scalar(epsilon, data))),))))


def _affine(call: Call, normal: Expr, axis: int, rank: int) -> Expr:
    if call.attrs.scale:
        normal = make("multiply", (normal, _along(call.args[1], axis, rank)), span=call.span)
    if call.attrs.center:
        normal = make("add", (normal, _along(call.args[2], axis, rank)), span=call.span)
    return normal


def _layer_norm(call: Call, uses: Uses) -> Expr | None:
    shape = shape_of(call)
    if shape is None or not is_float(call):
        return None
    axis = call.attrs.axis % len(shape)
    return _affine(call, _standardized(call.args[0], (axis,), call.attrs.epsilon), axis, len(shape))


def _instance_norm(call: Call, uses: Uses) -> Expr | None:
    shape = shape_of(call)
    if shape is None or not is_float(call):
        return None
    axis = call.attrs.axis % len(shape)
    axes = tuple(other for other in range(1, len(shape)) if other != axis)
    return _affine(call, _standardized(call.args[0], axes, call.attrs.epsilon), axis, len(shape))


def _group_norm(call: Call, uses: Uses) -> Expr | None:
    shape = shape_of(call)
    if shape is None or not is_float(call) or call.attrs.axis % len(shape) != 1:
        return None
    groups = call.attrs.num_groups
    grouped = (shape[0], groups, shape[1] // groups, *shape[2:])
    data = make("reshape", (call.args[0],), newshape=grouped)
    normal = _standardized(data, tuple(range(2, len(grouped))), call.attrs.epsilon)
    return _affine(call, make("reshape", (normal,), newshape=shape), 1, len(shape))


def _l2_normalize(call: Call, uses: Uses) -> Expr | None:
    data = call.args[0]
    if not is_float(data):
        return None
    total = make("sum", (make("multiply", (data, data)),), axis=call.attrs.axis, keepdims=True, exclude=False)
    bounded = make("maximum", (total, _scalar(call.attrs.eps, data)))
    return make("divide", (data, make("sqrt", (bounded,))), span=call.span)


RULES = (
    Rule("batch-norm-and-dropout", (TUPLE_ITEM,), _first_item),
    Rule("layer-norm", ("nn.layer_norm",), _layer_norm),
    Rule("instance-norm", ("nn.instance_norm",), _instance_norm),
    Rule("group-norm", ("nn.group_norm",), _group_norm),
    Rule("l2-normalize", ("nn.l2_normalize",), _l2_normalize),
)
