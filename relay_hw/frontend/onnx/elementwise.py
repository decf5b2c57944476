"""ONNX operators on elements: activations, arithmetic, comparisons, logic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import pi, sqrt

import numpy as np

from relay_hw import op
from relay_hw.frontend.onnx.node import Arguments, Converter, Known, Node
from relay_hw.ir.expr import Expr
from relay_hw.op import nn

UNARY: Sequence[tuple[str, Callable[[Expr], Expr]]] = (
    ("Abs", op.abs),
    ("Acos", op.acos),
    ("Acosh", op.acosh),
    ("Asin", op.asin),
    ("Asinh", op.asinh),
    ("Atan", op.atan),
    ("Atanh", op.atanh),
    ("BitwiseNot", op.bitwise_not),
    ("Ceil", op.ceil),
    ("Cos", op.cos),
    ("Cosh", op.cosh),
    ("Erf", op.erf),
    ("Exp", op.exp),
    ("Floor", op.floor),
    ("IsNaN", op.isnan),
    ("Log", op.log),
    ("Neg", op.negative),
    ("Not", op.logical_not),
    ("Relu", nn.relu),
    ("Sigmoid", op.sigmoid),
    ("Sign", op.sign),
    ("Sin", op.sin),
    ("Sinh", op.sinh),
    ("Sqrt", op.sqrt),
    ("Tan", op.tan),
    ("Tanh", op.tanh),
)
BINARY: Sequence[tuple[str, Callable[[Expr, Expr], Expr]]] = (
    ("Add", op.add),
    ("Sub", op.subtract),
    ("Mul", op.multiply),
    ("Div", op.divide),
    ("And", op.logical_and),
    ("Or", op.logical_or),
    ("Xor", op.logical_xor),
    ("BitwiseAnd", op.bitwise_and),
    ("BitwiseOr", op.bitwise_or),
    ("BitwiseXor", op.bitwise_xor),
    ("Equal", op.equal),
    ("Greater", op.greater),
    ("GreaterOrEqual", op.greater_equal),
    ("Less", op.less),
    ("LessOrEqual", op.less_equal),
)
VARIADIC: Sequence[tuple[str, Callable[[Expr, Expr], Expr]]] = (
    ("Sum", op.add),
    ("Max", op.maximum),
    ("Min", op.minimum),
)


def _unary(build: Callable[[Expr], Expr]) -> Callable[[Node, Arguments], Expr]:
    return lambda node, args: build(args[0])


def _binary(build: Callable[[Expr, Expr], Expr]) -> Callable[[Node, Arguments], Expr]:
    return lambda node, args: build(args[0], args[1])


def _variadic(build: Callable[[Expr, Expr], Expr]) -> Callable[[Node, Arguments], Expr]:
    return lambda node, args: op.copy(args[0]) if len(args) == 1 else reduce(build, args.all())


def _mean(node: Node, args: Arguments) -> Expr:
    total = reduce(op.add, args.all())
    return op.divide(total, args.scalar(len(args), total))


def _mod(node: Node, args: Arguments) -> Expr:
    return (op.mod if node.attr("fmod", 0) else op.floor_mod)(args[0], args[1])


def _power(node: Node, args: Arguments) -> Expr:
    base, exponent = args[0], args[1]
    same = args.dtype(base) == args.dtype(exponent)
    return op.power(base, exponent if same else op.cast(exponent, args.dtype(base)))


def _shift(node: Node, args: Arguments) -> Expr:
    count, dtype = args[1], args.dtype(args[1])
    if not dtype.startswith("u"):
        # A negative count shifts everything out.
        bits = args.scalar(np.dtype(dtype).itemsize * 8, count)
        count = op.where(op.less(count, args.scalar(0, count)), bits, count)
    return (op.left_shift if node.attr("direction") == "LEFT" else op.right_shift)(args[0], count)


def _clip(node: Node, args: Arguments) -> Expr:
    if node.opset < 11:
        low, high = node.attr("min"), node.attr("max")
    else:
        limits = [args.array(index) for index in (1, 2)]
        if any(node.has_input(index + 1) and found is None for index, found in enumerate(limits)):
            return _clip_by_value(node, args)
        low, high = (None if found is None else found.item() for found in limits)
    if low == 0 and high is None:
        return nn.relu(args[0])
    if low is not None and high is not None:
        return op.clip(args[0], low, high) if low <= high else op.full_like(args[0], args.scalar(high, args[0]))
    if low is not None:
        return op.maximum(args[0], args.scalar(low, args[0]))
    return op.copy(args[0]) if high is None else op.minimum(args[0], args.scalar(high, args[0]))


def _clip_by_value(node: Node, args: Arguments) -> Expr:
    value = args[0]
    for index, build in ((1, op.maximum), (2, op.minimum)):
        if node.has_input(index):
            known = args.array(index)
            limit = args[index] if known is None else args.scalar(known.item(), value)
            value = build(value, op.reshape(limit, ()) if args.rank(limit) else limit)
    return value


def _leaky_relu(node: Node, args: Arguments) -> Expr:
    return nn.leaky_relu(args[0], node.attr("alpha", 0.01))


def _positive(args: Arguments, negative: Expr, threshold: float = 0.0) -> Expr:
    """The data where it is above `threshold`, else `negative`."""
    return op.where(op.greater(args[0], args.scalar(threshold, args[0])), args[0], negative)


def _prelu(node: Node, args: Arguments) -> Expr:
    shape, slope = args.dims(args[0]), args.dims(args[1])
    if len(shape) > 1 and slope == (shape[1], *(1,) * (len(shape) - 2)):
        return nn.prelu(args[0], op.reshape(args[1], (-1,)))
    return _positive(args, op.multiply(args[0], args[1]))


def _exponential_part(args: Arguments, inner: float, outer: float) -> Expr:
    """outer * (exp(x / inner) - 1); in float32 for narrower types, which lose all digits for exponentials near 1."""
    x = args[0]
    wide = op.cast(x, "float32") if args.dtype(x) in ("float16", "bfloat16") else x
    scaled = op.divide(wide, args.scalar(inner, wide)) if inner != 1 else wide
    part = op.multiply(op.subtract(op.exp(scaled), args.scalar(1, wide)), args.scalar(outer, wide))
    return part if wide is x else op.cast(part, args.dtype(x))


def _elu(node: Node, args: Arguments) -> Expr:
    return _positive(args, _exponential_part(args, 1.0, node.attr("alpha", 1.0)))


def _selu(node: Node, args: Arguments) -> Expr:
    alpha, gamma = node.attr("alpha", 1.6732631921768188), node.attr("gamma", 1.0507010221481323)
    return op.multiply(_positive(args, _exponential_part(args, 1.0, alpha)), args.scalar(gamma, args[0]))


def _celu(node: Node, args: Arguments) -> Expr:
    alpha = node.attr("alpha", 1.0)
    return _positive(args, _exponential_part(args, alpha, alpha))


def _thresholded_relu(node: Node, args: Arguments) -> Expr:
    return _positive(args, op.zeros_like(args[0]), node.attr("alpha", 1.0))


def _hard_sigmoid_of(args: Arguments, alpha: float, beta: float) -> Expr:
    line = op.add(op.multiply(args[0], args.scalar(alpha, args[0])), args.scalar(beta, args[0]))
    return op.clip(line, 0.0, 1.0)


def _hard_sigmoid(node: Node, args: Arguments) -> Expr:
    return _hard_sigmoid_of(args, node.attr("alpha", 0.2), node.attr("beta", 0.5))


def _hard_swish(node: Node, args: Arguments) -> Expr:
    return op.multiply(args[0], _hard_sigmoid_of(args, 1 / 6, 0.5))


def _softplus(node: Node, args: Arguments) -> Expr:
    """max(x, 0) + log(1 + exp(-|x|)), which does not overflow."""
    small = op.log(op.add(op.exp(op.negative(op.abs(args[0]))), args.scalar(1, args[0])))
    return op.add(nn.relu(args[0]), small)


def _shrink(node: Node, args: Arguments) -> Expr:
    x, limit, bias = args[0], node.attr("lambd", 0.5), args.scalar(node.attr("bias", 0.0), args[0])
    above = op.where(op.greater(x, args.scalar(limit, x)), op.subtract(x, bias), args.scalar(0, x))
    return op.where(op.less(x, args.scalar(-limit, x)), op.add(x, bias), above)


def _softsign(node: Node, args: Arguments) -> Expr:
    return op.divide(args[0], op.add(op.abs(args[0]), args.scalar(1, args[0])))


def _mish(node: Node, args: Arguments) -> Expr:
    """x tanh(log(1 + e)) with e = exp(x), as x n / (n + 2) with n = e (e + 2), which keeps the digits of a small e."""
    two = args.scalar(2, args[0])
    # Above the limit the quotient rounds to 1 in its type, and n overflows in none.
    limit = args.scalar(5 if args.dtype(args[0]) == "float16" else 20, args[0])
    e = op.exp(op.minimum(args[0], limit))
    n = op.multiply(e, op.add(e, two))
    return op.multiply(args[0], op.divide(n, op.add(n, two)))


def _gelu(node: Node, args: Arguments) -> Expr:
    x = args[0]
    if node.attr("approximate", "none") == "tanh":
        cube = op.multiply(op.multiply(x, x), op.multiply(x, args.scalar(0.044715, x)))
        inner = op.tanh(op.multiply(op.add(x, cube), args.scalar(sqrt(2 / pi), x)))
    else:
        inner = op.erf(op.multiply(x, args.scalar(sqrt(0.5), x)))
    half = op.multiply(x, args.scalar(0.5, x))
    return op.multiply(half, op.add(inner, args.scalar(1, x)))


def _reciprocal(node: Node, args: Arguments) -> Expr:
    return op.divide(args.scalar(1, args[0]), args[0])


def _round(node: Node, args: Arguments) -> Expr:
    """Round ties to even; Relay's round rounds them away from zero."""
    below = op.floor(args[0])
    rest, one, half = op.subtract(args[0], below), args.scalar(1, args[0]), args.scalar(0.5, args[0])
    odd = op.not_equal(op.floor_mod(below, args.scalar(2, args[0])), args.scalar(0, args[0]))
    up = op.logical_or(op.greater(rest, half), op.logical_and(op.equal(rest, half), odd))
    return op.where(up, op.add(below, one), below)


