"""Operators of two arguments: integers exhaustively against Python, shapes against numpy."""

from __future__ import annotations

from collections.abc import Callable
from math import fmod, trunc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import EvalError, TypeCheckError
from relay_hw.ir.types import ANY, DimVar, TensorType
from relay_hw.op.base import broadcast_shapes


def wrap8(value: int) -> int:
    return (value + 128) % 256 - 128


def toward_zero(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


INTEGERS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}
DIVISIONS: dict[str, Callable[[int, int], int]] = {
    "divide": toward_zero,
    "trunc_divide": toward_zero,
    "floor_divide": lambda a, b: a // b,
    "floor_mod": lambda a, b: a % b,
    "mod": lambda a, b: a - b * toward_zero(a, b),
    "trunc_mod": lambda a, b: a - b * toward_zero(a, b),
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}
ALL = np.arange(-128, 128)
SOME = np.array([-128, -127, -100, -7, -3, -2, -1, 0, 1, 2, 3, 5, 64, 100, 127])
PAIRS = np.array([(a, b) for a in ALL for b in SOME])


@pytest.mark.parametrize("name", INTEGERS)
def test_int8_arithmetic_wraps(apply: Callable[..., np.ndarray], name: str) -> None:
    got = apply(getattr(op, name), PAIRS[:, 0].astype(np.int8), PAIRS[:, 1].astype(np.int8))
    assert got.tolist() == [wrap8(INTEGERS[name](int(a), int(b))) for a, b in PAIRS]


@pytest.mark.parametrize("name", DIVISIONS)
def test_int8_division(apply: Callable[..., np.ndarray], name: str) -> None:
    pairs = [(int(a), int(b)) for a, b in PAIRS if b and (a, b) != (-128, -1)]
    a, b = (np.array(side, np.int8) for side in zip(*pairs, strict=True))
    assert apply(getattr(op, name), a, b).tolist() == [DIVISIONS[name](x, y) for x, y in pairs]


@pytest.mark.parametrize("name", DIVISIONS)
def test_integer_division_by_zero_is_refused(apply: Callable[..., np.ndarray], name: str) -> None:
    with pytest.raises(EvalError, match=f"the divisor of {name} must not be 0 in integers"):
        apply(getattr(op, name), np.array([1, 2]), np.array([1, 0]))


def test_float_division(apply: Callable[..., np.ndarray]) -> None:
    a, b = np.array([7.5, -7.5, 1, -1], np.float32), np.array([2, 2, 0, 0], np.float32)
    assert apply(op.divide, a, b).tolist() == [3.75, -3.75, np.inf, -np.inf]
    assert apply(op.floor_divide, a, b)[:2].tolist() == [3, -4]
    assert apply(op.trunc_divide, a, b)[:2].tolist() == [trunc(3.75), trunc(-3.75)]
    assert apply(op.mod, a, b)[:2].tolist() == [fmod(7.5, 2), fmod(-7.5, 2)]
    assert apply(op.floor_mod, a, b)[:2].tolist() == [1.5, 0.5]


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_give_bool(apply: Callable[..., np.ndarray], name: str) -> None:
    a, b = np.array([1.0, 2.0, np.nan, -1]), np.array([1.0, 1.0, np.nan, 3])
    got = apply(getattr(op, name), a, b)
    assert got.dtype == bool and got.tolist() == [
        COMPARISONS[name](float(x), float(y)) for x, y in zip(a, b, strict=True)
    ]


def test_logic(apply: Callable[..., np.ndarray]) -> None:
    a, b = np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)
    assert apply(op.logical_and, a, b).tolist() == [False, False, False, True]
    assert apply(op.logical_or, a, b).tolist() == [False, True, True, True]
    assert apply(op.logical_xor, a, b).tolist() == [False, True, True, False]


def test_shifts(apply: Callable[..., np.ndarray]) -> None:
    x = np.repeat(ALL, 9).astype(np.int8)
    by = np.tile(np.arange(9), 256).astype(np.int8)
    pairs = list(zip(x.tolist(), by.tolist(), strict=True))
    assert apply(op.right_shift, x, by).tolist() == [a >> b for a, b in pairs]
    assert apply(op.left_shift, x, by).tolist() == [wrap8(a << b) for a, b in pairs]


def test_power(apply: Callable[..., np.ndarray]) -> None:
    assert apply(op.power, np.array([2, -3], np.int32), np.array([10, 3], np.int32)).tolist() == [1024, -27]
    with pytest.raises(EvalError, match="the exponent of power must not be negative in integers"):
        apply(op.power, np.array([2]), np.array([-1]))


def test_where_broadcasts_all_three(apply: Callable[..., np.ndarray]) -> None:
    condition = np.array([[True], [False]])
    got = apply(op.where, condition, np.array([1, 2, 3]), np.array(9))
    assert got.tolist() == [[1, 2, 3], [9, 9, 9]]


def test_prelu(apply: Callable[..., np.ndarray], infer: Callable, refuse: Callable[..., str]) -> None:
    x = np.array([[[-1.0, 2.0]], [[-4.0, 4.0]]], np.float32).reshape(1, 2, 1, 2)
    got = apply(op.nn.prelu, x, np.array([0.5, 0.25], np.float32))
    assert got.ravel().tolist() == [-0.5, 2, -1, 4]
    assert infer(op.nn.prelu, TensorType((1, 4, 2)), None)[1][1] == TensorType((4,))
    message = refuse(op.nn.prelu, TensorType((1, 4, 2)), TensorType((3,)))
    assert message == "the alpha of nn.prelu must be Tensor[(4,), float32], not Tensor[(3,), float32]"


SHAPES = st.lists(st.integers(1, 3), max_size=4)


@given(SHAPES, SHAPES)
def test_broadcasting_agrees_with_numpy(a: list[int], b: list[int]) -> None:
    try:
        want = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        with pytest.raises(TypeCheckError, match="the shapes of add's arguments must broadcast, not"):
            broadcast_shapes("add", (a, b))
    else:
        assert broadcast_shapes("add", (a, b)) == want


def test_unknown_dimensions_follow_relays_rule() -> None:
    n = DimVar("n")
    assert broadcast_shapes("add", ((ANY, 3), (5, 1))) == (5, 3)
    assert broadcast_shapes("add", ((ANY,), (1,))) == (ANY,)
    assert broadcast_shapes("add", ((ANY,), (ANY,))) == (ANY,)
    assert broadcast_shapes("add", ((n, 2), (n, 2))) == (n, 2)
    assert broadcast_shapes("add", ((n,), (1,))) == (n,)


def test_type_errors(refuse: Callable[..., str]) -> None:
    assert refuse(op.add, TensorType((2, 3)), TensorType((4,))) == (
        "the shapes of add's arguments must broadcast, not (2, 3) and (4,)"
    )
    assert refuse(op.add, TensorType((2,)), TensorType((2,), "int8")) == (
        "the element types of add's arguments must be equal, not float32 and int8"
    )
