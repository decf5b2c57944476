"""ONNX normalisations, softmax and dropout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.op import nn


def _check_batch_norm(node: Node, known: Known) -> str | None:
    if not node.attr("spatial", 1):
        return "spatial must be 1"
    if node.attr("training_mode", 0) or not any(map(node.has_output, range(1, len(node.outputs)))):
        return None
    return "training_mode must be 1 where it has more than one output"


def _batch_norm(node: Node, args: Arguments) -> Sequence[Expr]:
    if node.attr("training_mode", 0):
        return _batch_norm_in_training(node, args)
    gamma, beta, mean, variance = (args[index] for index in range(1, 5))
    value = nn.batch_norm(args[0], gamma, beta, mean, variance, epsilon=node.attr("epsilon", 1e-5))
    return [TupleGetItem(value, 0)]


def _batch_norm_in_training(node: Node, args: Arguments) -> Sequence[Expr]:
    """Batch normalisation with the batch's mean and variance, which also update the running ones."""
    rank, momentum = args.rank(args[0]), node.attr("momentum", 0.9)
    axes = (0, *range(2, rank))
    mean, variance = op.mean(args[0], axes), op.variance(args[0], axes)
    value = nn.batch_norm(args[0], args[1], args[2], mean, variance, epsilon=node.attr("epsilon", 1e-5))
    moved = [
        op.add(
            op.multiply(args[index], args.scalar(momentum, args[index])),
            op.multiply(new, args.scalar(1 - momentum, new)),
        )
        for index, new in ((3, mean), (4, variance))
    ]
    return [TupleGetItem(value, 0), *moved]


def _instance_norm(node: Node, args: Arguments) -> Expr:
    return nn.instance_norm(args[0], args[1], args[2], epsilon=node.attr("epsilon", 1e-5))


def _layer_norm(node: Node, args: Arguments) -> Sequence[Expr]:
    data, scale, bias = args[0], args[1], args.get(2)
    rank, dtype = args.rank(data), args.dtype(data)
    axis, epsilon = node.attr("axis", -1) % rank, node.attr("epsilon", 1e-5)
    if (
        axis == rank - 1
        and args.rank(scale) == 1
        and bias is not None
        and not (node.has_output(1) or node.has_output(2))
    ):
        return [nn.layer_norm(data, scale, bias, epsilon=epsilon)]
    # stash_type 1: mean and variance in float32, whatever the data.
    wide = op.cast(data, "float32") if dtype == "float16" and node.attr("stash_type", 1) == 1 else data
    axes = tuple(range(axis, rank))
    mean = op.mean(wide, axes, True)
    center = op.subtract(wide, mean)
    variance = op.mean(op.multiply(center, center), axes, True)
    inverse = op.divide(args.scalar(1, wide), op.sqrt(op.add(variance, args.scalar(epsilon, wide))))
    value = op.multiply(center, inverse)
    value = op.multiply(value if wide is data else op.cast(value, dtype), scale)
    return [value if bias is None else op.add(value, bias), mean, inverse]


def _group_norm(node: Node, args: Arguments) -> Expr:
    groups, epsilon = node.attr("num_groups"), node.attr("epsilon", 1e-5)
    scale, bias = args[1], args[2]
    if node.opset < 21:
        # Scale and bias were those of groups.
        share = args.shape(args[0])[1] // groups
        scale, bias = op.repeat(scale, share, 0), op.repeat(bias, share, 0)
    return nn.group_norm(args[0], scale, bias, groups, epsilon=epsilon)


def _lrn(node: Node, args: Arguments) -> Expr:
    alpha, beta, bias = node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    return nn.lrn(args[0], node.attr("size"), 1, bias, alpha, beta)


def _softmax(build: Callable[[Expr, int], Expr]) -> Callable[[Node, Arguments], Expr]:
    """Opset 13 works along one axis; before, everything from the axis on was one axis."""

    def convert(node: Node, args: Arguments) -> Expr:
        rank = args.rank(args[0])
        axis = node.attr("axis", 1 if node.opset < 13 else -1) % max(rank, 1)
        if node.opset >= 13 or axis == rank - 1:
            return build(args[0], axis if axis != rank - 1 else -1)
        shape = args.shape(args[0])
        flat = op.reshape(args[0], (prod(shape[:axis]), prod(shape[axis:])))
        return op.reshape(build(flat, -1), shape)

    return convert


def _check_dropout(node: Node, known: Known) -> str | None:
    unknown = node.has_input(2) and node.inputs[2] not in known
    return "input 2 (training_mode) must be left out or a constant" if unknown else None


def _dropout(node: Node, args: Arguments) -> Sequence[Expr]:
    training, ratio = args.array(2), args.array(1)
    if training is not None and np.any(training) and (ratio is None or np.any(ratio)):
        raise UnsupportedError("input 2 (training_mode) must be false: elements must not be dropped by chance")
    kept = [op.ones_like(op.cast(args[0], "bool"))] if node.has_output(1) else []
    return [nn.dropout(args[0], node.attr("ratio", 0.5)), *kept]


def _l2(node: Node, args: Arguments) -> Expr:
    axis, power = node.attr("axis", -1), node.attr("p", 2)
    if power == 1:
        length = op.sum(op.abs(args[0]), axis, True)
    else:
        length = op.sqrt(op.sum(op.multiply(args[0], args[0]), axis, True))
    # Zeros stay zeros.
    nothing = op.equal(length, args.scalar(0, length))
    return op.divide(args[0], op.where(nothing, args.scalar(1, length), length))


CONVERTERS = (
    Converter("BatchNormalization", _batch_norm, _check_batch_norm),
    Converter("InstanceNormalization", _instance_norm),
    Converter("LayerNormalization", _layer_norm),
    Converter("GroupNormalization", _group_norm),
    Converter("LRN", _lrn),
    Converter("LpNormalization", _l2),
    Converter("Softmax", _softmax(nn.softmax)),
    Converter("LogSoftmax", _softmax(nn.log_softmax)),
    Converter("Dropout", _dropout, _check_dropout),
)
