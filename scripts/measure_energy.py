"""What switches on netlists while networks run, beside the counters that the energy table is multiplied with.

In: configurations on ECP5 parts, strategies that differ in hardware, networks of examples. Out: docs/results/
energy.json, a point for each of their combinations: one inference in steady state. Long: `make energy`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models import find
from examples.models.builder import INPUT, images
from relay_hw.accel.fpga.parts import find_part
from relay_hw.accel.fpga.sim.activity import Activity, ActivityDevice
from relay_hw.accel.fpga.synth import bitstreams_folder
from relay_hw.accel.fpga.tools import tool_version
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.device import Bytes, LaunchStats
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.compare.hardware_cost import shares
from relay_hw.compare.network_work import network_work
from relay_hw.demo.digits import INPUT_NAME, read_digits
from relay_hw.frontend import from_onnx
from relay_hw.ir.module import IRModule
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.clock import STANDARD
from scripts.energy_fit import PARTS

ROOT: Final = Path(__file__).resolve().parents[1]
OUTPUT: Final = ROOT / "docs" / "results" / "energy.json"
MNIST: Final = "mnist_cnn"
# Networks, at the size of their input.
NETWORKS: Final = {MNIST: 28, "resnet8": 16, "ds_cnn": 49, "wake_words": 32}
# Strategies whose programs differ on a configuration.
STRATEGIES: Final = {
    "tiny": ("int8", "w4a8", "tvm"),
    "ecp5": ("int8", "w4a8", "tvm"),
    "ecp5w4": ("int8", "w4a8", "w2a8-gptq", "mixed"),
    "default": ("int8", "w4a8", "tvm"),
}
SAMPLES: Final = 16

Arrays = Mapping[str, NDArray[Any]]
Row = dict[str, Any]


@dataclass(slots=True)
class Recorder:
    """A netlist as a device for the executor, with what each launch counted."""

    device: ActivityDevice
    counted: list[tuple[LaunchStats, Activity]] = field(default_factory=list)

    @property
    def config(self) -> AccelConfig:
        """See `Device.config`."""
        return self.device.config

    def load(self, program: Program) -> None:
        """See `Device.load`."""
        self.device.load(program)

    def write(self, offset: int, data: Bytes) -> None:
        """See `Device.write`."""
        self.device.write(offset, data)

    def read(self, offset: int, size: int) -> Bytes:
        """See `Device.read`."""
        return self.device.read(offset, size)

    def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
        """See `Device.launch`."""
        stats = self.device.launch(stream)
        self.counted.append((stats, self.device.activity()))
        return stats


def network(name: str) -> tuple[IRModule, Arrays, Arrays, Arrays]:
    """A network, its parameters, data to calibrate it with, a sample to run."""
    if name == MNIST:
        mod, params = from_onnx(ROOT / "examples" / "mnist_cnn.onnx")
        calibration, test = read_digits()
        data, samples, key = calibration.images, test.images[:1], INPUT_NAME
    else:
        model = find(name).model(NETWORKS[name])
        mod, params = from_onnx(model)
        shape = [axis.dim_value for axis in model.graph.input[0].type.tensor_type.shape.dim][1:]
        data, samples, key = images(shape, SAMPLES, seed=1), images(shape, 1, seed=2), INPUT
    return mod, params, {key: data}, {key: samples}


def point(compiled: CompiledModel, device: ActivityDevice, samples: Arrays) -> Row:
    """One inference in steady state. Raises ValueError where the netlist computed something else."""
    recorder = Recorder(device)
    with tempfile.TemporaryDirectory() as folder:
        artifact = compiled.save(Path(folder) / "build")
        executor, reference = Executor(artifact, recorder), Executor(artifact, None)
        session = executor.session
        assert session is not None
        for name in artifact.manifest.calls:
            session.settle(name)
        recorder.counted.clear()
        found, expected = executor.run(samples), reference.run(samples)
    for name, values in expected.outputs.items():
        if not np.array_equal(values, found.outputs[name]):
            raise ValueError(f"output {name} of {compiled.name} must be as computed on the host")
    counters, counts, cycles = Counter[str](), Counter[str](), 0
    for stats, activity in recorder.counted:
        counters.update(stats.counters)
        counts.update({kind.value: count for kind, count in activity.counts.items()})
        cycles += activity.cycles
    return {"cycles": cycles, "counters": dict(counters), "activity": dict(counts), **_macs(compiled)}


def _macs(compiled: CompiledModel) -> Row:
    """Multiply-accumulates of an inference by bits of weights, on the accelerator and on the host."""
    work = network_work(compiled.stages["quantized"])
    rows = [row for row in compiled.layers if row.where == "accel"]
    called = sum(row.macs * compiled.calls.order.count(row.function) for row in rows)
    accel, host = shares(work, sum(row.macs for row in rows), called)
    return {"macs": {str(bits): count for bits, count in accel.items()},
            "host_macs": {str(bits): count for bits, count in host.items()}}  # fmt: skip


def measure(config_name: str, networks: Sequence[str], done: Mapping[str, Row]) -> Iterator[tuple[str, Row]]:
    """All points of a configuration, by name; those that are done already are not measured again."""
    config = load_config(config_name)
    device = ActivityDevice(config, find_part(PARTS[config_name]), bitstreams_folder(), memory_model(STANDARD))
    try:
        for name in networks:
            mod, params, data, samples = network(name)
            for strategy in STRATEGIES[config_name]:
                key = f"{name}/{strategy}/{config_name}"
                if key in done:
                    continue
                compiled = compile_model(
                    mod,
                    CompileOptions(config=config, strategy=strategy, name=name, host_target="numpy"),
                    params=params,
                    calibration=data,
                )
                if compiled.segments:
                    row = {"network": name, "strategy": strategy, "config": config_name}
                    yield key, row | point(compiled, device, samples)
    finally:
        device.close()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing, or all, and write the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="measure only what the file has not yet")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("configs", nargs="*", default=list(PARTS))
    options = parser.parse_args(arguments)
    points: dict[str, Row] = json.loads(OUTPUT.read_text())["points"] if options.keep and OUTPUT.exists() else {}
    for config in options.configs:
        for key, row in measure(config, options.networks.split(","), points):
            points[key] = row
            print(key, f"{row['cycles']:,} cycles", file=sys.stderr, flush=True)
            OUTPUT.write_text(json.dumps({"yosys": tool_version("yosys"), "points": points}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
