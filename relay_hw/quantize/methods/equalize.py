"""Cross-layer equalization (Nagel 2019): a channel between two layers is scaled so that the ranges on both sides agree.

In: a float network. Out: one of the same meaning whose weights fill their ranges more evenly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Op, Tuple, TupleGetItem
from relay_hw.ir.visit import copy_with
from relay_hw.quantize.methods.columns import groups_of
from relay_hw.quantize.plan import AverageStep, KeepStep, LinearStep, Plan, Step
from relay_hw.transform.graph import constant, count_uses, dataflow_order, is_op, remake, typed_tuple

Array = NDArray[Any]
Changes = dict[tuple[Expr, int], Array]  # (call, argument) -> its new constant
SWEEPS = 20


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two layers, of which the second alone reads the first, channel by channel."""

    first: LinearStep
    second: LinearStep


def equalize(body: Expr, plan: Plan) -> Expr:
    """`body` with the channels between each pair of layers equalized, in float. The plan is that of `body`."""
    pairs = _pairs(body, plan)
    weights = {step: step.linear.weight.astype(np.float64) for pair in pairs for step in (pair.first, pair.second)}
    gains: dict[LinearStep, Array] = {pair.first: np.ones(pair.first.linear.channels) for pair in pairs}
    for _ in range(SWEEPS):
        change = max((_equalize(pair, weights, gains) for pair in pairs), default=0.0)
        if change < 1e-3:
            break
    changes: Changes = {}
    for step, weight in weights.items():
        changes[step.linear.anchor, 1] = weight.astype(step.linear.weight.dtype)
        bias = _bias_call(step, body)
        if bias is not None and step in gains:
            assert step.linear.bias is not None
            changes[bias, 1] = (step.linear.bias * gains[step]).astype(step.linear.bias.dtype)
    return with_constants(body, changes)


def with_constants(body: Expr, changes: Mapping[tuple[Expr, int], Array]) -> Expr:
    """`body` with other constants as arguments of some calls."""
    new: dict[Expr, Expr] = {}
    for node in dataflow_order(body, "main"):
        match node:
            case Call(op=Op()):
                args = [
                    constant(changes[node, index], arg.span) if (node, index) in changes else new[arg]
                    for index, arg in enumerate(node.args)
                ]
                same = all(arg is old for arg, old in zip(args, node.args, strict=True))
                new[node] = node if same else remake(node, args)
            case Tuple(fields=parts):
                new[node] = typed_tuple([new[part] for part in parts])
            case TupleGetItem(tuple_value=value):
                new[node] = copy_with(node, tuple_value=new[value])
            case _:
                new[node] = node
    return new[body]


def _equalize(pair: _Pair, weights: dict[LinearStep, Array], gains: dict[LinearStep, Array]) -> float:
    """Scale the channels of one pair in place; how much the largest scale was, as a logarithm."""
    first, second = weights[pair.first], weights[pair.second]
    out_axis = pair.first.linear.weight_axis
    left = _range(first, out_axis)
    in_axis = _input_axis(pair.second)
    right = _range(second, in_axis)
    usable = (left > 0) & (right > 0)
    scale = np.where(usable, np.sqrt(right / np.where(usable, left, 1.0)), 1.0)
    # Scales of one sign and size alone change nothing but the range of the tensor between.
    scale /= np.exp(np.log(scale[usable]).mean()) if usable.any() else 1.0
    weights[pair.first] = first * _spread(scale, out_axis, first.ndim)
    weights[pair.second] = second / _spread(scale, in_axis, second.ndim)
    gains[pair.first] = gains[pair.first] * scale
    return float(np.abs(np.log(scale)).max(initial=0.0))


def _range(weight: Array, axis: int) -> Array:
    return np.abs(np.moveaxis(weight, axis, 0).reshape(weight.shape[axis], -1)).max(axis=1, initial=0.0)


def _spread(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if position == axis else 1 for position in range(rank)])


def _pairs(body: Expr, plan: Plan) -> list[_Pair]:
    """Layers whose output goes, through what treats channels alike, into one other layer alone."""
    uses = count_uses(body)
    makers: dict[Expr, Step] = {step.output: step for step in plan.steps}
    pairs: list[_Pair] = []
    for step in plan.steps:
        if not isinstance(step, LinearStep) or _input_axis(step) < 0:
            continue
        source: Expr = step.inputs[0]
        maker = makers.get(source)
        while maker is not None and _is_transparent(maker) and uses[source] == 1:
            source = maker.inputs[0]
            maker = makers.get(source)
        if not isinstance(maker, LinearStep) or uses[source] != 1:
            continue
        if _is_homogeneous(maker) and maker.linear.channels == step.linear.weight.shape[_input_axis(step)]:
            pairs.append(_Pair(maker, step))
    return pairs


def _is_homogeneous(step: LinearStep) -> bool:
    """Whether the activation lets positive scales through."""
    return step.low in (-np.inf, 0.0) and step.high == np.inf and _groups(step) in (1, step.linear.channels)


def _groups(step: LinearStep) -> int:
    """Groups of a layer; 0 for a transposed convolution, whose weight is laid out otherwise."""
    return 0 if is_op(step.linear.anchor, "nn.conv2d_transpose") else groups_of(step)


def _is_transparent(step: Step) -> bool:
    """Whether channels stay apart and scales come through: pooling."""
    if isinstance(step, AverageStep):
        return step.low == -np.inf and step.high == np.inf
    return isinstance(step, KeepStep) and is_op(step.output, "nn.max_pool2d")


def _is_depthwise(step: LinearStep) -> bool:
    return not is_op(step.linear.anchor, "nn.dense") and _groups(step) == step.linear.channels > 1


def _input_axis(step: LinearStep) -> int:
    """The axis of the weight that meets the input's channels one by one; -1 for none."""
    anchor = step.linear.anchor
    if is_op(anchor, "nn.dense"):
        return 1
    if not is_op(anchor, "nn.conv2d"):
        return -1
    layout = anchor.attrs.kernel_layout
    if groups_of(step) == 1:
        return layout.index("I")
    return step.linear.weight_axis if _is_depthwise(step) else -1


def _bias_call(step: LinearStep, body: Expr) -> Call | None:
    """The bias_add of a layer."""
    if step.linear.bias is None:
        return None
    for node in dataflow_order(body, "main"):
        if isinstance(node, Call) and is_op(node, "nn.bias_add") and node.args[0] is step.linear.anchor:
            return node
    return None
