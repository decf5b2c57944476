"""Constants that a model makes of constants are counted before they are computed: elements, bytes, steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from relay_hw.analysis.folding import range_length, work_of
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.interp import evaluate
from relay_hw.ir.types import ANY, TensorType
from relay_hw.limits import Limits, OnnxOptions
from relay_hw.op import get
from relay_hw.text import parse
from relay_hw.transform import FoldConstant

Make = Callable[..., Any]


def _integers(**values: Sequence[int] | int) -> dict[str, Any]:
    return {name: np.array(value, np.int64) for name, value in values.items()}


def _node(operator: str, inputs: Sequence[str], output: str, **attrs: Any) -> Any:
    return helper.make_node(operator, inputs, [output], name=f"make_{output}", **attrs)


FULL = _node("ConstantOfShape", ["s"], "c")
BOMBS: dict[str, tuple[list[Any], dict[str, Any], str]] = {
    "full": ([FULL], _integers(s=[1 << 30]), "make_c: the elements of a (constant|result) must be at most 268,435,456"),
    "full of bytes": ([FULL], _integers(s=[1 << 27]), "make_c: the bytes of constants of small beyond its weights"),
    "expand": (
        [_node("Expand", ["v", "s"], "c")],
        {"v": np.float32(1), **_integers(s=[1 << 18, 1 << 18])},
        "make_c: the elements of a (constant|result)",
    ),
    "range": (
        [_node("Range", ["a", "b", "d"], "i"), _node("Cast", ["i"], "c", to=1)],
        _integers(a=0, b=10**12, d=1),
        "make_i: the elements of a constant must be at most 268,435,456, not 1,000,000,000,000",
    ),
    "range of small steps": (
        [_node("Range", ["a", "b", "d"], "c")],
        {"a": np.float32(0), "b": np.float32(1e30), "d": np.float32(1e-30)},
        "make_c: the elements of a (constant|result) must be at most 268,435,456, not 18,446,744,073,709,551,616",
    ),
    "tile": (
        [_node("Tile", ["v", "n"], "c")],
        {"v": np.ones(64, np.float32), **_integers(n=[1 << 40])},
        "make_c: the elements of a (constant|result)",
    ),
    "pad": (
        [_node("Pad", ["v", "n"], "c")],
        {"v": np.ones(64, np.float32), **_integers(n=[1 << 40, 1 << 40])},
        "make_c: the elements of a (constant|result)",
    ),
    "pad that wraps": (
        [_node("Pad", ["v", "n"], "c", mode="wrap")],
        {"v": np.ones(64, np.float32), **_integers(n=[1 << 40, 1 << 40])},
        "make_c: the elements of a (constant|result)",
    ),
    "doubling": (
        [_node("Concat", [f"c{k}"] * 2, f"c{k + 1}", axis=0) for k in range(40)] + [_node("Identity", ["c40"], "c")],
        {"c0": np.ones(64, np.float32)},
        "make_c1[0-9]: the bytes of constants of small beyond its weights",
    ),
    "sums": (
        [_node("Add", [f"c{k}"] * 2, f"c{k + 1}") for k in range(40)] + [_node("Identity", ["c40"], "c")],
        {"c0": np.ones(1 << 22, np.float32)},
        "make_c[0-9]+: the bytes of constants of small beyond its weights",
    ),
    "one-hot": (
        [_node("OneHot", ["n", "d", "v"], "c")],
        {**_integers(n=[1, 2], d=1 << 40), "v": np.array([0, 1], np.float32)},
        "make_c: the elements of a (constant|result)",
    ),
    "resize": (
        [_node("Resize", ["v", "", "", "n"], "c", mode="linear")],
        {"v": np.ones((1, 1, 4, 4), np.float32), **_integers(n=[1, 1, 1 << 30, 1 << 30])},
        "make_c: the elements of a (constant|result)",
    ),
    "product": (
        [FULL, _node("MatMul", ["c", "c"], "p")],
        _integers(s=[2048, 2048]),
        "make_p: the steps to compute a constant must be at most 2,147,483,648, not 8,6",
    ),
    "pool": (
        [FULL, _node("MaxPool", ["c"], "p", kernel_shape=[1024, 1024])],
        _integers(s=[1, 1, 2048, 2048]),
        "make_p: the steps to compute a constant",
    ),
    "pads": (
        [FULL, _node("MaxPool", ["c"], "p", kernel_shape=[1, 1], pads=[1 << 40] * 4, strides=[1 << 40] * 2)],
        _integers(s=[1, 1, 2, 2]),
        "make_p: ",
    ),
    "determinant": (
        [FULL, _node("Det", ["c"], "p")],
        _integers(s=[4, 1 << 11, 1 << 11]),
        "make_p: ",
    ),
    "mel": (
        [_node("MelWeightMatrix", ["n", "l", "r", "a", "b"], "c")],
        {**_integers(n=1 << 40, l=1 << 40, r=8000), "a": np.float32(0), "b": np.float32(4000)},
        "make_c: the elements of a (constant|result)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_constants_are_measured_before_they_are_made(make: Make, name: str) -> None:
    nodes, known, sentence = BOMBS[name]
    last = nodes[-1].output[0]
    nodes = [*nodes, _node("ReduceMax", [last], "m", keepdims=0), _node("Add", ["x", "m"], "y")]
    model = make(nodes, {"x": np.zeros(2, np.float32)}, known, ["y"])
    with pytest.raises((InputError, UnsupportedError), match=sentence):
        from_onnx(model, options=OnnxOptions(limits=Limits(folded_bytes=1 << 26)))


def test_results_that_no_memory_holds(make: Make) -> None:
    x = np.zeros((1, 1, 8, 8), np.float32)
    node = _node("Pad", ["x", "n"], "y")
    model = make([node], {"x": x}, _integers(n=[0, 0, 1 << 20, 1 << 20, 0, 0, 0, 0]), ["y"])
    with pytest.raises(InputError, match=r"^make_y: the elements of a result must be at most 268,435,456, not 1,0"):
        from_onnx(model)
    with pytest.raises(InputError, match="the elements of tensor x of small must be at most 63, not 64"):
        from_onnx(
            make([_node("Relu", ["x"], "y")], {"x": x}, {}, ["y"]),
            options=OnnxOptions(limits=Limits(tensor_elements=63)),
        )


def test_what_comes_of_weights_is_no_bomb(make: Make) -> None:
    """Transposed weights: as many bytes as the file has."""
    nodes = [_node("Transpose", ["w"], "t", perm=[1, 0]), _node("MatMul", ["x", "t"], "y")]
    known = {"w": np.ones((4, 100), np.float32)}
    model = make(nodes, {"x": np.zeros((1, 100), np.float32)}, known, ["y"])
    from_onnx(model, options=OnnxOptions(limits=Limits(folded_bytes=0)))
    more = [_node("Concat", ["w"] * 5, "w5", axis=0), _node("MatMul", ["x", "t"], "y")]
    nodes = [more[0], _node("Transpose", ["w5"], "t", perm=[1, 0]), more[1]]
    with pytest.raises(InputError, match=r"bytes of constants of small beyond its weights must be at most 0, not"):
        from_onnx(
            make(nodes, {"x": np.zeros((1, 100), np.float32)}, known, ["y"]),
            options=OnnxOptions(limits=Limits(folded_bytes=0)),
        )


def test_trials_of_loops_are_counted(make: Make) -> None:
    """Loops inside of loops are converted again for each trial of the one around."""

    def loop(depth: int) -> Any:
        nodes = [helper.make_node("Concat", [f"v{depth}"] * 2, [f"w{depth}"], f"double_{depth}", axis=0),
                 helper.make_node("Identity", [f"g{depth}"], [f"h{depth}"])]  # fmt: skip
        if depth:
            inner = helper.make_node("Loop", ["n", "", "w"], [f"u{depth}"], f"loop_{depth}", body=loop(depth - 1))
            nodes.append(inner)
        inputs = [helper.make_tensor_value_info(f"i{depth}", TensorProto.INT64, []),
                  helper.make_tensor_value_info(f"g{depth}", TensorProto.BOOL, []),
                  helper.make_tensor_value_info(f"v{depth}", TensorProto.FLOAT, None)]  # fmt: skip
        outputs = [helper.make_tensor_value_info(f"h{depth}", TensorProto.BOOL, []),
                   helper.make_tensor_value_info(f"w{depth}", TensorProto.FLOAT, None)]  # fmt: skip
        return helper.make_graph(nodes, f"body_{depth}", inputs, outputs)

    node = helper.make_node("Loop", ["n", "", "x"], ["y"], "outer", body=loop(24))
    model = make([node], {"x": np.zeros(2, np.float32)}, {**_integers(n=3), "w": np.ones(2, np.float32)}, ["y"])
    with pytest.raises(InputError, match="nodes of small, 10 for each that a loop has converted again, must be"):
        from_onnx(model, options=OnnxOptions(limits=Limits(nodes=500)))


def test_pieces_of_sequences_are_counted(make: Make) -> None:
    nodes = [_node("SplitToSequence", ["x"], "s"), _node("SequenceLength", ["s"], "y")]
    model = make(nodes, {"x": np.zeros(300, np.float32)}, {}, ["y"])
    with pytest.raises(InputError, match="nodes of small and the parts of this one must be at most 200, not 301"):
        from_onnx(model, options=OnnxOptions(limits=Limits(nodes=200)))


def test_a_node_of_many_inputs_is_no_depth_of_ours(make: Make) -> None:
    known = {"v": np.ones(2, np.float32)}
    for data in ("x", "v"):
        nodes = [_node("Sum", [data] * 3000, "t"), _node("Add", ["t", "x"], "y")]
        mod, _ = from_onnx(make(nodes, {"x": np.zeros(2, np.float32)}, known, ["y"]), freeze_params=True)
        found = evaluate(mod, {"x": np.ones(2, np.float32)})
        assert np.array_equal(found, np.full(2, 3001, np.float32))


@pytest.mark.parametrize(
    ("name", "values", "count"),
    [
        ("arange", [np.int64(0), np.int64(10**15), np.int64(2)], 5 * 10**14),
        ("argwhere", [np.ones((3, 4))], 24),
        ("dyn.full", [np.float32(0), np.array([1 << 40, 1 << 40])], 1 << 64),
        ("dyn.nn.pad", [np.ones((2, 3)), np.array([[1, 2], [-1, 4]]), np.float32(0)], 35),
        ("dyn.one_hot", [np.ones(3), 1, 0, np.int64(1 << 20)], 3 << 20),
        ("dyn.tile", [np.ones(3), np.array([5, 7])], 105),
        ("dyn.topk", [np.ones(12), np.int64(3)], 13),
        ("dyn.broadcast_to", [np.ones((3, 1)), np.array([3, 1 << 30])], 9 << 30),
        ("onnx.col2im", [np.ones(3)], 1 << 64),
    ],
)
def test_sizes_that_only_values_tell(name: str, values: list[Any], count: int) -> None:
    assert work_of(get(name), None, values, TensorType((ANY,), "float32")).elements == count


@pytest.mark.parametrize(
    ("start", "stop", "step"), [(0, 10, 3), (10, 0, -3), (0, 10, -1), (5, 5, 1), (0.0, 1.0, 0.3), (0.5, 3.5, 0.5)]
)
def test_numbers_of_a_range(start: float, stop: float, step: float) -> None:
    assert range_length(start, stop, step) == len(np.arange(start, stop, step))


def test_a_pass_folds_no_bomb() -> None:
    """Relay text can ask for the same; what is not folded stays as it was."""
    head = '#[version = "0.0.5"]\n'
    text = "def @main(%x: Tensor[(2), float32]) -> Tensor[(2), float32] {{ %x + sum(full(1f, shape=[{0}])) }}"
    for size, stays in ((1 << 40, True), (1 << 10, False)):
        mod = FoldConstant()(parse(head + text.format(size)))
        assert ("full(" in str(mod["main"].body)) == stays
        if not stays:
            assert np.array_equal(evaluate(mod, {"x": np.zeros(2, np.float32)}), np.full(2, size, np.float32))
