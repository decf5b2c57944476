"""Mistakes in data, seeded: each command names the mistake in one line. Sound data: no line at all."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relay_hw.cli.main import main
from tests.relay_hw.small_models import images, save_data, save_plain

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, data and a build; only read."""
    path = tmp_path_factory.mktemp("guards")
    save_plain(path / "net.onnx")
    save_data(path / "data.npz", 16)
    assert compiled(path / "net.onnx", path / "data.npz", path / "build") == 0
    return path


def compiled(model: Path, data: Path, folder: Path, *more: str) -> int:
    return main(["compile", str(model), "--calibration", str(data), "--config", "tiny", "-o", str(folder), *more])


def saved(path: Path, **arrays: np.ndarray) -> Path:
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def only_line(capsys: Captured, status: int, kind: str, got: int) -> str:
    """The one line on standard error, without its beginning."""
    assert got == status
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1, lines
    start = f"relay-hw: {kind}: "
    assert lines[0].startswith(start)
    return lines[0][len(start) :]


def refused(capsys: Captured, got: int) -> str:
    return only_line(capsys, 2, "error", got)


def with_bad(value: float) -> np.ndarray:
    data = images(16)
    data[3, 1, 2, 5] = value
    return data


@pytest.mark.parametrize(("value", "shown"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")])
def test_bad_numbers_in_data(shared: Path, tmp_path: Path, capsys: Captured, value: float, shown: str) -> None:
    capsys.readouterr()
    bad = saved(tmp_path / "bad.npz", image=with_bad(value), labels=np.zeros(16, np.int64))
    sentence = f"must hold finite numbers, not {shown} (sample 3, index (1, 2, 5))"
    line = refused(capsys, compiled(shared / "net.onnx", bad, tmp_path / "out"))
    assert line == f"calibration data of input image {sentence}"
    assert not (tmp_path / "out").exists()
    line = refused(capsys, main(["run", str(shared / "build"), "--input", str(bad)]))
    assert line == f"input image {sentence}"
    report = ["--strategies", "int8", "-o", str(tmp_path / "report"), "--calibration"]
    report.append(str(shared / "data.npz"))
    line = refused(capsys, main(["compare", str(shared / "net.onnx"), "--data", str(bad), *report]))
    assert line == f"test data: input image {sentence}"


def test_numbers_that_float32_cannot_hold(shared: Path, tmp_path: Path, capsys: Captured) -> None:
    bad = saved(tmp_path / "bad.npz", image=with_bad(0).astype(np.float64) * 1e40)
    line = refused(capsys, main(["run", str(shared / "build"), "--input", str(bad)]))
    assert line.startswith("input image must hold finite numbers, not ") and "(sample 0, index (0, 0, 0))" in line


@pytest.mark.parametrize(
    ("weight", "value", "sentence"),
    [
        ("w0", np.nan, "constant w0 must hold numbers, not NaN (index (0, 0, 0, 0))"),
        ("w2", np.inf, "weight and bias of conv_b must be finite, not infinite or NaN"),
    ],
)
def test_bad_numbers_in_weights(
    shared: Path, tmp_path: Path, capsys: Captured, weight: str, value: float, sentence: str
) -> None:
    model = onnx.load(shared / "net.onnx")
    (tensor,) = (one for one in model.graph.initializer if one.name == weight)
    numbers = numpy_helper.to_array(tensor).copy()
    numbers.reshape(-1)[0] = value
    tensor.CopyFrom(numpy_helper.from_array(numbers, weight))
    onnx.save(model, tmp_path / "bad.onnx")
    assert refused(capsys, compiled(tmp_path / "bad.onnx", shared / "data.npz", tmp_path / "out")) == sentence


def test_nan_in_an_output_is_said(tmp_path: Path, capsys: Captured) -> None:
    text = "def @main(%x: Tensor[(1, 4), float32]) -> Tensor[(1, 4), float32] { sqrt(%x) }"
    (tmp_path / "root.relay").write_text(f'#[version = "0.0.5"]\n{text}\n')
    build = ["-o", str(tmp_path / "out"), "--quantize", "float", "--host", "llvm"]
    assert main(["compile", str(tmp_path / "root.relay"), *build]) == 0
    data = saved(tmp_path / "x.npz", x=np.array([[1, -1, 4, -4], [1, 1, np.nan, 1]], np.float32))
    capsys.readouterr()
    line = only_line(capsys, 0, "warning", main(["run", str(tmp_path / "out"), "--input", str(data)]))
    assert line == "output output: 3 of 8 values are NaN"
    assert main(["run", str(tmp_path / "out"), "--input", str(data), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == [line]


def save_two_outputs(path: Path) -> Path:
    """Scores, and logarithms of what a convolution gives, which is positive and often below its integers' step."""
    rng = np.random.default_rng(0)
    shapes = {"w1": (8, 3, 3, 3), "w2": (8, 8, 3, 3), "w3": (5, 128)}
    weights = [numpy_helper.from_array((rng.normal(size=s) / 3).astype(np.float32), n) for n, s in shapes.items()]
    weights += [numpy_helper.from_array(np.float32(v), n) for n, v in (("low", 1e-6), ("high", 100))]  # type: ignore[arg-type]
    nodes = [
        helper.make_node("Conv", ["image", "w1"], ["c1"], "conv1"),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], "conv2"),
        helper.make_node("Flatten", ["c2"], ["f"], "flat"),
        helper.make_node("Gemm", ["f", "w3"], ["scores"], "fc", transB=1),
        helper.make_node("Clip", ["c2", "low", "high"], ["q"], "clip"),
        helper.make_node("Log", ["q"], ["logs"], "log"),
    ]
    inputs = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])]
    sizes = {"scores": [1, 5], "logs": [1, 8, 4, 4]}
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in sizes.items()]
    graph = helper.make_graph(nodes, "two", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, path)
    return path


def test_an_output_that_integers_would_ruin_is_computed_in_float(tmp_path: Path, capsys: Captured) -> None:
    model, data = save_two_outputs(tmp_path / "two.onnx"), save_data(tmp_path / "data.npz", 32)
    assert compiled(model, data, tmp_path / "build", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert list(row["kept_in_float"]) == ["conv2"] and row["warnings"] == []
    reason = row["kept_in_float"]["conv2"]
    assert reason.startswith("log log: ") and reason.endswith("values are NaN or infinite on 2 held-back sample(s)")
    (layer,) = (layer for layer in row["layers"] if layer["name"] == "conv2")
    assert (layer["where"], layer["reason"]) == ("host", f"kept in float: {reason}")
    out = tmp_path / "out.npz"
    assert main(["run", str(tmp_path / "build"), "--input", str(data), "--output", str(out)]) == 0
    assert all(np.isfinite(array).all() for array in np.load(out).values())
    assert compiled(model, data, tmp_path / "again") == 0
    assert f"layer conv2 kept in float: {reason}" in capsys.readouterr().out.splitlines()
