"""Binary operators with broadcasting: arithmetic, comparisons, logic, shifts; and `where`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

import numpy as np

from relay_hw.errors import EvalError
from relay_hw.ir.expr import Call, Expr, FusionPattern, Op
from relay_hw.ir.types import TensorType, Type
from relay_hw.op.base import (
    ELEMENTWISE,
    Array,
    broadcast_shapes,
    call,
    divide_trunc,
    out_type,
    rule,
    same_dtype,
)
from relay_hw.op.gradients.common import (
    choose,
    collapse,
    number,
    ops,
    zeros,
)

__all__ = [
    "add",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "divide",
    "equal",
    "floor_divide",
    "floor_mod",
    "greater",
    "greater_equal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "not_equal",
    "power",
    "right_shift",
    "subtract",
    "trunc_divide",
    "trunc_mod",
    "where",
]

Function = Callable[[Array, Array], AnyValue]
# (arguments, result, adjoint of the result) -> adjoint of each argument, in the shape of the result
Slopes = Callable[[Expr, Expr, Expr, Expr], tuple[Expr, Expr]]


def _binary(name: str, function: Function, doc: str, dtype: str | None = None, *, slopes: Slopes | None = None) -> Op:
    @rule(name, 2)
    def relation(attrs: None, lhs: TensorType, rhs: TensorType) -> Type:
        common = same_dtype(name, lhs, rhs)
        return TensorType(broadcast_shapes(name, (lhs.shape, rhs.shape)), dtype or common)

    def reference(attrs: None, values: Sequence[Array], result: Type) -> Array:
        with np.errstate(all="ignore"):
            value = function(np.asarray(values[0]), np.asarray(values[1]))
        return np.asarray(value).astype(out_type(result).dtype, copy=False)

    def gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
        assert slopes is not None
        a, b = call.args
        to_a, to_b = slopes(a, b, call, adjoint)
        return collapse(to_a, call, a), collapse(to_b, call, b)

    slope = gradient if slopes else None
    return Op(
        name, 2, relation, reference, pattern=FusionPattern.BROADCAST, gradient=slope, traits=ELEMENTWISE, doc=doc
    )


def _builder(op: Op) -> Callable[[Expr, Expr], Call]:
    def build(lhs: Expr, rhs: Expr) -> Call:
        return call(op, (lhs, rhs))

    build.__doc__ = op.doc
    build.__name__ = op.name
    return build


def _guarded(name: str, integer: Function, real: Function) -> Function:
    """Division: floats follow IEEE 754, integers refuse zero."""

    def divide(a: Array, b: Array) -> AnyValue:
        if a.dtype.kind == "f":
            return real(a, b)
        if not np.all(b):
            raise EvalError(f"the divisor of {name} must not be 0 in integers")
        return integer(a, b)

    return divide


def _power(a: Array, b: Array) -> AnyValue:
    if b.dtype.kind == "i" and np.any(b < 0):
        raise EvalError("the exponent of power must not be negative in integers")
    return np.power(a, b)


def _shift(function: Function) -> Function:
    """Shifts; counts of at least the bit width act like repeated shifts by one."""

    def shift(a: Array, b: Array) -> AnyValue:
        bits = a.dtype.itemsize * 8
        near = function(a, np.clip(b, 0, bits - 1).astype(a.dtype))
        return np.where(b >= bits, function(near, np.ones_like(near)), near)

    return shift


def _power_slopes(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
    op = ops()
    # A base of 0 or below has no logarithm; 0 to a positive power stays 0 when the power changes.
    is_positive = op.greater(a, number(0, a))
    logarithm = op.log(choose(is_positive, a, number(1, a)))
    # 0 to the power of 0 is as constant as every other number to the power of 0.
    to_base = choose(op.not_equal(b, number(0, b)), g * b * op.power(a, b - number(1, b)), like=b)
    return to_base, choose(is_positive, g * y * logarithm, like=a)


def _chosen(first: str) -> Slopes:
    def slopes(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
        is_first = getattr(ops(), first)(a, b)
        return choose(is_first, g, like=a), choose(ops().logical_not(is_first), g, like=a)

    return slopes


def _remainder(quotient: str) -> Slopes:
    return lambda a, b, y, g: (g, -(g * getattr(ops(), quotient)(a, b)))


def _steps(a: Expr, b: Expr, y: Expr, g: Expr) -> tuple[Expr, Expr]:
    return zeros(y), zeros(y)


BINARY = (
    _binary("add", np.add, "a + b", slopes=lambda a, b, y, g: (g, g)),
    _binary("subtract", np.subtract, "a - b", slopes=lambda a, b, y, g: (g, -g)),
    _binary("multiply", np.multiply, "a * b", slopes=lambda a, b, y, g: (g * b, g * a)),
    _binary(
        "divide",
        _guarded("divide", divide_trunc, np.divide),
        "a / b; integers toward zero",
        slopes=lambda a, b, y, g: (g / b, -(g * y / b)),
    ),
    _binary(
        "floor_divide",
        _guarded("floor_divide", np.floor_divide, lambda a, b: np.floor(a / b)),
        "floor(a / b)",
        slopes=_steps,
    ),
    _binary(
        "floor_mod", _guarded("floor_mod", np.mod, np.mod), "a - b * floor(a / b)", slopes=_remainder("floor_divide")
    ),
    _binary("mod", _guarded("mod", np.fmod, np.fmod), "a - b * trunc(a / b)", slopes=_remainder("trunc_divide")),
    _binary(
        "trunc_divide",
        _guarded("trunc_divide", divide_trunc, lambda a, b: np.trunc(a / b)),
        "trunc(a / b)",
        slopes=_steps,
    ),
    _binary(
        "trunc_mod", _guarded("trunc_mod", np.fmod, np.fmod), "a - b * trunc(a / b)", slopes=_remainder("trunc_divide")
    ),
    _binary("power", _power, "a to the power of b", slopes=_power_slopes),
    _binary("maximum", np.maximum, "the larger one", slopes=_chosen("greater_equal")),
    _binary("minimum", np.minimum, "the smaller one", slopes=_chosen("less_equal")),
    _binary("left_shift", _shift(np.left_shift), "a * 2**b with wrap-around"),
    _binary("right_shift", _shift(np.right_shift), "floor(a / 2**b)"),
    _binary("bitwise_and", np.bitwise_and, "bitwise and"),
    _binary("bitwise_or", np.bitwise_or, "bitwise or"),
    _binary("bitwise_xor", np.bitwise_xor, "bitwise exclusive or"),
    _binary("logical_and", np.logical_and, "both true"),
    _binary("logical_or", np.logical_or, "one true"),
    _binary("logical_xor", np.logical_xor, "exactly one true"),
    _binary("equal", np.equal, "a == b", "bool"),
    _binary("not_equal", np.not_equal, "a != b", "bool"),
    _binary("less", np.less, "a < b", "bool"),
    _binary("less_equal", np.less_equal, "a <= b", "bool"),
    _binary("greater", np.greater, "a > b", "bool"),
    _binary("greater_equal", np.greater_equal, "a >= b", "bool"),
)

_BY_NAME = {op.name: op for op in BINARY}

add = _builder(_BY_NAME["add"])

subtract = _builder(_BY_NAME["subtract"])

multiply = _builder(_BY_NAME["multiply"])

divide = _builder(_BY_NAME["divide"])

floor_divide = _builder(_BY_NAME["floor_divide"])

floor_mod = _builder(_BY_NAME["floor_mod"])

mod = _builder(_BY_NAME["mod"])

trunc_divide = _builder(_BY_NAME["trunc_divide"])

trunc_mod = _builder(_BY_NAME["trunc_mod"])

power = _builder(_BY_NAME["power"])

maximum = _builder(_BY_NAME["maximum"])

minimum = _builder(_BY_NAME["minimum"])

left_shift = _builder(_BY_NAME["left_shift"])

right_shift = _builder(_BY_NAME["right_shift"])

bitwise_and = _builder(_BY_NAME["bitwise_and"])

bitwise_or = _builder(_BY_NAME["bitwise_or"])

bitwise_xor = _builder(_BY_NAME["bitwise_xor"])

logical_and = _builder(_BY_NAME["logical_and"])

logical_or = _builder(_BY_NAME["logical_or"])

logical_xor = _builder(_BY_NAME["logical_xor"])

equal = _builder(_BY_NAME["equal"])

not_equal = _builder(_BY_NAME["not_equal"])

less = _builder(_BY_NAME["less"])

less_equal = _builder(_BY_NAME["less_equal"])

greater = _builder(_BY_NAME["greater"])

greater_equal = _builder(_BY_NAME["greater_equal"])


@rule("where", 3)
def _where_type(attrs: None, condition: TensorType, x: TensorType, y: TensorType) -> Type:
    dtype = same_dtype("where", x, y)
    return TensorType(broadcast_shapes("where", (condition.shape, x.shape, y.shape)), dtype)


def _where_gradient(call: Call, adjoint: Expr) -> Sequence[Expr]:
    """The adjoint goes to the chosen side; the condition gets none."""
    condition, x, y = call.args
    zero = number(0, x)
    to_x, to_y = choose(condition, adjoint, zero), choose(condition, zero, adjoint)
    return zeros(condition), collapse(to_x, call, x), collapse(to_y, call, y)


WHERE = Op(
    "where",
    3,
    _where_type,
    lambda attrs, values, result: np.where(np.asarray(values[0]) != 0, values[1], values[2]),
    gradient=_where_gradient,
    pattern=FusionPattern.BROADCAST,
    traits=ELEMENTWISE,
    doc="x where the condition is true, else y",
)


def where(condition: Expr, x: Expr, y: Expr) -> Call:
    """`x` where `condition` is true, else `y`; all three broadcast."""
    return call(WHERE, (condition, x, y))


OPS = (*BINARY, WHERE)
