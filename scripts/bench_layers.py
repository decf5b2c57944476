"""Cycles of ResNet-18's convolutions one by one and of whole networks, against their rooflines, with causes of loss.

In: a configuration and a memory model; networks from examples/models. Out: tables, and build/bench_layers.json.
Timing comes from the cycle simulator without data. Roofline: the most of products over peak, bytes read over bus, bytes
written over bus, each byte moved once. Compilation is timed step by step.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from examples.models import NETWORKS, find
from examples.models.samples import samples
from relay_hw import op
from relay_hw.accel.isa.config import AccelConfig, load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.causes import Cause
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.cycle.losses import Account, accounts, stretches, together
from relay_hw.accel.sim.cycle.traffic import total_traffic
from relay_hw.accel.sim.dram_timing import MEMORY_MODELS, memory_model
from relay_hw.analysis import infer_type
from relay_hw.errors import RelayHwError
from relay_hw.frontend import from_onnx
from relay_hw.ir.expr import Call, Constant, Function, Var
from relay_hw.ir.module import IRModule
from relay_hw.ir.types import TensorType
from relay_hw.report import number, percent, table, traffic_json
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.support.progress import Steps
from relay_hw.target.accel.clock import target_of
from relay_hw.target.accel.devices import DeviceOptions, close_device, open_device
from relay_hw.target.accel.roofline import LayerNeeds, launch_bounds, layer_needs
from relay_hw.tensorize import Layer, Segment, compile_function

OUTPUT = Path(__file__).resolve().parents[1] / "build" / "bench_layers.json"
# The input that is ones and then zeros.
MASK = "attention_mask"
DEFAULT_NETWORKS = ("resnet18", "resnet8", "ds_cnn", "wake_words", "mobilenet_v1", "mobilenet_v2")
# Layers of a network that are listed: those that lose most cycles.
WORST = 8


@dataclass(frozen=True, slots=True)
class Workload:
    """A square convolution. `size`: height of its input; `count`: how often the network has it."""

    name: str
    size: int
    inputs: int
    outputs: int
    kernel: int
    padding: int
    stride: int
    count: int

    def composite(self, config: AccelConfig, seed: int = 0) -> Function:
        """The layer with random numbers, as the partitioner writes it."""
        rng = np.random.default_rng(seed)
        bits = config.multiplier_bits
        x = Var("x", TensorType((1, self.inputs, self.size, self.size), "int8"))
        weight = rng.integers(-127, 128, (self.outputs, self.inputs, self.kernel, self.kernel)).astype(np.int8)
        sums = op.nn.conv2d(
            x, Constant(weight), strides=(self.stride,) * 2, padding=(self.padding,) * 4, out_dtype="int32"
        )
        scaled = op.fixed.requantize(
            sums,
            Constant(rng.integers(-5000, 5000, self.outputs).astype(np.int32)),
            tuple(rng.integers(1 << bits - 1, 1 << bits, self.outputs).tolist()),
            (bits + 8,) * self.outputs,
            a_min=0,
            multiplier_bits=bits,
        )
        typed = infer_type(IRModule.from_expr(Function([x], scaled)))["main"]
        attrs = {"Primitive": 1, "Composite": "accel.conv2d"}
        return Function(typed.params, typed.body, typed.ret_type, attrs=attrs)

    def function(self, config: AccelConfig) -> Function:
        """A region of this layer alone."""
        inner = self.composite(config)
        x = Var("input", inner.params[0].type_annotation)
        region = Function([x], Call(inner, [x]), attrs={"Compiler": "accel", "global_symbol": self.name})
        return infer_type(IRModule.from_expr(region))["main"]


# The convolutions of ResNet-18 under the names that VTA's tests gave them.
RESNET18 = (
    Workload("C1", 224, 3, 64, 7, 3, 2, 1),
    Workload("C2", 56, 64, 64, 3, 1, 1, 4),
    Workload("C3", 56, 64, 128, 3, 1, 2, 1),
    Workload("C4", 56, 64, 128, 1, 0, 2, 1),
    Workload("C5", 28, 128, 128, 3, 1, 1, 3),
    Workload("C6", 28, 128, 256, 3, 1, 2, 1),
    Workload("C7", 28, 128, 256, 1, 0, 2, 1),
    Workload("C8", 14, 256, 256, 3, 1, 1, 3),
    Workload("C9", 14, 256, 512, 3, 1, 2, 1),
    Workload("C10", 14, 256, 512, 1, 0, 2, 1),
    Workload("C11", 7, 512, 512, 3, 1, 1, 3),
)


@dataclass(frozen=True, slots=True)
class Timed:
    """One launch: cycles, counters, the account of each layer, multiplications outside the array, seconds."""

    cycles: int
    counters: dict[str, int]
    accounts: dict[int, Account]
    other_products: int
    seconds: float


def launch(segment: Segment, config: AccelConfig, memory: str) -> Timed:
    """Time a program, without data."""
    device = CycleDevice(config, memory_model(memory), data=False)
    device.load(segment.program)
    stats = device.launch()
    assert stats.cycles is not None
    sums = accounts(stretches(device.timing, segment.owners))
    other = sum(work.products for work in device.timing.works if work.op is not Op.GEMM)
    return Timed(stats.cycles, dict(stats.counters), sums, other, stats.seconds)


def confirm(segment: Segment, config: AccelConfig, memory: str, timed: Timed) -> float:
    """Seconds of the same launch on RTL. Raises AccelError where a counter differs."""
    device = open_device("rtl", config, DeviceOptions(memory=memory))
    try:
        device.load(segment.program)
        stats = device.launch()
    finally:
        close_device(device)
    apart = {key: (value, timed.counters[key]) for key, value in stats.counters.items() if value != timed.counters[key]}
    if apart:
        raise AccelError(f"counters of {segment.name} must be those of RTL, not (RTL, simulator) {apart}")
    return stats.seconds


def layer_row(name: str, layer: Layer, needs: LayerNeeds, found: Account, config: AccelConfig) -> dict[str, Any]:
    """What is said of one layer. `busiest`: cycles of the part of the machine that it uses most, array, output stage or
    bus; some of them may lie in the time of another layer."""
    cost, traffic = needs.cost, needs.traffic
    roofline = cost.array_cycles(config)
    causes = {cause: found.cycles[cause] for cause in Cause}
    causes[Cause.LANES] = max(0, causes[Cause.PRODUCTS] - -(-cost.macs // config.macs_per_cycle))
    causes[Cause.PRODUCTS] -= causes[Cause.LANES]
    return {
        "name": name,
        "tile": layer.tile,
        "shape": cost.shape,
        "macs": cost.macs,
        "cycles": found.total,
        "roofline_cycles": roofline,
        "roofline": roofline / found.total if found.total else None,
        "causes": causes,
        "fill": dict(found.fill),
        "loads": dict(found.loads),
        "queues": dict(found.queues),
        "busiest": launch_bounds(name, [needs], config).cycles,
        "bytes": traffic_json(traffic),
    }


def busy(runs: Sequence[Timed], config: AccelConfig) -> dict[str, float]:
    """Share of the cycles in which each part works: units as their counters say, the bus by bytes."""
    slots = together(run.accounts[i] for run in runs for i in run.accounts).cycles
    c = sum((Counter(run.counters) for run in runs), Counter())
    work = {
        "compute": slots[Cause.PRODUCTS] + slots[Cause.ALU],
        "output": c["OUTPUT_BUSY"],
        "load": c["LOAD_BUSY"],
        "store": c["STORE_BUSY"],
        "read_bus": (c["READ_BYTES"] + c["FETCH_BYTES"]) / config.bus_bytes,
        "write_bus": c["WRITE_BYTES"] / config.bus_bytes,
    }
    return {part: cycles / max(c["CYCLES"], 1) for part, cycles in work.items()}


def measure_workload(work: Workload, config: AccelConfig, memory: str, rtl: bool = False) -> dict[str, Any]:
    """One layer alone; with `rtl` confirmed there."""
    begin = time.perf_counter()
    segment = compile_function(
        work.function(config), target_of(config, memory_model(memory)), work.name, resident=False
    )
    seconds = time.perf_counter() - begin
    timed = launch(segment, config, memory)
    found = together(timed.accounts.values())
    if rtl:
        confirm(segment, config, memory, timed)
    row: dict[str, Any] = layer_row(work.name, segment.layers[0], layer_needs(segment, config)[0], found, config)
    return {
        **row,
        "roofline_cycles": row["busiest"],
        "roofline": row["busiest"] / timed.cycles,
        "count": work.count,
        "instructions": len(segment.program.instructions),
        "estimated_cycles": segment.cycles,
        "busy": busy([timed], config),
        "counters": timed.counters,
        "compile_seconds": round(seconds, 3),
        "simulation_seconds": round(timed.seconds, 3),
    }


class Stopwatch:
    """Seconds between messages of the compiler, by the first word of each."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self._step, self._since = "", time.perf_counter()

    def __call__(self, message: str) -> None:
        """The step that begins now; the message's first word names it."""
        now = time.perf_counter()
        if self._step:
            self.seconds[self._step] += now - self._since
        self._step, self._since = (message.split() or [""])[0].rstrip(":"), now


