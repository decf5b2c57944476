"""Builds for other hosts, from the command line to the results: the digits network without an accelerator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.cli.main import main
from relay_hw.runtime.artifact import load_artifact
from tests.needs import needs_tvm
from tests.relay_hw.backend.gpus import HOSTS, host_target

pytestmark = needs_tvm
MNIST = Path(__file__).parents[3] / "examples" / "mnist_cnn.onnx"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "digits.npz"
    np.savez(path, input=np.random.default_rng(0).uniform(0, 1, (6, 1, 28, 28)).astype(np.float32))
    return path


def compiled(folder: Path, data: Path, *options: str) -> Path:
    assert main(["compile", str(MNIST), "-o", str(folder), "--calibration", str(data), *options]) == 0
    return folder


def run(build: Path, data: Path) -> np.ndarray:
    out = build.with_suffix(".npz")
    assert main(["run", str(build), "--input", str(data), "--output", str(out)]) == 0
    return np.load(out)["probabilities"]


@pytest.fixture(scope="module")
def by_llvm(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    return compiled(tmp_path_factory.mktemp("llvm") / "build", data, "--no-accel")


def test_without_the_accelerator(by_llvm: Path, data: Path, tmp_path: Path) -> None:
    artifact = load_artifact(by_llvm)
    assert artifact.programs == {}
    layers = artifact.manifest.layers
    assert {row.where for row in layers} == {"host"}
    assert all("compiled with --no-accel" in row.reason for row in layers)
    with_device = compiled(tmp_path / "with", data)
    np.testing.assert_array_equal(run(by_llvm, data), run(with_device, data))


@pytest.mark.parametrize("kind", HOSTS)
def test_a_gpu_equals_llvm_byte_for_byte(kind: str, by_llvm: Path, data: Path, tmp_path: Path) -> None:
    target = host_target(kind)
    options = ["--host-target", target.gpu] if target.gpu else []
    build = compiled(tmp_path / kind, data, "--no-accel", "--host", kind, *options)
    manifest = load_artifact(build).manifest
    assert [row.target for row in manifest.libraries] == [str(target)]
    source = {"opencl": "host.cl", "cuda": "host.cu"}[kind]
    assert (build / source).is_file() and source in manifest.files
    assert run(build, data).tobytes() == run(by_llvm, data).tobytes()


def test_a_cuda_build_keeps_its_source(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    build = compiled(tmp_path / "cuda", data, "--no-accel", "--host", "cuda", "--host-target", "sm_80")
    manifest = load_artifact(build).manifest
    assert [row.target for row in manifest.libraries] == ["cuda:sm_80"]
    assert "__global__" in (build / "host.cu").read_text()
    assert "host.cu" in manifest.files
    capsys.readouterr()
    if main(["run", str(build), "--input", str(data)]):
        assert "to run host operators compiled for cuda" in capsys.readouterr().err


@pytest.mark.parametrize("kind", HOSTS)
def test_a_float_network_by_relay_build(kind: str, tmp_path: Path) -> None:
    import relay_hw as relay
    from relay_hw.interp.evaluate import Interpreter
    from relay_hw.runtime.models import load_model
    from tests.relay_hw.small_models import SHAPE, save_plain

    model = load_model(save_plain(tmp_path / "plain.onnx"))
    x = np.random.default_rng(3).normal(size=(1, *SHAPE)).astype(np.float32)
    module = relay.build(model.mod, host_target(kind), model.params)
    module.set_input("image", x)
    module.run()
    want = Interpreter(model.mod).call_global("main", {"image": x, **model.params})
    np.testing.assert_allclose(module.get_output(0), want, rtol=1e-5)


def test_constants_without_elements() -> None:
    """TVM cannot read them back: such functions are numpy's."""
    x = relay.var("x", shape=(1, 4), dtype="float32")
    joined = relay.concatenate([relay.const(np.zeros((1, 0), np.float32)), x], axis=1)
    module = relay.build(relay.IRModule({"main": relay.Function([x], relay.exp(joined))}), "llvm")
    np.testing.assert_allclose(module.run(x=np.zeros((1, 4), np.float32)), np.ones((1, 4)))
