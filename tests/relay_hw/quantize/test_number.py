"""Scales, zero points, multipliers: against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from relay_hw.errors import QuantizeError
from relay_hw.quantize import Strategy, find_strategy
from relay_hw.quantize.number import (
    QParams,
    activation_params,
    layer_weights,
    normalise,
    normalise_together,
    quantize_weight,
    weight_scales,
)

positive = st.fractions(min_value=Fraction(1, 2**40), max_value=Fraction(2**20))
bits = st.integers(8, 31)
reals = st.floats(-1e6, 1e6, width=32)


@settings(max_examples=500, deadline=None)
@given(positive, bits)
@example(Fraction(2**31 - 1, 2**31), 8)  # rounds up to the next power of two
@example(Fraction(2**40 - 1, 2**40), 31)
@example(Fraction(1), 31)
@example(Fraction(1, 3), 31)
def test_a_multiplier_is_normalised_and_close(factor, width):
    assume(factor < 2**width - 1)
    multiplier, shift = normalise(factor, width)
    assert 0 <= shift <= 62
    found = Fraction(multiplier, 2**shift)
    assert multiplier < 2**width
    if factor >= Fraction(2) ** (width - 63):
        assert multiplier >= 2 ** (width - 1), "all bits are used"
        assert abs(found - factor) / factor < Fraction(1, 2 ** (width - 1))
    assert abs(found - factor) <= Fraction(1, 2 ** (shift + 1)), "no other multiplier is nearer"


@settings(max_examples=200, deadline=None)
@given(positive, bits)
def test_no_split_into_multiplier_and_shift_is_nearer(factor, width):
    assume(factor < 2**width - 1)
    multiplier, shift = normalise(factor, width)
    splits = [(int(factor * 2**one) + up, one) for one in range(63) for up in (0, 1)]
    errors = [abs(Fraction(one, 2**other) - factor) for one, other in splits if one < 2**width]
    assert abs(Fraction(multiplier, 2**shift) - factor) == min(errors)


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 2**80), st.integers(60, 160), bits)
def test_tiny_factors_lose_only_what_62_bits_lose(numerator, exponent, width):
    factor = Fraction(numerator, 2**exponent)
    assume(factor < 2**width - 1)
    multiplier, shift = normalise(factor, width)
    assert 0 <= multiplier < 2**width and 0 <= shift <= 62
    # What it changes in a result is below half a unit for every 32-bit accumulator.
    error = abs(Fraction(multiplier, 2**shift) - factor)
    assert error <= max(Fraction(1, 2**63), factor / 2 ** (width - 1))


@pytest.mark.parametrize("width", [8, 16, 31])
def test_a_factor_that_is_too_large_is_refused(width):
    normalise(Fraction(2**width - 1), width)
    with pytest.raises(QuantizeError, match=rf"requantization factor must be less than 2\*\*{width}, not"):
        normalise(Fraction(2**width), width)
    with pytest.raises(QuantizeError, match="must be at least 0, not -1"):
        normalise(Fraction(-1), width)


def test_zero_is_exact():
    assert normalise(Fraction(0), 31) == (0, 0)


@settings(max_examples=200, deadline=None)
@given(positive, positive, bits)
def test_two_multipliers_share_a_shift(left, right, width):
    assume(max(left, right) < 2**width - 1)
    (first, second), shift = normalise_together((left, right), width)
    for factor, multiplier in ((left, first), (right, second)):
        assert 0 <= multiplier < 2**width
        assert abs(Fraction(multiplier, 2**shift) - factor) <= Fraction(1, 2 ** (shift + 1))
    assert normalise(max(left, right), width)[1] == shift


@settings(max_examples=300, deadline=None)
@given(reals, reals, st.sampled_from(["int8", "int8-symmetric", "int8-pow2"]), st.integers(2, 8))
def test_activation_params_hold_the_range_and_zero(a, b, name, width):
    low, high = min(a, b), max(a, b)
    base = find_strategy(name)
    params = activation_params(low, high, Strategy("t", activation_bits=width, symmetric=base.symmetric,
                                                   power_of_two=base.power_of_two).activations)  # fmt: skip
    assert params.low == -(2 ** (width - 1)) and params.high == 2 ** (width - 1) - 1
    assert params.low <= params.zero_point <= params.high
    assert params.quantize(0.0) == params.zero_point
    assert float(np.float32(params.scale)) == params.scale > 0
    for end in (low, high):
        back = (params.quantize(end) - params.zero_point) * params.scale
        # The zero point is rounded, so an end may lie one step outside.
        assert abs(back - end) <= params.scale * 1.001
    if base.symmetric:
        assert params.zero_point == 0
    if base.power_of_two:
        assert np.frexp(params.scale)[0] == 0.5


@given(st.floats(-1e3, 1e3), st.integers(-128, 127))
def test_quantize_is_what_the_operator_does(value, zero_point):
    from relay_hw import op
    from relay_hw.interp import evaluate
    from relay_hw.ir.expr import Function
    from relay_hw.ir.module import IRModule

    value, scale = float(np.float32(value)), 0.25  # a power of two: no rounding but the one that is meant
    body = op.qnn.quantize(op.const(np.float32(value)), op.const(np.float32(scale)), op.const(np.int32(zero_point)))
    found = evaluate(IRModule.from_expr(Function([], body)), [])
    assert int(found) == QParams(scale, zero_point, -128, 127).quantize(value)


INT8 = find_strategy("int8").weights
weights = st.lists(st.lists(st.floats(-1e4, 1e4, width=32), min_size=3, max_size=3), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(weights, st.integers(2, 8), st.booleans())
def test_weights_are_the_nearest_integers(rows, width, per_channel):
    rule = Strategy("t", weight_bits=width, per_channel=per_channel).weights
    weight = np.array(rows, np.float32)
    scales = weight_scales(weight, rule)
    integers = quantize_weight(weight, scales[:, None], rule).astype(np.float64)
    assert np.abs(integers).max() <= 2 ** (width - 1) - 1
    error = np.abs(integers * scales[:, None] - weight)
    assert (error <= scales[:, None] * (0.5 + 1e-4)).all()
    if not per_channel:
        assert len(set(scales)) == 1


@settings(max_examples=200, deadline=None)
@given(
    weights,
    st.lists(st.floats(-1e12, 1e12), min_size=4, max_size=4),
    st.floats(2.0**-20, 1024, width=32),
    st.integers(-128, 127),
    st.sampled_from(["int8", "int8-pow2"]),
    st.booleans(),
)
def test_no_accumulator_can_overflow(rows, bias, scale, zero_point, name, per_channel):
    weight = np.array(rows, np.float32)
    bias = np.array(bias[: len(rows)])
    base = find_strategy(name)
    rule = Strategy("t", per_channel=per_channel, power_of_two=base.power_of_two).weights
    given_params = QParams(scale, zero_point, -128, 127)
    layer = layer_weights(weight, bias, given_params, rule, "conv")
    rows = layer.weight.astype(int).tolist()
    for row, folded, s, b in zip(rows, layer.bias.tolist(), layer.scales, bias, strict=True):
        extremes = [x * sum(row) for x in (-128, 127)]
        worst = [
            folded + sum(w * (127 if (w > 0) == up else -128) for w in row) for up in (True, False)
        ]  # fmt: skip
        assert all(-(2**31) <= value < 2**31 for value in (*extremes, *worst, folded))
        at_zero = folded + zero_point * sum(row)
        assert abs(at_zero * scale * s - b) <= scale * s * 0.5 * (1 + 1e-9) + abs(b) * 1e-12


def test_numbers_that_are_not_finite_are_refused():
    with pytest.raises(QuantizeError, match="weight and bias of conv_1 must be finite, not infinite or NaN"):
        layer_weights(np.array([[np.nan]]), np.zeros(1), QParams(1.0, 0, -128, 127), INT8, "conv_1")


def test_a_channel_of_zeros_keeps_its_bias():
    layer = layer_weights(np.zeros((1, 4)), np.array([3.25]), QParams(0.5, -128, -128, 127), INT8, "c")
    assert layer.weight.tolist() == [[0] * 4]
    assert layer.bias[0] * 0.5 * layer.scales[0] == pytest.approx(3.25, rel=1e-6)