@dataclass(frozen=True, slots=True)
class Setting:
    """What a network is measured on, and how it is quantized; with `rtl` the Verilog confirms it."""

    config: AccelConfig
    memory: str
    strategy: str = "int8"
    rtl: bool = False


def measure_network(name: str, setting: Setting, count: int, size: int | None = None) -> dict[str, Any]:
    """A whole network, calibrated on `count` samples: what runs where, cycles by layer, what its compilation costs."""
    config, memory = setting.config, setting.memory
    example = find(name)
    watch = Stopwatch()
    watch("building")
    model = example.model(size)
    watch("importing")
    mod, params = from_onnx(model)
    data = samples(model, count, seed=1)
    masks = tuple(name for name in data if name == MASK)
    compiled = compile_model(
        mod,
        CompileOptions(strategy=setting.strategy, config=config, name=name, resident="off", prefix_masks=masks),
        params=params,
        calibration=data,
        progress=Steps(lambda step: watch(step.name)),
    )
    watch("simulating")
    timed = {key: launch(segment, config, memory) for key, segment in compiled.segments.items()}
    watch("confirming")
    if setting.rtl:
        for key, segment in compiled.segments.items():
            confirm(segment, config, memory, timed[key])
    watch("")
    return network_row(name, compiled, timed, watch)


