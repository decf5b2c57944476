"""Models with open sizes: what stays known, what becomes `?`, and results for several sizes, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

from relay_hw.errors import EvalError, InputError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.frontend.onnx.sizes import as_sizes, reshape_codes
from relay_hw.interp import evaluate
from relay_hw.ir.dims import DimVar, dim_mul
from relay_hw.ir.types import ANY, TensorType

node = helper.make_node
RNG = np.random.default_rng(0)
W = RNG.normal(size=(6, 3, 3, 3)).astype(np.float32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def run_both(model: Any, inputs: Mapping[str, np.ndarray], shape: Mapping[str, Any] | None = None) -> Any:
    """The interpreter's outputs, which must be onnxruntime's; and the type of the first."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    wanted = onnxruntime.InferenceSession(model.SerializeToString(), options).run(None, dict(inputs))
    module, params = from_onnx(model, shape=shape)
    found = evaluate(module, {**inputs, **params})
    found = list(found) if isinstance(found, tuple) else [found]
    for got, want in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return module["main"].body.type


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_a_network_with_an_open_batch(make: Callable[..., Any], batch: int) -> None:
    """Channels and rows stay known behind the flattening that PyTorch writes with Shape."""
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node("MaxPool", ["c"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Shape", ["p"], ["s"]),
        node("Gather", ["s", "zero"], ["n"]),
        node("Unsqueeze", ["n", "front"], ["u"]),
        node("Concat", ["u", "rest"], ["t"], axis=0),
        node("Reshape", ["p", "t"], ["f"]),
        node("MatMul", ["f", "d"], ["y"]),
    ]
    weights = {"w": W, "zero": np.array(0, np.int64), "front": i64(0), "rest": i64(-1)}
    weights["d"] = RNG.normal(size=(96, 4)).astype(np.float32)
    model = make(nodes, {"x": (("N", 3, 8, 8), "float32")}, weights)
    x = RNG.normal(size=(batch, 3, 8, 8)).astype(np.float32)
    assert run_both(model, {"x": x}, {"x": (None, 3, 8, 8)}) == TensorType((ANY, 4))


@pytest.mark.parametrize("size", [(1, 7), (3, 4)])
def test_attention_with_open_batch_and_length(make: Callable[..., Any], size: tuple[int, int]) -> None:
    """Heads are split by sizes that Shape gives, and products have two open batch axes."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "zero", "two"], ["front"]),
        node("Concat", ["front", "heads"], ["split"], axis=0),
        node("Reshape", ["x", "split"], ["h"]),
        node("Transpose", ["h"], ["q"], perm=[0, 2, 1, 3]),
        node("Transpose", ["h"], ["k"], perm=[0, 2, 3, 1]),
        node("MatMul", ["q", "k"], ["qk"]),
        node("Softmax", ["qk"], ["a"], axis=-1),
        node("MatMul", ["a", "q"], ["o"]),
        node("Transpose", ["o"], ["b"], perm=[0, 2, 1, 3]),
        node("Reshape", ["b", "s"], ["y"]),
    ]
    weights = {"zero": i64(0), "two": i64(2), "heads": i64(2, 4)}
    model = make(nodes, {"x": (("N", "L", 8), "float32")}, weights)
    x = RNG.normal(size=(*size, 8)).astype(np.float32)
    assert run_both(model, {"x": x}, {"x": (None, None, 8)}) == TensorType((ANY, ANY, 8))


def test_sizes_that_are_computed_and_known_are_constants(make: Callable[..., Any]) -> None:
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Slice", ["s", "two", "four"], ["hw"]),
        node("Mul", ["hw", "twos"], ["wide"]),
        node("Concat", ["ones", "wide"], ["t"], axis=0),
        node("Expand", ["w", "t"], ["y"]),
    ]
    weights = {"two": i64(2), "four": i64(4), "twos": i64(2, 2), "ones": i64(1, 1), "w": np.ones((1, 1), np.float32)}
    model = make(nodes, {"x": (("N", 3, 4, 5), "float32")}, weights)
    x = np.zeros((2, 3, 4, 5), np.float32)
    assert run_both(model, {"x": x}, {"x": (None, 3, 4, 5)}) == TensorType((1, 1, 8, 10))


CASES: Sequence[tuple[list[Any], dict[str, Any], dict[str, Any]]] = [
    ([node("Reshape", ["x", "s"], ["y"])], {"x": (2, 6), "s": i64(3, -1)}, {}),
    ([node("Reshape", ["x", "s"], ["y"])], {"x": (2, 6), "s": i64(0, 2, 3)}, {}),
    ([node("Expand", ["x", "s"], ["y"])], {"x": (2, 1), "s": i64(3, 1, 4)}, {}),
    ([node("Tile", ["x", "s"], ["y"])], {"x": (2, 3), "s": i64(2, 1)}, {}),
    ([node("Slice", ["x", "b", "e", "a", "s"], ["y"])],
     {"x": (4, 5), "b": i64(-1), "e": i64(-9), "a": i64(1), "s": i64(-2)}, {}),
    ([node("Slice", ["x", "b", "e"], ["y"])], {"x": (4, 5), "b": i64(1, 2), "e": i64(9, 4)}, {}),
    ([node("Pad", ["x", "p"], ["y"])], {"x": (2, 3), "p": i64(1, 0, 0, 2)}, {}),
    ([node("Pad", ["x", "p", "", "a"], ["y"])], {"x": (2, 3), "p": i64(1, 2), "a": i64(-1)}, {}),
    ([node("Squeeze", ["x", "a"], ["y"])], {"x": (2, 1, 3), "a": i64(-2)}, {}),
    ([node("Unsqueeze", ["x", "a"], ["y"])], {"x": (2, 3), "a": i64(-1, 0)}, {}),
    ([node("Split", ["x", "s"], ["y", "z"], axis=1)], {"x": (2, 5), "s": i64(2, 3)}, {}),
    ([node("TopK", ["x", "k"], ["y", "z"])], {"x": (3, 5), "k": i64(2)}, {}),
    ([node("TopK", ["x", "k"], ["y", "z"], largest=0, axis=0)], {"x": (3, 5)}, {"k": i64(2)}),
    ([node("TopK", ["x", "k"], ["y", "z"], axis=1)], {"x": (3, 5, 2), "k": i64(0)}, {}),
    ([node("ConstantOfShape", ["s"], ["y"])], {"s": i64(2, 3)}, {}),
    ([node("Range", ["a", "b", "c"], ["y"])], {"a": np.int64(9), "b": np.int64(1), "c": np.int64(-3)}, {}),
    ([node("Range", ["a", "b", "c"], ["y"])], {"a": np.float32(0), "b": np.float32(1), "c": np.float32(0.3)}, {}),
    ([node("OneHot", ["i", "d", "v"], ["y"])],
     {"i": i64(0, -1, 7), "d": i64(4), "v": np.array([0, 2], np.float32)}, {}),
    ([node("NonZero", ["x"], ["y"])], {"x": np.array([[0, 1], [2, 0]], np.float32)}, {}),
    ([node("Compress", ["x", "c"], ["y"], axis=1)], {"x": (2, 3), "c": np.array([True, False, True])}, {}),
    ([node("Unique", ["x"], ["y", "a", "b", "c"], sorted=0)], {"x": i64(3, 1, 3, 2)}, {}),
    ([node("CumSum", ["x", "a"], ["y"], exclusive=1, reverse=1)], {"x": (3, 4), "a": np.int64(1)}, {}),
    ([node("CumSum", ["x", "a"], ["y"], exclusive=1, reverse=1)], {"x": (3, 4)}, {"a": np.int64(-2)}),
    ([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], {"x": (2, 3, 4), "a": i64(0, -1)}, {}),
    ([node("Resize", ["x", "", "s"], ["y"], mode="linear")],
     {"x": (1, 1, 4, 5), "s": np.array([1, 1, 2, 1.5], np.float32)}, {}),
    ([node("Resize", ["x", "", "", "s"], ["y"], mode="cubic")], {"x": (1, 2, 4, 5)}, {"s": i64(1, 2, 7, 3)}),
    ([node("Resize", ["x", "", "", "s"], ["y"], mode="linear", antialias=1)],
     {"x": (1, 2, 12, 9)}, {"s": i64(1, 2, 5, 4)}),
    ([node("GatherND", ["x", "i"], ["y"], batch_dims=1)], {"x": (2, 3, 4), "i": np.array([[[1]], [[2]]])}, {}),
    ([node("GatherElements", ["x", "i"], ["y"], axis=1)], {"x": (2, 3), "i": np.array([[0, -1], [2, 1]])}, {}),
    ([node("ScatterND", ["x", "i", "u"], ["y"], reduction="add")],
     {"x": (4,), "i": np.array([[1], [1], [-1]]), "u": (3,)}, {}),
    ([node("ScatterElements", ["x", "i", "u"], ["y"], axis=1, reduction="mul")],
     {"x": (2, 3), "i": np.array([[0], [-1]]), "u": (2, 1)}, {}),
    ([node("ReverseSequence", ["x", "n"], ["y"], batch_axis=1, time_axis=0)], {"x": (4, 3), "n": i64(1, 4, 2)}, {}),
    ([node("Trilu", ["x", "k"], ["y"], upper=0)], {"x": (2, 3, 4), "k": np.int64(-1)}, {}),
    ([node("Einsum", ["x", "z"], ["y"], equation="b...d,...de->b...e")], {"x": (2, 3, 4), "z": (3, 4, 5)}, {}),
    ([node("GridSample", ["x", "g"], ["y"], padding_mode="reflection", mode="bicubic")],
     {"x": (1, 2, 5, 6), "g": RNG.uniform(-1.5, 1.5, (1, 3, 4, 2)).astype(np.float32)}, {}),
    ([node("MaxUnpool", ["x", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])],
     {"x": (1, 1, 2, 2), "i": np.array([[[[0, 7], [13, 10]]]])}, {}),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "inputs", "weights"), CASES, ids=lambda value: getattr(value, "op_type", None))
def test_operators_with_values_for_sizes(
    make: Callable[..., Any], nodes: list[Any], inputs: dict[str, Any], weights: dict[str, Any]
) -> None:
    arrays = {
        name: RNG.normal(size=given).astype(np.float32) if isinstance(given, tuple) else np.asarray(given)
        for name, given in inputs.items()
    }
    consts = {name: np.asarray(value) for name, value in weights.items()}
    run_both(make(nodes, arrays, consts, [out for out in nodes[0].output if out], 18), arrays)


def test_boxes(make: Callable[..., Any]) -> None:
    boxes = RNG.uniform(0, 1, (2, 30, 4)).astype(np.float32)
    scores = RNG.uniform(0, 1, (2, 3, 30)).astype(np.float32)
    limits = {"n": i64(7), "i": np.array([0.3], np.float32), "s": np.array([0.2], np.float32)}
    for center in (0, 1):
        one = node("NonMaxSuppression", ["b", "c", "n", "i", "s"], ["y"], center_point_box=center)
        run_both(make([one], {"b": boxes, "c": scores}, limits), {"b": boxes, "c": scores})


def test_values_that_do_not_fit_are_refused_at_run_time(make: Callable[..., Any]) -> None:
    x = np.zeros((2, 3), np.float32)
    module, _ = from_onnx(make([node("Reshape", ["x", "s"], ["y"])], {"x": x, "s": i64(0, 0)}))
    with pytest.raises(EvalError, match=r"reshape must keep the 6 elements of \(2, 3\), not give \(4, 2\)"):
        evaluate(module, {"x": x, "s": i64(4, 2)})
    module, _ = from_onnx(make([node("TopK", ["x", "k"], ["y", "z"])], {"x": x, "k": i64(0)}, outputs=["y"]))
    with pytest.raises(EvalError, match=r"k of dyn\.topk must be at most the 3 elements there are, not 4"):
        evaluate(module, {"x": x, "k": i64(4)})
    with pytest.raises(InputError, match=r"the shape of input x must fit Nx3, not be \?x4"):
        from_onnx(make([node("Relu", ["x"], ["y"])], {"x": (("N", 3), "float32")}), shape={"x": (None, 4)})


@pytest.mark.parametrize(
    ("nodes", "size", "sentence"),
    [
        (
            [node("Unsqueeze", ["x", "s"], ["y"])],
            1 << 28,
            "input 1 of Unsqueeze must have at most two numbers for",
        ),
        (
            [node("Expand", ["x", "s"], ["y"])],
            1 << 27,
            "input 1 of Expand must have at most two numbers for each",
        ),
        ([node("Slice", ["x", "s", "s"], ["y"])], 65, "input 1 of Slice must have at most two numbers for each of 32 "),
        ([node("Squeeze", ["x", "s"], ["y"])], 0, "axes must be left out or not be empty: some take none for all, "),
        ([node("ReduceL2", ["x", "s"], ["y"])], 3, "it must have at most as many axes as its data, not 3"),
    ],
)
def test_sizes_that_no_axes_have(make: Callable[..., Any], nodes: list[Any], size: int, sentence: str) -> None:
    inputs = {"x": ((2, 3), "float32"), "s": ((size,), "int64")}
    with pytest.raises((InputError, UnsupportedError), match=sentence):
        from_onnx(make(nodes, inputs, opset=18))


def test_codes_of_reshape() -> None:
    n, m = DimVar("N"), DimVar("M")
    assert reshape_codes((n, 6), (n, 2, 3), False) == (0, 2, 3)
    assert reshape_codes((n, m, 6), (n, m, 2, 3), False) == (0, 0, 2, 3)
    assert reshape_codes((n, m, 6), (dim_mul(n, m), 6), False) == (-1, 6)
    assert reshape_codes((n, m), (m, n), False) is None
    assert reshape_codes((ANY, 6), (ANY, 6), False) == (-1, 6)
    assert reshape_codes((n, 6), (n, -1), False) == (0, -1)
    assert reshape_codes((n, 6), (6, n), True) == (6, -1)
    assert reshape_codes((n, 6), (ANY, -1), False) is None
    assert as_sizes([n], 0).shape == ()
