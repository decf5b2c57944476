"""Cycles, bytes and stalls of every layer, measured on a timed device.

In: an artefact and a device with cycles. Out: a `Report`. The program is launched up to the end of each stretch of one
layer's instructions; what a counter grows by belongs to that layer, so the layers add up to the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from accel.isa.program import Instr, Program, SectionKind
from accel.isa.spec import Op
from accel.sim.device import Device, LaunchStats
from relay_hw.errors import InputError
from relay_hw.report import LayerRow, Report
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import layer_row, static_report
from relay_hw.runtime.manifest import AccelFunction, LayerInfo
from tensorize.layout import pack_activation

Progress = Callable[[str, float], None]
# What the launches of one region may take together: minutes of RTL simulation.
MAX_CYCLES = 50_000_000
STALLS = ("LOAD_TOKEN", "LOAD_MEMORY", "COMPUTE_TOKEN", "OUTPUT_TOKEN", "STORE_TOKEN", "STORE_MEMORY")


@dataclass(frozen=True, slots=True)
class _Measured:
    cycles: int
    counters: Mapping[str, int]

    def less(self, before: _Measured) -> _Measured:
        counters = {name: value - before.counters.get(name, 0) for name, value in self.counters.items()}
        return _Measured(self.cycles - before.cycles, counters)

    def plus(self, other: _Measured | None) -> _Measured:
        if other is None:
            return self
        counters = {name: value + other.counters.get(name, 0) for name, value in self.counters.items()}
        return _Measured(self.cycles + other.cycles, counters)


def profile(
    artifact: Artifact,
    device: Device,
    device_name: str,
    memory_model: str = "standard",
    progress: Progress | None = None,
) -> Report:
    """Launch every region on zeros (timing does not depend on data) and report it by layer.

    Raises InputError for a device without cycles, AccelError for a device of another configuration.
    """
    rows: dict[int, LayerRow] = {}
    whole: list[LaunchStats] = []
    launches: list[LaunchStats] = []
    functions = artifact.manifest.accel
    for number, function in enumerate(functions):
        part = _part(progress, number, len(functions))
        region = _Region(artifact, function, device, device_name, part)
        rows |= region.measure()
        whole.append(region.launches[0])
        launches += region.launches
    seconds = sum(stats.seconds for stats in launches)
    report = static_report(artifact.manifest)
    return replace(
        report,
        device=device_name,
        memory_model=memory_model,
        layers=tuple(rows.get(i, row) for i, row in enumerate(report.layers)),
        cycles=sum(stats.cycles or 0 for stats in whole),
        bytes_read=sum(stats.counters.get("READ_BYTES", 0) for stats in whole),
        bytes_written=sum(stats.counters.get("WRITE_BYTES", 0) for stats in whole),
        simulated_cycles_per_second=sum(s.cycles or 0 for s in launches) / seconds if seconds else None,
    )


def _part(progress: Progress | None, number: int, count: int) -> Progress | None:
    """Progress of one of `count` equal parts."""
    if progress is None:
        return None
    return lambda text, share: progress(text, (number + share) / count)


class _Region:
    """Measures one program; its first launch is the whole of it."""

    def __init__(
        self,
        artifact: Artifact,
        function: AccelFunction,
        device: Device,
        device_name: str,
        progress: Progress | None,
    ) -> None:
        self.artifact = artifact
        self.function = function
        self.device = device
        self.device_name = device_name
        self.progress = progress
        self.launches: list[LaunchStats] = []

    def measure(self) -> dict[int, LayerRow]:
        """Rows by number of the layer in the manifest."""
        program = self.artifact.programs[self.function.name]
        whole = self._launch(program)
        stretches = self._stretches(whole.cycles)
        instructions = program.instructions
        before = _Measured(0, {})
        costs: dict[int, _Measured] = {}
        for number, (end, layer) in enumerate(stretches):
            last = number == len(stretches) - 1
            measured = whole if last else self._launch(prefix(self.artifact, program, instructions[:end]))
            costs[layer] = measured.less(before).plus(costs.get(layer))
            before = measured
            if self.progress is not None:
                self.progress(f"@{self.function.name}, launch {number + 1}", (number + 1) / len(stretches))
        cycles = _share_cycles(costs, whole.cycles)
        layers = self.artifact.manifest.layers
        return {i: _measured_row(layers[i], cost, cycles[i]) for i, cost in costs.items()}

    def _stretches(self, cycles: int) -> list[tuple[int, int]]:
        """(end, layer) of each run of instructions of one layer, in program order.

        Layers that overlap have several; where those would take too long, only the end of each layer counts.
        """
        layers = [(i, r) for i, r in enumerate(self.artifact.manifest.layers) if r.function == self.function.name]
        runs = sorted((end, i) for i, row in layers for _, end in row.ranges)
        if len(runs) * cycles // 2 <= MAX_CYCLES:
            return runs
        return sorted((row.ranges[-1][1], i) for i, row in layers)

    def _launch(self, program: Program) -> _Measured:
        self.device.load(program)
        for port in self.function.inputs:
            layout = program.tensor(port.tensor).layout
            data = pack_activation(np.zeros(port.shape, np.int8), self.artifact.config, layout).view(np.uint8)
            self.device.write(program.tensor_offset(port.tensor), data)
        stats = self.device.launch()
        if stats.cycles is None:
            raise InputError(f"device must be one with cycles (cycle or rtl), not {self.device_name}")
        self.launches.append(stats)
        return _Measured(stats.cycles, stats.counters)


def prefix(artifact: Artifact, program: Program, instructions: Sequence[Instr]) -> Program:
    """`program` with `instructions`, its first ones, and FINISH; data and addresses stay."""
    body = [item for item in instructions if item[0] is not Op.FINISH]
    others = [section for section in program.sections if section.kind is not SectionKind.PROGRAM]
    return Program.build(
        artifact.config,
        [*body, (Op.FINISH, {})],
        others,
        program.tensors,
        window_bytes=program.window_bytes,
        program_offset=program.code.offset,
    )


def _share_cycles(costs: Mapping[int, _Measured], total: int) -> dict[int, int]:
    """Cycles of each layer, in all `total`: those in which COMPUTE works for it, and of the others a share.

    Layers overlap, so the growth of CYCLES alone would give one layer what another one hides; the other cycles are
    shared in proportion to what each layer adds beyond its computing.
    """
    busy = {i: min(cost.counters.get("COMPUTE_BUSY", 0), total) for i, cost in costs.items()}
    extra = {i: max(cost.cycles - busy[i], 0) for i, cost in costs.items()}
    rest, weight = total - sum(busy.values()), sum(extra.values())
    if rest < 0 or not weight:
        return {i: cost.cycles for i, cost in costs.items()}
    shares: dict[int, int] = {}
    done = before = 0
    for i, part in extra.items():
        done += part
        upto = rest * done // weight
        shares[i] = busy[i] + upto - before
        before = upto
    return shares


def _measured_row(row: LayerInfo, measured: _Measured, cycles: int) -> LayerRow:
    counters = measured.counters
    return replace(
        layer_row(row),
        cycles=cycles,
        bytes_read=counters.get("READ_BYTES", row.bytes_read),
        bytes_written=counters.get("WRITE_BYTES", row.bytes_written),
        stalls={name.lower(): max(counters[name], 0) for name in STALLS if name in counters},
    )
