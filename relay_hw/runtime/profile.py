"""Cycles, bytes and lost cycles of every layer, from one launch of each region.

In: an artefact and a device with cycles. Out: a `Report`. The exact simulator says when each instruction ran; every
cycle goes to the layer that used it or was waited for, so the layers add up to the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from accel.isa.errors import AccelError
from accel.isa.program import Program, SectionKind
from accel.isa.spec import Op
from accel.sim.causes import LOST, Cause
from accel.sim.cycle import CycleDevice, Timing
from accel.sim.cycle.losses import Account, Stretch, accounts, stretches
from accel.sim.device import Device, LaunchStats
from accel.sim.memory import memory_model
from relay_hw.errors import InputError
from relay_hw.report import LayerRow, Report, Timeline
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import layer_row, static_report
from relay_hw.runtime.manifest import AccelFunction, LayerInfo, Manifest
from relay_hw.runtime.picture import draw_timeline

Progress = Callable[[str, float], None]


@dataclass(frozen=True, slots=True)
class RegionRun:
    """One launch of a region. `owners`: number of the layer, in the manifest, of each instruction; `resident`: the
    launch before it that made weights stay, where the program has one."""

    function: str
    program: Program
    timing: Timing
    owners: tuple[int, ...]
    stretches: tuple[Stretch, ...]
    seconds: float
    resident: Timing | None = None


def profile(
    artifact: Artifact,
    device: Device,
    device_name: str,
    memory: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Launch every region once and report it by layer; timing does not depend on data. `memory`: name of the device's
    memory model; the build's own where none is given.

    On another device than the cycle simulator, which accounts for the cycles, all counters must be those that it finds.
    Raises InputError for a device without cycles, AccelError for a device of another configuration.
    """
    memory = memory or artifact.manifest.memory_model
    simulator = device if isinstance(device, CycleDevice) else _simulator(artifact, memory)
    runs: list[RegionRun] = []
    stats: list[LaunchStats] = []
    functions = artifact.manifest.accel
    for number, function in enumerate(functions):
        runs.append(time_region(artifact, function, simulator))
        stats.append(_launch(device, device_name, runs[-1]))
        if progress is not None:
            progress(f"@{function.name}", (number + 1) / len(functions))
    report = measured_report(artifact.manifest, runs)
    seconds = sum(s.seconds for s in stats)
    return replace(
        report,
        device=device_name,
        memory_model=memory,
        simulated_cycles_per_second=(report.cycles or 0) / seconds if seconds else None,
        timelines=tuple(_timeline(run, report.layers) for run in runs),
    )


def time_regions(artifact: Artifact, memory: str) -> list[RegionRun]:
    """One launch of every region on the cycle simulator. `memory`: name of a memory model."""
    simulator = _simulator(artifact, memory)
    return [time_region(artifact, function, simulator) for function in artifact.manifest.accel]


def time_region(artifact: Artifact, function: AccelFunction, simulator: CycleDevice) -> RegionRun:
    """One launch of a region, behind that of its resident stream."""
    program = artifact.programs[function.name]
    simulator.load(program)
    resident = None
    if program.resident is not None:
        simulator.launch(SectionKind.RESIDENT)
        resident = simulator.timing
    stats = simulator.launch()
    owners = layer_owners(artifact.manifest, function.name, program.count)
    found = tuple(stretches(simulator.timing, owners))
    return RegionRun(function.name, program, simulator.timing, owners, found, stats.seconds, resident)


def layer_owners(manifest: Manifest, function: str, count: int) -> tuple[int, ...]:
    """Number of the layer, in the manifest, of each of a region's `count` instructions."""
    owners = [-1] * count
    last = -1
    for number, row in enumerate(manifest.layers):
        if row.function == function:
            for begin, end in row.ranges:
                owners[begin:end] = [number] * (end - begin)
    for index, owner in enumerate(owners):
        # What belongs to no layer, such as FINISH, goes with what stands before it.
        last = owners[index] = owner if owner >= 0 else last
    return tuple(owners)


def measured_report(manifest: Manifest, runs: Sequence[RegionRun]) -> Report:
    """The report of launches, without device and pictures."""
    rows: dict[int, LayerRow] = {}
    for run in runs:
        rows |= _rows(manifest, run)
    report, config = static_report(manifest), manifest.config
    resident = [run.resident.cycles for run in runs if run.resident is not None]
    return replace(
        report,
        layers=tuple(rows.get(i, row) for i, row in enumerate(report.layers)),
        cycles=sum(run.timing.cycles for run in runs),
        multipliers=config.macs_per_cycle + 2 * config.out_lanes,
        resident_cycles=sum(resident) if resident else None,
    )


def _simulator(artifact: Artifact, memory: str) -> CycleDevice:
    return CycleDevice(artifact.config, memory_model(memory), data=False)


def _launch(device: Device, name: str, run: RegionRun) -> LaunchStats:
    """The launch on the device that was asked for, its counters checked against the simulator's."""
    if isinstance(device, CycleDevice):
        return LaunchStats(run.timing.cycles, run.timing.counters, run.seconds)
    device.load(run.program)
    if run.resident is not None:
        device.launch(SectionKind.RESIDENT)
    stats = device.launch()
    if stats.cycles is None:
        raise InputError(f"device must be one with cycles (cycle or rtl), not {name}")
    for counter, value in run.timing.counters.items():
        if stats.counters[counter] != value:
            found = stats.counters[counter]
            raise AccelError(f"{counter} of @{run.function} must be {value} as simulated, not {found} on {name}")
    return stats


def _rows(manifest: Manifest, run: RegionRun) -> dict[int, LayerRow]:
    """Measured rows by number of the layer."""
    numbers = [i for i, row in enumerate(manifest.layers) if row.function == run.function and row.ranges]
    sums = accounts(run.stretches)
    products = _other_products(run)
    peak = manifest.config.macs_per_cycle
    return {i: _row(manifest.layers[i], sums.get(i, Account()), products[i], peak) for i in numbers}


def _other_products(run: RegionRun) -> Counter[int]:
    """Multiplications of output stage and ALU, by layer."""
    found: Counter[int] = Counter()
    for work, owner in zip(run.timing.works, run.owners, strict=True):
        found[owner] += work.products if work.op is not Op.GEMM else 0
    return found


def _row(row: LayerInfo, account: Account, other_products: int, peak: int) -> LayerRow:
    array = account.cycles[Cause.PRODUCTS]
    stalls = {cause: account.cycles[cause] for cause in LOST}
    stalls[Cause.LANES] = array - min(array, -(-row.macs // peak))
    return replace(
        layer_row(row),
        cycles=account.total,
        other_products=other_products,
        stalls=stalls,
    )


def _timeline(run: RegionRun, layers: Sequence[LayerRow]) -> Timeline:
    names = [row.name for row in layers]
    useful: dict[int, float] = {}
    for owner, account in accounts(run.stretches).items():
        array = account.cycles[Cause.PRODUCTS]
        useful[owner] = 1 - layers[owner].stalls[Cause.LANES] / array if array else 1.0
    return draw_timeline(run.function, run.timing, run.stretches, names, useful)
