"""Simulated quantization: integers against a loop, small formats against tables of all their numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.errors import TypeCheckError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op.number_formats import FORMATS, to_format
from relay_hw.op.simulated import simulated_format, simulated_quantize
from relay_hw.transform.gradient import gradient


def _scalar(value: float):
    return op.const(np.float32(value))


def _apply(build, x: np.ndarray) -> np.ndarray:
    var = Var("x", TensorType(x.shape, "float32"))
    return evaluate(infer_type(IRModule.from_expr(Function([var], build(var)))), [x.astype("float32")])


def _numbers(exponents: int, mantissa: int, bias: int, largest: float) -> np.ndarray:
    """Every number of a format, from its fields."""
    found = set()
    for exponent in range(2**exponents):
        for part in range(2**mantissa):
            whole = part / 2**mantissa + (exponent > 0)
            found.add(whole * 2.0 ** (max(exponent, 1) - bias))
    kept = sorted(value for value in found if value <= largest)
    return np.array([-value for value in reversed(kept)] + kept[1:])


TABLES = {
    "fp8_e4m3": _numbers(4, 3, 7, 448),
    "fp8_e5m2": _numbers(5, 2, 15, 57344),
    "mxfp8": _numbers(4, 3, 7, 448),
    "mxfp6": _numbers(2, 3, 1, 7.5),
    "mxfp4": _numbers(2, 1, 1, 6),
    "mxint8": np.arange(-127, 128) / 64,
}


@pytest.mark.parametrize(("rounding", "want"), [("round", [-2, -1, 0, 1, 2, 2]), ("floor", [-2, -1, 0, 0, 1, 2]),
    ("ceil", [-1, 0, 0, 1, 2, 2]), ("trunc", [-1, 0, 0, 0, 1, 2]), ("half_even", [-2, 0, 0, 0, 2, 2]),
    ("passthrough", [-1.5, -0.5, 0, 0.5, 1.5, 2])])  # fmt: skip
def test_roundings(rounding, want):
    x = np.array([-0.75, -0.25, 0.0, 0.25, 0.75, 9.0])
    found = _apply(lambda v: simulated_quantize(v, _scalar(0.5), _scalar(-2), _scalar(2), 1, rounding=rounding), x)
    np.testing.assert_array_equal(found, np.array(want) * 0.5)


def test_kind_0_is_the_identity_and_scales_may_differ_by_channel():
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")
    found = _apply(lambda v: simulated_quantize(v, _scalar(1), _scalar(-1), _scalar(1), 0), x)
    np.testing.assert_array_equal(found, x)
    scales = np.array([0.5, 0.25, 2.0], "float32").reshape(3, 1)
    found = _apply(lambda v: simulated_quantize(v, op.const(scales), _scalar(-7), _scalar(7), 2), x)
    scaled = x / scales
    want = np.clip(np.sign(scaled) * np.floor(np.abs(scaled) + 0.5), -7, 7) * scales
    np.testing.assert_array_equal(found, want)


def test_slopes_pass_straight_through_the_rounding():
    x = np.array([-3.0, -0.6, 0.1, 0.9, 3.0], "float32")
    var = Var("x", TensorType(x.shape, "float32"))
    body = op.multiply(
        simulated_quantize(var, _scalar(0.5), _scalar(-2), _scalar(2), 1), op.const(np.full(5, 3.0, "float32"))
    )
    mod = infer_type(IRModule({"main": gradient(Function([var], body))}))
    _, (slope,) = evaluate(mod, [x])
    np.testing.assert_array_equal(slope, [0, 3, 3, 3, 0])


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-600, 600, width=32), min_size=1, max_size=70))
def test_a_format_gives_the_nearest_of_its_numbers(name, items):
    x, table, one = np.array(items), TABLES[name], FORMATS[name]
    found = to_format(x, name)
    for start in range(0, len(x), one.block or len(x)):
        block = x[start : start + (one.block or len(x))]
        largest = np.abs(block).max()
        shared = 2.0 ** (math.floor(math.log2(largest)) - one.top) if one.block and largest > 0 else 1.0
        held = found[start : start + len(block)] / shared
        assert np.isin(held, table).all()
        distance = np.abs(block[:, None] / shared - table).min(axis=1)
        np.testing.assert_array_equal(np.abs(block / shared - held), distance)


def test_ties_go_to_even():
    # Between 16 and 18, and between 18 and 20, in steps of 2: 17 to 16 (even mantissa), 19 to 20.
    np.testing.assert_array_equal(to_format(np.array([17.0, 19.0]), "fp8_e4m3"), [16, 20])


def test_blocks_lie_along_the_axis():
    x = np.ones((1, 40, 2), "float32")
    x[0, 0, 0] = 1000.0
    x[0, 35, 1] = 1000.0
    found = _apply(lambda v: simulated_format(v, "mxfp4", axis=1), x)
    lost = found != 1
    # Beside a number of 1000, a 1 is less than the smallest number of its block.
    assert lost[0, :32, 0].all() and not lost[0, 32:, 0].any()
    assert not lost[0, :32, 1].any() and lost[0, 32:, 1].all()


def test_a_scale_moves_the_range():
    x = np.array([0.001, 0.02, 0.5])
    np.testing.assert_allclose(to_format(x, "fp8_e4m3", 0.5 / 448), to_format(x * 896, "fp8_e4m3") / 896)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda x: simulated_format(x, "fp7"), "format of simulated.format must be one of fp8_e4m3, .*, not fp7"),
        (lambda x: simulated_format(x, "mxfp4", -1.0), "scale of simulated.format must be positive, not -1"),
        (lambda x: simulated_quantize(x, _scalar(1), _scalar(0), _scalar(1), 7), "kind and .* not 7 and round"),
        (lambda x: simulated_quantize(x, _scalar(1), op.const(np.zeros(2, "float32")), _scalar(1), 1),
         "its limits be scalars"),
    ],
)  # fmt: skip
def test_what_is_refused(build, sentence):
    x = Var("x", TensorType((2, 3), "float32"))
    with pytest.raises(TypeCheckError, match=sentence):
        infer_type(IRModule.from_expr(Function([x], build(x))))
