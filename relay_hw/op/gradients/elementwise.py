"""Gradients of elementwise and broadcasting operators. In: a call, its result's adjoint. Out: the arguments' adjoints.

Where a function has a kink, one of the slopes beside it is taken: 0 for relu at 0, the first argument's for maximum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from relay_hw.ir.expr import Call, Expr, Gradient
from relay_hw.op.gradients.common import choose, collapse, in_type, number, zeros
from relay_hw.op.gradients.common import ops as _op

# (argument, result, adjoint of the result) -> adjoint of the argument
Slope = Callable[[Expr, Expr, Expr], Expr]
# (arguments, result, adjoint of the result) -> adjoint of each argument, in the shape of the result
Slopes = Callable[[Expr, Expr, Expr, Expr], tuple[Expr, Expr]]


def _none(x: Expr, y: Expr, g: Expr) -> Expr:
    return zeros(x)


def _same(x: Expr, y: Expr, g: Expr) -> Expr:
    return g


def _over_root(sign: float, root: Callable[[Expr, Expr], Expr]) -> Slope:
    """g * sign / sqrt(root(x * x, 1))"""
    return lambda x, y, g: g * number(sign, x) * _op().rsqrt(root(x * x, number(1, x)))


def _erf(x: Expr, y: Expr, g: Expr) -> Expr:
    return g * number(2 / math.sqrt(math.pi), x) * _op().exp(-(x * x))


def _acosh(x: Expr, y: Expr, g: Expr) -> Expr:
    one, op = number(1, x), _op()
    return g * op.rsqrt(x - one) * op.rsqrt(x + one)


_SLOPES: Final[Mapping[str, Slope]] = {
    "abs": lambda x, y, g: g * _op().sign(x),
    "acos": _over_root(-1, lambda square, one: one - square),
    "acosh": _acosh,
    "asin": _over_root(1, lambda square, one: one - square),
    "asinh": _over_root(1, lambda square, one: square + one),
    "atan": lambda x, y, g: g / (x * x + number(1, x)),
    "atanh": lambda x, y, g: g / (number(1, x) - x * x),
    "ceil": _none,
    "copy": _same,
    "cos": lambda x, y, g: -(g * _op().sin(x)),
    "cosh": lambda x, y, g: g * _op().sinh(x),
    "erf": _erf,
    "exp": lambda x, y, g: g * y,
    "fast_erf": _erf,
    "fast_exp": lambda x, y, g: g * y,
    "fast_tanh": lambda x, y, g: g * (number(1, x) - y * y),
    "floor": _none,
    "log": lambda x, y, g: g / x,
    "log10": lambda x, y, g: g / (x * number(math.log(10), x)),
    "log2": lambda x, y, g: g / (x * number(math.log(2), x)),
    "negative": lambda x, y, g: -g,
    "nn.relu": lambda x, y, g: choose(_op().greater(x, number(0, x)), g, like=x),
    "round": _none,
    "rsqrt": lambda x, y, g: g * number(-0.5, x) * y / x,
    "sigmoid": lambda x, y, g: g * y * (number(1, x) - y),
    "sign": _none,
    "sin": lambda x, y, g: g * _op().cos(x),
    "sinh": lambda x, y, g: g * _op().cosh(x),
    "sqrt": lambda x, y, g: g * number(0.5, x) / y,
    "tan": lambda x, y, g: g * (number(1, x) + y * y),
    "tanh": lambda x, y, g: g * (number(1, x) - y * y),
    "trunc": _none,
    "zeros_like": _none,
    "ones_like": _none,
    "annotation.stop_fusion": _same,
}


def unary(name: str) -> Gradient | None:
    """The gradient of an operator of one argument, None where its result is no real number."""
    slope = _SLOPES.get(name)
    if slope is None:
        return None

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        return (slope(call.args[0], call, adjoint),)

    return gradient


def _power(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
    op = _op()
    # A base of 0 or below has no logarithm; 0 to a positive power stays 0 when the power changes.
    is_positive = op.greater(a, number(0, a))
    logarithm = op.log(choose(is_positive, a, number(1, a)))
    # 0 to the power of 0 is as constant as every other number to the power of 0.
    to_base = choose(op.not_equal(b, number(0, b)), g * b * op.power(a, b - number(1, b)), like=b)
    return to_base, choose(is_positive, g * y * logarithm, like=a)


def _chosen(first: str) -> Slopes:
    def slopes(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
        is_first = getattr(_op(), first)(a, b)
        return choose(is_first, g, like=a), choose(_op().logical_not(is_first), g, like=a)

    return slopes


def _remainder(quotient: str) -> Slopes:
    return lambda a, b, y, g: (g, -(g * getattr(_op(), quotient)(a, b)))


def _steps(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
    return zeros(y), zeros(y)


_BINARY: Final[Mapping[str, Slopes]] = {
    "add": lambda a, b, y, g: (g, g),
    "subtract": lambda a, b, y, g: (g, -g),
    "multiply": lambda a, b, y, g: (g * b, g * a),
    "divide": lambda a, b, y, g: (g / b, -(g * y / b)),
    "floor_divide": _steps,
    "floor_mod": _remainder("floor_divide"),
    "mod": _remainder("trunc_divide"),
    "trunc_divide": _steps,
    "trunc_mod": _remainder("trunc_divide"),
    "power": _power,
    "maximum": _chosen("greater_equal"),
    "minimum": _chosen("less_equal"),
}


def binary(name: str) -> Gradient | None:
    """The gradient of an operator of two arguments that broadcast, None where its result is no real number."""
    slopes = _BINARY.get(name)
    if slopes is None:
        return None

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        a, b = call.args
        to_a, to_b = slopes(a, b, call, adjoint)
        return collapse(to_a, call, a), collapse(to_b, call, b)

    return gradient


def clip(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Inside the limits, and on them, the adjoint passes."""
    op, (x,) = _op(), call.args
    low, high = number(call.attrs.a_min, x), number(call.attrs.a_max, x)
    is_inside = op.logical_and(op.greater_equal(x, low), op.less_equal(x, high))
    return (choose(is_inside, adjoint, like=x),)


def cast(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint in the argument's element type; what `cast_like` imitates gets none."""
    return (in_type(adjoint, call.args[0], call), *(zeros(like) for like in call.args[1:]))


def leaky_relu(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint where x is positive, alpha times it elsewhere."""
    op, (x,) = _op(), call.args
    return (op.where(op.greater(x, number(0, x)), adjoint, adjoint * number(call.attrs.alpha, x)),)


def where(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint goes to the chosen side; the condition gets none."""
    condition, x, y = call.args
    zero = number(0, x)
    to_x, to_y = choose(condition, adjoint, zero), choose(condition, zero, adjoint)
    return zeros(condition), collapse(to_x, call, x), collapse(to_y, call, y)


def prelu(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """Each channel's slope gets the sum over its negative elements."""
    op, (x, alpha) = _op(), call.args
    rank = x.tensor_type.rank
    axis = call.attrs.axis % rank
    is_positive = op.greater(x, number(0, x))
    along = op.expand_dims(alpha, 1, rank - 1 - axis)
    to_alpha = op.sum(op.where(is_positive, number(0, x), adjoint * x), axis, exclude=True)
    return op.where(is_positive, adjoint, adjoint * along), to_alpha
