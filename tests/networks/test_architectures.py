"""Published architectures in small: one launch, the interpreter's bytes, every multiply-accumulate on the device."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from relay_hw.accel.isa.config import config_names
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.ir.module import IRModule
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from tests.networks.architectures import ARCHITECTURES, googlenet, shufflenet, yolo

NAMES = {build.__name__: build for build in ARCHITECTURES}


def check(build: Callable[[], IRModule], config: str, folder: Path) -> None:
    mod = build()
    shape = mod["main"].params[0].type.static_shape
    data = {"image": np.random.default_rng(1).normal(size=(4, *shape)).astype(np.float32)}
    options = CompileOptions(config=config, host_target="numpy", name=build.__name__)
    artifact = compile_model(mod, options, calibration=data).save(folder / "build")
    assert {row.operator for row in artifact.manifest.layers if row.where == "host"} <= {
        "qnn.quantize", "qnn.dequantize",
    }  # fmt: skip
    want = Executor(artifact, None).run(data, 2)
    got = Executor(artifact, FunctionalDevice(artifact.config)).run(data, 2)
    assert len(got.launches) == 2
    for name, value in want.outputs.items():
        np.testing.assert_array_equal(got.outputs[name], value)


@pytest.mark.parametrize("build", [googlenet, shufflenet, yolo], ids=lambda build: build.__name__)
def test_one_launch(build: Callable[[], IRModule], tmp_path: Path) -> None:
    check(build, "tiny", tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("config", config_names())
@pytest.mark.parametrize("name", NAMES)
def test_one_launch_on_every_configuration(name: str, config: str, tmp_path: Path) -> None:
    check(NAMES[name], config, tmp_path)
