"""Profiles: layers add up to the launch, no layer computes more than the array can, prefixes are programs."""

from __future__ import annotations

import pytest

from accel.isa.spec import Op
from relay_hw.errors import InputError
from relay_hw.report import profile_json
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.devices import DeviceOptions, open_device
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.profile import STALLS, prefix, profile
from tests.relay_hw.small_models import images

Build = tuple[CompiledModel, Artifact]


@pytest.mark.parametrize("which", ["plain", "mixed"])
def test_layers_add_up_to_the_run(which: str, request: pytest.FixtureRequest) -> None:
    _, artifact = request.getfixturevalue(which)
    timing = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    seen: list[float] = []
    report = profile(artifact, timing, "cycle", progress=lambda _text, share: seen.append(share))
    layers = [row for row in report.layers if row.on_accelerator]
    assert report.cycles == sum(row.cycles or 0 for row in layers)
    assert report.bytes_read == sum(row.bytes_read for row in layers)
    assert report.bytes_written == sum(row.bytes_written for row in layers)
    assert seen == sorted(seen) and seen[-1] == 1.0

    result = Executor(artifact, open_device("cycle", artifact.config)).run({"image": images(2)})
    assert result.cycles == [report.cycles] * 2
    for row in layers:
        assert row.cycles is not None and row.cycles > 0 and row.roofline_cycles
        assert row.macs <= row.cycles * artifact.config.macs_per_cycle, row.name
        assert row.stalls.keys() == {name.lower() for name in STALLS}
        assert min(row.stalls.values()) >= 0
    assert 0 < (report.utilisation or 0) < 1


def test_the_object_has_the_keys_of_the_design(plain: Build) -> None:
    _, artifact = plain
    device = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    row = profile_json(profile(artifact, device, "cycle"))
    assert row.keys() == {
        "cycles", "utilisation", "macs", "bytes_read", "bytes_written", "simulated_cycles_per_second", "layers",
    }  # fmt: skip
    wanted = {"name", "operator", "where", "reason", "cycles", "roofline_cycles", "stalls"}
    for layer in row["layers"]:
        assert layer.keys() >= wanted
        assert layer["where"] in ("accel", "host")
        assert bool(layer["reason"]) == (layer["where"] == "host")
        assert (layer["cycles"] == 0) == (layer["where"] == "host")
    assert row["macs"] == sum(layer["macs"] for layer in row["layers"])
    names = [layer["name"] for layer in row["layers"]]
    assert {"conv_a", "pool", "conv_b", "fc", "scores"} <= set(names) and len(set(names)) == len(names)


def test_prefixes_are_whole_programs(plain: Build) -> None:
    _, artifact = plain
    function = artifact.manifest.accel[0]
    whole = artifact.programs[function.name]
    part = prefix(artifact, whole, whole.instructions[:3])
    assert part.count == 4 and part.instructions[:3] == whole.instructions[:3]
    assert part.instructions[3][0] is Op.FINISH
    assert part.code.offset == whole.code.offset and part.window_bytes == whole.window_bytes
    assert prefix(artifact, whole, whole.instructions).instructions == whole.instructions


def test_long_programs_are_cut_at_layers_only(plain: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    _, artifact = plain
    device = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    fine = profile(artifact, device, "cycle")
    monkeypatch.setattr("relay_hw.runtime.profile.MAX_CYCLES", 0)
    told: list[str] = []
    coarse = profile(artifact, device, "cycle", progress=lambda text, _share: told.append(text))
    assert len(told) == 4
    assert coarse.cycles == fine.cycles == sum(row.cycles or 0 for row in coarse.layers)


def test_a_device_without_time_is_refused(plain: Build) -> None:
    _, artifact = plain
    with pytest.raises(InputError, match=r"device must be one with cycles \(cycle or rtl\), not functional"):
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
