"""Elementwise operators against Python's math and integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.types import TensorType

POSITIVE = [0.1, 0.5, 1.0, 2.5, 7.0]
UNIT = [-0.9, -0.25, 0.0, 0.3, 0.99]
ANYWHERE = [-3.5, -1.0, -0.2, 0.0, 0.4, 1.0, 2.75]
ABOVE_ONE = [1.0, 1.5, 4.0, 20.0]
MATH: list[tuple[str, Callable[[float], float], list[float]]] = [
    ("acos", math.acos, UNIT),
    ("acosh", math.acosh, ABOVE_ONE),
    ("asin", math.asin, UNIT),
    ("asinh", math.asinh, ANYWHERE),
    ("atan", math.atan, ANYWHERE),
    ("atanh", math.atanh, UNIT),
    ("abs", math.fabs, ANYWHERE),
    ("ceil", math.ceil, ANYWHERE),
    ("copy", lambda x: x, ANYWHERE),
    ("cos", math.cos, ANYWHERE),
    ("cosh", math.cosh, ANYWHERE),
    ("erf", math.erf, ANYWHERE),
    ("exp", math.exp, ANYWHERE),
    ("fast_erf", math.erf, ANYWHERE),
    ("fast_exp", math.exp, ANYWHERE),
    ("fast_tanh", math.tanh, ANYWHERE),
    ("floor", math.floor, ANYWHERE),
    ("log", math.log, POSITIVE),
    ("log10", math.log10, POSITIVE),
    ("log2", math.log2, POSITIVE),
    ("negative", lambda x: -x, ANYWHERE),
    ("ones_like", lambda x: 1, ANYWHERE),
    ("rsqrt", lambda x: 1 / math.sqrt(x), POSITIVE),
    ("sigmoid", lambda x: 1 / (1 + math.exp(-x)), ANYWHERE),
    ("sign", lambda x: (x > 0) - (x < 0), ANYWHERE),
    ("sin", math.sin, ANYWHERE),
    ("sinh", math.sinh, ANYWHERE),
    ("sqrt", math.sqrt, POSITIVE),
    ("tan", math.tan, UNIT),
    ("tanh", math.tanh, ANYWHERE),
    ("trunc", math.trunc, ANYWHERE),
    ("zeros_like", lambda x: 0, ANYWHERE),
]


@pytest.mark.parametrize(("name", "function", "points"), MATH, ids=[name for name, _, _ in MATH])
def test_floats_follow_math(
    apply: Callable[..., np.ndarray], name: str, function: Callable, points: list[float]
) -> None:
    for dtype, tolerance in (("float32", 3e-6), ("float64", 1e-12)):
        got = apply(getattr(op, name), np.array(points, dtype))
        np.testing.assert_allclose(
            got, [function(float(np.array(x, dtype))) for x in points], rtol=tolerance, atol=tolerance
        )


def test_relu_and_leaky_relu(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([-2.0, -0.5, 0.0, 3.0], np.float32)
    assert apply(op.nn.relu, x).tolist() == [0, 0, 0, 3]
    assert apply(op.nn.leaky_relu, x, alpha=0.5).tolist() == [-1, -0.25, 0, 3]
    assert apply(op.nn.relu, np.array([-128, -1, 0, 127], np.int8)).tolist() == [0, 0, 0, 127]


def test_sigmoid_does_not_warn_at_the_ends(apply: Callable[..., np.ndarray], recwarn: pytest.WarningsRecorder) -> None:
    assert apply(op.sigmoid, np.array([-1000, 1000], np.float32)).tolist() == [0, 1]
    assert not recwarn.list


@given(st.floats(-1e6, 1e6, width=32))
def test_round_is_to_nearest_with_ties_away(x: float) -> None:
    exact = Fraction(x)
    want = math.floor(abs(exact) + Fraction(1, 2)) * (1 if x >= 0 else -1)
    got = op.get("round").reference(None, [np.array(x, np.float32)], TensorType((), "float32"))
    assert int(got) == want


def test_round_of_the_float_below_one_half(apply: Callable[..., np.ndarray]) -> None:
    below = np.nextafter(np.float32(0.5), np.float32(0))
    assert apply(op.round, np.array([below, -below, 0.5, -0.5, 2.5, -2.5], np.float32)).tolist() == [0, 0, 1, -1, 3, -3]


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc"])
def test_rounding_leaves_big_integers_alone(apply: Callable[..., np.ndarray], name: str) -> None:
    x = np.array([2**31 - 1, -(2**31), 5], np.int32)
    assert apply(getattr(op, name), x).tolist() == x.tolist()


def test_integers_wrap(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([-128, 127, 0], np.int8)
    assert apply(op.negative, x).tolist() == [-128, -127, 0]
    assert apply(op.abs, x).tolist() == [-128, 127, 0]
    assert apply(op.bitwise_not, x).tolist() == [127, -128, -1]


def test_predicates(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    assert apply(op.isnan, x).tolist() == [True, False, False, False]
    assert apply(op.isinf, x).tolist() == [False, True, True, False]
    assert apply(op.isfinite, x).tolist() == [False, False, False, True]
    assert apply(op.logical_not, np.array([True, False])).tolist() == [False, True]


def test_clip(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    x = np.arange(-128, 128).astype(np.int8)
    got = apply(op.clip, x, a_min=-3.5, a_max=200.0)
    assert got.tolist() == [max(int(v), -3) for v in x]
    assert apply(op.clip, np.array([0, 255], np.uint8), a_min=-5, a_max=6).tolist() == [0, 6]
    message = refuse(op.clip, TensorType((2,)), a_min=2.0, a_max=1.0)
    assert message == "a_min of clip must be at most a_max, not 2.0 with a_max 1.0"


def test_cast(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([-2.9, -0.5, 0.5, 2.9], np.float32)
    assert apply(op.cast, x, dtype="int32").tolist() == [-2, 0, 0, 2]
    assert apply(op.cast, x, dtype="bool").tolist() == [True] * 4
    wide = np.array([300, -129, 128], np.int32)
    assert apply(op.cast, wide, dtype="int8").tolist() == [44, 127, -128]
    assert apply(op.cast_like, wide, np.zeros(1, np.uint8)).tolist() == [44, 127, 128]


def test_reinterpret(apply: Callable[..., np.ndarray], refuse: Callable[..., str]) -> None:
    assert apply(op.reinterpret, np.array([1.0], np.float32), dtype="int32").tolist() == [0x3F800000]
    message = refuse(op.reinterpret, TensorType((2,), "int8"), dtype="int32")
    assert message == "reinterpret must keep the number of bits, not go from int8 to int32"


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.integers(-40, 33),
)
def test_fixed_point_multiply_against_big_integers(x: int, multiplier: int, shift: int) -> None:
    want = math.floor(x * multiplier / Fraction(2) ** (31 - shift) + Fraction(1, 2))
    attrs = op.get("fixed_point_multiply").attrs_type(multiplier, shift)  # type: ignore[misc]
    got = op.get("fixed_point_multiply").reference(attrs, [np.array(x, np.int32)], TensorType((), "int32"))
    assert int(got) == (want + 2**31) % 2**32 - 2**31


def test_an_argument_that_is_no_tensor_is_refused(refuse: Callable[..., str]) -> None:
    from relay_hw.ir.types import TupleType

    message = refuse(op.exp, TupleType([TensorType((2, 3), "int8"), TensorType(())]))
    assert message == "argument 1 of exp must be a tensor, not (Tensor[(2, 3), int8], Tensor[(), float32])"


def test_unknown_arguments_wait(infer: Callable) -> None:
    for build in (op.exp, op.nn.relu, op.zeros_like):
        assert infer(build, None)[0] is None
