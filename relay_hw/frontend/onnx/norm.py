"""ONNX normalisations, softmax and dropout."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node, all_of, known_inputs, only_output
from relay_hw.ir.expr import Expr, TupleGetItem
from relay_hw.op import nn


def _check_batch_norm(node: Node, known: Known) -> str | None:
    if node.attr("training_mode", 0):
        return "training_mode must be 0"
    return None if node.attr("spatial", 1) else "spatial must be 1"


def _batch_norm(node: Node, args: Arguments) -> Expr:
    gamma, beta, mean, variance = (args[index] for index in range(1, 5))
    value = nn.batch_norm(args[0], gamma, beta, mean, variance, epsilon=node.attr("epsilon", 1e-5))
    return TupleGetItem(value, 0)


def _instance_norm(node: Node, args: Arguments) -> Expr:
    return nn.instance_norm(args[0], args[1], args[2], epsilon=node.attr("epsilon", 1e-5))


def _standardized(data: Expr, axes: tuple[int, ...], epsilon: float, args: Arguments) -> Expr:
    center = op.subtract(data, op.mean(data, axes, True))
    variance = op.mean(op.multiply(center, center), axes, True)
    return op.divide(center, op.sqrt(op.add(variance, args.scalar(epsilon, data))))


def _layer_norm(node: Node, args: Arguments) -> Expr:
    data, scale, bias = args[0], args[1], args.get(2)
    rank = args.rank(data)
    axis, epsilon = node.attr("axis", -1) % rank, node.attr("epsilon", 1e-5)
    if axis == rank - 1 and args.rank(scale) == 1 and bias is not None:
        return nn.layer_norm(data, scale, bias, epsilon=epsilon)
    value = op.multiply(_standardized(data, tuple(range(axis, rank)), epsilon, args), scale)
    return value if bias is None else op.add(value, bias)


def _check_group_norm(node: Node, known: Known) -> str | None:
    return None if node.opset >= 21 else "the opset must be at least 21, where scale and bias are per channel"


def _group_norm(node: Node, args: Arguments) -> Expr:
    groups, epsilon = node.attr("num_groups"), node.attr("epsilon", 1e-5)
    return nn.group_norm(args[0], args[1], args[2], groups, epsilon=epsilon)


def _lrn(node: Node, args: Arguments) -> Expr:
    alpha, beta, bias = node.attr("alpha", 1e-4), node.attr("beta", 0.75), node.attr("bias", 1.0)
    return nn.lrn(args[0], node.attr("size"), 1, bias, alpha, beta)


def _softmax(build: Callable[[Expr, int], Expr]) -> Callable[[Node, Arguments], Expr]:
    """Opset 13 works along one axis; before, everything from the axis on was one axis."""

    def convert(node: Node, args: Arguments) -> Expr:
        shape = args.shape(args[0])
        axis = node.attr("axis", 1 if node.opset < 13 else -1) % max(len(shape), 1)
        if node.opset >= 13 or axis == len(shape) - 1:
            return build(args[0], axis if axis != len(shape) - 1 else -1)
        flat = op.reshape(args[0], (prod(shape[:axis]), prod(shape[axis:])))
        return op.reshape(build(flat, -1), shape)

    return convert


def _check_dropout(node: Node, known: Known) -> str | None:
    return "input 2 (training_mode) must be left out or a constant" if _unknown(node, known) else None


def _unknown(node: Node, known: Known) -> bool:
    return node.has_input(2) and node.inputs[2] not in known


def _dropout(node: Node, args: Arguments) -> Expr:
    return nn.dropout(args[0], node.attr("ratio", 0.5))


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
    Converter("BatchNormalization", _batch_norm, all_of(_check_batch_norm, only_output)),
    Converter("InstanceNormalization", _instance_norm),
    Converter("LayerNormalization", _layer_norm, only_output),
    Converter("GroupNormalization", _group_norm, _check_group_norm),
    Converter("LRN", _lrn),
    Converter("LpNormalization", _l2),
    Converter("Softmax", _softmax(nn.softmax)),
    Converter("LogSoftmax", _softmax(nn.log_softmax)),
    Converter("Dropout", _dropout, all_of(_check_dropout, known_inputs(2), only_output)),
)
