"""Cycles, bytes and stalls of every layer, measured on a timed device.

In: an artefact and a device with cycles. Out: a `Report`. The program is launched up to the end of each stretch of one
layer's instructions; what a counter grows by belongs to that layer, so the layers add up to the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from accel.isa.program import Program, SectionKind
from accel.isa.spec import Op
from accel.sim.device import Device, LaunchStats
from relay_hw.errors import InputError
from relay_hw.report import LayerRow, Report
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import layer_row, static_report
from relay_hw.runtime.manifest import AccelFunction, LayerInfo
from tensorize.layout import pack_activation

Progress = Callable[[str, float], None]
# Launches that one profile may take for each region.
MAX_STRETCHES = 200
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
    plans = {function.name: _stretches(artifact, function) for function in artifact.manifest.accel}
    total = sum(map(len, plans.values()))
    costs: dict[int, _Measured] = {}
    whole: list[LaunchStats] = []
    launches: list[LaunchStats] = []
    for function in artifact.manifest.accel:
        before = _Measured(0, {})
        for end, layer in plans[function.name]:
            last = end == plans[function.name][-1][0]
            program = artifact.programs[function.name] if last else prefix(artifact, function, end)
            stats = _launch(device, device_name, artifact, function, program)
            launches.append(stats)
            measured = _Measured(stats.cycles or 0, stats.counters)
            costs[layer] = measured.less(before).plus(costs.get(layer))
            before = measured
            if last:
                whole.append(stats)
            if progress is not None:
                progress(f"launch {len(launches)} of {total}", len(launches) / total)
    cycles = _share_cycles(costs, sum(stats.cycles or 0 for stats in whole))
    rows = {i: _measured_row(artifact.manifest.layers[i], cost, cycles[i]) for i, cost in costs.items()}
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


def _stretches(artifact: Artifact, function: AccelFunction) -> list[tuple[int, int]]:
    """(end, layer) of each run of instructions of one layer, in program order.

    Layers that overlap have several; beyond MAX_STRETCHES only the end of each layer counts.
    """
    layers = [(i, row) for i, row in enumerate(artifact.manifest.layers) if row.function == function.name]
    runs = sorted((end, i) for i, row in layers for _, end in row.ranges)
    if len(runs) > MAX_STRETCHES:
        runs = sorted((row.ranges[-1][1], i) for i, row in layers)
    return runs


def prefix(artifact: Artifact, function: AccelFunction, end: int) -> Program:
    """The function's program up to instruction `end`, then FINISH; data and addresses stay."""
    program = artifact.programs[function.name]
    body = [item for item in program.instructions[:end] if item[0] is not Op.FINISH]
    others = [section for section in program.sections if section.kind is not SectionKind.PROGRAM]
    return Program.build(
        artifact.config,
        [*body, (Op.FINISH, {})],
        others,
        program.tensors,
        window_bytes=program.window_bytes,
        program_offset=program.code.offset,
    )


def _launch(
    device: Device, device_name: str, artifact: Artifact, function: AccelFunction, program: Program
) -> LaunchStats:
    device.load(program)
    for port in function.inputs:
        data = pack_activation(np.zeros(port.shape, np.int8), artifact.config).view(np.uint8)
        device.write(program.tensor_offset(port.tensor), data)
    stats = device.launch()
    if stats.cycles is None:
        raise InputError(f"device must be one with cycles (cycle or rtl), not {device_name}")
    return stats


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
