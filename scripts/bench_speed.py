"""Speeds: simulators on ResNet-18, the compiler as a process of its own, the demo's network.

In: nothing. Out: `Row`s. Seconds are of one processor, all threads added up, so that other work on the machine does not
count; of a few runs the fastest.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from bench_rows import VTA_FSIM, VTA_TSIM, VTA_TUNE, Row
from bench_yardstick import steps_per_second

from examples.models import find
from examples.models.builder import INPUT, images
from relay_hw.runtime.artifact import Artifact, load_artifact
from relay_hw.runtime.execute import Executor
from relay_hw.target.accel.devices import DeviceOptions, close_device, open_device

Speed = tuple[float, int]

REPEATS = 3
CALIBRATION = 8
# What the compiling process says of itself when it is done: seconds and its largest resident set in KiB.
COMPILE = """
import resource, sys, time
from relay_hw.cli.main import main
begin = time.process_time()
status = main(sys.argv[1:])
print(time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
sys.exit(status)
"""


@contextmanager
def compiled(name: str) -> Iterator[tuple[Artifact, Mapping[str, Any], float, float]]:
    """A network of examples/models through `relay-hw compile`: the build, one image, processor seconds, peak GiB."""
    model = find(name).model()
    shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
    data = images(shape, CALIBRATION, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "model.onnx").write_bytes(model.SerializeToString())
        np.savez(path / "calibration.npz", allow_pickle=False, **{INPUT: data})
        words = ["compile", path / "model.onnx", "-o", path / "build", "--calibration", path / "calibration.npz"]
        command = [sys.executable, "-c", COMPILE, *map(str, words)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds, peak = (float(word) for word in done.stderr.split()[-2:])
        yield load_artifact(path / "build"), {INPUT: data[:1]}, seconds, peak / (1 << 20)


def run_on(
    artifact: Artifact, device_name: str, data: Mapping[str, Any], timing_only: bool = False
) -> tuple[float, int]:
    """Processor seconds of the fastest of some runs of one image on a device just opened, and its cycles."""
    best, cycles = float("inf"), 0
    for _ in range(REPEATS):
        device = open_device(device_name, artifact.config, DeviceOptions(timing_only=timing_only))
        begin = time.process_time()
        try:
            result = Executor(artifact, device).run(data)
        finally:
            close_device(device)
        best, cycles = min(best, time.process_time() - begin), sum(result.cycles or ())
    return best, cycles


def speed_rows() -> list[Row]:
    """ResNet-18: compiler, functional simulator, cycle simulator, RTL."""
    with compiled("resnet18") as (artifact, image, seconds, peak):
        functional, _ = run_on(artifact, "functional", image)
        cycle, _ = run_on(artifact, "cycle", image, timing_only=True)
        rtl, cycles = run_on(artifact, "rtl", image)
        steps = steps_per_second()
    return [
        Row("`relay-hw compile`, ResNet-18, eight calibration images", seconds, "s", 20, peer=VTA_TUNE),
        Row("its memory", peak, "GiB", 2),
        Row("functional simulator, ResNet-18", functional, "s", 3, peer=VTA_FSIM),
        Row("cycle simulator, ResNet-18, timing only", cycle, "s", 1),
        Row("RTL simulation, ResNet-18, one thread", rtl, "s", 10),
        Row("RTL simulation speed", cycles / rtl, "cycles/s", 1_000_000, False, VTA_TSIM),
        Row(
            "the same in the time of 1,000 products, each of the one before",
            cycles / rtl / steps,
            "cycles",
            0.75,
            False,
        ),
    ]


def resident_rows() -> list[Row]:
    """ResNet-8 with weights that stay on the device between images; cycles from RTL."""
    with compiled("resnet8") as (artifact, image, _, _):
        twice = {name: np.concatenate([value, value]) for name, value in image.items()}
        device = open_device("rtl", artifact.config)
        try:
            result = Executor(artifact, device).run(twice)
        finally:
            close_device(device)
    cycles = result.cycles or []
    return [Row("ResNet-8, second image, resident weights", cycles[1], "cycles", 57_000)]


def import_row() -> Row:
    """Seconds until `import relay_hw` returns."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import relay_hw"], check=True)
    return Row("`import relay_hw`, with Python's own start", time.perf_counter() - begin, "s")
