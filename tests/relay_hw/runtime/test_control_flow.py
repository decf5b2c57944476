"""Layers on the accelerator between branches, calls and data: every device equals the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relay_hw as relay
from relay_hw.backend.tvm import is_installed
from relay_hw.errors import QuantizeError
from relay_hw.quantize import quantize
from relay_hw.runtime import CompileOptions, calls, compile_model
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.result import Result
from relay_hw.target.accel.devices import close_device, open_device
from tests.relay_hw import recurrent
from tests.relay_hw.transform.reference import plain

HOST = "llvm" if is_installed() else "numpy"


def compiled(
    program: Any, calibration: Mapping[str, Any], folder: Path, **options: Any
) -> tuple[CompiledModel, Artifact]:
    mod, weights = program
    chosen = CompileOptions(**{"host_target": "numpy", **options})
    model = compile_model(mod, chosen, params=weights, calibration=calibration)
    return model, model.save(folder / "build")


def interpreted(mod: relay.IRModule, data: Mapping[str, Any]) -> list[Any]:
    run = relay.create_executor("debug", mod).evaluate()
    return [plain(run(*sample)) for sample in zip(*(data[p.name_hint] for p in mod["main"].params), strict=True)]


def run_on(artifact: Artifact, device: str | None, data: Mapping[str, Any], chunk: int) -> Result:
    opened = open_device(device, artifact.config) if device is not None else None
    try:
        return Executor(artifact, opened).run(data, chunk=chunk)
    finally:
        if opened is not None:
            close_device(opened)


def check(
    model: CompiledModel,
    artifact: Artifact,
    data: Mapping[str, Any],
    devices: tuple[str | None, ...],
    chunk: int = 1,
) -> Result:
    """The quantized module's value on every device, sample by sample; the result of the last one."""
    quantized = model.stages["quantized"]
    assert interpreted(model.stages["partitioned"], data) == interpreted(quantized, data)
    expected = interpreted(quantized, data)
    result = None
    for device in devices:
        result = run_on(artifact, device, data, chunk)
        for number, want in enumerate(expected):
            shapes = [row.shape if row.type is None else None for row in model.outputs]
            values = [result.outputs[row.name] for row in model.outputs]
            have = [
                v[number] if shape is None else v.reshape(-1, *shape)[number]
                for v, shape in zip(values, shapes, strict=True)
            ]
            assert plain(have[0] if len(have) == 1 else tuple(have)) == want, device
    assert result is not None
    return result


ROWS = """#[version = "0.0.5"]
def @main(%x: Tensor[(12, 16), float32], %w: Tensor[(16, 16), float32], %u: Tensor[(16, 16), float32])
    -> Tensor[(1, 16), float32] {
  let %all = nn.dense(%x, %w, units=16);
  let %loop = fn (%i: int32, %h: Tensor[(1, 16), float32]) -> Tensor[(1, 16), float32] {
    if (less(%i, 12)) {
      %0 = take(%all, reshape(%i, newshape=[1]), axis=0);
      %loop(add(%i, 1), tanh(add(nn.dense(%h, %u, units=16), %0)))
    } else {
      %h
    }
  };
  %loop(0, zeros(shape=[1, 16], dtype="float32"))
}
"""


def test_a_layer_before_a_local_loop_is_launched_once(tmp_path: Path) -> None:
    """All rows in one launch, then one for each round."""
    rng = np.random.default_rng(0)
    weights = {name: (rng.normal(size=(16, 16)) / 4).astype("float32") for name in ("w", "u")}
    data = {"x": rng.normal(size=(3, 12, 16)).astype("float32")}
    model, artifact = compiled((relay.fromtext(ROWS), weights), data, tmp_path)
    assert artifact.launches is None and len(artifact.manifest.regions) == 2
    result = check(model, artifact, data, (None, "functional"))
    assert len(result.launches) == 3 * (1 + 12)


def test_an_lstm_keeps_its_weights_between_steps(tmp_path: Path) -> None:
    """One launch a step, one launch for the weights, and the array at work for a quarter of the time or more."""
    steps = 28
    calibration = {"x": recurrent.sequences(3, steps, 128)}
    model, artifact = compiled(recurrent.lstm(), calibration, tmp_path)
    data = {"x": recurrent.sequences(2, steps, 128, seed=5)}
    result = check(model, artifact, data, (None, "cycle"))
    assert len(model.segments) == 1 and len(result.launches) == 2 * steps and len(result.residents) == 1
    cycles = [launch.stats.cycles or 0 for launch in result.launches]
    macs = sum(row.macs for row in model.layers)
    assert macs == 512 * 256
    used = macs * len(cycles[1:]) / (sum(cycles[1:]) * artifact.config.macs_per_cycle)
    assert used >= 0.5, used
    exact = interpreted(model.stages["imported"], data)
    for want, have in zip(exact, result.outputs["output"], strict=True):
        error = np.frombuffer(want[2], "float32") - have.reshape(-1)
        assert np.abs(error).max() < 0.03


