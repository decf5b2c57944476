"""Random networks of every kind of layer: the device's bytes equal the interpreter's, in every configuration."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relay_hw.runtime import CompileOptions, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import open_device
from tests.relay_hw.random_graph import RandomGraph

CONFIGS = ("default", "tiny", "ecp5", "wide")


@pytest.mark.parametrize("seed", range(16))
def test_device_equals_interpreter(seed: int, tmp_path: Path) -> None:
    graph = RandomGraph(seed)
    mod = graph.module()
    data = {"x": np.random.default_rng(seed).normal(size=(2, *graph.shape)).astype("float32")}
    strategy = ("int8", "int8-symmetric", "int8-percentile")[seed % 3]
    compiled = compile_model(mod, CompileOptions(config=CONFIGS[seed % 4], strategy=strategy), calibration=data)
    artifact = compiled.save(tmp_path / "build")
    have = Executor(artifact, open_device("functional", artifact.config)).run(data).outputs
    want = Executor(artifact, None).run(data).outputs
    for name in want:
        np.testing.assert_array_equal(have[name], want[name])
