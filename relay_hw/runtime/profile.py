"""Profiles a build: cycles, bytes and lost cycles of every layer in a steady-state inference.

In: an artefact and a device with cycles. Out: a `Profile`. The exact simulator says when each instruction ran; every
cycle goes to the layer that used it or was waited for, so the layers, and the loads that come again, add up to the
whole.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.isa.spec import Op
from relay_hw.accel.sim.causes import LOST, Cause
from relay_hw.accel.sim.cycle import CycleDevice
from relay_hw.accel.sim.cycle.losses import Account, accounts, stretches
from relay_hw.accel.sim.cycle.traffic import total_traffic, traffic_by_owner
from relay_hw.accel.sim.device import Device, LaunchStats
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.names import CYCLE
from relay_hw.errors import InputError
from relay_hw.report import LayerRow, Picture, Profile
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.manifest import Manifest
from relay_hw.runtime.picture import THOUSANDTHS, picture_of
from relay_hw.runtime.region_run import RegionRun
from relay_hw.runtime.static_report import layer_row, static_report
from relay_hw.support.progress import SILENT, Progress
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.rules import NAME as ACCEL
from relay_hw.target.accel.steady import Turns, steady
from relay_hw.target.records import LayerInfo, RegionInfo

_TIMING: Final = "timing regions"


def profile(
    artifact: Artifact,
    device: Device,
    device_name: str,
    memory: str | None = None,
    progress: Progress = SILENT,
    calls: Sequence[str] | None = None,
) -> Profile:
    """Launch every region once, and report the cost of an inference by layer; timing does not depend on data.

    `memory`: name of the device's memory model; the build's own where none is given. `calls`: regions in the order in
    which the inference launches them, where it is not the build's.

    On another device than the cycle simulator, which accounts for the cycles, all counters must be those that it finds.
    Raises InputError for a device without cycles, AccelError for a device of another configuration.
    """
    memory = memory or artifact.manifest.memory_model
    simulator = device if isinstance(device, CycleDevice) else _simulator(artifact, memory)
    runs: list[RegionRun] = []
    stats: list[LaunchStats] = []
    functions = artifact.manifest.regions
    turns = _turns(artifact, calls)
    progress.started(_TIMING, len(functions))
    for number, function in enumerate(functions):
        progress.advanced(_TIMING, number, f"@{function.name}")
        runs.append(time_region(artifact, function, simulator, turns[function.name]))
        stats.append(_launch(device, device_name, runs[-1]))
    report = measured_report(artifact.manifest, runs)
    seconds = sum(s.seconds for s in stats)
    return replace(
        report,
        device=device_name,
        memory_model=memory,
        simulated_cycles_per_second=(report.cycles or 0) / seconds if seconds else None,
        pictures=pictures_of(artifact.manifest, runs),
        network=artifact.network,
    )


def time_regions(artifact: Artifact, memory: str) -> list[RegionRun]:
    """Time a launch of every region on the cycle simulator. `memory`: name of a memory model."""
    simulator = _simulator(artifact, memory)
    turns = _turns(artifact)
    return [time_region(artifact, function, simulator, turns[function.name]) for function in artifact.manifest.regions]


def timed_report(artifact: Artifact) -> Profile:
    """Time an inference on the cycle simulator, with the memory model of the build, without timelines."""
    memory = artifact.manifest.memory_model
    report = measured_report(artifact.manifest, time_regions(artifact, memory))
    return replace(report, device=CYCLE, memory_model=memory, network=artifact.network)


def _turns(artifact: Artifact, calls: Sequence[str] | None = None) -> defaultdict[str, Turns]:
    """Number of launches of each region in an inference."""
    order = artifact.manifest.calls if calls is None else calls
    return defaultdict(Turns, steady(Footprints(artifact.config), artifact.programs, order).turns)


def time_region(artifact: Artifact, function: RegionInfo, simulator: CycleDevice, turns: Turns) -> RegionRun:
    """Time a launch of a region, after that of its resident stream."""
    program = artifact.programs[function.name]
    simulator.load(program)
    resident = None
    if program.resident is not None:
        simulator.launch(SectionKind.RESIDENT)
        resident = simulator.timing
    stats = simulator.launch()
    owners = layer_owners(artifact.manifest, function.name, program.count)
    found = tuple(stretches(simulator.timing, owners))
    return RegionRun(function.name, program, simulator.timing, owners, found, stats.seconds, turns, resident)


def layer_owners(manifest: Manifest, function: str, count: int) -> tuple[int, ...]:
    """Number of the layer, in the manifest, of each of a region's `count` instructions."""
    owners = [-1] * count
    last = -1
    for number, row in enumerate(manifest.layers):
        if row.function == function:
            for begin, end in row.ranges:
                owners[begin:end] = [number] * (end - begin)
    for index, owner in enumerate(owners):
        # Instructions without a layer, such as FINISH, count for the layer before them.
        last = owners[index] = owner if owner >= 0 else last
    return tuple(owners)


