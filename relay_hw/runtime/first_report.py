"""The report of a build that was just compiled, from the launches that the compiler timed.

In: a manifest, the segments of its regions, its network. Out: a `Profile` without a device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from relay_hw import tensorize
from relay_hw.accel.sim.cycle.losses import stretches
from relay_hw.accel.sim.cycle.timing import Launch, time_stream
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.report import Network, Profile
from relay_hw.runtime.manifest import Manifest
from relay_hw.runtime.profile import layer_owners, measured_report, pictures_of
from relay_hw.runtime.region_run import RegionRun
from relay_hw.runtime.static_report import static_report
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import Turns, steady


def first_report(manifest: Manifest, segments: Mapping[str, tensorize.Segment], network: Network) -> Profile:
    """The report before any device ran. `segments`: of target accel, none for another target."""
    if not segments:
        return replace(static_report(manifest), network=network)
    programs = {name: segment.program for name, segment in segments.items()}
    turns = steady(Footprints(manifest.sizes), programs, manifest.calls).turns
    runs = [_run(manifest, name, segment, turns.get(name, Turns())) for name, segment in segments.items()]
    return replace(measured_report(manifest, runs), pictures=pictures_of(manifest, runs), network=network)


def _run(manifest: Manifest, name: str, segment: tensorize.Segment, turns: Turns) -> RegionRun:
    """The simulated launch that the compiler chose the program by."""
    launch, program = segment.launch, segment.program
    assert isinstance(launch, Launch)  # what the compiler's clock counts
    timing, owners = launch.timing(), layer_owners(manifest, name, program.count)
    stays = program.resident
    resident = None
    if stays is not None:
        resident = time_stream(manifest.sizes, memory_model(manifest.memory_model), stays)
    return RegionRun(name, program, timing, owners, tuple(stretches(timing, owners)), 0.0, turns, resident)
