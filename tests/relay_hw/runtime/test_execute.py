"""Running builds: equal to the interpreter in every byte, whatever runs where; inputs read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import ProgramError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.isa.spec import Mem, Op
from relay_hw.accel.sim.device import LaunchStats
from relay_hw.errors import InputError, UnsupportedError
from relay_hw.interp import Interpreter
from relay_hw.ir.expr import Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.manifest import TensorInfo
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.ports import read_samples
from relay_hw.runtime.result import Launch, Result
from relay_hw.support.progress import ProgressStep, Steps
from relay_hw.target.accel.devices import DeviceOptions, open_device
from tests.relay_hw.small_models import images

Build = tuple[CompiledModel, Artifact]


def interpret(compiled: CompiledModel, data: np.ndarray) -> np.ndarray:
    """The meaning of the quantized stage, sample by sample."""
    interpreter = Interpreter(compiled.stages["quantized"])
    return np.concatenate([interpreter.call_global("main", [row[None]]) for row in data])


def functional(artifact: Artifact) -> Executor:
    return Executor(artifact, open_device("functional", artifact.config))


def test_a_network_on_the_accelerator_equals_the_interpreter(plain: Build) -> None:
    compiled, artifact = plain
    data = images(5, seed=3) * 2
    result = functional(artifact).run({"image": data})
    assert list(result.outputs) == ["scores"]
    np.testing.assert_array_equal(result.outputs["scores"], interpret(compiled, data))
    assert len(result.launches) == result.samples == 5
    assert result.cycles is None and result.simulated_cycles_per_second is None


def test_host_operators_of_tvm_mix_with_regions(mixed: Build) -> None:
    """The softmax may differ in its last bits, so scores are close and integers rarely differ, by one at most."""
    compiled, artifact = mixed
    assert len(artifact.manifest.regions) == 2 and artifact.manifest.libraries
    assert {row.operator for row in artifact.manifest.layers if row.where == "host"} >= {"nn.softmax", "nn.conv2d"}
    data = images(4, seed=5)
    result = functional(artifact).run({"image": data}, keep_regions=True)
    np.testing.assert_allclose(result.outputs["scores"], interpret(compiled, data), atol=0.02)
    reference = Executor(artifact, None).run({"image": data}, keep_regions=True)
    np.testing.assert_array_equal(result.outputs["scores"], reference.outputs["scores"])
    for name, arrays in reference.regions.items():
        for got, want in zip(result.regions[name], arrays, strict=True):
            assert want.dtype == np.int8
            np.testing.assert_array_equal(got, want)


def test_integer_host_operators_are_exact(mixed: Build) -> None:
    """The large convolution with its requantization, by TVM, equals its numpy meaning."""
    _, artifact = mixed
    name = next(r.function for r in artifact.manifest.layers if r.operator == "nn.conv2d" and r.where == "host")
    executor = functional(artifact)
    rng = np.random.default_rng(0)
    from relay_hw.backend.flat import evaluate

    for _ in range(5):
        x = rng.integers(-128, 128, (1, 8, 8, 8)).astype(np.int8)
        np.testing.assert_array_equal(executor.host(name, [x]), evaluate(artifact.functions[name], [x]))


def test_another_library_at_the_same_path_is_loaded_anew(tmp_path: Path) -> None:
    """One process compiles to the same folder again and again, as in a notebook."""
    pytest.importorskip("tvm")
    x = Var("x", TensorType((1, 4), "float32"))
    data = {"x": np.full((1, 4), 0.5, np.float32)}
    for operator, want in ((op.sigmoid, 0.62246), (op.tanh, 0.46212), (op.exp, 1.64872)):
        mod = IRModule({"main": Function([x], operator(x))})
        artifact = compile_model(mod, CompileOptions(config="tiny"), calibration=data).save(tmp_path / "build")
        np.testing.assert_allclose(functional(artifact).run(data).outputs["output"], want, rtol=1e-4)


def test_samples_run_in_chunks(plain: Build) -> None:
    _, artifact = plain
    chunk, count = 6, 15
    data = images(count, seed=1)
    seen: list[ProgressStep] = []
    result = functional(artifact).run({"image": data}, None, Steps(seen.append), chunk=chunk)
    assert result.outputs["scores"].shape == (count, 5)
    one = functional(artifact).run({"image": data[-1:]})
    np.testing.assert_array_equal(result.outputs["scores"][-1:], one.outputs["scores"])
    assert [launch.sample for launch in result.launches] == list(range(count))
    shares = [step.share or 0.0 for step in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0


def test_a_limit_takes_the_first_samples(plain: Build) -> None:
    _, artifact = plain
    data = images(6, seed=1)
    full = functional(artifact).run({"image": data})
    part = functional(artifact).run({"image": data}, limit=2)
    np.testing.assert_array_equal(part.outputs["scores"], full.outputs["scores"][:2])
    assert functional(artifact).run({"image": data}, limit=99).samples == 6


def test_samples_with_and_without_their_batch_axis(plain: Build) -> None:
    _, artifact = plain
    data = images(2)
    one = functional(artifact).run({"image": data, "labels": np.zeros(7), "other": np.zeros(())})
    two = functional(artifact).run({"image": data[:, None]})
    three = functional(artifact).run({"image": data.astype(np.float64)})
    for other in (two, three):
        np.testing.assert_array_equal(one.outputs["scores"], other.outputs["scores"])


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({}, "input image must be given; the data holds nothing"),
        ({"picture": np.zeros(3)}, "input image must be given; the data holds picture"),
        (
            {"image": np.zeros((2, 3, 8, 9), np.float32)},
            r"must have shape \(N, 3, 8, 8\), samples first, not",
        ),
        ({"image": np.zeros((3, 8, 8), np.float32)}, r"samples first, not \(3, 8, 8\)"),
        ({"image": np.float32(1)}, r"input image must have shape \(N, 3, 8, 8\), samples first, not \(\)"),
        ({"image": np.zeros((2, 3, 8, 8), bool)}, "input image must be float32, not bool"),
        ({"image": np.zeros((2, 3, 8, 8), np.complex64)}, "input image must be float32, not complex64"),
        ({"image": np.zeros((0, 3, 8, 8), np.float32)}, "the data must hold at least 1 sample, not 0"),
    ],
)
def test_wrong_inputs_are_refused(plain: Build, inputs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        functional(plain[1]).run(inputs)


def test_inputs_must_have_as_many_samples() -> None:
    rows = (TensorInfo("a", (1, 2), "float32"), TensorInfo("b", (1,), "int32"))
    with pytest.raises(InputError, match="all inputs must have the same number of samples, not a 3, b 2"):
        read_samples(rows, {"a": np.zeros((3, 2)), "b": np.zeros(2, np.int32)})
    with pytest.raises(InputError, match="input b must be int32, not float64"):
        read_samples(rows, {"a": np.zeros((3, 2)), "b": np.zeros(3)})
    count, arrays = read_samples(rows, {"a": np.zeros((3, 2)), "b": np.zeros(3, np.int32)})
    assert count == 3 and arrays["a"].shape == (3, 1, 2) and arrays["b"].shape == (3, 1)


def test_a_device_of_another_configuration_is_refused(plain: Build) -> None:
    with pytest.raises(ProgramError, match=r"program must be made for configuration default .* not tiny"):
        Executor(plain[1], open_device("functional", load_config("default")))


def test_segments_of_a_sample_add_up() -> None:
    stats = [LaunchStats(cycles, {}, 0.5) for cycles in (10, 20, 3, 4)]
    launches = tuple(Launch(k % 2, f"accel_{k // 2}", s) for k, s in enumerate(stats))
    result = Result({}, launches, 2, 9.0)
    assert result.cycles == [13, 24]
    assert result.simulated_cycles_per_second == 37 / 2.0


# Devices by name.


def test_unknown_devices_are_refused() -> None:
    config = load_config("tiny")
    with pytest.raises(InputError, match="device must be one of functional, cycle, rtl, fpga, not asic"):
        open_device("asic", config)
    with pytest.raises(InputError, match="device fpga must have a port and the folder of its bitstream: --port PORT"):
        open_device("fpga", config)
    with pytest.raises(InputError, match="waves must be recorded on the rtl device, not on functional"):
        open_device("functional", config, DeviceOptions(waves=Path("x.fst")))


def test_a_missing_tool_names_itself_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import shutil

    monkeypatch.setattr(shutil, "which", lambda *_args, **_more: None)
    sentence = r"g\+\+ is missing .*; --device functional runs without it"
    with pytest.raises(UnsupportedError, match=sentence):
        open_device("rtl", load_config("tiny"))


def test_without_tvm_only_its_functions_fail(mixed: Build, plain: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    import relay_hw.backend.tvm as backend

    monkeypatch.setattr(backend, "is_installed", lambda: False)
    functional(plain[1]).run({"image": images(1)})
    sentence = r"TVM must be installed to run the host operators of this build: pip install 'relay-hw\[host\]'"
    with pytest.raises(UnsupportedError, match=sentence):
        functional(mixed[1]).run({"image": images(1)})


class Recorder:
    """A device that counts which streams it launches."""

    def __init__(self, artifact: Artifact) -> None:
        self._inner = open_device("cycle", artifact.config)
        self.streams: list[SectionKind] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        self.streams.append(stream)
        return self._inner.launch(stream)


def test_weights_that_stay_are_loaded_once(plain: Build) -> None:
    compiled, artifact = plain
    device = Recorder(artifact)
    executor = Executor(artifact, device)
    data = images(3)
    result = executor.run({"image": data})
    assert device.streams == [SectionKind.RESIDENT, *[SectionKind.PROGRAM] * 3]
    assert len(result.residents) == 1 and result.residents[0].stats.cycles == result.resident_cycles
    assert result.resident_cycles and result.cycles and len(set(result.cycles)) == 1
    again = executor.run({"image": data})
    assert device.streams[4:] == [SectionKind.PROGRAM] * 3
    assert not again.residents and again.resident_cycles == 0 and again.cycles == result.cycles
    for found in (result, again):
        np.testing.assert_array_equal(found.outputs["scores"], interpret(compiled, data))


def test_programs_that_take_turns_keep_their_weights(mixed: Build) -> None:
    """The constants of both regions have room beside each other: each is loaded once."""
    _, artifact = mixed
    staying = [name for name, program in artifact.programs.items() if program.resident is not None]
    assert len(staying) == 2
    executor = Executor(artifact, Recorder(artifact))
    reference = Executor(artifact, None).run({"image": images(2)}).outputs["scores"]
    for expected in (staying, []):
        result = executor.run({"image": images(2)})
        assert [launch.function for launch in result.residents] == expected
        np.testing.assert_array_equal(result.outputs["scores"], reference)


def test_time_steps_of_a_recurrent_network_keep_their_weights(tmp_path: Path) -> None:
    """A host operator parts the time steps into regions; each loads its weights before its first launch alone."""
    rng = np.random.default_rng(0)
    steps, inputs, units = 3, 16, 32
    wx, wh = (Constant(rng.normal(size=(units, n)).astype(np.float32) / 6) for n in (inputs, units))
    x = Var("x", TensorType((1, steps * inputs), "float32"))
    state: Any = None
    for t in range(steps):
        now = op.nn.dense(op.strided_slice(x, begin=(0, t * inputs), end=(1, (t + 1) * inputs)), wx)
        state = op.nn.log_softmax(now if state is None else op.add(now, op.nn.dense(state, wh)))
    data = {"x": rng.normal(size=(5, steps * inputs)).astype(np.float32)}
    compiled = compile_model(
        IRModule({"main": Function([x], state)}), CompileOptions(config="default"), calibration=data
    )
    artifact = compiled.save(tmp_path / "build")
    assert len(artifact.programs) == steps
    executor = Executor(artifact, Recorder(artifact))
    first, second = executor.run(data), executor.run(data)
    assert len(first.residents) == steps and not second.residents
    for program in artifact.programs.values():
        loads = [v["mem"] for o, v in program.instructions if o is Op.LOAD]
        assert not {Mem.WGT, Mem.UOP, Mem.PRM} & {Mem(mem) for mem in loads}
    reference = Executor(artifact, None).run(data)
    for result in (first, second):
        np.testing.assert_array_equal(result.outputs["output"], reference.outputs["output"])


def test_a_failed_resident_launch_is_tried_again(plain: Build) -> None:
    _, artifact = plain
    device = Recorder(artifact)
    executor = Executor(artifact, device)
    good, device.launch = device.launch, lambda stream=SectionKind.PROGRAM: (_ for _ in ()).throw(ProgramError("off"))  # type: ignore[method-assign]
    with pytest.raises(ProgramError, match="off"):
        executor.run({"image": images(1)})
    device.launch = good  # type: ignore[method-assign]
    assert len(executor.run({"image": images(1)}).residents) == 1


def test_resident_weights_can_be_turned_off(plain: Build) -> None:
    compiled, _ = plain
    mod = compiled.stages["imported"]
    data = {"image": images(2)}
    off = compile_model(mod, CompileOptions(config="tiny", resident="off"), calibration=data)
    assert all(segment.program.resident is None for segment in off.segments.values())
    with pytest.raises(InputError, match="resident must be one of auto, off, not on"):
        compile_model(mod, CompileOptions(config="tiny", resident="on"), calibration=data)
