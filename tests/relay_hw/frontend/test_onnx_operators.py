"""Every ONNX converter against onnxruntime on one-node models."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.frontend.onnx import CONVERTERS, FAMILIES
from relay_hw.frontend.onnx.importer import CONTROL
from relay_hw.interp import evaluate


@dataclass(frozen=True)
class Case:
    operator: str
    inputs: tuple[Any, ...]  # a shape: random floats; an array: itself
    attrs: dict[str, Any] = field(default_factory=dict)
    known: tuple[Any, ...] = ()  # further inputs, as weights; None leaves one out
    opset: int = 17
    outputs: int = 1

    def __str__(self) -> str:
        shown = ",".join(f"{key}={value}" for key, value in self.attrs.items() if not hasattr(value, "raw_data"))
        return f"{self.operator}-{self.opset}-{shown}"


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def floats(*shape: int, low: float = -2, high: float = 2) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(low, high, shape).astype(np.float32)


def whole(*shape: int, low: int = -9, high: int = 9, dtype: str = "int32") -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(low, high, shape).astype(dtype)


BOOLS = np.array([[True, False], [False, True]])
SIMPLE = [
    *(Case(name, ((2, 3, 4),)) for name in (
        "Abs", "Asinh", "Atan", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Floor", "Identity", "Neg", "Relu", "Sigmoid",
        "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tanh", "Elu", "Selu", "Celu", "HardSigmoid", "LeakyRelu",
        "ThresholdedRelu", "HardSwish",
    )),
    *(Case(name, (floats(3, 4, low=-0.9, high=0.9),)) for name in ("Acos", "Asin", "Atanh", "Tan")),
    *(Case(name, (floats(3, 4, low=1.1, high=5),)) for name in ("Acosh", "Log", "Sqrt", "Reciprocal")),
    *(Case(name, ((2, 3, 4), (3, 1))) for name in (
        "Add", "Sub", "Mul", "Div", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal",
    )),
    *(Case(name, (whole(3, 4), whole(4) + 10)) for name in ("Add", "Sub", "Mul", "Div", "Equal", "Less")),
    *(Case(name, (BOOLS, BOOLS[0])) for name in ("And", "Or", "Xor")),
    *(Case(name, (whole(3, 4), whole(4)), opset=18) for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")),
    Case("BitwiseNot", (whole(3, 4),), opset=18),
    Case("Not", (BOOLS,)),
    *(Case(name, ((2, 3), (3,), (2, 1))) for name in ("Sum", "Max", "Min", "Mean")),
    Case("Max", ((2, 3),)),
    Case("IsNaN", (f32(1, np.nan, np.inf),)),
    Case("IsInf", (f32(1, np.nan, np.inf, -np.inf),)),
    Case("IsInf", (f32(1, -np.inf, np.inf),), {"detect_negative": 0}),
    Case("IsInf", (f32(1, -np.inf, np.inf),), {"detect_positive": 0}),
    Case("Round", (f32(-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49999997, 3.2, -7.7),)),
    Case("Pow", (floats(3, low=0.5), f32(2, 0.5, -1))),
    Case("Pow", (floats(3, low=0.5), whole(3))),
    Case("Mod", (whole(4, low=-9), np.array([4, -4, 3, -3], np.int32))),
    Case("Mod", (floats(4), f32(0.7, -0.7, 0.3, -0.3)), {"fmod": 1}),
    Case("BitShift", (whole(4, low=0, dtype="uint8"), np.array([0, 1, 2, 3], np.uint8)), {"direction": "LEFT"}),
    Case("BitShift", (whole(4, low=0, dtype="uint8"), np.array([0, 1, 2, 3], np.uint8)), {"direction": "RIGHT"}),
    Case("PRelu", ((2, 3, 4, 4),), known=(floats(3, 1, 1),)),
    Case("PRelu", ((2, 3, 4),), known=(floats(4),)),
    Case("LeakyRelu", ((2, 3),), {"alpha": 0.3}),
    Case("Elu", ((2, 3),), {"alpha": 0.3}),
    Case("HardSigmoid", ((2, 3),), {"alpha": 0.3, "beta": 0.1}),
    Case("Gelu", ((2, 3),), opset=20),
    Case("Gelu", ((2, 3),), {"approximate": "tanh"}, opset=20),
    Case("Mish", ((2, 3),), opset=18),
    Case("Where", (BOOLS, (2, 2), (2,))),
    Case("Clip", ((3, 4),), {"min": -0.5, "max": 0.7}, opset=6 + 1),
    Case("Clip", ((3, 4),), {"min": 0.0}, opset=10),
    Case("Clip", ((3, 4),), known=(np.float32(-0.5), np.float32(0.5))),
    Case("Clip", ((3, 4),), known=(np.float32(0),)),
    Case("Clip", ((3, 4),), known=(np.float32(0.25),)),
    Case("Clip", ((3, 4),), known=(None, np.float32(0.5))),
    Case("Clip", ((3, 4),)),
    Case("Clip", (whole(3, 4, dtype="int8"),), known=(np.int8(-3), np.int8(4))),
]  # fmt: skip
WINDOWS = [
    Case("Conv", ((1, 3, 7, 8),), known=(floats(4, 3, 3, 2),)),
    Case("Conv", ((2, 3, 7, 8),), {"strides": [2, 3], "pads": [1, 0, 2, 1]}, known=(floats(4, 3, 3, 2), floats(4))),
    Case("Conv", ((1, 4, 9, 9),), {"group": 2, "dilations": [2, 1]}, known=(floats(6, 2, 3, 3),)),
    Case("Conv", ((1, 4, 9, 9),), {"group": 4, "kernel_shape": [3, 3]}, known=(floats(8, 1, 3, 3),)),
    Case("Conv", ((1, 3, 7, 8),), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, known=(floats(4, 3, 2, 3),)),
    Case("Conv", ((1, 3, 7, 8),), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, known=(floats(4, 3, 2, 3),)),
    Case("Conv", ((1, 3, 7, 8),), {"auto_pad": "VALID"}, known=(floats(4, 3, 2, 3),)),
    Case("Conv", ((1, 3, 11),), {"strides": [2], "pads": [1, 0]}, known=(floats(4, 3, 3), floats(4))),
    Case("Conv", ((1, 2, 4, 5, 4),), {"pads": [1, 1, 1, 0, 0, 0]}, known=(floats(3, 2, 2, 2, 2),)),
    Case("ConvTranspose", ((1, 3, 4, 5),), {"strides": [2, 3], "pads": [1, 0, 0, 1]}, known=(floats(3, 2, 3, 3),)),
    Case("ConvTranspose", ((1, 4, 4, 5),), {"group": 2, "strides": [2, 2], "output_padding": [1, 1]},
         known=(floats(4, 2, 3, 3), floats(4))),
    Case("ConvTranspose", ((1, 3, 4, 5),), {"dilations": [2, 1]}, known=(floats(3, 2, 3, 3),)),
    Case("ConvTranspose", ((1, 3, 4, 5),), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, known=(floats(3, 2, 3, 3),)),
    Case("ConvTranspose", ((1, 3, 4, 5),), {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, known=(floats(3, 2, 3, 3),)),
    Case("ConvTranspose", ((1, 3, 4, 5),), {"output_shape": [9, 11], "strides": [2, 2]}, known=(floats(3, 2, 3, 3),)),
    Case("ConvTranspose", ((1, 3, 6),), {"strides": [2]}, known=(floats(3, 2, 3),)),
    *(
        Case(name, ((1, 2, 7, 8),), attrs)
        for name in ("MaxPool", "AveragePool")
        for attrs in (
            {"kernel_shape": [2, 3]},
            {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 1]},
            {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
            {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_LOWER"},
            {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
            {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        )
    ),
    Case("MaxPool", ((1, 2, 9, 9),), {"kernel_shape": [2, 2], "dilations": [3, 2]}),
    Case("MaxPool", (whole(1, 2, 6, 6, low=-128, high=0, dtype="int8"),),
         {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}),
    Case("MaxPool", ((1, 2, 9),), {"kernel_shape": [3], "strides": [2]}),
    Case("MaxPool", ((1, 2, 5, 5, 5),), {"kernel_shape": [2, 2, 2]}),
    Case("AveragePool", ((1, 2, 7, 7),), {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    Case("AveragePool", ((1, 2, 9),), {"kernel_shape": [3], "strides": [2]}),
    Case("GlobalAveragePool", ((2, 3, 4, 5),)),
    Case("GlobalAveragePool", ((2, 3, 4),)),
    Case("GlobalMaxPool", ((2, 3, 4, 5),)),
    Case("GlobalMaxPool", ((2, 3, 4),)),
    Case("GlobalLpPool", ((2, 3, 4, 5),)),
    Case("GlobalLpPool", ((2, 3, 4),), {"p": 3}),
    Case("LpPool", ((1, 2, 7, 8),), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}, opset=18),
    Case("LpPool", ((1, 2, 7, 8),), {"kernel_shape": [2, 3], "pads": [1, 0, 1, 1], "p": 3}, opset=18),
    Case("MaxPool", ((2, 3, 7, 8),), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}, outputs=2),
]  # fmt: skip
DENSE = [
    *(
        Case("Gemm", (shape,), {"alpha": 0.5, "beta": 2.0, "transA": a, "transB": b}, known=(weight, floats(5)))
        for a, shape in ((0, (3, 4)), (1, (4, 3)))
        for b, weight in ((0, floats(4, 5)), (1, floats(5, 4)))
    ),
    Case("Gemm", ((3, 4),), known=(floats(4, 5),)),
    Case("Gemm", ((3, 4),), known=(floats(4, 5), floats(3, 1))),
    Case("Gemm", ((3, 4), (4, 5), (3, 5))),
    Case("MatMul", ((3, 4), (4, 5))),
    Case("MatMul", ((2, 3, 4), (4, 5))),
    Case("MatMul", ((2, 3, 4), (2, 4, 5))),
    Case("MatMul", ((2, 1, 3, 4), (5, 4, 2))),
    Case("MatMul", ((4,), (4, 5))),
    Case("MatMul", ((3, 4), (4,))),
    Case("MatMul", ((4,), (4,))),
    Case("MatMul", ((4,), (2, 4, 3))),
]
CHANNELS = (floats(3), floats(3, low=-1), floats(3, low=0), floats(3, low=0.5))
NORMS = [
    Case("BatchNormalization", ((2, 3, 4, 4),), {"epsilon": 1e-3}, known=CHANNELS),
    Case("BatchNormalization", ((2, 3, 4),), known=CHANNELS, opset=9),
    Case("BatchNormalization", ((2, 3),), known=CHANNELS, opset=15),
    Case("InstanceNormalization", ((2, 3, 4, 4),), known=CHANNELS[:2]),
    Case("LayerNormalization", ((2, 3, 4),), known=(floats(4), floats(4, low=0))),
    Case("LayerNormalization", ((2, 3, 4),), known=(floats(4),)),
    Case("LayerNormalization", ((2, 3, 4),), {"axis": 1}, known=(floats(3, 4), floats(3, 4, low=0))),
    Case("GroupNormalization", ((2, 4, 3),), {"num_groups": 2}, known=(floats(4), floats(4, low=0)), opset=21),
    Case("LayerNormalization", ((2, 3, 4),), known=(floats(4), floats(4, low=0)), outputs=3),
    Case("MelWeightMatrix", (), known=(np.array(8), np.array(64), np.array(8192), np.float32(0), np.float32(4096))),
    Case("LRN", ((1, 6, 3, 3),), {"size": 3, "alpha": 0.2, "beta": 0.5, "bias": 1.5}),
    Case("LpNormalization", ((3, 4),)),
    Case("LpNormalization", ((3, 4),), {"p": 1, "axis": 0}),
    *(Case(name, ((2, 3, 4),), opset=opset) for name in ("Softmax", "LogSoftmax") for opset in (11, 13)),
    *(Case("Softmax", ((2, 3, 4),), {"axis": axis}, opset=opset) for axis in (0, 1, 2, -2) for opset in (11, 13)),
    Case("Softmax", ((2, 3),), opset=11),
    Case("Dropout", ((2, 3),), {"ratio": 0.3}, opset=11),
    Case("Dropout", ((2, 3),), known=(np.float32(0.5), np.array(False))),
]
REDUCTIONS = [
    *(
        Case(name, (floats(2, 3, 4, low=0.5),), attrs, known=known, opset=opset)
        for name in (
            "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
            "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp",
        )
        for attrs, known, opset in (
            ({"axes": [1, -1]}, (), 11),
            ({"axes": [0], "keepdims": 0}, (), 11),
            ({}, (), 11),
            ({"keepdims": 0}, (i64(0, 2),), 18),
            ({}, (), 18),
            ({"noop_with_empty_axes": 1}, (), 18),
        )
    ),
    Case("ReduceSum", ((2, 3),), known=(i64(1),), opset=13),
    *(Case(name, ((2, 3, 4),), attrs) for name in ("ArgMax", "ArgMin") for attrs in (
        {}, {"axis": 1, "keepdims": 0}, {"axis": -1},
    )),
    Case("ArgMax", (np.array([[3, 3, 1]], np.float32),), {"axis": 1, "select_last_index": 1}),
]  # fmt: skip
SHAPES = [
    Case("Reshape", ((2, 3, 4),), known=(i64(0, -1),)),
    Case("Reshape", ((2, 3, 4),), known=(i64(4, 6),), opset=13),
    *(Case("Flatten", ((2, 3, 4),), {"axis": axis}) for axis in (0, 1, 2, 3, -1)),
    Case("Transpose", ((2, 3, 4),), {"perm": [2, 0, 1]}),
    Case("Transpose", ((2, 3, 4),)),
    Case("Concat", ((2, 3), (2, 1), (2, 2)), {"axis": -1}),
    Case("Squeeze", ((1, 3, 1),), {"axes": [0]}, opset=11),
    Case("Squeeze", ((1, 3, 1),), known=(i64(-1),)),
    Case("Squeeze", ((1, 3, 1),)),
    Case("Unsqueeze", ((3, 4),), {"axes": [0, 3]}, opset=11),
    Case("Unsqueeze", ((3, 4),), known=(i64(-1, 1),)),
    Case("Cast", (floats(3, low=-5, high=5),), {"to": TensorProto.INT32}),
    Case("Cast", (whole(3),), {"to": TensorProto.FLOAT}),
    Case("CastLike", (whole(3), floats(2))),
    Case("Pad", ((2, 3),), {"pads": [0, 1, 2, 0], "value": 1.5}, opset=10),
    Case("Pad", ((2, 3),), known=(i64(0, 1, 2, 0), np.float32(-1))),
    Case("Pad", ((2, 3),), known=(i64(0, 1, 2, 0),)),
    Case("Pad", ((2, 3),), known=(i64(0, -1, 1, 0),)),
    Case("Pad", ((2, 4),), {"mode": "reflect"}, known=(i64(0, 2, 1, 1),)),
    Case("Pad", ((2, 4),), {"mode": "edge"}, known=(i64(0, 2, 1, 1),)),
    Case("Pad", ((2, 4),), known=(i64(2, 1), None, i64(-1)), opset=18),
    Case("Slice", ((4, 5),), {"starts": [1, 0], "ends": [3, -1], "axes": [0, 1]}, opset=9),
    Case("Slice", ((4, 5),), known=(i64(1, -2), i64(9999, -9999), i64(0, 1), i64(2, -1))),
    Case("Slice", ((4, 5),), known=(i64(1), i64(3))),
    Case("Slice", ((4, 5),), known=(i64(-1), i64(-99), i64(-1), i64(-2))),
    Case("Slice", ((4, 5),), known=(i64(3), i64(1), i64(0))),
    Case("Gather", ((4, 5),), known=(np.array([[0, -1], [2, 3]], np.int64),)),
    Case("Gather", ((4, 5), i64(-1, 0)), {"axis": 1}),
    Case("Gather", ((4, 5),), {"axis": 1}, known=(np.array(2, np.int64),)),
    Case("Split", ((2, 6),), {"axis": 1}, opset=13, outputs=3),
    Case("Split", ((2, 6),), {"axis": -1, "split": [1, 5]}, opset=11, outputs=2),
    Case("Split", ((2, 6),), {"axis": 1}, known=(i64(2, 4),), outputs=2),
    Case("Split", ((2, 7),), {"axis": 1, "num_outputs": 3}, opset=18, outputs=3),
    Case("Expand", ((3, 1),), known=(i64(2, 1, 4),)),
    Case("Upsample", ((1, 2, 3, 2),), {"scales": [1.0, 1.0, 2.0, 3.0]}, opset=7),
    Case("Upsample", ((1, 2, 3, 2),), known=(f32(1, 1, 2, 2),), opset=9),
    Case("Resize", ((1, 2, 3, 2),), known=(f32(1, 1, 2, 2),), opset=10),
    Case("Resize", ((1, 2, 3, 4),), {"mode": "nearest"}, (None, f32(1, 1, 2, 2))),
    Case("Resize", ((1, 2, 3, 4),), {"coordinate_transformation_mode": "asymmetric"}, (None, f32(1, 1, 3, 2))),
    Case("Resize", ((1, 2, 4, 6),), {"nearest_mode": "floor"}, (None, f32(1, 1, 0.5, 1.5))),
    Case("Resize", ((1, 2, 4, 6),), {"nearest_mode": "ceil"}, (None, None, i64(1, 2, 8, 9))),
    Case("Resize", ((1, 2, 4, 6),), {"coordinate_transformation_mode": "align_corners"}, (None, None, i64(1, 2, 3, 9))),
    Case("Resize", ((1, 2, 4),), {"coordinate_transformation_mode": "pytorch_half_pixel"}, (None, f32(1, 2, 0.3))),
    Case("Tile", ((2, 3),), known=(i64(2, 1),)),
    Case("DepthToSpace", ((1, 8, 2, 3),), {"blocksize": 2}),
    Case("DepthToSpace", ((1, 8, 2, 3),), {"blocksize": 2, "mode": "CRD"}),
    Case("SpaceToDepth", ((1, 2, 4, 6),), {"blocksize": 2}),
    Case("Shape", ((2, 3, 4),)),
    Case("Shape", ((2, 3, 4),), {"start": 1, "end": -1}),
    Case("Size", ((2, 3),)),
    Case("ConstantOfShape", (), known=(i64(2, 3),)),
    Case("ConstantOfShape", (), {"value": helper.make_tensor("v", TensorProto.INT64, [1], [7])}, known=(i64(2),)),
    Case("Range", (), known=(np.int64(1), np.int64(10), np.int64(3))),
    Case("Constant", (), {"value_floats": [1.0, 2.5]}),
    Case("Constant", (), {"value_int": 3}),
    Case("Constant", (), {"value": helper.make_tensor("v", TensorProto.INT8, [2, 1], [7, -1])}),
]
QUANTIZED = [
    Case("QuantizeLinear", (f32(-1.5, -0.5, 0.5, 1.5, 2.5, 300, -300),), known=(np.float32(1), np.uint8(3))),
    Case("QuantizeLinear", (f32(-1.5, -0.5, 0.5, 1.5, 2.5, 300, -300),), known=(np.float32(0.5), np.int8(-3))),
    Case("QuantizeLinear", (f32(-1, 3, 300),), known=(np.float32(1),)),
    Case("QuantizeLinear", ((2, 3, 4),), {"axis": 1}, known=(f32(0.1, 0.2, 0.3), np.array([0, 3, -3], np.int8))),
    Case("DequantizeLinear", (whole(7, dtype="int8"),), known=(np.float32(0.1), np.int8(-3))),
    Case("DequantizeLinear", (whole(3, 4, dtype="uint8", low=0),), {"axis": 0},
         known=(f32(0.1, 0.2, 0.3), np.array([0, 3, 5], np.uint8))),
    Case("DequantizeLinear", (whole(7, dtype="int32"),), known=(np.float32(0.1),)),
]  # fmt: skip
CASES = [*SIMPLE, *WINDOWS, *DENSE, *NORMS, *REDUCTIONS, *SHAPES, *QUANTIZED]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnxruntime(make: Callable[..., Any], compare: Callable[..., Any], case: Case) -> None:
    arrays = {f"x{n}": floats(*given) if isinstance(given, tuple) else given for n, given in enumerate(case.inputs)}
    weights = {f"w{n}": np.asarray(given) for n, given in enumerate(case.known) if given is not None}
    names = [*arrays, *(f"w{n}" if given is not None else "" for n, given in enumerate(case.known))]
    outputs = ["y"] if case.outputs == 1 else [f"y{n}" for n in range(case.outputs)]
    node = helper.make_node(case.operator, names, outputs, name="one", **case.attrs)
    compare(make([node], arrays, weights, outputs, case.opset), arrays)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mish_keeps_its_digits(make: Callable[..., Any], dtype: str) -> None:
    low = -9 if dtype == "float16" else -80  # what exp can still tell from 0
    x = np.linspace(low, 80, 4001).astype(dtype)
    module, _ = from_onnx(make([helper.make_node("Mish", ["x"], ["y"])], {"x": x}, opset=18))
    wide = x.astype("longdouble")
    want = wide * np.tanh(np.log1p(np.exp(wide)))
    np.testing.assert_allclose(evaluate(module, [x]), want.astype(dtype), rtol=16 * np.finfo(dtype).eps)


def test_every_converter_has_a_case_or_a_node_test_of_onnx() -> None:
    page = (Path(__file__).parents[3] / "docs" / "onnx.md").read_text()
    passed = {name for name, count in re.findall(r"^\| (\w+) \| \d+ \| (\d+) \|", page, re.M) if int(count)}
    mine = {case.operator for case in CASES}
    # Those that make functions and lists have files of their own.
    assert mine <= set(CONVERTERS) <= mine | passed | set(CONTROL)


def test_every_converter_is_listed_once() -> None:
    names = [(converter.domain, converter.operator) for family in FAMILIES for converter in family.CONVERTERS]
    assert len(names) == len(set(names))


def test_the_outputs_of_a_node_share_its_call(make: Callable[..., Any]) -> None:
    parts = [f"p{k}" for k in range(500)]
    nodes = [helper.make_node("Split", ["x"], parts), helper.make_node("Concat", parts, ["y"], axis=0)]
    module, _ = from_onnx(make(nodes, {"x": ((500, 2), "float32")}))
    assert module.astext().count("split(") == 1
    with pytest.raises(InputError, match="hidden_size of GRU must be that of its weights, 4, not 5"):
        gru = helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=5)
        from_onnx(make([gru], {"x": floats(3, 1, 2)}, {"w": floats(1, 12, 2), "r": floats(1, 12, 4)}))
    names = ["s", "b", "m", "v"]
    norm = helper.make_node("BatchNormalization", ["x", *names], ["y", "mean", "variance"])
    with pytest.raises(UnsupportedError, match="training_mode must be 1 where it has more than one output"):
        from_onnx(make([norm], {"x": floats(2, 3)}, {name: floats(3) for name in names}, ["y", "mean"]))
