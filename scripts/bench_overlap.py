"""Host and accelerator at the same time: a batch on a device that sleeps for its cycles, beside the longer of the two.

In: a convolution between operators of the host. Out: a `Row`; `python scripts/bench_overlap.py` prints it.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_rows import Row, judge

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from relay_hw import op
from relay_hw.analysis import infer_type
from relay_hw.ir.expr import Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from tests.relay_hw.runtime.two_buffers import Known, TwoBuffers

CLOCK_HZ = 80e6
SAMPLES, TURNS = 32, 8
SHAPE = (64, 32, 32)


def network() -> IRModule:
    """The host quantizes, the accelerator convolves, the host takes a sigmoid."""
    x = Var("x", TensorType((1, *SHAPE), "float32"))
    weight = op.const(np.random.default_rng(0).normal(size=(64, SHAPE[0], 3, 3)).astype(np.float32))
    body = op.sigmoid(op.nn.conv2d(x, weight, padding=1))
    return infer_type(IRModule({"main": Function([x], body)}))


def seconds(build: Artifact, launch: float, known: Known, data: dict[str, np.ndarray]) -> float:
    """Seconds a sample of one batch where a launch sleeps for `launch` seconds."""
    begin = time.perf_counter()
    Executor(build, TwoBuffers(build.config, launch, known)).run(data, chunk=SAMPLES)
    return (time.perf_counter() - begin) / SAMPLES


def rows() -> list[Row]:
    """The time of a sample over the longer of host and accelerator."""
    data = {"x": np.random.default_rng(1).normal(size=(SAMPLES, 1, *SHAPE)).astype(np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        options = CompileOptions(config="ecp5", host_target="numpy", resident="off")
        compiled = compile_model(network(), options, calibration={"x": data["x"][:4]})
        build = compiled.save(Path(folder) / "build")
        launch = sum(segment.cycles for segment in compiled.segments.values()) / CLOCK_HZ
        known: Known = {}
        seconds(build, 0.0, known, data)
        # In turns, so that other work on the machine slows down both.
        turns = [[seconds(build, each, known, data) for each in (0.0, launch)] for _ in range(TURNS)]
    host, both = (min(column) for column in zip(*turns, strict=True))
    peer = f"host {1e3 * host:.2f} ms, accelerator {1e3 * launch:.2f} ms, together {1e3 * both:.2f} ms a sample"
    return [
        Row(
            "a batch, host beside accelerator, of the longer of both",
            both / max(host, launch),
            "times",
            1.1,
            True,
            peer,
        )
    ]


def main() -> int:
    """Measure and print; 1 when the bound is missed."""
    return judge(rows())


if __name__ == "__main__":
    sys.exit(main())
