"""The QNN dialect against exact fractions and against the float computation it stands for."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import erf, floor, frexp
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relay_hw import op
from relay_hw.errors import TypeCheckError
from relay_hw.ir.types import TensorType, TupleType
from relay_hw.op.qnn_scale import QuantizeAttrs, RequantizeAttrs, quantize_value, requantize_value

RNG = np.random.default_rng(0)
LIMITS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}


def away(value: Fraction) -> int:
    return floor(abs(value) + Fraction(1, 2)) * (1 if value >= 0 else -1)


@settings(max_examples=200)
@given(
    st.floats(-300, 300, width=32), st.sampled_from([1.0, 0.5, 0.1, 0.0625]), st.integers(-100, 100),
    st.sampled_from(["int8", "uint8", "int16", "int32"]), st.sampled_from(["half_away", "half_even"]),
)  # fmt: skip
def test_quantize(x: float, scale: float, zero: int, dtype: str, rounding: str) -> None:
    quotient = Fraction(float(np.float32(x) / np.float32(scale)))
    want = (away(quotient) if rounding == "half_away" else round(quotient)) + zero
    got = quantize_value(np.array(x, np.float32), np.float32(scale), np.int32(zero), QuantizeAttrs(dtype, -1, rounding))
    assert got.dtype == dtype and int(got) == max(LIMITS[dtype][0], min(LIMITS[dtype][1], want))


def test_quantize_saturates_infinities(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([np.inf, -np.inf, 3e38, -3e38], np.float32)
    for dtype in ("int8", "uint8", "int32"):
        low, high = LIMITS[dtype]
        got = apply(op.qnn.quantize, x, np.float32(1e-3), np.int32(3), out_dtype=dtype)
        assert got.tolist() == [high, low, high, low]


def test_per_channel_parameters(apply: Callable[..., np.ndarray]) -> None:
    x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    scale, zero = np.array([1.0, 0.5], np.float32), np.array([1, -1], np.int32)
    q = apply(op.qnn.quantize, x, scale, zero, axis=0)
    assert q.tolist() == [[2, 3], [5, 7]]
    assert apply(op.qnn.dequantize, q, scale, zero, axis=0).tolist() == x.tolist()
    assert apply(op.qnn.quantize, x, scale, zero, axis=-1).tolist() == [[2, 3], [4, 7]]


def test_dequantize_of_every_int8(apply: Callable[..., np.ndarray]) -> None:
    q = np.arange(-128, 128).astype(np.int8)
    got = apply(op.qnn.dequantize, q, np.float32(0.1), np.int32(5))
    assert got.tolist() == [float(np.float32(int(v) - 5) * np.float32(0.1)) for v in q]


@settings(max_examples=200)
@given(
    st.integers(-(2**31), 2**31 - 1), st.floats(2**-12, 4, width=32), st.floats(2**-4, 8, width=32),
    st.integers(-128, 127), st.integers(-128, 127), st.sampled_from(["UPWARD", "TONEAREST", "TONEAREST_EVEN"]),
)  # fmt: skip
def test_requantize_is_the_q31_product(
    q: int, scale: float, out_scale: float, zero: int, out_zero: int, rounding: str
) -> None:
    attrs = RequantizeAttrs(-1, rounding, "None", "int32")
    got = requantize_value(
        np.array(q, np.int32), (np.float32(scale), np.float32(out_scale)), (np.int32(zero), np.int32(out_zero)), attrs
    )
    ratio = float(np.float32(scale)) / float(np.float32(out_scale))
    value = Fraction(q - zero)
    if ratio != 1:
        significand, exponent = frexp(ratio)
        value *= Fraction(round(significand * 2**31), 2**31) * Fraction(2) ** exponent
    want = {"UPWARD": floor(value + Fraction(1, 2)), "TONEAREST": away(value), "TONEAREST_EVEN": round(value)}[rounding]
    low, high = LIMITS["int32"]
    assert int(got) == max(low, min(high, want + out_zero))


def test_requantize_in_float_and_per_channel(apply: Callable[..., np.ndarray]) -> None:
    q = RNG.integers(-1000, 1000, (2, 3)).astype(np.int32)
    scale, zero = np.array([0.5, 0.25, 0.125], np.float32), np.zeros(3, np.int32)
    for compute in ("None", "float32", "float64"):
        got = apply(
            op.qnn.requantize,
            q,
            scale,
            zero,
            np.float32(2),
            np.int32(1),
            axis=1,
            compute_dtype=compute,
            out_dtype="int8",
        )
        want = np.clip(np.floor(q * (scale / 2) + 0.5) + 1, -128, 127)
        assert got.tolist() == want.tolist()


@pytest.mark.parametrize("compute", ["None", "float32", "float64"])
def test_requantize_sends_ties_to_even(apply: Callable[..., np.ndarray], compute: str) -> None:
    q = np.arange(-64, 64).astype(np.int32)
    got = apply(
        op.qnn.requantize, q, np.float32(1), np.int32(0), np.float32(4), np.int32(0),
        rounding="TONEAREST_EVEN", compute_dtype=compute, out_dtype="int8",
    )  # fmt: skip
    assert got.tolist() == np.rint(q / 4).tolist()


def params(*pairs: tuple[float, int]) -> list[Any]:
    return [item for scale, zero in pairs for item in (np.float32(scale), np.int32(zero))]


@pytest.mark.parametrize("kernel_zero", [np.int32(0), np.int32(3), np.array([1, -2, 3, 0], np.int32)])
def test_conv2d_pads_with_the_zero_point(apply: Callable[..., np.ndarray], kernel_zero: Any) -> None:
    x = RNG.integers(0, 256, (1, 2, 4, 5)).astype(np.uint8)
    w = RNG.integers(-128, 128, (4, 2, 3, 3)).astype(np.int8)
    attributes: dict[str, Any] = {"kernel_size": 3, "channels": 4, "padding": 1}
    scales = (np.float32(0.1), np.float32(0.2))
    got = apply(op.qnn.conv2d, x, w, np.int32(100), kernel_zero, *scales, **attributes)
    padded = np.pad(x.astype(int), ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=100) - 100
    weight = w.astype(int) - np.asarray(kernel_zero).reshape(-1, 1, 1, 1)
    for _, o, i, j in np.ndindex(*got.shape):
        assert got[0, o, i, j] == (padded[0, :, i : i + 3, j : j + 3] * weight[o]).sum()


def test_dense(apply: Callable[..., np.ndarray]) -> None:
    x, w = RNG.integers(-128, 128, (2, 7)).astype(np.int8), RNG.integers(-128, 128, (3, 7)).astype(np.int8)
    got = apply(op.qnn.dense, x, w, np.int32(-5), np.int32(2), np.float32(1), np.float32(1), units=3)
    assert got.tolist() == ((x.astype(int) + 5) @ (w.astype(int) - 2).T).tolist()


@pytest.mark.parametrize(
    ("build", "function"),
    [(op.qnn.add, np.add), (op.qnn.subtract, np.subtract), (op.qnn.mul, np.multiply)],
    ids=["add", "subtract", "mul"],
)
def test_arithmetic_is_within_two_steps_of_floats(
    apply: Callable[..., np.ndarray], build: Callable[..., Any], function: Callable[..., np.ndarray]
) -> None:
    a, b = (side.ravel().astype(np.int8) for side in np.meshgrid(np.arange(-128, 128, 7), np.arange(-128, 128, 5)))
    got = apply(build, a, b, *params((0.05, 3), (0.08, -7), (0.3, 2)))
    real = function((a.astype(float) - 3) * 0.05, (b.astype(float) + 7) * 0.08)
    assert np.abs(np.clip(real / 0.3 + 2, -128, 127) - got).max() <= 1.01


def test_add_of_equal_parameters_is_exact(apply: Callable[..., np.ndarray]) -> None:
    a, b = np.array([100, -100, 5], np.int8), np.array([100, -100, -7], np.int8)
    got = apply(op.qnn.add, a, b, *params((0.1, 4), (0.1, 4), (0.1, 4)))
    assert got.tolist() == [127, -128, -6]


def test_concatenate(apply: Callable[..., np.ndarray]) -> None:
    a, b = np.array([10, 20], np.int8), np.array([30], np.int8)
    scales, zeros = (np.float32(1), np.float32(0.5)), (np.int32(0), np.int32(10))
    got = apply(op.qnn.concatenate, (a, b), scales, zeros, np.float32(1), np.int32(1), axis=0)
    assert got.tolist() == [11, 21, 11]


def test_types(infer: Callable, refuse: Callable[..., str]) -> None:
    one, zero = TensorType(()), TensorType((), "int32")
    data = TensorType((1, 8), "int8")
    assert infer(op.qnn.dequantize, data, one, None, axis=1)[1][2] == TensorType((8,), "int32")
    assert refuse(op.qnn.quantize, data, one, zero) == "the data of qnn.quantize must be float32 or float16, not int8"
    assert refuse(op.qnn.quantize, TensorType((2,)), one, zero, rounding="up") == (
        "rounding of qnn.quantize must be half_away or half_even, not up"
    )
    assert refuse(op.qnn.quantize, TensorType((2,)), one, zero, out_dtype="bool") == (
        "the quantized element type of qnn.quantize must be one of int8, uint8, int16, uint16, int32, int64, not bool"
    )
    assert refuse(op.qnn.dequantize, data, TensorType((3,)), zero) == (
        "the input scale of qnn.dequantize must be Tensor[(8,), float32], not Tensor[(3,), float32]"
    )
    assert refuse(op.qnn.dequantize, data, one, TensorType(())) == (
        "the input zero point of qnn.dequantize must be Tensor[(8,), int32], not Tensor[(), float32]"
    )
    assert refuse(op.qnn.requantize, data, one, zero, one, zero, rounding="UP") == (
        "rounding of qnn.requantize must be UPWARD, TONEAREST, TONEAREST_EVEN or None, not UP"
    )
    assert refuse(op.qnn.add, data, TensorType((1, 8), "uint8"), *[one, zero] * 3) == (
        "the element types of qnn.add's arguments must be equal, not int8 and uint8"
    )
    pair = TupleType([data, data])
    lone = TupleType([one])
    join = lambda *args: op.qnn.concatenate(*args, axis=0)  # noqa: E731
    assert refuse(join, pair, lone, TupleType([zero, zero]), one, zero) == (
        "the input scales of qnn.concatenate must be 2, not 1"
    )


ROOT = {"abs": np.abs, "exp": np.exp, "log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
        "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(erf),
        "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6}  # fmt: skip


@pytest.mark.parametrize("name", ROOT)
def test_functions_of_every_int8(apply: Callable[..., np.ndarray], name: str) -> None:
    q = np.arange(-128, 128).astype(np.int8)
    got = apply(getattr(op.qnn, name), q, *params((0.05, -129 if name in ("log", "rsqrt") else -128), (0.07, -90)))
    real = (q.astype(float) + (129 if name in ("log", "rsqrt") else 128)) * float(np.float32(0.05))
    want = np.clip(np.rint(ROOT[name](real) / float(np.float32(0.07))) - 90, -128, 127)
    assert got.dtype == np.int8 and np.abs(got - want).max() <= 1 and np.mean(got != want) < 0.02


def test_functions_of_several_numbers(apply: Callable[..., np.ndarray]) -> None:
    q = RNG.integers(-128, 128, (2, 3, 4, 6)).astype(np.int8)
    real = (q - 5.0) * 0.125
    leaky = apply(lambda x, *p: op.qnn.leaky_relu(x, 0.25, *p), q, *params((0.125, 5), (0.0625, -3)))
    assert (
        leaky.tolist()
        == np.clip(np.trunc(np.where(real > 0, real, real / 4) * 16 + np.sign(real) * 0.5) - 3, -128, 127).tolist()
    )
    soft = apply(op.qnn.softmax, q, *params((0.125, 5), (1 / 256, -128)), axis=1)
    parts = np.exp(real) / np.exp(real).sum(axis=1, keepdims=True)
    assert np.abs(soft - np.clip(np.rint(parts * 256) - 128, -128, 127)).max() <= 1
    mean = apply(lambda x, *p: op.qnn.avg_pool2d(x, *p, (2, 2), (2, 2)), q, *params((0.125, 5), (0.125, 5)))
    exact = q.astype(float).reshape(2, 3, 2, 2, 3, 2).mean(axis=(3, 5)) - 5
    assert mean.tolist() == (np.trunc(np.abs(exact) + 0.5) * np.sign(exact) + 5).tolist()


def test_batch_matmul_and_transposed_convolution(apply: Callable[..., np.ndarray]) -> None:
    x, y = (RNG.integers(-128, 128, (2, size, 5)).astype(np.int8) for size in (3, 4))
    args = [np.int32(3), np.int32(-7), np.float32(0.1), np.float32(0.2)]
    got = apply(op.qnn.batch_matmul, x, y, *args)
    assert got.dtype == np.int32
    assert got.tolist() == np.einsum("bij,bkj->bik", x.astype(int) - 3, y.astype(int) + 7).tolist()
    data, weight = (
        RNG.integers(0, 255, (1, 2, 3, 3)).astype(np.uint8),
        RNG.integers(-9, 9, (2, 2, 2, 2)).astype(np.int8),
    )
    zero = np.array([1, -2], np.int32)
    got = apply(
        op.qnn.conv2d_transpose, data, weight, np.int32(128), zero, np.float32(1), np.ones(2, np.float32), strides=2
    )
    shifted, kernel = data.astype(int) - 128, weight - zero[None, :, None, None]
    for row, column, i, j in np.ndindex(3, 3, 2, 2):
        want = shifted[0, :, row, column] @ kernel[:, :, i, j]
        assert got[0, :, 2 * row + i, 2 * column + j].tolist() == want.tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "disable"])
def test_simulations_compute_what_they_simulate(apply: Callable[..., np.ndarray], dtype: str) -> None:
    x = RNG.normal(0, 40, (3, 5)).astype(np.float32)
    scale, zero = np.array([0.5, 0.25, 0.125], np.float32), np.array([0, 4, -2], np.int32)
    found = apply(op.qnn.simulated_quantize, x, scale, zero, axis=0, out_dtype=dtype)
    back = apply(op.qnn.simulated_dequantize, found, scale, zero, axis=0, in_dtype=dtype)
    assert found.dtype == back.dtype == np.float32
    if dtype == "disable":
        assert np.array_equal(found, x) and np.array_equal(back, x)
        return
    real = apply(op.qnn.quantize, x, scale, zero, axis=0, out_dtype=dtype)
    assert np.array_equal(found, real.astype(np.float32))
    assert np.array_equal(back, apply(op.qnn.dequantize, real, scale, zero, axis=0))


def test_what_the_rest_of_the_dialect_refuses(refuse: Callable[..., str]) -> None:
    scalar, whole = TensorType((), "float32"), TensorType((), "int32")
    floats = TensorType((2,), "float32")
    assert refuse(op.qnn.tanh, floats, scalar, whole, scalar, whole).startswith(
        "the quantized element type of qnn.tanh must"
    )
    message = refuse(op.qnn.simulated_quantize, TensorType((2,), "int8"), scalar, whole)
    assert message == "the data of qnn.simulated_quantize must be floats, not int8"
    with pytest.raises(TypeCheckError, match="must be one of disable, int8, uint8, int32, not int4"):
        op.qnn.simulated_quantize(op.const(1.0), op.const(1.0), op.const(0), out_dtype="int4")