def network_row(name: str, compiled: CompiledModel, timed: dict[str, Timed], watch: Stopwatch) -> dict[str, Any]:
    """Totals, layers, host operators by reason."""
    config = compiled.config
    needs = {key: layer_needs(segment, config) for key, segment in compiled.segments.items()}
    layers = [
        layer_row(layer.name, layer, needs[key][i], timed[key].accounts.get(i, Account()), config)
        for key, segment in compiled.segments.items()
        for i, layer in enumerate(segment.layers)
    ]
    cycles = sum(run.cycles for run in timed.values())
    macs = sum(row["macs"] for row in layers)
    roofline = sum(launch_bounds(key, rows, config).cycles for key, rows in needs.items())
    totals = together(found for run in timed.values() for found in run.accounts.values())
    products = macs + sum(run.other_products for run in timed.values())
    multipliers = config.macs_per_cycle + 2 * config.out_lanes + config.row_multipliers
    host = Counter((row.operator, row.reason) for row in compiled.layers if row.where == "host")
    return {
        "name": name,
        "macs": find(name).macs,
        "device_macs": macs,
        "regions": len(timed),
        "cycles": cycles,
        "roofline_cycles": roofline,
        "roofline": roofline / cycles if cycles else None,
        "utilisation": macs / (cycles * config.macs_per_cycle) if cycles else None,
        "utilisation_all": products / (cycles * multipliers) if cycles else None,
        "causes": {cause: sum(row["causes"][cause] for row in layers) for cause in Cause},
        "fill": dict(totals.fill),
        "loads": dict(totals.loads),
        "queues": dict(totals.queues),
        "bytes": traffic_json(total_traffic(row.traffic for rows in needs.values() for row in rows)),
        "busy": busy(list(timed.values()), config),
        "instructions": sum(len(s.program.instructions) for s in compiled.segments.values()),
        "host": [{"operator": o, "reason": reason, "count": n} for (o, reason), n in host.items()],
        "layers": layers,
        "seconds": {step: round(seconds, 3) for step, seconds in watch.seconds.items()},
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


HEADER = ("name", "cycles", "roofline", "%", *Cause, "read", "written", "bus", "out", "waited for")


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """A row of the table."""
    late = [*row["loads"].items(), *((f"{unit} queue", n) for unit, n in row["queues"].items())]
    waits = ", ".join(f"{what} {cycles:,}" for what, cycles in sorted(late, key=lambda item: -item[1]) if cycles)
    shares = row.get("busy")
    return (
        row["name"],
        number(row["cycles"]),
        number(row["roofline_cycles"]),
        percent(row["roofline"]),
        *(number(row["causes"][cause]) for cause in Cause),
        number(row["bytes"]["read"]),
        number(row["bytes"]["written"]),
        percent(shares["read_bus"]) if shares else "-",
        percent(shares["output"]) if shares else "-",
        waits,
    )


def show(title: str, rows: Iterable[dict[str, Any]]) -> None:
    """Print a table."""
    right = frozenset(HEADER[1:-1])
    print(f"\n{title}\n\n{table(HEADER, [cells(row) for row in rows], right)}", flush=True)


def show_network(row: dict[str, Any]) -> None:
    """Print a network: totals, its worst layers, what the host does, where compiling took its time."""
    lost = sorted(row["layers"], key=lambda layer: layer["roofline_cycles"] - layer["cycles"])
    show(f"{row['name']}: {row['regions']} region(s), utilisation {percent(row['utilisation'])}", [row, *lost[:WORST]])
    for entry in row["host"]:
        print(f"  host: {entry['count']} x {entry['operator']}: {entry['reason']}")
    steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in row["seconds"].items())
    print(f"  seconds: {steps}; peak {row['peak_bytes'] >> 20} MiB", flush=True)


