"""Whole networks at their published sizes: one output on interpreter, functional simulator, cycle simulator and RTL,
and the same cycles and counters on the last two. Minutes of work: `make test-networks`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from examples.models import NETWORKS, TRANSFORMERS, Example, find
from examples.models.samples import samples
from relay_hw.frontend import from_onnx
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.result import Result
from relay_hw.target.accel.devices import close_device, open_device

pytestmark = pytest.mark.long

SAMPLES = 2
CALIBRATION = 8


def _data(example: Example, count: int, seed: int) -> dict[str, np.ndarray]:
    return dict(samples(example.model(), count, seed))


@pytest.fixture(scope="module", params=[example.name for example in (*NETWORKS, *TRANSFORMERS)])
def build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Artifact]:
    """A network compiled for `default`."""
    example = find(request.param)
    mod, params = from_onnx(example.model())
    compiled = compile_model(
        mod,
        CompileOptions(config="default", name=example.name),
        params=params,
        calibration=_data(example, CALIBRATION, seed=1),
    )
    folder: Path = tmp_path_factory.mktemp(example.name)
    yield compiled.save(folder / "build")


def _run(build: Artifact, device: str | None) -> Result:
    data = _data(find(build.manifest.model), SAMPLES, seed=2)
    opened = open_device(device, build.config) if device else None
    try:
        return Executor(build, opened).run(data, keep_regions=True)
    finally:
        if opened is not None:
            close_device(opened)


def _equal(left: Result, right: Result) -> None:
    assert left.regions.keys() == right.regions.keys()
    for name in left.regions:
        for a, b in zip(left.regions[name], right.regions[name], strict=True):
            np.testing.assert_array_equal(a, b)
    for name in left.outputs:
        np.testing.assert_array_equal(left.outputs[name], right.outputs[name])


def test_every_device_gives_the_same_bytes_and_cycles(build: Artifact) -> None:
    expected = _run(build, None)
    assert any(np.unique(part).size > 1 for parts in expected.regions.values() for part in parts)
    cycle, rtl = _run(build, "cycle"), _run(build, "rtl")
    _equal(expected, _run(build, "functional"))
    _equal(expected, cycle)
    _equal(expected, rtl)
    assert [launch.stats.counters for launch in cycle.launches] == [launch.stats.counters for launch in rtl.launches]
    print(f"\n{build.manifest.model}: {rtl.cycles} cycles, {rtl.simulated_cycles_per_second:,.0f} cycles/s on RTL")
