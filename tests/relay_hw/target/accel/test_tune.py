"""Tuning: never slower, kept by content, the same again, and as exact as any other schedule."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import relay_hw.op as op
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import ConfigError
from relay_hw.accel.isa.program import Program
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.dram_timing import MemoryModel, memory_model
from relay_hw.errors import InputError
from relay_hw.ir.expr import Constant, Expr, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.compile import CompiledModel, compile_model, device_functions
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.progress import ProgressStep, Steps
from relay_hw.target.accel.tune import Tuner
from relay_hw.tensorize.compile import plan_region
from relay_hw.tensorize.kernel import ConvKernel
from relay_hw.tensorize.refine import layer_cycles, without_weights
from relay_hw.tensorize.tiles.sizes import ConvTile
from tests.targets import target_for

RNG = np.random.default_rng(0)


def conv(x: Expr, inputs: int, outputs: int) -> Expr:
    weight = Constant(RNG.normal(size=(outputs, inputs, 3, 3)).astype(np.float32))
    return op.nn.relu(op.nn.conv2d(x, weight, padding=(1, 1, 1, 1)))


def two_layers() -> IRModule:
    x = Var("x", TensorType((1, 16, 9, 9), "float32"))
    return IRModule({"main": Function([x], conv(conv(x, 16, 48), 48, 32))})


MODULE = two_layers()
CALIBRATION = {"x": RNG.normal(size=(2, 16, 9, 9)).astype(np.float32)}


def build(cache: Path, seconds: float) -> CompiledModel:
    return compile_model(
        MODULE, CompileOptions(config="tiny", resident="off", tune=seconds, cache=cache), calibration=CALIBRATION
    )


def test_tuned_is_not_slower_and_the_same_again(tmp_path: Path) -> None:
    plain, tuned = build(tmp_path, 0).segments["accel_0"], build(tmp_path, 2).segments["accel_0"]
    assert tuned.cycles <= plain.cycles
    files = {path: path.read_text() for path in (tmp_path / "schedules").iterdir()}
    assert len(files) == 2
    again = build(tmp_path, 2).segments["accel_0"]
    assert again.program.to_bytes() == tuned.program.to_bytes()
    assert files == {path: path.read_text() for path in (tmp_path / "schedules").iterdir()}


def test_the_search_goes_on_where_it_stopped(tmp_path: Path) -> None:
    build(tmp_path, 0.01)
    (first, *_) = paths = sorted((tmp_path / "schedules").iterdir())
    before = [json.loads(path.read_text())["content"]["tried"] for path in paths]
    build(tmp_path, 1)
    after = [json.loads(path.read_text())["content"]["tried"] for path in paths]
    assert sum(before) < sum(after)
    for damaged in ("{", first.read_text().replace('"tried": ', '"tried": 1')):
        first.write_text(damaged)
        assert build(tmp_path, 0.01).segments
        assert json.loads(first.read_text())["content"]["tried"] < 1000


def test_the_search_says_how_long_it_may_still_take(tmp_path: Path) -> None:
    steps: list[ProgressStep] = []
    options = CompileOptions(config="tiny", resident="off", tune=0.5, cache=tmp_path)
    compile_model(MODULE, options, calibration=CALIBRATION, progress=Steps(steps.append))
    left = [step.detail for step in steps if "schedules tried" in step.name and step.done]
    assert left and all(re.fullmatch("at most [01] s left", text) for text in left)


def test_of_two_processes_the_one_that_came_further_counts(tmp_path: Path) -> None:
    """The second has begun before the first had written, and stops sooner."""
    target = target_for("tiny")
    function = next(iter(device_functions(build(tmp_path / "other", 0).stages["partitioned"], "accel").values()))
    first, second = Tuner(target, tmp_path), Tuner(target, tmp_path)
    second.search([function], 1e-9)
    first.search([function], 1)
    further = {path: json.loads(path.read_bytes())["content"] for path in (tmp_path / "schedules").iterdir()}
    for search in second._searches.values():
        second._write(search)
    assert {path: json.loads(path.read_bytes())["content"] for path in further} == further
    kernel = plan_region(function, target, "accel_0").layers[0].kernel
    assert second(kernel, target) == first(kernel, target)


def test_reasons_name_the_bound_and_the_next_best(tmp_path: Path) -> None:
    config = target_for("tiny")
    compiled = build(tmp_path, 0)
    layers = compiled.segments["accel_0"].layers
    assert all(layer.reason for layer in layers)
    tuner = Tuner(config, tmp_path)
    function = next(iter(compiled.stages["partitioned"].functions[name] for name in compiled.segments))
    tuner.search([function], 1)
    kernel = plan_region(function, config, "accel_0").layers[0].kernel
    reason = tuner.reason(kernel, tuner(kernel, config), config)
    assert reason.startswith("bound by ") and reason.endswith("(tuned)") and "next " in reason


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_seconds_must_be_above_zero(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(InputError, match=f"seconds of tuning must be above 0, not {seconds:g}"):
        Tuner(target_for("tiny"), tmp_path).search([], seconds)


def test_another_memory_is_another_search(tmp_path: Path) -> None:
    function = next(iter(device_functions(build(tmp_path, 0).stages["partitioned"], "accel").values()))
    tuned: list[str] = []
    for memory in ("standard", "ulx3s"):
        target = target_for("tiny", memory)
        tuner = Tuner(target, tmp_path)
        tuner.search([function], 0.5)
        kernel = plan_region(function, target, "accel_0").layers[0].kernel
        assert isinstance(kernel, ConvKernel)
        tile = tuner(kernel, target)
        assert isinstance(tile, ConvTile)
        cycles = layer_cycles(without_weights(kernel, target), tile, target)
        tuned.append(tuner.reason(kernel, tile, target))
        assert f"of {cycles:,} cycles alone" in tuned[-1]
    assert tuned[0] != tuned[1]
    assert len(list((tmp_path / "schedules").iterdir())) == 4


def launched(config: AccelConfig, memory: MemoryModel, program: Program) -> int:
    device = CycleDevice(config, memory, data=False)
    device.load(program)
    return device.launch().counters["CYCLES"]


def test_programs_for_a_slow_memory_move_less_and_are_not_slower_there() -> None:
    config, memory = load_config("tiny"), memory_model("ulx3s")
    x = Var("x", TensorType((1, 16, 9, 9), "float32"))
    module = IRModule({"main": Function([x], conv(conv(x, 16, 16), 16, 16))})
    first, made = (
        compile_model(module, CompileOptions(config=config, memory=name), calibration=CALIBRATION).segments["accel_0"]
        for name in ("standard", "ulx3s")
    )
    cycles = [launched(config, memory, segment.program) for segment in (first, made)]
    assert made.cycles == cycles[1] <= cycles[0]
    with pytest.raises(ConfigError, match="memory model must be one of colorlight, narrow, standard, ulx3s, not mud"):
        compile_model(module, CompileOptions(config=config, memory="mud"), calibration=CALIBRATION)