def _is_inf(node: Node, args: Arguments) -> Expr:
    found, zero = op.isinf(args[0]), args.scalar(0, args[0])
    if not node.attr("detect_negative", 1):
        found = op.logical_and(found, op.greater(args[0], zero))
    if not node.attr("detect_positive", 1):
        found = op.logical_and(found, op.less(args[0], zero))
    return found


def _where(node: Node, args: Arguments) -> Expr:
    return op.where(args[0], args[1], args[2])


def _check_broadcast(node: Node, known: Known) -> str | None:
    return "the attribute broadcast of opset 6 must not be used" if node.attr("broadcast", 0) else None


CONVERTERS = (
    tuple(Converter(name, _unary(build)) for name, build in UNARY)
    + tuple(Converter(name, _binary(build), _check_broadcast) for name, build in BINARY)
    + tuple(Converter(name, _variadic(build)) for name, build in VARIADIC)
    + (
        Converter("BitShift", _shift),
        Converter("Celu", _celu),
        Converter("Clip", _clip),
        Converter("Elu", _elu),
        Converter("Gelu", _gelu),
        Converter("HardSigmoid", _hard_sigmoid),
        Converter("HardSwish", _hard_swish),
        Converter("IsInf", _is_inf),
        Converter("LeakyRelu", _leaky_relu),
        Converter("Mean", _mean),
        Converter("Mish", _mish),
        Converter("Mod", _mod),
        Converter("PRelu", _prelu),
        Converter("Pow", _power),
        Converter("Reciprocal", _reciprocal),
        Converter("Round", _round),
        Converter("Selu", _selu),
        Converter("Shrink", _shrink),
        Converter("Softplus", _softplus),
        Converter("Softsign", _softsign),
        Converter("ThresholdedRelu", _thresholded_relu),
        Converter("Where", _where),
    )
)
