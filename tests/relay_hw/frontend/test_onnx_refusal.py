"""A network with five unsupported operators: one message, status 2, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from relay_hw.cli.main import main


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
