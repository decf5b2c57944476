"""The clock of the compiler: cycles that a build knows are those of a launch, with the memory that it was made for."""

from __future__ import annotations

import json

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.errors import ArtifactError
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.manifest import manifest_from_json, manifest_to_json
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile, time_regions
from relay_hw.runtime.static_report import static_report
from relay_hw.runtime.told import told_memory
from relay_hw.runtime.trace import timeline
from relay_hw.runtime.why import explain
from relay_hw.target.accel.clock import target_of
from tests.targets import target_for

RNG = np.random.default_rng(3)
DATA = {"x": RNG.normal(size=(2, 16, 9, 9)).astype(np.float32)}


def two_layers() -> IRModule:
    x = Var("x", TensorType((1, 16, 9, 9), "float32"))
    first, second = (Constant(RNG.normal(size=(n, m, 3, 3)).astype(np.float32)) for n, m in ((48, 16), (32, 48)))
    return IRModule({"main": Function([x], op.nn.conv2d(op.nn.relu(op.nn.conv2d(x, first, padding=(1,) * 4)), second))})


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Artifact:
    """Made for SDRAM, whose times are unlike the standard memory's."""
    compiled = compile_model(
        two_layers(), CompileOptions(config="tiny", host_target="numpy", memory="ulx3s"), calibration=DATA
    )
    return compiled.save(tmp_path_factory.mktemp("clock") / "build")


def test_the_cycles_of_a_build_are_those_of_its_launches(build: Artifact) -> None:
    report = static_report(build.manifest)
    runs = time_regions(build, "ulx3s")
    assert report.cycles == sum(run.timing.cycles for run in runs)
    assert report.memory_model == build.manifest.memory_model == "ulx3s"
    measured = explain(build, changes=[]).report
    assert [row.cycles for row in report.layers] == [row.cycles for row in measured.layers]
    assert json.loads((build.path / "report.json").read_text())["cycles"] == report.cycles


def test_views_use_the_memory_that_a_build_was_made_for(build: Artifact) -> None:
    from relay_hw.accel.sim.cycle import CycleDevice

    cycles = static_report(build.manifest).cycles
    assert explain(build, changes=[]).cycles == cycles != explain(build, "standard", changes=[]).cycles
    device = CycleDevice(build.config, memory_model("ulx3s"), data=False)
    assert profile(build, device, "cycle").cycles == cycles
    assert timeline(build) == timeline(build, "ulx3s") != timeline(build, "standard")


def test_another_memory_is_said(build: Artifact) -> None:
    assert told_memory(build.manifest, None) == ("ulx3s", "")
    assert told_memory(build.manifest, "ulx3s,latency=11") == ("ulx3s,latency=11", "")
    name, warning = told_memory(build.manifest, "standard")
    assert name == "standard"
    assert warning == ("memory must be ulx3s, which the build was optimised for, not standard: compile it for that one")


def test_a_build_without_a_memory_is_refused(build: Artifact) -> None:
    row = json.loads(json.dumps(manifest_to_json(build.manifest)))
    assert manifest_from_json(row) == build.manifest
    older = {**row, "format": row["format"] - 1}
    with pytest.raises(ArtifactError, match=r"manifest format must be .*: compile the model again"):
        manifest_from_json(older)
    with pytest.raises(ArtifactError, match="it is damaged"):
        manifest_from_json({key: value for key, value in row.items() if key != "memory_model"})


def test_targets_with_equal_memories_are_equal() -> None:
    config = load_config("tiny")
    first, again = (target_of(config, memory_model("ulx3s")) for _ in range(2))
    assert first == again and hash(first) == hash(again)
    assert first != target_for("tiny") and first.hash32 == config.hash32


@pytest.mark.parametrize(("memory", "reads"), [("standard", 16), ("narrow", 4), ("ulx3s", 2)])
def test_closed_forms_know_how_many_bursts_fly(memory: str, reads: int) -> None:
    assert target_for("default", memory).reads == reads
