"""The walk: what each stage is, what the caller must give, and what the manifest says about it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw.op as op
from relay_hw.errors import InputError, QuantizeError, RelayHwError
from relay_hw.ir.expr import Constant, Function, Tuple, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.limits import Limits
from relay_hw.quantize import find_strategy
from relay_hw.runtime import CompileOptions, Executor, compile_model, load_model, open_device
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import STAGES, CompiledModel, bind_params
from tests.relay_hw.small_models import images, save_plain
from tests.told import told

Build = tuple[CompiledModel, Artifact]


def dense_net(relu: bool = True) -> IRModule:
    """Two results: a dense layer, and the same doubled."""
    x = Var("x", TensorType((1, 12), "float32"))
    weight = Constant(np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32))
    y = op.nn.dense(x, weight)
    y = op.nn.relu(y) if relu else y
    return IRModule({"main": Function([x], Tuple((y, op.nn.softmax(y))))})


CALIBRATION = {"x": np.random.default_rng(1).normal(size=(6, 12)).astype(np.float32)}


def test_stages_in_order(plain: Build) -> None:
    compiled, artifact = plain
    assert tuple(compiled.stages) == STAGES
    assert list(compiled.segments) == ["accel_0"]
    assert [row.operator for row in artifact.manifest.layers if row.where == "accel"] == [
        "accel.conv2d",
        "accel.max_pool2d",
        "accel.conv2d",
        "accel.dense",
    ]
    assert compiled.host_functions == ()


def test_more_layers_than_are_allowed() -> None:
    """Before anything is calibrated; on the host and in floats there may be any number."""
    sentence = r"^the layers of net must be at most 0, not 1: --limit layers=NUMBER, or limits=Limits\(layers=NUMBER\)"
    with pytest.raises(InputError, match=sentence):
        compile_model(
            dense_net(), CompileOptions(config="tiny", name="net", limits=Limits(layers=0)), calibration=CALIBRATION
        )
    none = CompileOptions(config="tiny", host_target="numpy", limits=Limits(layers=0))
    for options in (replace(none, strategy="float"), replace(none, accelerate=False)):
        compile_model(dense_net(), options, calibration=CALIBRATION)
    compile_model(
        dense_net(),
        CompileOptions(config="tiny", host_target="numpy", limits=Limits(layers=1)),
        calibration=CALIBRATION,
    )


def test_inputs_and_outputs_are_described(plain: Build) -> None:
    manifest = plain[1].manifest
    (image,) = manifest.inputs
    assert (image.name, image.shape, image.dtype) == ("image", (1, 3, 8, 8), "float32")
    assert image.scale is not None and image.scale > 0 and image.zero_point is not None
    (scores,) = manifest.outputs
    assert (scores.name, scores.shape, scores.dtype) == ("scores", (1, 5), "float32")


def test_a_module_made_in_python(tmp_path: Path) -> None:
    compiled = compile_model(dense_net(), CompileOptions(config="tiny"), calibration=CALIBRATION)
    artifact = compiled.save(tmp_path / "build")
    result = Executor(artifact, open_device("functional", artifact.config)).run(CALIBRATION)
    assert list(result.outputs) == ["output_0", "output_1"]
    assert result.outputs["output_0"].shape == (6, 7)
    np.testing.assert_allclose(result.outputs["output_1"].sum(axis=1), 1, rtol=1e-5)


def test_parameters_are_bound() -> None:
    x, w = Var("x", TensorType((1, 12), "float32")), Var("w", TensorType((7, 12), "float32"))
    mod = IRModule({"main": Function([x, w], op.nn.dense(x, w))})
    value = np.random.default_rng(0).normal(size=(7, 12)).astype(np.float32)
    assert [var.name_hint for var in bind_params(mod, {"w": value})["main"].params] == ["x"]
    assert compile_model(mod, CompileOptions(config="tiny"), params={"w": value}, calibration=CALIBRATION).segments
    with pytest.raises(InputError, match="parameter v must be one of x, w"):
        bind_params(mod, {"v": value})


def test_multipliers_fit_the_configuration() -> None:
    compiled = compile_model(dense_net(), CompileOptions(config="ecp5"), calibration=CALIBRATION)
    assert compiled.strategy.multiplier_bits == compiled.config.multiplier_bits == 16
    assert (
        compile_model(dense_net(), CompileOptions(config="tiny"), calibration=CALIBRATION).strategy.multiplier_bits
        == 31
    )


@pytest.mark.parametrize("name", ["int8", "int8-symmetric", "int8-percentile", "int8-pow2"])
def test_strategies_by_name(name: str) -> None:
    compiled = compile_model(dense_net(), CompileOptions(config="tiny", strategy=name), calibration=CALIBRATION)
    assert compiled.strategy.name == name == find_strategy(name).name


@pytest.mark.parametrize(
    ("name", "config", "notes"),
    [
        ("w4g16a8-gptq", "default", ()),
        ("w4g16a8-gptq", "w4", ("no gain on w4: 4-bit weights in groups of 16 as 8-bit ones",)),
        ("w4a4", "ecp5", ("no gain on ecp5: 4-bit activations as 8-bit ones",)),
    ],
)
def test_widths_without_gain_are_said(name: str, config: str, notes: tuple[str, ...]) -> None:
    assert (
        compile_model(dense_net(), CompileOptions(config=config, strategy=name), calibration=CALIBRATION).notes == notes
    )


def test_missing_calibration_is_refused() -> None:
    with pytest.raises(QuantizeError, match="calibration"):
        compile_model(dense_net(), CompileOptions(config="tiny"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"strategy": "int3"}, "strategy must be one of int8, .* not int3"),
        ({"config": "huge"}, "configuration must be one of .* not huge"),
        ({"target": "asic"}, "target must be one of accel.* not asic"),
        ({"resident": "on"}, "resident must be one of auto, off, not on"),
        ({"tune": -1}, "tune must be at least 0 seconds, not -1"),
        ({"target": "toy", "memory": "narrow"}, "memory must be left out for target toy, not be narrow: only accel"),
        (
            {"target": "toy", "board": "ulx3s-85f"},
            "board must be left out for target toy, not be ulx3s-85f",
        ),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], sentence: str) -> None:
    from relay_hw.accel.isa.errors import AccelError

    with pytest.raises((RelayHwError, AccelError), match=sentence):
        compile_model(dense_net(), CompileOptions(**{"config": "tiny"} | options), calibration=CALIBRATION)


@pytest.mark.parametrize("data", [{"y": np.zeros((2, 12))}, {"x": np.zeros((2, 11), np.float32)}])
def test_wrong_calibration_data_are_refused(data: dict[str, Any]) -> None:
    with pytest.raises(RelayHwError, match="calibration"):
        compile_model(dense_net(), CompileOptions(config="tiny"), calibration=data)


def test_a_module_without_main_is_refused() -> None:
    mod = IRModule({"helper": dense_net()["main"]})
    with pytest.raises(InputError, match="the module must have a function @main, not only helper"):
        compile_model(mod, calibration=CALIBRATION)


def test_a_model_without_accelerated_operators_runs_on_the_host(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    x = Var("x", TensorType((1, 12), "float32"))
    mod = IRModule({"main": Function([x], op.tanh(op.sigmoid(x)))})
    compiled = compile_model(mod, CompileOptions(config="tiny"), calibration=CALIBRATION)
    assert not compiled.segments and compiled.layers
    assert all(row.where == "host" and row.reason for row in compiled.layers)
    artifact = compiled.save(tmp_path / "build")
    result = Executor(artifact, open_device("functional", artifact.config)).run(CALIBRATION)
    want = np.tanh(1 / (1 + np.exp(-CALIBRATION["x"])))
    np.testing.assert_allclose(result.outputs["output"], want, rtol=1e-5)
    assert result.cycles is None


def test_what_tvm_leaves_to_numpy_is_said(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    x = Var("x", TensorType((1, 12), "float32"))
    mod = IRModule({"main": Function([x], op.cumsum(op.sigmoid(x), axis=1))})
    artifact = compile_model(mod, CompileOptions(config="tiny"), calibration=CALIBRATION).save(tmp_path / "build")
    reasons = {row.operator: row.reason for row in artifact.manifest.layers}
    assert reasons["cumsum"].endswith("; by numpy, as Relax has no such cumsum")
    assert "numpy" not in reasons["sigmoid"]
    result = Executor(artifact, open_device("functional", artifact.config)).run(CALIBRATION)
    want = np.cumsum(1 / (1 + np.exp(-CALIBRATION["x"])), axis=1)
    np.testing.assert_allclose(result.outputs["output"], want, rtol=1e-5)


def sigmoid_net() -> IRModule:
    x = Var("x", TensorType((1, 12), "float32"))
    return IRModule({"main": Function([x], op.sigmoid(x))})


def test_without_tvm_numpy_computes_host_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import relay_hw.backend.tvm as backend

    monkeypatch.setattr(backend, "is_installed", lambda: False)
    tiny = CompileOptions(config="tiny")
    compiled = compile_model(sigmoid_net(), tiny, calibration=CALIBRATION)
    assert compiled.notes == ("numpy computes sigmoid on the host; TVM is faster: pip install 'relay-hw[host]'",)
    artifact = compiled.save(tmp_path / "build")
    assert artifact.manifest.libraries == ()
    result = Executor(artifact, None).run(CALIBRATION)
    np.testing.assert_allclose(result.outputs["output"], 1 / (1 + np.exp(-CALIBRATION["x"])), rtol=1e-6)
    # Nothing is said where TVM would have nothing to do, or where numpy was asked for.
    assert compile_model(dense_net(), tiny, calibration=CALIBRATION).notes == ()
    assert compile_model(sigmoid_net(), replace(tiny, host_target="numpy"), calibration=CALIBRATION).notes == ()


def test_without_tvm_its_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import relay_hw.backend.tvm as backend

    monkeypatch.setattr(backend, "is_installed", lambda: False)
    llvm = CompileOptions(config="tiny", host_target="llvm")
    compiled = compile_model(sigmoid_net(), llvm, calibration=CALIBRATION)
    sentence = r"TVM must be installed to compile host operators sigmoid: pip install 'relay-hw\[host\]'"
    with pytest.raises(RelayHwError, match=sentence):
        compiled.save(tmp_path / "build")
    assert list(tmp_path.iterdir()) == []
    compile_model(dense_net(), llvm, calibration=CALIBRATION).save(tmp_path / "build")


def test_progress_tells_each_step(tmp_path: Path) -> None:
    steps: list[str] = []
    model = load_model(save_plain(tmp_path / "net.onnx"))
    compile_model(
        model.mod,
        CompileOptions(config="tiny", name=model.name),
        params=model.params,
        calibration={"image": images(2)},
        progress=told(steps),
    )
    text = " ".join(steps)
    for word in (
        "simplifying",
        "quantizing",
        "calibrating: 2 of 2",
        "partitioning",
        "tensorizing accel_0",
        "proving what",
    ):
        assert word in text


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("net.pb", r"model .*net\.pb must be an \.onnx, \.relay, \.json, .* file, not \.pb"),
        ("net", r"must be an \.onnx, \.relay, \.json, .* file, not a file without suffix"),
        ("net.onnx", r"model .*net\.onnx must be an existing file"),
    ],
)
def test_models_of_other_kinds_are_refused(tmp_path: Path, name: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        load_model(tmp_path / name)
