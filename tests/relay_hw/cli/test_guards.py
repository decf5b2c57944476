"""Mistakes in data, seeded: each command names the mistake in one line. Sound data: no line at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.cli.main import main
from relay_hw.demo.digits import read_digits
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.text import save_json
from tests.relay_hw.quantize.test_inputs import DRAWS
from tests.relay_hw.small_models import images, save_data, save_plain

Captured = pytest.CaptureFixture[str]
DIGITS = Path(__file__).parents[3] / "examples" / "mnist_cnn.onnx"


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
    assert list(row["kept_in_float"]) == ["conv2"]
    reason = row["kept_in_float"]["conv2"]
    (share,) = row["warnings"]
    assert share.endswith(f"% of the multiply-accumulates run on the accelerator: kept in float: {reason}")
    assert reason.startswith("log log: ") and reason.endswith("values are NaN or infinite on 2 held-back sample(s)")
    (layer,) = (layer for layer in row["layers"] if layer["name"] == "conv2")
    assert (layer["where"], layer["reason"]) == ("host", f"kept in float: {reason}")
    out = tmp_path / "out.npz"
    assert main(["run", str(tmp_path / "build"), "--input", str(data), "--output", str(out)]) == 0
    assert all(np.isfinite(array).all() for array in np.load(out).values())
    assert compiled(model, data, tmp_path / "again") == 0
    assert f"layer conv2 kept in float: {reason}" in capsys.readouterr().out.splitlines()


def test_a_comparison_builds_what_compile_builds(tmp_path: Path, capsys: Captured) -> None:
    model, data = save_two_outputs(tmp_path / "two.onnx"), save_data(tmp_path / "data.npz", 32)
    arguments = ["compare", str(model), "--data", str(data), "--calibration", str(data), "--config", "tiny"]
    arguments += ["--name", "logs", "--unlabelled", "--processes", "1", "-o", str(tmp_path / "report"), "--strategies"]
    assert main([*arguments, "int8", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["strategies"]
    assert row["hardware_note"].startswith("layer conv2 kept in float: log log: ")
    assert row["hardware_note"].endswith("values are NaN or infinite on 8 held-out sample(s)")
    line = refused(capsys, main([*arguments, "mxint8"]))
    assert line.startswith("strategy mxint8: outputs must be finite as they are in float, not NaN or infinite in ")


# Digits through the example network: data as users prepare them, rightly and wrongly.


@dataclass(frozen=True)
class Digits:
    """A build of the example network, its calibration data, and digits held out."""

    folder: Path
    images: np.ndarray
    labels: np.ndarray

    def run(self, path: Path, images: np.ndarray, labels: np.ndarray | None = None, *more: str) -> int:
        extra = {"labels": self.labels if labels is None else labels}
        return main(["run", str(self.folder / "build"), "--input", str(saved(path, input=images, **extra)), *more])

    def compare(self, path: Path, images: np.ndarray, labels: np.ndarray | None = None, *more: str) -> int:
        data = saved(path, input=images, labels=self.labels if labels is None else labels)
        arguments = ["compare", str(DIGITS), "--data", str(data), "--calibration", str(self.folder / "data.npz")]
        arguments += ["--strategies", "int8-minmax", "--config", "default", "--processes", "1", "--engine", "numpy"]
        return main([*arguments, "-o", str(path.with_suffix("")), *more])


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Digits:
    folder = tmp_path_factory.mktemp("digits")
    calibration, test = read_digits()
    data = saved(folder / "data.npz", input=calibration.images[:64])
    model = load_model(DIGITS)
    build = compile_model(
        model.mod,
        CompileOptions(host_target="numpy", accelerate=False),
        params=model.params,
        calibration=dict(np.load(data)),
    )
    build.save(folder / "build")
    return Digits(folder, test.images[:60], test.labels[:60])


def nhwc(images: np.ndarray) -> np.ndarray:
    return images.transpose(0, 2, 3, 1)


MISTAKES: dict[str, tuple[Callable[[Digits, Path], int], int, str]] = {
    "NaN": (
        lambda d, p: d.run(p, np.where(d.images == 1, np.nan, d.images)),
        2,
        "input input must hold finite numbers, not NaN (sample ",
    ),
    "infinity": (
        lambda d, p: d.compare(p, d.images / (1 - d.images)),
        2,
        "test data: input input must hold finite numbers, not ",
    ),
    "bytes for shares": (
        lambda d, p: d.run(p, (d.images * 255).astype(np.uint8)),
        0,
        "% of values are outside the calibrated range [0, 1]: they are 0 to 255, uint8 where calibration had float32, "
        "and reach 255 times as far; is it scaled alike?",
    ),
    "shares for bytes": (
        lambda d, p: d.run(p, d.images / 255),
        0,
        "input input: values are 0 to 0.003922, 0.4 % of the calibrated range [0, 1]; is it scaled alike?",
    ),
    "another normalisation": (
        lambda d, p: d.run(p, (d.images - 0.1307) / 0.3081),
        0,
        "% of values are outside the calibrated range [0, 1]: they are -0.4242 to 2.821; is it normalised alike?",
    ),
    "black on white": (lambda d, p: d.run(p, 1 - d.images), 0, "input input: their mean is 0.8"),
    "another layout": (
        lambda d, p: d.run(p, nhwc(d.images)),
        2,
        "input input must have shape (N, 1, 28, 28), samples first, not (60, 28, 28, 1); its axes are in another "
        "order: transpose it by (0, 3, 1, 2)",
    ),
    "flat": (
        lambda d, p: d.compare(p, d.images.reshape(-1, 784)),
        2,
        "test data: input input must have the shape (N, 1, 28, 28), not (60, 784); it has as many elements: reshape it",
    ),
    "pixels in another order": (
        lambda d, p: d.run(p, d.images.reshape(-1, 1, 28, 4, 7).swapaxes(3, 4).reshape(d.images.shape)),
        0,
        "; are its axes in the same order?",
    ),
    "labels from 1": (
        lambda d, p: d.run(p, d.images, d.labels + 1),
        0,
        "the data: labels must be from 0 to 9, not 10: accuracy is not counted",
    ),
    "too few labels": (
        lambda d, p: d.run(p, d.images, d.labels[:-1]),
        0,
        "the data: labels must be 60 integers, one for each sample, not int64[59]: accuracy is not counted",
    ),
    "labels of other samples": (
        lambda d, p: d.run(p, d.images, d.labels[::-1]),
        0,
        "labels are predicted, no more than by guessing among 10 classes; are labels and samples in the same order",
    ),
    "labels of other samples, compared": (
        lambda d, p: d.compare(p, d.images, d.labels[::-1]),
        0,
        "test data, by the float network: ",
    ),
    "samples beyond the data": (
        lambda d, p: d.run(p, d.images, None, "--samples", "1000"),
        0,
        "--samples is 1,000, but the data have only 60",
    ),
    "images beyond the data": (
        lambda d, p: d.compare(p, d.images, None, "--images", "1000"),
        0,
        "1,000 samples were asked for, but the test data have only 60",
    ),
    "calibration on zeros": (
        lambda d, p: compiled(DIGITS, saved(p, input=np.zeros_like(d.images)), p.with_suffix("")),
        0,
        "calibration data must differ to show a range, not be one value for each input: input 0",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_in_one_line(digits: Digits, tmp_path: Path, capsys: Captured, name: str) -> None:
    make, status, sentence = MISTAKES[name]
    capsys.readouterr()
    with np.errstate(divide="ignore"):
        got = make(digits, tmp_path / "data.npz")
    assert sentence in only_line(capsys, status, "error" if status else "warning", got)


def test_digits_raise_no_alarm(digits: Digits, tmp_path: Path, capsys: Captured) -> None:
    capsys.readouterr()
    assert digits.run(tmp_path / "data.npz", digits.images) == 0
    assert digits.run(tmp_path / "data.npz", digits.images[:1], digits.labels[:1]) == 0
    assert digits.run(tmp_path / "data.npz", digits.images, None, "--samples", "60") == 0
    assert digits.compare(tmp_path / "other.npz", digits.images) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("network", ["dense", "residual"])
@pytest.mark.parametrize("draw", DRAWS)
def test_sound_data_raise_no_alarm(tmp_path: Path, capsys: Captured, network: str, draw: str) -> None:
    """Ten kinds of data through two networks: nothing to say while compiling and while running."""
    rng = np.random.default_rng(crc32(f"{network} {draw}".encode()))
    calibration, data = (DRAWS[draw](rng, count).reshape(count, -1)[:, :64].astype(np.float32) for count in (48, 32))
    size = data.shape[1]
    x = Var("x", TensorType((1, size), "float32"))
    weights = [op.const((rng.normal(size=(size, size)) / np.sqrt(size)).astype(np.float32)) for _ in range(2)]
    hidden = op.nn.relu(op.nn.dense(x, weights[0]))
    body = op.nn.softmax(op.nn.dense(hidden, weights[1])) if network == "dense" else op.add(x, hidden)
    model = tmp_path / "net.json"
    model.write_text(save_json(infer_type(IRModule({"main": Function([x], body)}))))
    capsys.readouterr()
    assert compiled(model, saved(tmp_path / "calibration.npz", x=calibration), tmp_path / "b") == 0
    assert main(["run", str(tmp_path / "b"), "--input", str(saved(tmp_path / "data.npz", x=data))]) == 0
    said = capsys.readouterr()
    assert said.err == "" and "kept in float" not in said.out