def test_a_small_lstm_on_every_device(tmp_path: Path) -> None:
    program = recurrent.lstm(16, 8, 3)
    calibration = {"x": recurrent.sequences(3, 3, 16).reshape(-1, 1, 16)}
    model, artifact = compiled(program, calibration, tmp_path, config="tiny")
    data = {"x": recurrent.sequences(2, 3, 16, seed=5)}
    assert any(row.operator == "accel.dense" for row in model.layers if row.where == "accel")
    check(model, artifact, data, (None, "functional", "cycle", "rtl"))


def test_a_tree_lstm_on_every_device(tmp_path: Path) -> None:
    """Recursion over a data type: samples of a chunk take turns, so that programs change places rarely."""
    program = recurrent.treelstm()
    model, artifact = compiled(program, {"tree": recurrent.trees(program[0], 6)}, tmp_path)
    assert len(model.segments) == 2
    data = {"tree": recurrent.trees(program[0], 4, seed=6)}
    result = check(model, artifact, data, (None, "functional", "cycle", "rtl"), chunk=4)
    order = result.calls
    changes = sum(a != b for a, b in pairwise(order))
    assert changes < len(order) / 3, order
    names = {row.name: row for row in result.segments}
    assert names["accel_0"].calls + names["accel_1"].calls == len(order) and names["main"].where == "machine"
    assert sum(row.cycles or 0 for row in result.segments) == sum(result.chunk_cycles or ()) > 0
    assert result.cycles is None and result.chunk_launches == [len(result.launches)]


@pytest.mark.parametrize("name", ["newton", "scan", "branches"])
def test_loops_scans_and_branches(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(12)

    def inputs(count: int) -> dict[str, Any]:
        match name:
            case "newton":
                return {"x": 3 * rng.normal(size=(count, 32)).astype("float32")}
            case "scan":
                return {"x": rng.normal(size=(count * 5, 1, 16)).astype("float32")}
            case _:
                return {"x": rng.normal(size=(count, 16)).astype("float32"), "k": np.arange(count, dtype="int32") % 3}

    model, artifact = compiled(getattr(recurrent, name)(), inputs(12), tmp_path, host_target=HOST)
    assert model.segments
    data = inputs(6)
    shapes = {row.name: row.shape for row in model.inputs}
    check(model, artifact, {k: v.reshape(-1, *shapes[k]) for k, v in data.items()}, (None, "functional"))


def test_what_calibration_does_not_reach_stays_float(tmp_path: Path) -> None:
    rng = np.random.default_rng(13)
    never = {"x": rng.normal(size=(4, 16)).astype("float32"), "k": np.full(4, 7, "int32")}
    model, artifact = compiled(recurrent.branches(), never, tmp_path)
    reasons = {row.name: row.reason for row in model.layers if row.operator == "nn.dense"}
    assert len(reasons) == 2 and all("float32" in reason for reason in reasons.values())
    assert len([row for row in model.layers if row.operator == "accel.dense"]) == 1
    data = {"x": rng.normal(size=(3, 1, 16)).astype("float32"), "k": np.arange(3, dtype="int32")}
    check(model, artifact, data, (None, "functional"))


def test_calibration_of_trees_must_be_given() -> None:
    mod, weights = recurrent.treelstm()
    with pytest.raises(QuantizeError, match="calibration data must hold input tree, not only x"):
        compile_model(mod, params=weights, calibration={"x": []})
    with pytest.raises(QuantizeError, match="needs calibration data"):
        quantize(mod)


HEAD = '#[version = "0.0.5"]\n'


def test_main_may_call_itself(tmp_path: Path) -> None:
    text = "def @main(%x: int32) -> int32 { if (less_equal(%x, 0)) { %x } else { @main(subtract(%x, 3)) } }"
    mod = relay.fromtext(HEAD + text)
    _, artifact = compiled((mod, {}), {}, tmp_path, strategy="float")
    result = run_on(artifact, None, {"x": np.array([7, 9], np.int32)}, 1)
    (values,) = result.outputs.values()
    assert [int(value) for value in values] == [-2, 0]


@pytest.mark.parametrize("body", ["@loop(add(%x, 1))", "add(@loop(%x), 1)"])
def test_a_loop_without_an_end_compiles(body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The order of calls is looked for by running a sample: not for ever."""
    monkeypatch.setattr(calls, "MOST_CALLS", 500)
    mod = relay.fromtext(f"{HEAD}def @loop(%x: int32) -> int32 {{ {body} }}\ndef @main(%x: int32) {{ @loop(%x) }}")
    model, _ = compiled((mod, {}), {}, tmp_path, strategy="float")
    assert model.calls.source is calls.Source.NONE
