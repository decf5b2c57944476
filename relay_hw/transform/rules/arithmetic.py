"""Rules for arithmetic: fold added or multiplied constants into layers, turn means into poolings."""

from __future__ import annotations

import numpy as np

from relay_hw.ir.expr import Call, Constant, Expr
from relay_hw.transform.graph import constant, constant_value, is_float, is_op, make, remake, shape_of
from relay_hw.transform.linear import add_bias, channel_vector, find_linear, scale_linear
from relay_hw.transform.rewrite_rules import Rule, Uses


def _constant_second(call: Call, uses: Uses) -> Expr | None:
    """c + x as x + c: the other rules look for constants on the right."""
    left, right = call.args
    return remake(call, (right, left)) if isinstance(left, Constant) and not isinstance(right, Constant) else None


def _subtract_as_add(call: Call, uses: Uses) -> Expr | None:
    value = constant_value(call.args[1])
    if value is None or not is_float(call):
        return None
    return make("add", (call.args[0], constant(-value, call.args[1].span)), span=call.span)


def _add_as_bias(call: Call, uses: Uses) -> Expr | None:
    data = call.args[0]
    linear, shape = find_linear(data, uses), shape_of(call)
    if linear is None or shape is None or shape != shape_of(data):
        return None
    vector = channel_vector(call.args[1], shape, linear.axis)
    return None if vector is None else add_bias(data, vector, linear.axis, call.span)


def _bias_twice(call: Call, uses: Uses) -> Expr | None:
    inner = call.args[0]
    if not isinstance(inner, Call) or not is_op(inner, "nn.bias_add") or not is_float(call):
        return None
    first, second, shape = constant_value(inner.args[1]), constant_value(call.args[1]), shape_of(call)
    if first is None or second is None or shape is None:
        return None
    axis = call.attrs.axis % len(shape)
    if axis != inner.attrs.axis % len(shape):
        return None
    return add_bias(inner.args[0], first + second, axis, call.span)


def _add_twice(call: Call, uses: Uses) -> Expr | None:
    """(x + a) + b as x + (a + b); the same for products."""
    inner = call.args[0]
    if not isinstance(inner, Call) or inner.op is not call.op or not is_float(call):
        return None
    first, second = constant_value(inner.args[1]), constant_value(call.args[1])
    if first is None or second is None or call.checked_type != inner.args[0].checked_type:
        return None
    both = first + second if is_op(call, "add") else first * second
    return remake(call, (inner.args[0], constant(both.astype(first.dtype), call.span)))


def _scale_layer(call: Call, uses: Uses) -> Expr | None:
    data = call.args[0]
    linear, shape = find_linear(data, uses), shape_of(call)
    if linear is None or shape is None or shape != shape_of(data) or not uses.is_single(data):
        return None
    vector = channel_vector(call.args[1], shape, linear.axis)
    if vector is None or not np.isfinite(vector).all():
        return None
    return scale_linear(linear, vector.astype(np.float64), np.zeros(linear.channels), call.span)


def _mean_as_pool(call: Call, uses: Uses) -> Expr | None:
    """The mean over height and width of NCHW data."""
    source, shape = shape_of(call.args[0]), shape_of(call)
    if source is None or shape is None or len(source) != 4 or call.attrs.exclude or not is_float(call):
        return None
    axes = call.attrs.axis if isinstance(call.attrs.axis, tuple) else (call.attrs.axis,)
    if None in axes or sorted(axis % 4 for axis in axes) != [2, 3]:
        return None
    pooled = make("nn.global_avg_pool2d", (call.args[0],), span=call.span)
    return pooled if call.attrs.keepdims else make("reshape", (pooled,), newshape=shape, span=call.span)


def _matmul_as_dense(call: Call, uses: Uses) -> Expr | None:
    weight, shape = constant_value(call.args[1]), shape_of(call.args[0])
    if weight is None or weight.ndim != 2 or shape is None or len(shape) != 2 or call.attrs.transpose_a:
        return None
    kept = weight if call.attrs.transpose_b else np.ascontiguousarray(weight.T)
    args = (call.args[0], constant(kept, call.args[1].span))
    units = call.attrs.units if call.attrs.units is None else kept.shape[0]
    return make("nn.dense", args, units=units, out_dtype=call.attrs.out_dtype, span=call.span)


ARITHMETIC_RULES = (
    Rule("constant-second", ("add", "multiply", "maximum", "minimum"), _constant_second),
    Rule("subtract-as-add", ("subtract",), _subtract_as_add),
    Rule("add-as-bias", ("add",), _add_as_bias),
    Rule("bias-of-bias", ("nn.bias_add",), _bias_twice),
    Rule("constant-of-constant", ("add", "multiply"), _add_twice),
    Rule("scale-layer", ("multiply",), _scale_layer),
    Rule("mean-as-pool", ("mean",), _mean_as_pool),
    Rule("matmul-as-dense", ("nn.matmul",), _matmul_as_dense),
)
