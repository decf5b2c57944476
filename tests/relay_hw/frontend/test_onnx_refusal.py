"""A network with five unsupported operators: one message, status 2, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from relay_hw.cli.main import main
from relay_hw.errors import InputError, TypeCheckError, UnsupportedError
from relay_hw.frontend import from_onnx
from relay_hw.limits import OnnxOptions


def test_compile_lists_all_five_and_exits_with_2(
    make: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["a"], name="first"),
        helper.make_node("Cast", ["a"], ["b"], name="second", to=TensorProto.STRING),
        helper.make_node("StringNormalizer", ["b"], ["c"], name="third"),
        helper.make_node("Convolution", ["c"], ["d"], name="fourth"),
        helper.make_node("Resize", ["d", "", "s"], ["y"], name="fifth", mode="quintic"),
    ]
    model = make(nodes, {"x": np.zeros((1, 3, 4, 4), np.float32)}, {"s": np.ones(4, np.float32)})
    (tmp_path / "five.onnx").write_bytes(model.SerializeToString())
    build = tmp_path / "build"
    assert main(["compile", str(tmp_path / "five.onnx"), "-o", str(build)]) == 2
    caught = capsys.readouterr()
    assert not caught.out and not build.exists()
    assert caught.err.count("\n") == 1 and "not 5 nodes: " in caught.err
    for part in (
        "RandomUniformLike (node first, opset 17): results must not be random: give the numbers as an input",
        "Cast (node second, opset 17): to must be a numpy element type, not ONNX type 8",
        "StringNormalizer (node third, opset 17): tensors must hold numbers, not words: compute this before the model",
        "Convolution (node fourth, opset 17): no converter knows this operator; the nearest that has one is ",
        "Resize (node fifth, opset 17): mode must be nearest or linear or cubic, not quintic",
    ):
        assert part in caught.err


@pytest.mark.parametrize(
    ("operator", "shapes", "attrs", "sentence"),
    [
        ("LSTM", [(1, 1, 2, 4), (1, 12, 4), (1, 12, 3)], {"hidden_size": 3}, "the data must have 3 axes, not the sha"),
        ("GRU", [(5, 2, 4), (1, 9, 4), (9, 3)], {"hidden_size": 3}, "the recurrent weight must have 3 axes, not the s"),
        ("LSTM", [(5, 2, 4, 1), (1, 12, 4), (1, 12, 3)], {"hidden_size": 3, "layout": 1}, "the data must have 3 axes"),
        ("EyeLike", [(4, 4, 2)], {}, "its inputs must have shapes that it is defined for, not (4, 4, 2)"),
        ("ReduceMax", [()], {"axes": [1]}, "that it is defined for, not ()"),
        ("Hardmax", [()], {"axis": 0}, "that it is defined for, not ()"),
        ("AffineGrid", [(2, 65536, 3)], {}, "its matrices must be of 2 by 3 or 3 by 4, not 65536 by 3"),
        ("AffineGrid", [(2, 2, 3, 2)], {}, "that it is defined for, not (2, 2, 3, 2), (4,)"),
    ],
)  # fmt: skip
def test_data_of_a_rank_that_an_operator_does_not_have(
    make: Callable[..., Any], operator: str, shapes: list[tuple[int, ...]], attrs: dict[str, Any], sentence: str
) -> None:
    inputs = {f"x{k}": np.zeros(shape, np.float32) for k, shape in enumerate(shapes)}
    known = {"size": np.array([1, 2, 3, 4])} if operator == "AffineGrid" else {}
    node = helper.make_node(operator, [*inputs, *known], ["y"], name="cell", **attrs)
    with pytest.raises(UnsupportedError) as caught:
        from_onnx(make([node], inputs, known, ["y"], 22 if operator == "AffineGrid" else 14))
    assert f"{operator} (node cell, opset" in str(caught.value) and sentence in str(caught.value)


def test_a_branch_whose_data_has_another_rank(make: Callable[..., Any]) -> None:
    """A speech detector has a branch for each sample rate; the one for another frame length has an axis too many."""

    def branch(name: str, extra: list[Any], data: str) -> Any:
        cell = helper.make_node("LSTM", [data, "W", "R"], [f"y_{name}"], name=f"lstm_{name}", hidden_size=3)
        output = helper.make_tensor_value_info(f"y_{name}", TensorProto.FLOAT, None)
        return helper.make_graph([*extra, cell], name, [], [output])

    wider = helper.make_node("Unsqueeze", ["x", "last"], ["wide"], name="wider")
    node = helper.make_node("If", ["fast"], ["y"], name="rate",
                            then_branch=branch("a", [], "x"), else_branch=branch("b", [wider], "wide"))  # fmt: skip
    inputs = {"fast": np.array(True), "x": np.zeros((1, 2, 4), np.float32)}
    weights = {"W": np.zeros((1, 12, 4), np.float32), "R": np.zeros((1, 12, 3), np.float32), "last": np.array([3])}
    with pytest.raises(UnsupportedError, match=r"LSTM \(node lstm_b, opset 14\): the data must have 3 axes, not the"):
        from_onnx(make([node], inputs, weights, ["y"], 14))
    module, _ = from_onnx(make([node], inputs, weights, ["y"], 14), options=OnnxOptions(values={"fast": 1}))
    assert [param.name_hint for param in module["main"].params][:1] == ["x"]
    for name, value, sentence in (
        ("slow", 1, r"value must name inputs of small \(fast, x\), not slow"),
        ("fast", 1.5, "value of input fast must be bool, not 1.5"),
    ):
        with pytest.raises(InputError, match=sentence):
            from_onnx(make([node], inputs, weights, ["y"], 14), options=OnnxOptions(values={name: value}))


def test_what_no_node_stands_for_names_the_file(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
    branch (bool[6] c, float[2, 3] x) => (float[2, 3] y) {
      y = If (c) <then_branch = a () => (float[2, 3] p) { p = Relu(x) },
                  else_branch = b () => (float[2, 3] q) { q = Neg(x) }>
    }"""
    path = tmp_path / "net.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    with pytest.raises(
        TypeCheckError, match=r"^.*/net\.onnx: reshape must keep the 6 elements of \(6,\), not give \(\)$"
    ):
        from_onnx(path)
