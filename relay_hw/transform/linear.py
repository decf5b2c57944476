"""Scales and shifts output channels of convolutions and dense layers with constant weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Constant, Expr, Trait
from relay_hw.transform.graph import (
    constant,
    constant_value,
    dataflow_order,
    has_trait,
    is_float,
    is_op,
    make,
    op_name,
    remake,
    shape_of,
)
from relay_hw.transform.rewrite_rules import Uses

Array = NDArray[Any]
Float64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Linear:
    """`anchor` (a convolution or dense layer, constant weight) and the bias added to it, None if there is none.

    `axis` is the output's channel axis, `weight_axis` that of the weight.
    """

    anchor: Call
    weight: Array
    bias: Array | None
    axis: int
    weight_axis: int
    channels: int


def has_weights(expr: Expr) -> bool:
    """Whether `expr` is a convolution of any kind, or a dense layer: its weights have an axis of output channels."""
    return isinstance(expr, Call) and (
        is_op(expr, "nn.dense") or (has_trait(expr, Trait.ANCHOR) and hasattr(expr.attrs, "kernel_layout"))
    )


def find_linear(expr: Expr, uses: Uses) -> Linear | None:
    """The linear layer whose output is `expr`: an anchor, or bias_add on one; the anchor must have no other use."""
    if isinstance(expr, Call) and has_weights(expr):
        return _linear(expr, None)
    if not isinstance(expr, Call) or op_name(expr) != "nn.bias_add":
        return None
    data, bias = expr.args[0], constant_value(expr.args[1])
    if bias is None or not isinstance(data, Call) or not uses.is_single(data) or not has_weights(data):
        return None
    found = _linear(data, bias)
    rank = len(shape_of(expr) or ())
    return found if found is not None and expr.attrs.axis % max(rank, 1) == found.axis else None


def bias_calls(body: Expr) -> dict[Expr, Call]:
    """The call that adds a bias to each operator that has one."""
    calls = (node for node in dataflow_order(body, "main") if isinstance(node, Call) and is_op(node, "nn.bias_add"))
    return {call.args[0]: call for call in calls}


def scale_linear(linear: Linear, scale: Float64, shift: Float64, span: Any) -> Expr:
    """`linear * scale + shift`, both per channel, computed in float64 and rounded once to the weight's type."""
    dtype = linear.weight.dtype
    broadcast = [1] * linear.weight.ndim
    broadcast[linear.weight_axis] = -1
    weight = (linear.weight.astype(np.float64) * scale.reshape(broadcast)).astype(dtype)
    bias = shift if linear.bias is None else linear.bias.astype(np.float64) * scale + shift
    anchor = remake(linear.anchor, (linear.anchor.args[0], constant(weight, linear.anchor.args[1].span)))
    return add_bias(anchor, bias.astype(dtype), linear.axis, span) if bias.any() or linear.bias is not None else anchor


def add_bias(data: Expr, bias: Array, axis: int, span: Any) -> Call:
    """nn.bias_add of a constant."""
    return make("nn.bias_add", (data, constant(bias, span)), axis=axis, span=span)


def channel_vector(expr: Expr, shape: tuple[int, ...], axis: int) -> Array | None:
    """A constant that varies along `axis` of `shape` only, as a vector of that axis; None for anything else."""
    if not isinstance(expr, Constant) or expr.data.ndim > len(shape):
        return None
    full = (1,) * (len(shape) - expr.data.ndim) + expr.data.shape
    if any(size != 1 for position, size in enumerate(full) if position != axis):
        return None
    return np.broadcast_to(expr.data.reshape(-1), (shape[axis],)).copy()


def _linear(anchor: Call, bias: Array | None) -> Linear | None:
    weight, shape = constant_value(anchor.args[1]), shape_of(anchor)
    if weight is None or shape is None or not is_float(anchor) or weight.dtype.kind != "f":
        return None
    if op_name(anchor) == "nn.dense":
        axis, weight_axis = len(shape) - 1, 0
    else:
        layout, kernel = anchor.attrs.out_layout or anchor.attrs.data_layout, anchor.attrs.kernel_layout
        if "C" not in layout or "O" not in kernel or not layout.isalpha() or len(kernel) != weight.ndim:
            return None
        axis, weight_axis = layout.index("C"), kernel.index("O")
    if weight.shape[weight_axis] != shape[axis]:
        return None
    return Linear(anchor, weight, bias, axis, weight_axis, shape[axis])
