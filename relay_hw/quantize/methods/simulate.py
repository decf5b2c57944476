"""A network that stays in floats while its tensors and weights are rounded: for formats without hardware, for training,
and for looking.

In: the plan of a float network, and how tensors and weights are rounded. Out: the new body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relay_hw.ir.expr import Call, Expr, Op, Tuple, TupleGetItem
from relay_hw.ir.visit import copy_with
from relay_hw.op.number_formats import FORMATS, to_format
from relay_hw.quantize.layers import Layers
from relay_hw.quantize.number import QParams, spread
from relay_hw.quantize.realizer import Probe, Ranges
from relay_hw.quantize.steps import KeepStep, LinearStep
from relay_hw.transform.graph import constant, dataflow_order, is_op, make, op_name, remake, shape_of, typed_tuple

Array = NDArray[Any]
Mark = Callable[[Expr, Expr], Expr]  # (tensor of the old graph, its new form) -> the new form, rounded
Weights = Mapping[Expr, Mapping[int, Expr]]  # call -> index of an argument -> what stands there instead


def simulate(body: Expr, layers: Layers, mark: Mark, weights: Weights) -> tuple[Expr, dict[Expr, Expr]]:
    """`body` with simulated quantization after each tensor, and other weights; also maps old to new nodes."""
    moved = {step.output for step in layers.plan.steps if isinstance(step, KeepStep)}
    marked = frozenset(layers.plan.integers) - moved
    return rewritten(body, lambda node, copy: mark(node, copy) if node in marked else copy, weights)


def rewritten(body: Expr, mark: Mark, weights: Weights) -> tuple[Expr, dict[Expr, Expr]]:
    """`body` with each node as `mark` makes it of the node and its copy on new arguments; also maps old to new."""
    new: dict[Expr, Expr] = {}
    for node in dataflow_order(body, "main"):
        match node:
            case Call(op=Op()):
                other = weights.get(node, {})
                args = [other.get(index, new[arg]) for index, arg in enumerate(node.args)]
                same = all(arg is old for arg, old in zip(args, node.args, strict=True))
                copy: Expr = node if same else remake(node, args)
            case Tuple(fields=parts):
                copy = typed_tuple([new[part] for part in parts])
            case TupleGetItem(tuple_value=value):
                copy = copy_with(node, tuple_value=new[value])
            case _:
                copy = node
        new[node] = mark(node, copy)
    return new[body], new


def simulated_integers(params: Mapping[Expr, QParams]) -> Mark:
    """Operators that round like integers of `params`."""

    def mark(tensor: Expr, value: Expr) -> Expr:
        one = params[tensor]
        numbers = (one.scale, one.low - one.zero_point, one.high - one.zero_point)
        limits = [constant(np.float32(number)) for number in numbers]
        return make("relay.op.annotation.simulated_quantize", (value, *limits), kind=1, span=value.span)

    return mark


def in_format(body: Expr, layers: Layers, ranges: Ranges) -> tuple[Expr, tuple[Probe, ...]]:
    """`body` with tensors and weights in the strategy's number format; biases and sums stay float32.

    `ranges`: of each tensor, from calibration; only formats without blocks use them.
    """
    name = layers.strategy.number_format.value
    largest = FORMATS[name].largest

    def mark(tensor: Expr, value: Expr) -> Expr:
        low, high = ranges[tensor]
        scale = max(-low, high) / largest
        rank = len(shape_of(value) or ())
        axis = _channel_axis(layers, tensor, rank)
        attrs = {"format": name, "scale": scale if scale > 0 else 1.0, "axis": axis}
        return make("simulated.format", (value,), **attrs, span=value.span)

    weights: dict[Expr, dict[int, Expr]] = {}
    for step in layers.linear:
        anchor = step.linear.anchor
        weight = _weight_in_format(step, name)
        weights[anchor] = {1: constant(weight, anchor.args[1].span)}
    new_body, new = simulate(body, layers, mark, weights)
    probes = tuple(
        Probe(label, op_name(step.output), step.output, new[step.output], QParams(1.0, 0, -128, 127))
        for step, label in layers.names.items()
    )
    return new_body, probes


def _weight_in_format(step: LinearStep, name: str) -> Array:
    """A weight whose channels have scales of their own, or blocks along the input's channels."""
    linear = step.linear
    moved = np.moveaxis(linear.weight, linear.weight_axis, 0)
    if FORMATS[name].block:
        axis = 1
        if not is_op(linear.anchor, "nn.dense"):
            axis = ("O" + linear.anchor.attrs.kernel_layout.replace("O", "")).index("I")
        held = to_format(moved, name, axis=axis)
    else:
        largest = np.abs(moved.reshape(len(moved), -1)).max(axis=1, initial=0.0) / FORMATS[name].largest
        scales = spread(np.where(largest > 0, largest, 1.0), 0, moved.ndim)
        held = to_format(moved / scales, name) * scales
    return np.ascontiguousarray(np.moveaxis(held, 0, linear.weight_axis)).astype(linear.weight.dtype)


def _channel_axis(layers: Layers, tensor: Expr, rank: int) -> int:
    """The axis along which products of a tensor are summed: channels of a convolution's input, else the last."""
    for step in layers.linear:
        anchor = step.linear.anchor
        if tensor in step.inputs and not is_op(anchor, "nn.dense"):
            return anchor.attrs.data_layout.index("C")
        if step.output is tensor:
            return step.linear.axis
    return min(1, rank - 1) if rank == 4 else max(rank - 1, 0)
