"""QnnCanonicalizeOps bit for bit; FakeQuantizationToInteger within a rounding step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relay_hw as relay
from relay_hw import op
from relay_hw.errors import UnsupportedError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Expr, Tuple
from relay_hw.ir.module import IRModule
from relay_hw.op import qnn
from relay_hw.transform import FakeQuantizationToInteger, InferType, QnnCanonicalizeOps
from tests.relay_hw.transform.checks import module, operators, var

SHAPE = (2, 4, 5, 5)


def scalar(value: Any, dtype: str) -> Expr:
    return op.const(np.asarray(value, dtype))


def scale(rng: np.random.Generator, size: int | None = None) -> Expr:
    value = rng.uniform(0.01, 0.3, size).astype("float32") if size else np.float32(rng.choice([0.5, 0.037, 0.25, 0.9]))
    return op.const(value)


def zero(rng: np.random.Generator, size: int | None = None) -> Expr:
    return op.const(rng.integers(-5, 6, size).astype("int32") if size else np.int32(rng.choice([0, 0, 3, -7])))


def data(dtype: str = "int8", shape: tuple[int, ...] = SHAPE) -> relay.Var:
    return var("x", *shape, dtype=dtype)


def values(rng: np.random.Generator, dtype: str, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    if dtype == "float32":
        return rng.normal(scale=9, size=shape).astype("float32")
    info = np.iinfo(dtype)
    high = min(info.max, 2**20)
    return rng.integers(max(info.min, -(2**20)), high + 1, shape).astype(dtype)


def lowered(mod: IRModule) -> IRModule:
    new = QnnCanonicalizeOps()(mod)
    assert not any(name.startswith("qnn.") for name in operators(new)), operators(new)
    return new


def check(body: Expr, x: relay.Var, rng: np.random.Generator) -> None:
    mod = InferType()(module(body, x))
    ty = x.type_annotation
    inputs = {"x": values(rng, ty.dtype, ty.shape)}
    np.testing.assert_array_equal(evaluate(lowered(mod), inputs), evaluate(mod, inputs))


SEEDS = st.integers(0, 2**32).map(np.random.default_rng)
CHANNELS = st.sampled_from([None, 4])


@settings(max_examples=30)
@given(SEEDS, CHANNELS, st.sampled_from(["int8", "uint8", "int16"]))
def test_quantize(rng: np.random.Generator, size: int | None, dtype: str) -> None:
    x = data("float32")
    check(qnn.quantize(x, scale(rng, size), zero(rng, size), axis=1, out_dtype=dtype), x, rng)


@settings(max_examples=30)
@given(SEEDS, CHANNELS, st.sampled_from(["int8", "uint8", "int16", "int32"]))
def test_dequantize(rng: np.random.Generator, size: int | None, dtype: str) -> None:
    x = data(dtype)
    check(qnn.dequantize(x, scale(rng, size), zero(rng, size), axis=1), x, rng)


@settings(max_examples=80)
@given(
    SEEDS,
    CHANNELS,
    st.sampled_from(["int8", "uint8", "int32"]),
    st.sampled_from(["None", "UPWARD", "TONEAREST"]),
    st.sampled_from(["None", "int64", "float32", "float64"]),
)
def test_requantize(rng: np.random.Generator, size: int | None, dtype: str, rounding: str, compute: str) -> None:
    x = data(dtype)
    out = str(rng.choice(["int8", "uint8", "int32"]))
    args = (x, scale(rng, size), zero(rng, size), scale(rng), zero(rng))
    body = qnn.requantize(*args, axis=1, rounding=rounding, compute_dtype=compute, out_dtype=out)
    check(body, x, rng)


@settings(max_examples=40)
@given(SEEDS, CHANNELS, st.sampled_from(["int8", "uint8"]), st.sampled_from([1, 2, 4]), st.booleans())
def test_conv2d(rng: np.random.Generator, size: int | None, dtype: str, groups: int, is_nhwc: bool) -> None:
    x = data(dtype, (1, 5, 6, 4) if is_nhwc else (1, 4, 5, 6))
    shape = (3, 3, 4 // groups, 4) if is_nhwc else (4, 4 // groups, 3, 3)
    weight = op.const(values(rng, "int8" if rng.integers(2) else dtype, shape))
    weight_zero = zero(rng, size) if rng.integers(2) else scalar(0, "int32")
    body = qnn.conv2d(
        x, weight, zero(rng), weight_zero, scale(rng), scale(rng, size), 3, 4, padding=(1, 0, 2, 1), groups=groups,
        data_layout="NHWC" if is_nhwc else "NCHW", kernel_layout="HWIO" if is_nhwc else "OIHW",
    )  # fmt: skip
    check(body, x, rng)


@settings(max_examples=30)
@given(SEEDS, st.sampled_from([None, 3]), st.sampled_from(["int8", "uint8"]))
def test_dense(rng: np.random.Generator, size: int | None, dtype: str) -> None:
    x = data(dtype, (4, 6))
    weight_zero = zero(rng, size) if rng.integers(2) else scalar(0, "int32")
    weight = op.const(values(rng, dtype, (3, 6)))
    check(qnn.dense(x, weight, zero(rng), weight_zero, scale(rng), scale(rng, size), 3), x, rng)


@settings(max_examples=40)
@given(SEEDS, st.sampled_from([qnn.add, qnn.subtract, qnn.mul]), st.sampled_from(["int8", "uint8"]))
def test_arithmetic(rng: np.random.Generator, build: Any, dtype: str) -> None:
    x = data(dtype)
    other = op.const(values(rng, dtype, (4, 1, 5)))
    check(build(x, other, scale(rng), zero(rng), scale(rng), zero(rng), scale(rng), zero(rng)), x, rng)


@settings(max_examples=15)
@given(SEEDS)
def test_concatenate(rng: np.random.Generator) -> None:
    x = data()
    parts, scales, zeros = [x, x], [scale(rng), scale(rng)], [zero(rng), zero(rng)]
    check(qnn.concatenate(parts, scales, zeros, scale(rng), zero(rng), 1), x, rng)


def test_scales_that_are_no_constants_keep_a_requantize() -> None:
    x, s = data(), relay.var("s", "float32")
    body = qnn.requantize(x, s, scalar(0, "int32"), scalar(0.5, "float32"), scalar(0, "int32"))
    assert operators(QnnCanonicalizeOps()(module(body, x, s))) == ["qnn.requantize"]
    body = qnn.dequantize(x, s, scalar(0, "int32"))
    assert operators(QnnCanonicalizeOps()(module(body, x, s))) == ["cast", "cast", "multiply"]


# Fake quantization

SCALE, ZERO = 0.05, 3


def fake(x: Expr, s: float = SCALE, z: int = ZERO) -> Expr:
    return qnn.dequantize(x, scalar(s, "float32"), scalar(z, "int32"))


def quantized(x: Expr, s: float = 0.1, z: int = -2, dtype: str = "int8") -> Expr:
    return qnn.quantize(x, scalar(s, "float32"), scalar(z, "int32"), out_dtype=dtype)


BY_FLOATS = {name: getattr(qnn, name) for name in
             ("abs", "erf", "exp", "hardswish", "log", "rsqrt", "sigmoid", "sqrt", "tanh")}  # fmt: skip
BY_FLOATS |= {
    "leaky_relu": lambda x, *rest: qnn.leaky_relu(x, 0.1, *rest),
    "softmax": lambda x, *rest: qnn.softmax(x, *rest, axis=1),
    "avg_pool2d": lambda x, *rest: qnn.avg_pool2d(x, *rest, (2, 2), padding=(1, 0)),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", BY_FLOATS)
def test_functions_of_real_numbers(name: str, dtype: str) -> None:
    rng, x = np.random.default_rng(3), data(dtype)
    check(BY_FLOATS[name](x, scale(rng), zero(rng), scale(rng), zero(rng)), x, rng)


@settings(max_examples=15)
@given(SEEDS, CHANNELS)
def test_transposed_convolution(rng: np.random.Generator, size: int | None) -> None:
    x, weight = data("uint8"), op.const(rng.integers(-128, 128, (4, 4, 3, 2)).astype("int8"))
    args = x, weight, zero(rng), zero(rng, size), scale(rng), scale(rng, size)
    check(qnn.conv2d_transpose(*args, strides=2, padding=(1, 0), output_padding=(1, 0)), x, rng)


@settings(max_examples=15)
@given(SEEDS)
def test_batch_matmul(rng: np.random.Generator) -> None:
    x, y = data("int8", (2, 3, 5)), op.const(rng.integers(-128, 128, (2, 4, 5)).astype("int8"))
    check(qnn.batch_matmul(x, y, zero(rng), zero(rng), scale(rng), scale(rng)), x, rng)


WEIGHT = np.random.default_rng(1).integers(-127, 128, (4, 4, 3, 3)).astype("int8")
ISLANDS = {
    "relu": lambda x: op.nn.relu(x),
    "clip": lambda x: op.clip(x, 0.0, 2.5),
    "reshape": lambda x: op.transpose(op.reshape(x, (2, 100)), axes=[1, 0]),
    "moves": lambda x: op.nn.depth_to_space(op.layout_transform(op.nn.upsampling(x, 2, 2), "NCHW", "NHWC"), 2, "NHWC"),
    "max pool": lambda x: op.nn.max_pool2d(x, (2, 2), padding=(1, 1)),
    "average": lambda x: op.nn.global_avg_pool2d(x),
    "pad": lambda x: op.nn.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), 0.5),
    "conv": lambda x: op.nn.conv2d(x, fake(op.const(WEIGHT), 0.01, 0), padding=1),
    "conv and bias": lambda x: op.nn.relu(
        op.nn.bias_add(op.nn.conv2d(x, fake(op.const(WEIGHT), 0.01, 0)), op.const(np.float32([1, -2, 3, 0.5])))
    ),
    "dense": lambda x: op.nn.dense(
        op.reshape(x, (40, 5)), fake(op.const(WEIGHT.reshape(-1)[:15].reshape(3, 5)), 0.02, 0), units=3
    ),
    "residual": lambda x: op.add(x, op.nn.relu(x)),
    "difference": lambda x: op.subtract(op.nn.relu(x), x),
    "product": lambda x: op.multiply(x, x),
    "constant": lambda x: op.add(x, op.const(np.float32([[[1.5]], [[-2.0]], [[0.0]], [[0.25]]]))),
    "maximum": lambda x: op.maximum(x, op.negative(op.negative(x))),
    "join": lambda x: op.concatenate([x, op.nn.relu(x)], axis=1),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", [name for name in ISLANDS if name != "maximum"])
def test_islands_become_integers(name: str, dtype: str) -> None:
    rng = np.random.default_rng(0)
    x = data(dtype)
    out = {"int8": -2, "uint8": 120}[dtype]
    mod = InferType()(module(quantized(ISLANDS[name](fake(x, z=ZERO if dtype == "int8" else 130)), 0.1, out, dtype), x))
    new = FakeQuantizationToInteger(hard_fail=True)(mod)
    assert not {"qnn.dequantize", "qnn.quantize"} & set(operators(new)), new.astext()
    inputs = {"x": values(rng, dtype)}
    wanted, found = evaluate(mod, inputs), evaluate(new, inputs)
    assert found.dtype == wanted.dtype
    assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1
    np.testing.assert_array_equal(evaluate(QnnCanonicalizeOps()(new), inputs), found)


def test_islands_with_other_operators_stay() -> None:
    x = data()
    mod = InferType()(module(quantized(op.exp(fake(x))), x))
    assert operators(FakeQuantizationToInteger()(mod)) == ["qnn.dequantize", "exp", "qnn.quantize"]
    with pytest.raises(UnsupportedError, match="fake quantization must be free of exp"):
        FakeQuantizationToInteger(hard_fail=True)(mod)
    floats = var("f", *SHAPE)
    plain = InferType()(module(quantized(op.nn.relu(floats)), floats))
    assert operators(FakeQuantizationToInteger()(plain)) == ["nn.relu", "qnn.quantize"]


def test_several_islands_and_a_shared_one() -> None:
    x = data()
    first = quantized(op.nn.relu(fake(x)))
    second = quantized(op.nn.max_pool2d(fake(first, 0.1, -2), (2, 2)), 0.1, -2)
    new = FakeQuantizationToInteger()(module(Tuple([first, second]), x))
    assert "qnn.dequantize" not in operators(new)
