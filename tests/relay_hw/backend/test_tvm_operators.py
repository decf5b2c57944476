"""Every operator that goes to Relax equals its numpy meaning: exactly in integers, to rounding in floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw.op as op
from relay_hw.analysis import infer_type
from relay_hw.backend.flat import FlatFunction, evaluate, flatten
from relay_hw.backend.tvm import build_library, load_library
from relay_hw.ir.expr import Constant, Expr, Function, Tuple, TupleGetItem, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from tests.needs import needs_tvm

pytestmark = needs_tvm

RNG = np.random.default_rng(7)
Build = Callable[..., Expr]
Types = Sequence[tuple[tuple[int, ...], str]]


def conv(x: Expr, weight: Constant, **attrs: Any) -> Expr:
    """A convolution whose channels and kernel are those of its weight."""
    return op.nn.conv2d(x, weight, channels=weight.data.shape[0], kernel_size=weight.data.shape[2:], **attrs)


def const(shape: Sequence[int], dtype: str = "float32", low: int = -9, high: int = 9) -> Constant:
    values = RNG.integers(low, high + 1, shape)
    return Constant(np.asarray(values, dtype))


IMAGE = ((1, 6, 9, 11), "float32")
BYTES = ((1, 6, 9, 11), "int8")
VECTOR = ((3, 10), "float32")

# name: (argument types, builder); operators that Relax lacks or means differently are in NUMPY below.
CASES: dict[str, tuple[Types, Build]] = {
    "add_f": ([IMAGE, ((6, 1, 1), "float32")], op.add),
    "add_i8_wraps": ([BYTES, BYTES], op.add),
    "add_i32_wraps": ([((4, 5), "int32"), ((4, 5), "int32")], op.add),
    "subtract_i32_wraps": ([((4, 5), "int32"), ((1, 5), "int32")], op.subtract),
    "multiply_i32_wraps": ([((4, 5), "int32"), ((4, 5), "int32")], op.multiply),
    "multiply_f": ([IMAGE, IMAGE], op.multiply),
    "divide_f": ([VECTOR, VECTOR], op.divide),
    "maximum_i8": ([BYTES, BYTES], op.maximum),
    "minimum_f": ([VECTOR, VECTOR], op.minimum),
    "less": ([VECTOR, VECTOR], op.less),
    "equal_i8": ([BYTES, BYTES], op.equal),
    "sigmoid": ([IMAGE], op.sigmoid),
    "tanh": ([IMAGE], op.tanh),
    "erf": ([VECTOR], op.erf),
    "exp": ([VECTOR], op.exp),
    "sqrt": ([VECTOR], lambda x: op.sqrt(op.abs(x))),
    "floor": ([VECTOR], op.floor),
    "negative": ([VECTOR], op.negative),
    "relu": ([IMAGE], op.nn.relu),
    "relu_i8": ([BYTES], op.nn.relu),
    "leaky_relu": ([IMAGE], lambda x: op.nn.leaky_relu(x, 0.1)),
    "clip": ([IMAGE], lambda x: op.clip(x, -1.5, 2.0)),
    "cast_i8_i32": ([BYTES], lambda x: op.cast(x, "int32")),
    "cast_i32_i8_wraps": ([((4, 5), "int32")], lambda x: op.cast(x, "int8")),
    "bias_add": ([IMAGE], lambda x: op.nn.bias_add(x, const((6,)))),
    "bias_add_last": ([VECTOR], lambda x: op.nn.bias_add(x, const((10,)), axis=-1)),
    "bias_add_i32": ([((4, 5), "int32")], lambda x: op.nn.bias_add(x, const((5,), "int32"))),
    "dense": ([VECTOR], lambda x: op.nn.dense(x, const((7, 10)))),
    "dense_i8": ([((3, 10), "int8")], lambda x: op.nn.dense(x, const((7, 10), "int8", -128, 127), out_dtype="int32")),
    "matmul": ([VECTOR, ((4, 10), "float32")], lambda a, b: op.nn.matmul(a, b, transpose_b=True)),
    "batch_matmul": (
        [((2, 3, 5), "float32"), ((2, 4, 5), "float32")],
        lambda a, b: op.nn.batch_matmul(a, b, transpose_b=True),
    ),
    "conv2d": ([IMAGE], lambda x: conv(x, const((10, 6, 3, 3)), padding=(1, 1))),
    "conv2d_odd": (
        [IMAGE],
        lambda x: conv(x, const((5, 6, 2, 3)), strides=(2, 1), padding=(1, 0, 2, 1), dilation=(1, 2)),
    ),
    "conv2d_i8": (
        [BYTES],
        lambda x: conv(x, const((20, 6, 3, 3), "int8", -128, 127), padding=(1, 1), out_dtype="int32"),
    ),
    "conv2d_i8_narrow": (
        [BYTES],
        lambda x: conv(x, const((2, 6, 1, 1), "int8"), out_dtype="int16"),
    ),
    "conv2d_bias_relu": (
        [IMAGE],
        lambda x: op.nn.relu(op.nn.bias_add(conv(x, const((16, 6, 3, 3))), const((16,)))),
    ),
    "conv2d_one_pixel": ([IMAGE], lambda x: conv(x, const((3, 6, 9, 11)))),
    "conv2d_groups": ([IMAGE], lambda x: conv(x, const((9, 2, 3, 3)), groups=3, padding=(1, 1))),
    "conv2d_depthwise_i8": (
        [BYTES],
        lambda x: conv(x, const((6, 1, 3, 3), "int8", -128, 127), groups=6, out_dtype="int32"),
    ),
    "conv2d_weight_computed": (
        [IMAGE, ((4, 6, 3, 3), "float32")],
        lambda x, w: op.nn.conv2d(x, w, channels=4, kernel_size=(3, 3)),
    ),
    "conv2d_transpose": (
        [IMAGE],
        lambda x: op.nn.conv2d_transpose(
            x,
            const((6, 4, 3, 3)),
            strides=(2, 2),
            padding=(1, 1),
            output_padding=(1, 1),
            channels=4,
            kernel_size=(3, 3),
        ),
    ),
    "max_pool2d": ([IMAGE], lambda x: op.nn.max_pool2d(x, (3, 2), strides=(2, 2), padding=(1, 0, 1, 1))),
    "max_pool2d_i8": ([BYTES], lambda x: op.nn.max_pool2d(x, (2, 2), strides=(2, 2), padding=(1, 1))),
    "avg_pool2d": ([IMAGE], lambda x: op.nn.avg_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1))),
    "avg_pool2d_with_pad": (
        [IMAGE],
        lambda x: op.nn.avg_pool2d(x, (3, 3), strides=(2, 2), padding=(1, 1), count_include_pad=True),
    ),
    "global_avg_pool2d": ([IMAGE], op.nn.global_avg_pool2d),
    "global_max_pool2d_i8": ([BYTES], op.nn.global_max_pool2d),
    "softmax": ([VECTOR], op.nn.softmax),
    "log_softmax": ([VECTOR], op.nn.log_softmax),
    "layer_norm": ([VECTOR], lambda x: op.nn.layer_norm(x, const((10,)), const((10,)))),
    "pad_i8": ([BYTES], lambda x: op.nn.pad(x, ((0, 0), (0, 0), (1, 2), (0, 3)), Constant(np.int8(-7)))),
    "flatten": ([IMAGE], op.nn.batch_flatten),
    "reshape": ([IMAGE], lambda x: op.reshape(x, (0, -1, 11))),
    "squeeze": ([IMAGE], lambda x: op.squeeze(x, axis=0)),
    "expand_dims": ([VECTOR], lambda x: op.expand_dims(x, axis=1, num_newaxis=2)),
    "transpose": ([IMAGE], lambda x: op.transpose(x, (0, 2, -1, 1))),
    "transpose_reversed": ([IMAGE], op.transpose),
    "concatenate": ([IMAGE, ((1, 2, 9, 11), "float32")], lambda a, b: op.concatenate(Tuple((a, b)), axis=1)),
    "split": ([IMAGE], lambda x: Tuple((TupleGetItem(op.split(x, 3, axis=1), 2), x))),
    "sum": ([IMAGE], lambda x: op.sum(x, axis=(1, -1), keepdims=True)),
    "mean": ([IMAGE], lambda x: op.mean(x, axis=(2, 3))),
    "max": ([IMAGE], lambda x: op.max(x, axis=1)),
    "min_exclude": ([IMAGE], lambda x: op.min(x, axis=1, exclude=True)),
    "fixed_add": (
        [BYTES, BYTES],
        lambda a, b: op.fixed.add(a, b, 1 << 29, 3 << 28, 30, 4, -3, 2, rounding="half_even", a_min=-100),
    ),
}
for _rounding in ("half_up", "half_even", "half_away", "floor"):
    CASES[f"requantize_{_rounding}"] = (
        [((1, 6, 40, 11), "int32")],
        lambda x, rounding=_rounding: op.fixed.requantize(
            x,
            const((6,), "int32", -(2**31), 2**31 - 1),
            (2**31 - 1, 1, 5, 3 << 20, 1 << 30, 77),
            (31, 0, 1, 43, 62, 30),
            zero_point=-5,
            rounding=rounding,
            a_min=-120,
            a_max=99,
        ),
    )

CASES |= {
    "divide_i32": ([((4, 5), "int32")], lambda x: op.divide(x, const((5,), "int32", 1, 9))),
    "round_ties": ([VECTOR], op.round),
    "avg_pool2d_i8": ([BYTES], lambda x: op.nn.avg_pool2d(x, (2, 2))),
    "mean_i32": ([((4, 5), "int32")], lambda x: op.mean(x, axis=1)),
    "sum_i8": ([((4, 5), "int8")], lambda x: op.sum(x, axis=1)),
    "clip_i8": ([BYTES], lambda x: op.clip(x, -3.5, 200.0)),
    "cast_f_i8": ([VECTOR], lambda x: op.cast(x, "int8")),
    "quantize": ([VECTOR], lambda x: op.qnn.quantize(x, const((), low=1), const((), "int32"))),
    "split_tuple": ([((4, 6), "float32")], lambda x: op.split(op.round(x), 2, axis=1)),
    "stack_tuple": ([VECTOR, VECTOR], lambda a, b: op.stack(Tuple((a, b)), axis=1)),
}

# These keep their numpy meaning: Relax has none, or another one.
NUMPY: dict[str, tuple[Types, Build]] = {
    "divide_i32_computed": ([((4, 5), "int32")], lambda x: op.divide(x, op.maximum(op.abs(x), Constant(np.int32(1))))),
    "power_i32": ([((4, 5), "int32")], lambda x: op.power(x, const((5,), "int32", 0, 3))),
    "multiply_i64": ([((4, 5), "int64"), ((5,), "int64")], op.multiply),
    "argsort": ([VECTOR], op.argsort),
    "topk_tuple": ([VECTOR], lambda x: op.topk(x, 3)),
}


def typed(name: str, types: Types, build: Build) -> FlatFunction:
    params = [Var(f"x{i}", TensorType(shape, dtype)) for i, (shape, dtype) in enumerate(types)]
    mod = infer_type(IRModule({"main": Function(params, build(*params))}))
    return flatten(mod["main"], name)


FUNCTIONS = {name: typed(name, *case) for name, case in (CASES | NUMPY).items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("tvm") / "host.so"
    record = build_library(list(FUNCTIONS.values()), path)
    return record, load_library(path, record)


def values(types: Types, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found: list[np.ndarray] = []
    for shape, dtype in types:
        if np.dtype(dtype).kind == "f":
            # Halves are ties of rounding.
            found.append(np.where(rng.random(shape) < 0.3, rng.integers(-6, 6, shape) + 0.5, rng.normal(0, 3, shape)))
        else:
            info = np.iinfo(dtype)
            found.append(rng.integers(info.min, info.max, shape, endpoint=True, dtype=dtype))
        found[-1] = found[-1].astype(dtype)
    return found


def check(got: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert isinstance(got, tuple) and len(got) == len(want)
        for left, right in zip(got, want, strict=True):
            check(left, right)
        return
    want = np.asarray(want)
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind == "f":
        # Sums whose terms cancel are as exact as the terms: a last place of the largest value that came of such.
        largest = np.abs(want[np.isfinite(want)]).max(initial=0)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=max(1e-5, np.finfo(want.dtype).eps * largest))
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_equals_numpy(name: str, built: Any) -> None:
    _, library = built
    types, _ = (CASES | NUMPY)[name]
    for seed in range(3):
        args = values(types, seed)
        check(library.call(name, args), evaluate(FUNCTIONS[name], args))


def test_only_what_relax_cannot_do_is_left_to_numpy(built: Any) -> None:
    record, _ = built
    assert set(record.left_to_numpy) == set(NUMPY)
    assert record.left_to_numpy["topk_tuple"] == ("topk",)
