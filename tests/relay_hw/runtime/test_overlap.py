"""Host and device at the same time: while a device works on one sample, the host works on its neighbours."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relay_hw import op
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.analysis import infer_type
from relay_hw.cli.main import main
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.result import Span
from tests.relay_hw.runtime.two_buffers import TwoBuffers

RNG = np.random.default_rng(0)
DATA = {"x": RNG.normal(size=(5, 1, 3, 8, 8)).astype(np.float32)}


def network(layers: int) -> IRModule:
    """Host, region, host, and so on: a softmax stands between layers."""
    x = Var("x", TensorType((1, 3, 8, 8), "float32"))
    body = x
    for _ in range(layers):
        weight = op.const(RNG.normal(size=(3, 3, 3, 3)).astype(np.float32))
        body = op.nn.softmax(op.nn.conv2d(body, weight, padding=1), axis=1)
    return infer_type(IRModule({"main": Function([x], body)}))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Artifact]:
    folder = tmp_path_factory.mktemp("overlap")
    options = CompileOptions(config="tiny", host_target="numpy", resident="off")
    return {
        layers: compile_model(network(layers), options, calibration=DATA).save(folder / str(layers))
        for layers in (1, 2)
    }


def kinds(spans: tuple[Span, ...]) -> list[tuple[str, int]]:
    """What ran for which sample, in the order in which it was over; functions in a row as one."""
    found = [(span.where, span.sample) for span in spans]
    return [one for one, before in zip(found, [None, *found], strict=False) if one != before]


def test_the_host_works_on_neighbours_meanwhile(builds: dict[int, Artifact]) -> None:
    result = Executor(builds[1], TwoBuffers(builds[1].config, 0.001)).run(DATA, chunk=5)
    host, accel = "numpy", "accel"
    assert kinds(result.spans) == [
        *[(host, 0), (host, 1), (accel, 0), (host, 0)],
        *[(host, 2), (accel, 1), (host, 1)],
        *[(host, 3), (accel, 2), (host, 2)],
        *[(host, 4), (accel, 3), (host, 3)],
        *[(accel, 4), (host, 4)],
    ]
    launches = {span.sample: span for span in result.spans if span.where == accel}
    begun = [span for span in result.spans if span.where == host and span.begin < launches[span.sample].begin]
    for span in begun[1:]:
        if span.sample:
            device = launches[span.sample - 1]
            assert device.begin <= span.begin and span.end <= device.end


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_results_and_launches_are_those_of_one_after_the_other(
    builds: dict[int, Artifact], layers: int, chunk: int
) -> None:
    build = builds[layers]
    want = Executor(build, FunctionalDevice(build.config)).run(DATA)
    for device in (TwoBuffers(build.config, 0.0), FunctionalDevice(build.config)):
        result = Executor(build, device).run(DATA, chunk=chunk)
        for name, value in want.outputs.items():
            np.testing.assert_array_equal(result.outputs[name], value)
        assert sorted((one.function, one.sample) for one in result.launches) == sorted(
            (one.function, one.sample) for one in want.launches
        )
        # A region runs for all samples of a chunk before the next one does.
        parts = [[one for one in result.launches if one.sample // chunk == part] for part in range(-(-5 // chunk))]
        assert all([one.function for one in part] == sorted(one.function for one in part) for part in parts)


def test_an_input_that_is_refused_later_leaves_the_device_idle(builds: dict[int, Artifact]) -> None:
    data = {"x": DATA["x"].copy()}
    data["x"][2, 0, 0, 0, 0] = np.nan
    device = TwoBuffers(builds[1].config, 0.0)
    with pytest.raises(Exception, match="NaN"):
        Executor(builds[1], device).run(data, chunk=5)
    result = Executor(builds[1], device).run(DATA, chunk=5)
    assert len(result.launches) == 5


def test_the_time_of_a_region_is_not_the_hosts(builds: dict[int, Artifact]) -> None:
    """Segments do not count twice what ran at the same time, so their sum is at most the run's time."""
    result = Executor(builds[1], TwoBuffers(builds[1].config, 0.002)).run(DATA, chunk=5)
    assert sum(row.seconds for row in result.segments) <= result.seconds * (1 + 1e-9)


def test_a_run_is_traced(builds: dict[int, Artifact], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "data.npz", **DATA)
    command = ["run", str(builds[2].path), "--input", str(tmp_path / "data.npz"), "--device", "cycle"]
    assert main([*command, "--trace", str(tmp_path / "trace.json")]) == 0
    assert "timeline: " in capsys.readouterr().out
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [event["args"]["name"] for event in events if event["ph"] == "M"]
    assert sorted(names) == ["accel", "numpy"]
    rows = [event for event in events if event["ph"] == "X"]
    assert {event["name"] for event in rows} >= {"accel_0", "accel_1"}
    assert all(event["dur"] >= 0 for event in rows)
    # One after the other: nothing overlaps.
    ends = [event["ts"] + event["dur"] for event in rows]
    assert all(end <= event["ts"] + 1 for end, event in zip(ends, rows[1:], strict=False))
