"""Profiles: layers add up to the launch, no layer computes more than the array can, devices agree, pictures tell."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.isa.program import Program, SectionKind
from relay_hw.accel.sim.causes import LOST
from relay_hw.accel.sim.device import Device, LaunchStats
from relay_hw.errors import InputError
from relay_hw.report import profile_json
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.profile import layer_owners, profile, time_regions
from relay_hw.runtime.static_report import static_report
from relay_hw.support.progress import ProgressStep, Steps
from relay_hw.target.accel.devices import DeviceOptions, open_device
from tests.relay_hw.small_models import images

Build = tuple[CompiledModel, Artifact]


@pytest.mark.parametrize("which", ["plain", "mixed"])
def test_layers_add_up_to_the_run(which: str, request: pytest.FixtureRequest) -> None:
    _, artifact = request.getfixturevalue(which)
    timing = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    seen: list[ProgressStep] = []
    report = profile(artifact, timing, "cycle", progress=Steps(seen.append))
    layers = [row for row in report.layers if row.on_accelerator]
    assert report.cycles == sum(row.cycles or 0 for row in layers)
    counters = [run.timing.counters for run in time_regions(artifact, "standard")]
    for moved, counter in (
        (report.traffic.read, "READ_BYTES"),
        (report.traffic.written, "WRITE_BYTES"),
        (report.traffic.instructions, "FETCH_BYTES"),
    ):
        assert moved == sum(c[counter] for c in counters)
    # What compiling says of bytes and bounds is what a run finds.
    before = static_report(artifact.manifest)
    assert (before.traffic, before.bounds) == (report.traffic, report.bounds)
    assert [step.done for step in seen] == [0, *range(len(artifact.manifest.regions))]

    result = Executor(artifact, open_device("cycle", artifact.config)).run({"image": images(2)})
    assert result.cycles == [report.cycles] * 2
    for row in layers:
        assert row.cycles is not None and row.cycles > 0 and row.cycles >= (row.roofline_cycles or 0)
        assert row.macs <= row.cycles * artifact.config.macs_per_cycle, row.name
        assert row.stalls.keys() == set(LOST)
        assert min(row.stalls.values()) >= 0
        # What is left of a layer's cycles is what its products need.
        products = row.cycles - sum(row.stalls.values())
        assert products == -(-row.macs // artifact.config.macs_per_cycle) or products < row.cycles
    assert 0 < (report.utilisation_all or 0) < (report.utilisation or 0) < 1
    assert (
        report.multipliers
        == artifact.config.macs_per_cycle + 2 * artifact.config.out_lanes + 4 * artifact.config.row_lanes
    )


def test_the_object_has_the_keys_of_the_design(plain: Build) -> None:
    _, artifact = plain
    device = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    row = profile_json(profile(artifact, device, "cycle"))
    assert row.keys() == {
        "cycles", "launches", "utilisation", "utilisation_all", "macs", "all_macs", "accel_mac_share",
        "bytes", "roofline_cycles", "bounds", "resident_cycles",
        "simulated_cycles_per_second", "stalls", "layers", "segments", "host", "speed",
    }  # fmt: skip
    wanted = {"name", "operator", "where", "reason", "cycles", "roofline_cycles", "stalls"}
    for layer in row["layers"]:
        assert layer.keys() >= wanted
        assert layer["where"] in ("accel", "host")
        assert layer["reason"], "why it is on the host, or why its schedule is what it is"
        assert (layer["cycles"] == 0) == (layer["where"] == "host")
    assert row["macs"] == sum(layer["macs"] for layer in row["layers"])
    names = [layer["name"] for layer in row["layers"]]
    assert {"conv_a", "pool", "conv_b", "fc", "scores"} <= set(names) and len(set(names)) == len(names)


def test_other_devices_must_count_what_the_simulator_counts(plain: Build) -> None:
    _, artifact = plain
    rtl = open_device("rtl", artifact.config)
    report = profile(artifact, rtl, "rtl")
    simulator = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    simulated = profile(artifact, simulator, "cycle")
    assert report.layers == simulated.layers and report.cycles == simulated.cycles
    assert report.device == "rtl" and report.pictures == simulated.pictures

    class Late:
        """A device that counts one cycle too many."""

        config = artifact.config

        def load(self, program: Program) -> None:
            simulator.load(program)

        def launch(self, stream: SectionKind = SectionKind.PROGRAM) -> LaunchStats:
            stats = simulator.launch(stream)
            return replace(stats, counters={**stats.counters, "LOAD_BUSY": stats.counters["LOAD_BUSY"] + 1})

    with pytest.raises(AccelError, match=r"LOAD_BUSY of @accel_0 must be (\d+) as simulated, not \d+ on late"):
        profile(artifact, cast(Device, Late()), "late")


def test_instructions_without_a_layer_go_with_those_before(plain: Build) -> None:
    _, artifact = plain
    manifest = artifact.manifest
    count = artifact.programs["accel_0"].count
    owners = layer_owners(manifest, "accel_0", count)
    assert len(owners) == count and owners[-1] == owners[-2]
    for number, row in enumerate(manifest.layers):
        assert all(owners[begin:end] == (number,) * (end - begin) for begin, end in row.ranges)


def test_a_device_without_time_is_refused(plain: Build) -> None:
    _, artifact = plain
    with pytest.raises(InputError, match=r"device must count cycles \(cycle or rtl\), not functional"):
        profile(artifact, open_device("functional", artifact.config), "functional")


def test_narrow_memory_takes_longer(plain: Build) -> None:
    _, artifact = plain
    cycles = []
    for memory in ("standard", "narrow"):
        device = open_device("cycle", artifact.config, DeviceOptions(memory=memory, timing_only=True))
        report = profile(artifact, device, "cycle", memory)
        assert report.memory_model == memory
        cycles.append(report.cycles or 0)
    assert cycles[0] <= cycles[1]
