"""The named integer operations against Python's unbounded integers: exhaustive where small, hypothesis where not."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product
from math import floor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.ir.types import ANY, TensorType
from relay_hw.op.fixed_scale import AddAttrs, MulAttrs, RequantizeAttrs, round_shift
from relay_hw.rounding import ROUNDINGS


def rounded(value: int, shift: int, rounding: str) -> int:
    """value / 2**shift as an exact fraction, rounded by definition."""
    exact = Fraction(value, 2**shift)
    if rounding == "floor":
        return floor(exact)
    if rounding == "half_up":
        return floor(exact + Fraction(1, 2))
    if rounding == "half_away":
        magnitude = floor(abs(exact) + Fraction(1, 2))
        return magnitude if exact >= 0 else -magnitude
    return round(exact)


def wrap32(value: int) -> int:
    return (value + 2**31) % 2**32 - 2**31


def clip(value: int, low: int, high: int) -> int:
    return max(low, min(high, value))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_round_shift_of_every_small_number(rounding: str) -> None:
    values = np.arange(-600, 601)
    for shift in range(12):
        got = round_shift(values, shift, rounding)
        assert got.tolist() == [rounded(int(v), shift, rounding) for v in values], shift


BIG = st.integers(-(2**62), 2**62) | st.sampled_from([-(2**62), 2**62, 2**61, -(2**61), 2**61 + 1, -1, 0, 1])


@settings(max_examples=300)
@given(BIG, st.integers(0, 62), st.sampled_from(ROUNDINGS))
def test_round_shift_of_big_numbers(value: int, shift: int, rounding: str) -> None:
    assert int(round_shift(np.int64(value), shift, rounding)) == rounded(value, shift, rounding)


@settings(max_examples=200)
@given(st.integers(-(2**20), 2**20), st.integers(1, 40), st.sampled_from(ROUNDINGS))
def test_ties(half: int, shift: int, rounding: str) -> None:
    value = (2 * half + 1) << (shift - 1)
    assert int(round_shift(np.int64(value), shift, rounding)) == rounded(value, shift, rounding)


def requantize(acc: Any, bias: Any, **attributes: Any) -> np.ndarray:
    one = op.get("fixed.requantize")
    attrs = RequantizeAttrs(**attributes)
    values = [np.array(acc, np.int32), np.array(bias, np.int32)]
    ty = one.relation([TensorType(value.shape, "int32") for value in values], attrs, Same())
    assert ty == TensorType(values[0].shape, "int8")
    result = one.reference(attrs, values, ty)
    assert result.dtype == np.int8
    return result


class Same:
    def unify(self, left: Any, right: Any) -> Any:
        assert left == right
        return right

    def resolve(self, ty: Any) -> Any:
        return ty


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_requantize_exhaustively(rounding: str) -> None:
    acc = np.arange(-300, 300)
    for multiplier, shift, zero, (low, high) in product((0, 1, 3, 5), (0, 1, 2, 5), (-7, 0), ((-128, 127), (0, 20))):
        got = requantize(
            acc.reshape(1, 1, -1), [13], multiplier=(multiplier,), shift=(shift,), zero_point=zero, rounding=rounding,
            a_min=low, a_max=high,
        )  # fmt: skip
        want = [clip(rounded((int(a) + 13) * multiplier, shift, rounding) + zero, low, high) for a in acc]
        assert got.ravel().tolist() == want, (multiplier, shift, zero, low)


INT32 = st.integers(-(2**31), 2**31 - 1) | st.sampled_from([-(2**31), 2**31 - 1, 0, -1])
MULTIPLIER = st.integers(0, 2**31 - 1) | st.sampled_from([0, 1, 2**30, 2**31 - 1])


@settings(max_examples=300)
@given(
    INT32, INT32, MULTIPLIER, st.integers(0, 62), st.sampled_from(ROUNDINGS), st.integers(-128, 127),
    st.tuples(st.integers(-128, 127), st.integers(-128, 127)),
)  # fmt: skip
def test_requantize_against_big_integers(
    acc: int, bias: int, multiplier: int, shift: int, rounding: str, zero: int, limits: tuple[int, int]
) -> None:
    low, high = sorted(limits)
    got = requantize(
        [[acc]], [bias], multiplier=(multiplier,), shift=(shift,), zero_point=zero, rounding=rounding, a_min=low,
        a_max=high,
    )  # fmt: skip
    want = clip(rounded(wrap32(acc + bias) * multiplier, shift, rounding) + zero, low, high)
    assert got.item() == want


@pytest.mark.parametrize("axis", [1, -1])
def test_requantize_per_channel(axis: int) -> None:
    generator = np.random.default_rng(0)
    acc = generator.integers(-(2**20), 2**20, (2, 4, 3, 4))
    bias = generator.integers(-1000, 1000, 4)
    multipliers = tuple(int(m) for m in generator.integers(2**30, 2**31, 4))
    shifts = (38, 40, 42, 44)
    got = requantize(acc, bias, multiplier=multipliers, shift=shifts, axis=axis)
    for index in np.ndindex(*acc.shape):
        c = index[axis]
        want = clip(rounded((int(acc[index]) + int(bias[c])) * multipliers[c], shifts[c], "half_up"), -128, 127)
        assert got[index] == want


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_add_over_all_pairs_of_int8(rounding: str) -> None:
    one = op.get("fixed.add")
    y, r = (side.ravel().astype(np.int8) for side in np.meshgrid(np.arange(-128, 128, 3), np.arange(-128, 128, 5)))
    for attrs in (
        AddAttrs(1, 1, 0, 0, 0, 0, rounding),
        AddAttrs(3, 5, 3, -7, 11, 4, rounding),
        AddAttrs(2**31 - 1, 2**30 + 1, 32, 127, -128, -128, rounding, -100, 90),
        AddAttrs(0, 7, 1, 0, 0, 0, rounding, 0, 127),
    ):
        ty = TensorType(y.shape, "int8")
        assert one.relation([ty, ty], attrs, Same()) == ty
        want = [
            clip(
                rounded(
                    (a - attrs.y_zero_point) * attrs.y_multiplier + (b - attrs.r_zero_point) * attrs.r_multiplier,
                    attrs.shift,
                    rounding,
                )
                + attrs.zero_point,
                attrs.a_min,
                attrs.a_max,
            )
            for a, b in zip(y.tolist(), r.tolist(), strict=True)
        ]
        assert one.reference(attrs, [y, r], ty).tolist() == want


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_mul_over_all_pairs_of_int8(rounding: str) -> None:
    one = op.get("fixed.mul")
    y, r = (side.ravel().astype(np.int8) for side in np.meshgrid(np.arange(-128, 128, 3), np.arange(-128, 128, 5)))
    for attrs in (
        MulAttrs(1, 0, 0, 0, 0, rounding),
        MulAttrs(5, 9, -7, 11, 4, rounding),
        MulAttrs(2**22 - 1, 29, 127, -128, -128, rounding, -100, 90),
        MulAttrs(0, 3, 0, 0, 1, rounding, 0, 127),
    ):
        ty = TensorType(y.shape, "int8")
        assert one.relation([ty, ty], attrs, Same()) == ty
        want = [
            clip(
                rounded((a - attrs.y_zero_point) * attrs.multiplier * (b - attrs.r_zero_point), attrs.shift, rounding)
                + attrs.zero_point,
                attrs.a_min,
                attrs.a_max,
            )
            for a, b in zip(y.tolist(), r.tolist(), strict=True)
        ]
        assert one.reference(attrs, [y, r], ty).tolist() == want


@pytest.mark.parametrize("shapes", [((1, 3, 4, 5), (1, 3, 1, 1)), ((2, 3, 4, 5), (1, 3, 1, 1)), ((2, 3, 4), (2, 3, 1))])
def test_mul_with_a_number_for_each_channel(
    apply: Callable[..., np.ndarray], shapes: tuple[tuple[int, ...], ...]
) -> None:
    generator = np.random.default_rng(2)
    y, r = (generator.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    whole = np.broadcast_to(r, y.shape).copy()
    numbers = {"multiplier": 77, "shift": 9, "y_zero_point": 3, "r_zero_point": -5}
    np.testing.assert_array_equal(apply(op.fixed.mul, y, r, **numbers), apply(op.fixed.mul, y, whole, **numbers))


def test_table_of_every_number(apply: Callable[..., np.ndarray]) -> None:
    results = np.random.default_rng(3).integers(-128, 128, 256).astype(np.int8)
    numbers = np.arange(-128, 128).astype(np.int8).reshape(16, 16)
    np.testing.assert_array_equal(apply(op.fixed.table, numbers, results).ravel(), results)


def test_mul_and_table_type_errors(refuse: Callable[..., str]) -> None:
    y = TensorType((1, 4, 3, 3), "int8")
    good: dict[str, Any] = {"multiplier": 1, "shift": 0}
    assert refuse(op.fixed.mul, y, TensorType((1, 4, 3, 3)), **good) == (
        "the arguments of fixed.mul must be int8, not float32"
    )
    assert refuse(op.fixed.mul, y, TensorType((1, 3, 1, 1), "int8"), **good) == (
        "the second argument of fixed.mul must have the shape of the first one or a number for each channel, "
        "not Tensor[(1, 3, 1, 1), int8] beside Tensor[(1, 4, 3, 3), int8]"
    )
    assert refuse(op.fixed.mul, y, y, **{**good, "multiplier": 2**22}) == (
        "multiplier of fixed.mul must be in [0, 4194303], not 4194304"
    )
    assert refuse(op.fixed.mul, y, y, **good, multiplier_bits=23) == (
        "multiplier_bits of fixed.mul must be in [1, 22], not 23"
    )
    assert refuse(op.fixed.table, TensorType((4,)), TensorType((256,), "int8")) == (
        "the data of fixed.table must be int8, not float32"
    )
    assert refuse(op.fixed.table, y, TensorType((255,), "int8")) == (
        "the table of fixed.table must have 256 numbers, not (255,)"
    )


def test_sum_pool2d(apply: Callable[..., np.ndarray]) -> None:
    x = np.random.default_rng(1).integers(-128, 128, (1, 3, 5, 6)).astype(np.int8)
    got = apply(op.fixed.sum_pool2d, x, pool_size=(3, 2), strides=(2, 3), padding=(1, 0, 2, 1))
    assert got.dtype == np.int32 and got.shape == (1, 3, 3, 2)
    for _, c, h, w in np.ndindex(*got.shape):
        rows, columns = range(h * 2 - 1, h * 2 + 2), range(w * 3, w * 3 + 2)
        inside = [int(x[0, c, i, j]) for i in rows for j in columns if 0 <= i < 5 and 0 <= j < 6]
        assert got[0, c, h, w] == sum(inside)
    nhwc = apply(
        op.fixed.sum_pool2d,
        x.transpose(0, 2, 3, 1),
        pool_size=(3, 2),
        strides=(2, 3),
        padding=(1, 0, 2, 1),
        layout="NHWC",
    )
    assert (nhwc.transpose(0, 3, 1, 2) == got).all()


def test_requantize_type_errors(refuse: Callable[..., str], infer: Callable) -> None:
    acc, bias = TensorType((1, 4, 2, 2), "int32"), TensorType((4,), "int32")
    good: dict[str, Any] = {"multiplier": 3, "shift": 2}
    build = op.fixed.requantize
    assert infer(build, acc, None, **good) == (TensorType((1, 4, 2, 2), "int8"), [acc, bias])
    assert infer(build, TensorType((1, ANY), "int32"), TensorType((ANY,), "int32"), **good)[0] is not None
    assert refuse(build, TensorType((1, 4)), bias, **good) == "the data of fixed.requantize must be int32, not float32"
    assert refuse(build, acc, TensorType((3,), "int32"), **good) == (
        "the bias of fixed.requantize must be Tensor[(4,), int32], not Tensor[(3,), int32]"
    )
    for change, sentence in (
        ({"multiplier": (1, 2)}, "multiplier and shift of fixed.requantize must both have 1 or 4 numbers, not 2 and 1"),
        ({"multiplier": -1}, "multiplier of fixed.requantize must be in [0, 2147483647], not -1"),
        ({"multiplier": 16, "multiplier_bits": 4}, "multiplier of fixed.requantize must be in [0, 15], not 16"),
        ({"multiplier_bits": 32}, "multiplier_bits of fixed.requantize must be in [1, 31], not 32"),
        ({"shift": 63}, "shift of fixed.requantize must be in [0, 62], not 63"),
        (
            {"rounding": "up"},
            "rounding of fixed.requantize must be one of half_up, half_even, half_away, floor, not up",
        ),
        ({"a_min": -129}, "a_min of fixed.requantize must be in [-128, 127], not -129"),
        ({"a_min": 5, "a_max": 4}, "a_max of fixed.requantize must be in [5, 127], not 4"),
        ({"zero_point": 200}, "zero_point of fixed.requantize must be in [-128, 127], not 200"),
        ({"axis": 4}, "the axis of fixed.requantize must be in [-4, 4), not 4"),
    ):
        assert refuse(build, acc, bias, **{**good, **change}) == sentence


def test_add_and_pool_type_errors(refuse: Callable[..., str]) -> None:
    y = TensorType((1, 4), "int8")
    good: dict[str, Any] = {"y_multiplier": 1, "r_multiplier": 1, "shift": 0}
    assert refuse(op.fixed.add, y, TensorType((1, 4)), **good) == (
        "the arguments of fixed.add must be int8, not float32"
    )
    assert refuse(op.fixed.add, y, TensorType((1, 1), "int8"), **good) == (
        "the arguments of fixed.add must have one shape, not Tensor[(1, 4), int8] and Tensor[(1, 1), int8]"
    )
    assert refuse(op.fixed.add, y, y, **{**good, "r_multiplier": 2**31}) == (
        "r_multiplier of fixed.add must be in [0, 2147483647], not 2147483648"
    )
    assert refuse(op.fixed.add, y, y, **good, y_zero_point=128) == (
        "y_zero_point of fixed.add must be in [-128, 127], not 128"
    )
    assert refuse(op.fixed.sum_pool2d, TensorType((1, 2, 3, 3)), pool_size=2) == (
        "the data of fixed.sum_pool2d must be int8, not float32"
    )
    assert refuse(op.fixed.sum_pool2d, TensorType((1, 2, 3), "int8"), pool_size=2) == (
        "the data of fixed.sum_pool2d must have 4 axes, not (1, 2, 3)"
    )
    assert refuse(op.fixed.sum_pool2d, TensorType((1, 2, 3, 3), "int8"), pool_size=4) == (
        "the window of fixed.sum_pool2d must fit into the padded data, not into (3, 3)"
    )


@settings(max_examples=200)
@given(BIG, st.integers(0, 62), st.sampled_from(ROUNDINGS))
def test_the_lanes_round_the_same_way(value: int, shift: int, rounding: str) -> None:
    """The instruction set states the same arithmetic on its own."""
    from relay_hw.accel.isa import arith
    from relay_hw.accel.isa.spec import Rounding

    lanes = arith.round_shift(np.array([value]), np.array([shift]), Rounding[rounding.upper()])
    assert lanes.tolist() == [int(round_shift(np.int64(value), shift, rounding))]
