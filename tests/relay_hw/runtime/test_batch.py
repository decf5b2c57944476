"""Models of batch N: bit by bit what N samples give one after the other, with N launches of each region."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.cli.data import accuracy
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.ir.expr import Expr, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.op import const, nn
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.deploy import export_c
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.models import load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile
from relay_hw.runtime.result import Result
from relay_hw.runtime.static_report import static_report
from relay_hw.target.accel.devices import close_device, open_device
from tests.relay_hw.runtime.test_deploy import CC
from tests.relay_hw.runtime.test_deploy import build as compile_c
from tests.relay_hw.runtime.test_deploy import run as run_c
from tests.relay_hw.small_models import images, save_batch, save_mixed, save_plain

COUNT = 24


def residual(batch: int) -> IRModule:
    """Two outputs of which one has the samples on its second axis, an addition, and a reshape with the batch in it."""
    rng = np.random.default_rng(4)

    def conv(x: Expr, channels: int) -> Expr:
        weight = rng.normal(size=(channels, channels, 3, 3)) / 6
        return nn.conv2d(x, const(weight.astype(np.float32)), padding=(1, 1))

    x = Var("image", TensorType((batch, 3, 8, 8), "float32"))
    same = np.broadcast_to(rng.normal(size=(3, 1, 1)), (batch, 3, 1, 1)).astype(np.float32)
    y = nn.relu(op.add(conv(op.add(x, const(same)), 3), x))
    rows = op.reshape(nn.max_pool2d(y, (2, 2), (2, 2)), (batch, 3 * 16))
    scores = nn.dense(rows, const((rng.normal(size=(5, 48)) / 7).astype(np.float32)))
    return IRModule({"main": Function([x], Tuple([nn.softmax(scores), op.transpose(scores, (1, 0))]))})


def build(path: Path, kind: str, batch: int, config: str = "tiny") -> Artifact:
    if kind == "residual":
        mod, params = residual(batch), {}
    else:
        save = {"plain": save_plain, "mixed": save_mixed}[kind]
        file = save_batch(path / f"{kind}_{batch}.onnx", save(path / f"{kind}.onnx"), batch)
        model = load_model(file)
        mod, params = model.mod, model.params
    data = {"image": images(COUNT, seed=8).reshape(-1, batch, 3, 8, 8)}
    return compile_model(mod, CompileOptions(config=config), params=params, calibration=data).save(
        path / f"{kind}_{batch}"
    )


def run(artifact: Artifact, device_name: str, data: np.ndarray) -> Result:
    device = open_device(device_name, artifact.config)
    try:
        return Executor(artifact, device).run({"image": data})
    finally:
        close_device(device)


@pytest.mark.parametrize(
    ("kind", "batch", "device"),
    [("plain", 2, "functional"), ("plain", 3, "cycle"), ("plain", 8, "functional"), ("plain", 2, "rtl"),
     ("residual", 2, "cycle"), ("residual", 3, "functional"), ("residual", 8, "cycle")],
)  # fmt: skip
def test_a_batch_gives_what_its_samples_give(tmp_path: Path, kind: str, batch: int, device: str) -> None:
    one, many = build(tmp_path, kind, 1), build(tmp_path, kind, batch)
    assert [row.where for row in many.manifest.layers] == [row.where for row in one.manifest.layers]
    assert many.programs.keys() == one.programs.keys()
    assert all(many.programs[name].to_bytes() == one.programs[name].to_bytes() for name in one.programs)
    assert many.manifest.batch == batch and many.manifest.inputs[0].shape == (batch, 3, 8, 8)
    samples = 2
    data = images(samples * batch, seed=5)
    want, got = run(one, device, data), run(many, device, data.reshape(samples, batch, 3, 8, 8))
    assert got.samples == samples and len(got.launches) == len(want.launches) == samples * batch * len(one.programs)
    if want.cycles is not None:
        assert got.cycles == [sum(want.cycles[k * batch : (k + 1) * batch]) for k in range(samples)]
    for row in many.manifest.outputs:
        found, alone = got.outputs[row.name], want.outputs[row.name]
        assert found.shape == (samples, *row.shape) and row.batch_axis is not None
        parts = np.moveaxis(found, row.batch_axis + 1, 1).reshape(samples * batch, -1)
        np.testing.assert_array_equal(parts, alone.reshape(samples * batch, -1))


def test_host_functions_run_sample_by_sample_too(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    one, many = (build(tmp_path, "mixed", batch, "default") for batch in (1, 2))
    data = images(4, seed=5)
    want, got = run(one, "functional", data), run(many, "functional", data.reshape(2, 2, 3, 8, 8))
    np.testing.assert_array_equal(got.outputs["scores"].reshape(4, 5), want.outputs["scores"])


def test_images_one_by_one_are_taken_in_batches(tmp_path: Path) -> None:
    artifact = build(tmp_path, "plain", 3)
    data = images(6, seed=5)
    batches, single = (run(artifact, "functional", given) for given in (data.reshape(2, 3, 3, 8, 8), data))
    np.testing.assert_array_equal(batches.outputs["scores"], single.outputs["scores"])
    with pytest.raises(InputError, match=r"input image must have shape \(N, 3, 3, 8, 8\), samples first, not \(4, 3,"):
        run(artifact, "functional", data[:4])


@pytest.mark.skipif(CC is None, reason="no C compiler")
def test_exported_c_takes_batches(tmp_path: Path) -> None:
    artifact = build(tmp_path, "plain", 3)
    data = images(6, seed=5).reshape(2, 3, 3, 8, 8)
    want = run(artifact, "functional", data).outputs["scores"]
    folder = tmp_path / "export"
    export_c(artifact, folder)
    compile_c(folder)
    data.tofile(tmp_path / "in.bin")
    done = run_c(folder, tmp_path / "in.bin", tmp_path / "out.bin")
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "2 sample(s), 0 cycles\n")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "out.bin", np.float32).reshape(2, 3, 5), want)


def test_exported_c_needs_the_batch_first(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="output output_1 must have its batch on axis 0 to be exp"):
        export_c(build(tmp_path, "residual", 2), tmp_path / "export")


def test_accuracy_is_that_of_all_samples(tmp_path: Path) -> None:
    artifact = build(tmp_path, "plain", 3)
    outputs = run(artifact, "functional", images(6, seed=5)).outputs
    labels = outputs["scores"].argmax(axis=-1)
    labels[0, 0] = (labels[0, 0] + 1) % 5
    for given in (labels, labels.ravel()):
        assert accuracy(outputs, given, 2, 2, 3) == (pytest.approx(5 / 6), "")
    wrong = accuracy(outputs, labels.ravel()[:5], 2, 2, 3)
    assert wrong[0] is None and "labels must be 6 integers, one for each sample, not int64[5]" in wrong[1]


def test_a_network_that_mixes_samples_stays_on_the_host_and_says_why(tmp_path: Path) -> None:
    x = Var("image", TensorType((2, 3, 8, 8), "float32"))
    weight = const(np.random.default_rng(0).normal(size=(3, 3, 3, 3)).astype(np.float32))
    y = nn.conv2d(op.subtract(x, op.mean(x, (0,), keepdims=True)), weight)
    mod, data = IRModule({"main": Function([x], y)}), {"image": images(4).reshape(2, 2, 3, 8, 8)}
    compiled = compile_model(mod, CompileOptions(config="tiny"), calibration=data)
    (reason,) = (row.reason for row in compiled.layers if row.operator == "nn.conv2d")
    assert reason == (
        "batch must be 1, not (2,); the 2 samples of a batch cannot run one by one: mean joins what lies along axis 0, "
        "where the samples lie"
    )
    assert not compiled.segments and compiled.inputs[0].batch_axis is None
    artifact = compiled.save(tmp_path / "build")
    assert Executor(artifact, None).run(data).outputs["output"].shape == (2, 2, 3, 6, 6)


def test_the_figure_of_a_batch_is_that_of_all_its_launches(tmp_path: Path) -> None:
    artifact = build(tmp_path, "plain", 2)
    device = open_device("cycle", artifact.config)
    try:
        report = profile(artifact, device, "cycle")
    finally:
        close_device(device)
    found = run(artifact, "cycle", images(4, seed=9).reshape(-1, 2, 3, 8, 8))
    said = static_report(artifact.manifest)
    assert found.cycles == [report.cycles] * 2 == [said.cycles] * 2
    assert report.launches == 2
    single = static_report(build(tmp_path, "plain", 1).manifest)
    assert sum(row.macs for row in said.layers) == 2 * sum(row.macs for row in single.layers)