def measured_report(manifest: Manifest, runs: Sequence[RegionRun]) -> Profile:
    """The report of an inference, without device and timelines."""
    rows: dict[int, LayerRow] = {}
    for run in runs:
        rows |= {number: row.times(run.turns.launches) for number, row in _rows(manifest, run).items()}
    report, config = static_report(manifest), manifest.sizes
    resident = [run.turns.once * run.resident.cycles for run in runs if run.resident is not None]
    layers = [rows.get(i, row) for i, row in enumerate(report.layers) if row.is_layer]
    counters = Counter[str]()
    for run in runs:
        counters.update(run.turns.counters(run.timing.counters, run.resident.counters if run.resident else {}))
    return replace(
        report,
        layers=(*layers, *(_reload_row(run) for run in runs if run.turns.reloads)),
        cycles=counters["CYCLES"],
        launches=sum(run.turns.launches + run.turns.reloads for run in runs),
        multipliers=config.macs_per_cycle + 2 * config.out_lanes + config.row_multipliers,
        resident_cycles=sum(resident) if resident else None,
    )


def _reload_row(run: RegionRun) -> LayerRow:
    """The row for an inference's launches that reload a region's resident constants."""
    timing, count = run.resident, run.turns.reloads
    assert timing is not None
    row = LayerRow(
        name=f"constants of @{run.function}",
        operator=Cause.RELOAD,
        where=ACCEL,
        reason=Cause.RELOAD.meaning,
        function=run.function,
        traffic=total_traffic(traffic_by_owner(timing.works, [0] * len(timing.works), timing.config).values()),
        roofline_cycles=0,
        cycles=timing.cycles,
        stalls={cause: timing.cycles if cause is Cause.RELOAD else 0 for cause in LOST},
    )
    return row.times(count)


def _simulator(artifact: Artifact, memory: str) -> CycleDevice:
    return CycleDevice(artifact.config, memory_model(memory), data=False)


def _launch(device: Device, name: str, run: RegionRun) -> LaunchStats:
    """Launch on the device that was asked for, and check its counters against the simulator's."""
    if isinstance(device, CycleDevice):
        return LaunchStats(run.timing.cycles, run.timing.counters, run.seconds)
    device.load(run.program)
    if run.resident is not None:
        device.launch(SectionKind.RESIDENT)
    stats = device.launch()
    if stats.cycles is None:
        raise InputError(f"device must count cycles (cycle or rtl), not {name}")
    for counter, value in run.timing.counters.items():
        if stats.counters[counter] != value:
            found = stats.counters[counter]
            raise AccelError(f"{counter} of @{run.function} must be {value} as simulated, not {found} on {name}")
    return stats


def _rows(manifest: Manifest, run: RegionRun) -> dict[int, LayerRow]:
    """Measured rows by number of the layer."""
    numbers = [i for i, row in enumerate(manifest.layers) if row.function == run.function]
    sums = accounts(run.stretches)
    products = _other_products(run)
    peak = manifest.sizes.macs_per_cycle
    return {i: _row(manifest.layers[i], sums.get(i, Account()), products[i], peak) for i in numbers}


def _other_products(run: RegionRun) -> Counter[int]:
    """Multiplications of output stage, ALU and row unit, by layer."""
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


def pictures_of(manifest: Manifest, runs: Sequence[RegionRun]) -> tuple[Picture, ...]:
    """The timeline of a launch of each region."""
    return tuple(_picture(run, manifest) for run in runs)


def _picture(run: RegionRun, manifest: Manifest) -> Picture:
    useful = [THOUSANDTHS] * len(manifest.layers)
    for number, row in _rows(manifest, run).items():
        array = (row.cycles or 0) - sum(cycles for cause, cycles in row.stalls.items() if cause is not Cause.LANES)
        if array:
            useful[number] = THOUSANDTHS - THOUSANDTHS * row.stalls[Cause.LANES] // array
    return picture_of(run, useful)
