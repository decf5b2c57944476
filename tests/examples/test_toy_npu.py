"""examples/toy_npu: a target from outside, through every command that a build of any target goes through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from examples.toy_npu import make
from examples.toy_npu.program import from_bytes, to_bytes
from examples.toy_npu.simulator import cycles_of
from relay_hw import op
from relay_hw.cli.main import main
from relay_hw.errors import ArtifactError, InputError
from relay_hw.interp import evaluate
from relay_hw.ir.expr import Function
from relay_hw.ir.module import IRModule
from relay_hw.runtime import CompileOptions, Executor, Module, compile_model, load_artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.opened import open_session
from relay_hw.target import find_target, register, target_names, unregister
from relay_hw.text import print_module

Captured = pytest.CaptureFixture[str]
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "toy_npu"


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    register("toy", make)
    yield
    unregister("toy")


def network(hidden: int = 20) -> IRModule:
    """Two dense layers around a ReLU, with a softmax that the host computes."""
    rng = np.random.default_rng(3)
    x = relay.var("x", shape=(1, 12), dtype="float32")
    value = lambda *shape: op.const(rng.normal(size=shape).astype("float32"))  # noqa: E731
    first = op.nn.relu(op.nn.bias_add(op.nn.dense(x, value(hidden, 12)), value(hidden)))
    return IRModule({"main": Function([x], op.nn.softmax(op.nn.dense(first, value(5, hidden))))})


def samples(count: int, seed: int = 5) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(seed).normal(size=(count, 1, 12)).astype("float32")}


def built(**choices: Any) -> CompiledModel:
    options = CompileOptions(target="toy", host_target="numpy", **choices)
    return compile_model(network(), options, calibration=samples(16))


def test_the_example_is_short() -> None:
    assert sum(len(path.read_text().splitlines()) for path in EXAMPLE.glob("*.py")) < 300


def test_results_are_those_of_the_reference(tmp_path: Path) -> None:
    artifact = built().save(tmp_path / "build")
    data = samples(6)
    want = Executor(artifact, None).run(data)
    got = Executor(artifact, open_session(artifact)).run(data)
    np.testing.assert_array_equal(got.outputs["output"], want.outputs["output"])
    quantized = built().stages["quantized"]
    for k in range(6):
        np.testing.assert_array_equal(got.outputs["output"][k], evaluate(quantized, {"x": data["x"][k]})[0])
    layers = [layer for image in artifact.images.values() for layer in from_bytes(image)]
    assert got.cycles == [sum(map(cycles_of, layers))] * 6 and len(layers) == 2


def test_what_it_cannot_do_stays_on_the_host_with_a_reason() -> None:
    model = built(strategy="int8-minmax")
    reasons = {row.operator: row.reason for row in model.layers if row.where == "host"}
    assert reasons["nn.softmax"] == "the toy NPU runs dense layers of int8 with constant weights, and nothing else"
    assert [row.operator for row in model.layers if row.where == "toy"] == ["toy.dense"] * 2
    wide = compile_model(network(5000), CompileOptions(target=make(), host_target="numpy"), calibration=samples(4))
    assert "the toy NPU counts to 4096 inputs, not to 5000" in {row.reason for row in wide.layers}


def test_a_build_goes_through_the_command_line(tmp_path: Path, capsys: Captured) -> None:
    model, data, build = tmp_path / "net.relay", tmp_path / "data.npz", tmp_path / "build"
    model.write_text(print_module(network()))
    np.savez(data, **samples(8))
    compile_ = ["compile", str(model), "--target", "toy", "--calibration", str(data), "-o", str(build)]
    assert main(compile_) == 0
    assert "toy.dense" in capsys.readouterr().out
    assert main(["run", str(build), "--input", str(data), "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["device"] == "simulator" and len(row["cycles"]) == 8
    assert main(["verify", str(build)]) == 0
    assert main(["show", str(build), "--stage", "partitioned"]) == 0
    assert "@toy_0" in capsys.readouterr().out
    elsewhere = ["export", str(build), "-o", str(tmp_path / "c")]
    for command in (["profile", str(build)], ["why", str(build)], ["disasm", str(build)], elsewhere):
        assert main(command) == 2
        assert "the build must be for target accel, not toy" in capsys.readouterr().err
    # A target's configurations are its own: `--config` hands it what the user said.
    assert main([*compile_, "--config", "wide"]) == 2
    assert "target toy must have no configuration, not wide" in capsys.readouterr().err
    assert main(["run", str(build), "--input", str(data), "--memory", "ulx3s"]) == 2
    assert "--memory must be left out for a build for target toy: only accel has it" in capsys.readouterr().err


def test_a_module_of_python(tmp_path: Path) -> None:
    module = relay.build(network(), "toy", calibration=samples(16), options=CompileOptions(host_target="numpy"))
    value = samples(1)["x"][0]
    found = module.run(x=value)
    module.save(tmp_path / "build")
    again = Module.load(tmp_path / "build", trust=True)
    np.testing.assert_array_equal(again.run(x=value), found)
    again.close()
    with pytest.raises(InputError, match="device must be one of simulator, not rtl"):
        Module(load_artifact(tmp_path / "build"), "rtl")


def test_a_program_of_another_size_is_refused(tmp_path: Path) -> None:
    artifact = built().save(tmp_path / "build")
    row = artifact.manifest.regions[0]
    layers = from_bytes(artifact.images[row.name])
    with pytest.raises(ArtifactError, match="must have the sizes of its program"):
        make().check(row, to_bytes(layers[1:]))
    with pytest.raises(ArtifactError, match="must be an archive of layers"):
        make().check(row, b"nothing")
    with pytest.raises(ArtifactError, match="must have the sizes of its program"):
        open_session(replace(artifact, images={row.name: to_bytes(layers[1:])}))


def test_names_and_options(tmp_path: Path) -> None:
    assert target_names() == ("accel", "toy", "vta")
    with pytest.raises(InputError, match="the name of a target must be new, not toy"):
        register("toy", make)
    with pytest.raises(InputError, match="the name of a target must be a word, not 'my npu'"):
        register("my npu", make)
    with pytest.raises(InputError, match="target must be one of accel, toy, vta, not npu"):
        find_target("npu")
    with pytest.raises(InputError, match="target toy must have no configuration, not wide"):
        built(config="wide")
    with pytest.raises(InputError, match="memory must be left out for target toy, not be ulx3s: only accel has one"):
        built(memory="ulx3s")
