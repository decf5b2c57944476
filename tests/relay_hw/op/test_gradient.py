"""Gradients of operators against finite differences of their meaning, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.interp import create_executor
from relay_hw.ir.expr import Call, Expr, Op
from relay_hw.op.activation import RELU
from relay_hw.op.broadcast import BINARY
from relay_hw.op.elementwise import UNARY

EXECUTOR = create_executor("debug")
STEP = 1e-6


def value(expr: Expr, binds: dict[relay.Var, Any]) -> np.ndarray:
    return EXECUTOR.evaluate(expr, binds)


def check(build: Callable[..., Call], *values: np.ndarray, free: Sequence[int] | None = None) -> None:
    """Every argument in `free` (all) must have the slope that moving it by a little shows."""
    params = [relay.Var(f"x{i}", relay.TensorType(v.shape, str(v.dtype))) for i, v in enumerate(values)]
    call = build(*params)
    assert isinstance(call.op, Op) and call.op.gradient is not None
    binds = dict(zip(params, values, strict=True))
    weights = np.random.default_rng(1).normal(size=value(call, binds).shape)
    adjoint = relay.Var("g", relay.TensorType(weights.shape, "float64"))
    found = [value(part, binds | {adjoint: weights}) for part in call.op.gradient(call, adjoint)]
    assert len(found) == len(values)
    for index, (given_value, slope) in enumerate(zip(values, found, strict=True)):
        assert slope.shape == given_value.shape and slope.dtype == given_value.dtype
        if free is None or index in free:
            np.testing.assert_allclose(slope, difference(call, binds, params[index], weights), rtol=1e-5, atol=1e-6)


def difference(call: Call, binds: dict[relay.Var, Any], param: relay.Var, weights: np.ndarray) -> np.ndarray:
    slope = np.zeros_like(binds[param])
    for place in np.ndindex(slope.shape):
        moved = [binds[param].copy(), binds[param].copy()]
        moved[0][place] += STEP
        moved[1][place] -= STEP
        up, down = (np.sum(weights * value(call, binds | {param: new})) for new in moved)
        slope[place] = (up - down) / (2 * STEP)
    return slope


# Where each function is smooth: not at kinks, steps, and the ends of domains.
RANGES = {"acosh": (1.2, 4), "acos": (-0.9, 0.9), "asin": (-0.9, 0.9), "atanh": (-0.9, 0.9), "tan": (-1.2, 1.2)}
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")
NO_REALS = {"bitwise_not", "logical_not", "isfinite", "isinf", "isnan"}


@pytest.mark.parametrize("operator", (*UNARY, RELU), ids=lambda operator: operator.name)
def test_one_argument(operator: Op) -> None:
    if operator.name in NO_REALS:
        assert operator.gradient is None
        return
    low, high = (0.3, 3) if operator.name in POSITIVE else RANGES.get(operator.name, (-3, 3))
    x = np.random.default_rng(0).uniform(low, high, (2, 3))
    x += 0.01 * (np.abs(x * 2 - np.round(x * 2)) < 0.01)
    check(lambda a: Call(operator, (a,)), x)


SHAPES = st.sampled_from(
    [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((1,), ()), ((2, 1, 2), (3, 1))]
)
REAL = [operator for operator in BINARY if operator.gradient is not None]


def test_operators_of_two_arguments_with_a_gradient() -> None:
    names = "add divide floor_divide floor_mod maximum minimum mod multiply power subtract trunc_divide trunc_mod"
    assert sorted(operator.name for operator in REAL) == names.split()


@pytest.mark.parametrize("operator", REAL, ids=lambda operator: operator.name)
@settings(max_examples=6, deadline=None)
@given(SHAPES, st.integers(0, 2**20))
def test_two_arguments(operator: Op, shapes: tuple[tuple[int, ...], tuple[int, ...]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = (np.asarray(rng.uniform(0.5, 3, shape) * rng.choice([-1, 1], shape)) for shape in shapes)
    if operator.name == "power":
        a = np.asarray(np.abs(a))
    with np.errstate(all="ignore"):
        quotient = a / b
    # Away from ties and steps.
    if np.any(np.abs(quotient - np.round(quotient)) < 1e-3):
        return
    check(lambda x, y: Call(operator, (x, y)), a, b)


def test_kinks() -> None:
    zero = np.zeros(1)
    for build, values, expected in (
        (op.nn.relu, [zero], [0]),
        (op.abs, [zero], [0]),
        (op.maximum, [zero, zero], [1, 0]),
        (op.minimum, [zero, zero], [1, 0]),
        (lambda x: op.clip(x, 0, 1), [zero], [1]),
        (op.power, [zero, zero], [0, 0]),
        (op.power, [zero, zero + 2], [0, 0]),
        (op.power, [zero - 2, zero + 3], [12, 0]),
    ):
        params = [relay.Var(f"x{i}", relay.TensorType((1,), "float64")) for i in range(len(values))]
        call = build(*params)
        adjoint = relay.Constant(np.ones(1))
        binds = dict(zip(params, values, strict=True))
        assert [float(value(part, binds)[0]) for part in call.op.gradient(call, adjoint)] == expected


def test_operators_with_attributes() -> None:
    x = np.array([[-2.5, -0.5, 0.25], [0.75, 1.5, 3.0]])
    check(lambda a: op.clip(a, -1.0, 1.0), x)
    check(lambda a: op.nn.leaky_relu(a, 0.1), x)
    check(lambda a: op.cast(a, "float64"), x)
    check(op.cast_like, x, np.ones(2))


def test_cast_returns_to_the_element_type() -> None:
    x = relay.Var("x", relay.TensorType((2,), "float32"))
    call = op.cast(x, "float64")
    (found,) = call.op.gradient(call, relay.Constant(np.array([0.5, 2.0])))
    slope = value(found, {x: np.zeros(2, "float32")})
    assert slope.dtype == np.float32 and slope.tolist() == [0.5, 2.0]


def test_where() -> None:
    condition = np.array([[True, False, True]])
    check(op.where, condition, np.ones((2, 3)), np.full((2, 1), 2.0), free=(1, 2))


def test_second_derivative_of_power() -> None:
    a, b = (relay.Var(name, relay.TensorType((2,), "float64")) for name in "ab")
    call = op.power(a, b)
    first, _ = call.op.gradient(call, relay.Constant(np.ones(2)))
    values = {a: np.array([1.5, 2.0]), b: np.array([3.0, 0.5])}
    np.testing.assert_allclose(value(first, values), values[b] * values[a] ** (values[b] - 1))
