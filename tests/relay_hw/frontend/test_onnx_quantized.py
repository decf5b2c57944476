"""Quantized operators against onnxruntime: integers equal, but for float ties that its kernels round elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, helper, numpy_helper

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate

RNG = np.random.default_rng(5)
START = RNG.bit_generator.state
MS = "com.microsoft"


def whole(dtype: str, *shape: int) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def weights(dtype: str, *shape: int) -> np.ndarray:
    """Any numbers, but 7 bits of int8.

    Where a processor has no VNNI, onnxruntime adds two products of uint8 and int8 in 16 bits and cuts off what is more.
    """
    return RNG.integers(-64, 64, shape).astype(dtype) if dtype == "int8" else whole(dtype, *shape)


def scalar(value: float, dtype: str = "float32") -> np.ndarray:
    return np.array(value, dtype)


def build(
    operator: str, inputs: list[Any], known: list[Any], attrs: dict[str, Any], domain: str, outputs: int, opset: int
) -> tuple[ModelProto, dict[str, np.ndarray]]:
    """One node; `inputs` come first and are fed, `known` follow as weights (None: left out)."""
    names = [f"x{k}" for k in range(len(inputs))] + [f"w{k}" if w is not None else "" for k, w in enumerate(known)]
    results = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(operator, names, results, name="one", domain=domain, **attrs)
    fed = dict(zip(names, inputs, strict=False))
    info = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in fed.items()]
    given = [numpy_helper.from_array(w, f"w{k}") for k, w in enumerate(known) if w is not None]
    empty = [helper.make_empty_tensor_value_info(name) for name in results]
    graph = helper.make_graph([node], "small", info, empty, given)
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in sorted({MS, domain} - {""}))]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), fed


def onnxruntime_outputs(model: ModelProto, fed: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, dict(fed))


def check(
    operator: str,
    inputs: list[Any],
    known: list[Any],
    attrs: dict[str, Any] | None = None,
    domain: str = "",
    outputs: int = 1,
    opset: int = 21,
    ties: float = 0.0,
) -> None:
    """`ties`: the share of elements that may differ by one."""
    model, fed = build(operator, inputs, known, attrs or {}, domain, outputs, opset)
    want = onnxruntime_outputs(model, fed)
    for frozen in (False, True):
        module, params = from_onnx(model, freeze_params=frozen)
        found = evaluate(module, {**fed, **params})
        got = list(found) if isinstance(found, (tuple, list)) else [found]
        for mine, theirs in zip(got, want, strict=True):
            mine = np.asarray(mine)
            assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
                continue
            difference = np.abs(mine.astype(np.int64) - theirs.astype(np.int64))
            assert difference.max(initial=0) <= (1 if ties else 0)
            assert (difference > 0).mean() <= ties


FLOATS = RNG.normal(0, 3, (2, 6, 8)).astype(np.float32)
HALVES = np.arange(-20, 20, 0.25, np.float32)
SCALES6 = RNG.uniform(0.01, 0.1, 6).astype(np.float32)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    """Every test draws the same numbers, whichever ran before it."""
    RNG.bit_generator.state = START


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16"])
def test_quantize_and_dequantize(dtype: str) -> None:
    zero = scalar(3, dtype)
    check("QuantizeLinear", [HALVES], [scalar(0.5), zero])
    check("QuantizeLinear", [HALVES, scalar(0.07), zero], [])
    check("DequantizeLinear", [whole(dtype, 4, 5)], [scalar(0.1), zero])
    check("DequantizeLinear", [whole(dtype, 4, 5), scalar(0.1), zero], [])


def test_quantize_along_an_axis() -> None:
    zeros = whole("int8", 6)
    check("QuantizeLinear", [FLOATS], [SCALES6, zeros], {"axis": 1})
    check("QuantizeLinear", [FLOATS], [SCALES6, zeros], {"axis": -2}, opset=13)
    check("DequantizeLinear", [whole("int8", 2, 6, 8)], [SCALES6, zeros], {"axis": 1})
    check("QuantizeLinear", [FLOATS], [scalar(0.1)])
    check("DequantizeLinear", [RNG.integers(-9999, 9999, (3, 6)).astype(np.int32)], [SCALES6, np.zeros(6, np.int32)])


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_quantize_in_blocks(axis: int) -> None:
    shape = list(FLOATS.shape)
    shape[axis] //= 2
    scale, zero = RNG.uniform(0.01, 0.1, shape).astype(np.float32), whole("uint8", *shape)
    attrs = {"axis": axis, "block_size": 2}
    check("QuantizeLinear", [FLOATS], [scale, zero], attrs)
    check("DequantizeLinear", [whole("uint8", 2, 6, 8)], [scale, zero], attrs)


def test_blocks_must_cover_the_axis() -> None:
    model, _ = build(
        "DequantizeLinear",
        [whole("int8", 5, 4)],
        [np.ones((2, 4), np.float32)],
        {"axis": 0, "block_size": 2},
        "",
        1,
        21,
    )
    with pytest.raises(InputError, match="one number for each block of 2 along axis 0, not shape"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("x", "w", "y"), [("uint8", "int8", "uint8"), ("uint8", "uint8", "uint8"), ("int8", "int8", "int8")]
)
@pytest.mark.parametrize("attrs", [{}, {"pads": [1, 0, 2, 1], "strides": [2, 1]}, {"group": 2, "dilations": [2, 1]}])
def test_qlinear_conv(x: str, w: str, y: str, attrs: dict[str, Any]) -> None:
    groups = attrs.get("group", 1)
    data, weight = whole(x, 1, 4, 7, 6), weights(w, 6, 4 // groups, 3, 2)
    bias = RNG.integers(-5000, 5000, 6).astype(np.int32)
    per_tensor = [scalar(0.02), scalar(7, w)]
    per_channel = [SCALES6, np.zeros(6, w)]
    for scale, zero in (per_tensor, per_channel):
        known = [scalar(0.05), scalar(9, x), weight, scale, zero, scalar(4.7), scalar(-3 if y == "int8" else 120, y)]
        check("QLinearConv", [data], [*known, bias], attrs)
        check("QLinearConv", [data], known, attrs)


def test_qlinear_conv_of_one_axis_and_same_padding() -> None:
    weight = weights("int8", 3, 2, 3)
    known = [scalar(0.05), scalar(9, "uint8"), weight, scalar(0.02), scalar(0, "int8"), scalar(3.3), scalar(1, "uint8")]
    check("QLinearConv", [whole("uint8", 1, 2, 9)], known, {"pads": [2, 1], "strides": [2]})
    weight = weights("int8", 3, 2, 3, 3)
    known[2] = weight
    check("QLinearConv", [whole("uint8", 1, 2, 9, 8)], known, {"auto_pad": "SAME_UPPER", "strides": [2, 2]})


@pytest.mark.parametrize("shapes", [((5, 7), (7, 6)), ((2, 3, 5), (2, 5, 6)), ((4, 3, 5), (5, 6))])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_qlinear_matmul(shapes: tuple[Any, Any], dtype: str) -> None:
    a, b = whole(dtype, *shapes[0]), whole(dtype, *shapes[1])
    y = [scalar(9.1), scalar(5, dtype)]
    check("QLinearMatMul", [a], [scalar(0.05), scalar(3, dtype), b, scalar(0.07), scalar(2, dtype), *y])
    if len(shapes[1]) == 2:
        known = [scalar(0.05), scalar(3, dtype), b, SCALES6, np.full(6, 2, dtype), *y]
        check("QLinearMatMul", [a], known)
    args = [a, scalar(0.05), scalar(3, dtype), b, scalar(0.07), scalar(2, dtype), *y]
    check("QLinearMatMul", args, [])


def test_integer_products() -> None:
    x, w = whole("uint8", 1, 3, 6, 5), whole("uint8", 4, 3, 3, 2)
    check("ConvInteger", [x, w], [scalar(3, "uint8"), scalar(5, "uint8")], {"pads": [1, 1, 0, 1]})
    check("ConvInteger", [x, w], [])
    a, b = whole("uint8", 4, 7), weights("int8", 7, 6)
    check("MatMulInteger", [a, b], [])
    check("MatMulInteger", [a, b], [scalar(3, "uint8"), scalar(-5, "int8")])
    check("MatMulInteger", [a, b], [scalar(3, "uint8"), whole("int8", 6)])
    check("MatMulInteger", [whole("uint8", 2, 4, 7), whole("uint8", 2, 7, 3)], [scalar(3, "uint8"), scalar(9, "uint8")])


@pytest.mark.parametrize("data", [FLOATS, np.abs(FLOATS) + 1, -np.abs(FLOATS) - 1, np.zeros((2, 3), np.float32)])
def test_dynamic_quantize(data: np.ndarray) -> None:
    check("DynamicQuantizeLinear", [data], [], outputs=3)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_contrib_element_wise(dtype: str) -> None:
    # As many as it takes for a share of them to say something.
    a, b = whole(dtype, 8, 20, 30), whole(dtype, 8, 20, 30)
    left, right, out = ([scalar(s), scalar(z, dtype)] for s, z in ((0.05, 3), (0.031, 7), (0.06, 11)))
    for operator, ties in (("QLinearAdd", 0.03), ("QLinearMul", 0.03)):
        check(operator, [a], [*left, b, *right, *out], domain=MS, ties=ties)
        check(operator, [a], [*left, b[0, 0], *right, *out], domain=MS, ties=ties)
    fine = [scalar(1 / 256), scalar(-128 if dtype == "int8" else 0, dtype)]
    check("QLinearSigmoid", [a], [*left, *fine], domain=MS, ties=0.1)
    check("QLinearSoftmax", [a], [*left, *fine], {"axis": -1, "opset": 13}, MS, ties=0.1)
    check("QLinearSoftmax", [a], [*left, *fine], {"axis": 1, "opset": 11}, MS, ties=0.1)
    check("QLinearLeakyRelu", [a], [*left, *out], {"alpha": 0.2}, MS, ties=0.1)
    check("QLinearConcat", [], [*out, a, *left, b, *right, a, *out], {"axis": 1}, MS, ties=0.1)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_contrib_pools(dtype: str) -> None:
    """Means of few integers are often half-way between two."""
    x = whole(dtype, 1, 3, 6, 8)
    given, out = [scalar(0.05), scalar(3, dtype)], [scalar(0.04), scalar(7, dtype)]
    check("QLinearGlobalAveragePool", [x], [*given, *out], {"channels_last": 0}, MS, ties=0.1)
    check("QLinearGlobalAveragePool", [x], [*given, *out], {"channels_last": 1}, MS, ties=0.1)
    for attrs in ({}, {"pads": [1, 0, 0, 1]}, {"pads": [1, 1, 1, 1], "count_include_pad": 1}):
        attrs = {"kernel_shape": [3, 2], "strides": [2, 1], **attrs}
        check("QLinearAveragePool", [x], [*given, *out], attrs, MS, ties=0.1)


@pytest.mark.parametrize("turned", [0, 1])
def test_qgemm(turned: int) -> None:
    a, b = whole("uint8", 4, 7), weights("int8", *((6, 7) if turned else (7, 6)))
    bias = RNG.integers(-3000, 3000, 6).astype(np.int32)
    head = [scalar(0.05), scalar(3, "uint8"), b, SCALES6, np.zeros(6, np.int8), bias]
    check("QGemm", [a], [*head, scalar(3.1), scalar(9, "uint8")], {"transB": turned, "alpha": 1.5}, MS, ties=0.01)
    check("QGemm", [a], head, {"transB": turned}, MS)


def test_dynamic_products_of_onnxruntime() -> None:
    b, scale, zero = whole("uint8", 8, 6), scalar(0.03), scalar(120, "uint8")
    bias = RNG.normal(size=6).astype(np.float32)
    check("DynamicQuantizeMatMul", [FLOATS], [b, scale, zero, bias], domain=MS)
    known = [b, scalar(0.1), scale, scalar(9, "uint8"), zero, bias]
    check("MatMulIntegerToFloat", [whole("uint8", 4, 8)], known, domain=MS)


def reference_quant(x: np.ndarray, scale: Any, zero: Any, bits: int, signed: int, narrow: int, mode: str) -> np.ndarray:
    rounding = {"ROUND": np.rint, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND_TO_ZERO": np.trunc}[mode]
    low = -(2 ** (bits - 1)) + narrow if signed else 0
    high = 2 ** (bits - 1) - 1 if signed else 2**bits - 1 - narrow
    return (np.clip(rounding(x / scale + zero), low, high) - zero) * scale


def run(model: ModelProto, fed: Mapping[str, np.ndarray]) -> np.ndarray:
    module, params = from_onnx(model)
    return np.asarray(evaluate(module, {**fed, **params}))


@pytest.mark.parametrize("mode", ["ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO"])
@pytest.mark.parametrize(("bits", "signed", "narrow"), [(8, 1, 0), (8, 1, 1), (4, 1, 1), (3, 0, 0), (12, 1, 0)])
def test_qonnx_quant(mode: str, bits: int, signed: int, narrow: int) -> None:
    channel = SCALES6.reshape(6, 1)
    for scale in (scalar(0.25), channel):
        known = [scale, scalar(0.0), scalar(float(bits))]
        attrs = {"signed": signed, "narrow": narrow, "rounding_mode": mode}
        model, fed = build("Quant", [FLOATS], known, attrs, "qonnx.custom_op.general", 1, 13)
        want = reference_quant(FLOATS, scale, 0, bits, signed, narrow, mode)
        np.testing.assert_allclose(run(model, fed), want, rtol=1e-6, atol=1e-6)


def test_qonnx_bipolar_and_trunc() -> None:
    model, fed = build("BipolarQuant", [FLOATS], [scalar(0.5)], {}, "qonnx.custom_op.general", 1, 13)
    assert np.array_equal(run(model, fed), np.where(FLOATS >= 0, 0.5, -0.5))
    x = (whole("int8", 4, 5) * np.float32(0.125)).astype(np.float32)
    for mode, rounding in (("FLOOR", np.floor), ("ROUND", np.rint)):
        known = [scalar(0.125), scalar(0.0), scalar(8.0), scalar(5.0)]
        model, fed = build("Trunc", [x], known, {"rounding_mode": mode}, "qonnx.custom_op.general", 1, 13)
        assert np.array_equal(run(model, fed), rounding(x / 0.125 / 8).astype(np.float32) * np.float32(0.125))


def test_refusals() -> None:
    model, _ = build(
        "Quant",
        [FLOATS],
        [scalar(1.0), scalar(0.0), scalar(8.0)],
        {"rounding_mode": "UP"},
        "qonnx.custom_op.general",
        1,
        13,
    )
    with pytest.raises(
        UnsupportedError, match="rounding_mode must be one of ROUND, HALF_EVEN, FLOOR, CEIL, ROUND_TO_ZERO"
    ):
        from_onnx(model)
    model, _ = build("Quant", [FLOATS], [scalar(1.0), scalar(0.0), scalar(80.0)], {}, "qonnx.custom_op.general", 1, 13)
    with pytest.raises(InputError, match="input 3 of Quant must be a number of bits from 1 to 24"):
        from_onnx(model)
    model, _ = build("QLinearConcat", [], [scalar(1.0), scalar(0, "int8"), whole("int8", 2)], {"axis": 0}, MS, 1, 13)
    with pytest.raises(InputError, match="tensor, scale and zero point for each part, not 1 inputs"):
        from_onnx(model)


@pytest.mark.parametrize("value", [0.0, -0.5, np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_a_scale_that_is_none(operator: str, value: float) -> None:
    data = whole("int8", 2, 3) if operator == "DequantizeLinear" else np.zeros((2, 3), np.float32)
    known = [np.array([0.5, 0.25, value], np.float32)]
    model, _ = build(operator, [data], known, {"axis": 1}, "", 1, 17)
    sentence = rf"one: scales of {operator} must be above 0 and finite, not {value:g}"
    with pytest.raises(InputError, match=sentence):
        from_onnx(model)