def chosen(names: str, known: Sequence[str]) -> list[str]:
    """Names of a list with commas; `all`, `none`. Raises ValueError."""
    if names in ("all", "none"):
        return list(known) if names == "all" else []
    wanted = names.split(",")
    for name in wanted:
        if name not in known:
            raise ValueError(f"name must be one of {', '.join(known)}, not {name}")
    return wanted


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--config", default="default", help="accelerator configuration (default: default)")
    parser.add_argument("--memory", default="standard", choices=sorted(MEMORY_MODELS), help="memory model")
    parser.add_argument("--layers", default="all", help="C1,C2,...; all (default) or none")
    parser.add_argument("--networks", default=",".join(DEFAULT_NETWORKS), help="names of examples/models; all or none")
    parser.add_argument("--images", type=int, default=1, help="calibration images (default: 1)")
    parser.add_argument("--size", type=int, help="height of the networks' input instead of the published ones")
    parser.add_argument("--rtl", action="store_true", help="launch everything on RTL too; counters must be equal")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to write the JSON file")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; 2 for bad input."""
    args = parse(arguments)
    try:
        config = load_config(args.config)
        works = {work.name: work for work in RESNET18}
        layers = [measure_workload(works[n], config, args.memory, args.rtl) for n in chosen(args.layers, list(works))]
        if layers:
            show(f"convolutions of ResNet-18 on {config.name}, {args.memory} memory", layers)
        networks: list[dict[str, Any]] = []
        for name in chosen(args.networks, [example.name for example in NETWORKS]):
            setting = Setting(config, args.memory, rtl=args.rtl)
            networks.append(measure_network(name, setting, args.images, args.size))
            show_network(networks[-1])
    except (RelayHwError, AccelError, ValueError) as error:
        print(f"bench_layers: error: {error}", file=sys.stderr)
        return 2
    args.output.parent.mkdir(parents=True, exist_ok=True)
    result = {"config": config.name, "memory": args.memory, "layers": layers, "networks": networks}
    args.output.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwritten to {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
