"""The host's part of an inference: measured outside the accelerator, on a named machine."""

from __future__ import annotations

from dataclasses import replace

from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.report import HostTime, profile_json, render_html, summary
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.host_time import measure_host
from relay_hw.runtime.machine import machine_name
from relay_hw.runtime.static_report import static_report
from relay_hw.target.accel.rules import NAME as ACCEL
from tests.relay_hw.small_models import images

Build = tuple[CompiledModel, Artifact]


def test_a_run_tells_the_host_from_the_accelerator(plain: Build) -> None:
    _, artifact = plain
    result = Executor(artifact, FunctionalDevice(artifact.config)).run({"image": images(2)})
    on_accel = sum(row.seconds for row in result.segments if row.where == ACCEL)
    assert 0 < result.host_seconds * 2 + on_accel <= 1.01 * result.seconds


def test_the_reference_computes_regions_that_are_not_the_hosts(plain: Build) -> None:
    _, artifact = plain
    result = Executor(artifact, None).run({"image": images(2)})
    host = sum(row.seconds for row in result.segments if row.where != ACCEL)
    assert host < sum(row.seconds for row in result.segments) and result.host_seconds * 2 == host


def test_profiles_measure_it_on_any_data(plain: Build) -> None:
    _, artifact = plain
    for data, what in ((None, "a random sample"), ({"image": images(2)}, "the first sample")):
        found = measure_host(artifact, data)
        assert found is not None and found.seconds > 0 and (found.machine, found.data) == (machine_name(), what)


def test_inputs_that_cannot_run_have_none(plain: Build) -> None:
    assert measure_host(plain[1], {"other": images(1)}) is None


def test_reports_name_the_machine(plain: Build) -> None:

    host = HostTime(0.00125, "Some <CPU>", "a random sample")
    report = replace(static_report(plain[1].manifest), host=host)
    assert "1.250 ms on the host (Some <CPU>, a random sample)" in summary(report)
    assert profile_json(report)["host"] == {"seconds": 0.00125, "machine": "Some <CPU>", "data": "a random sample"}
    assert "<b>1.250 ms</b><span>on the host, Some &lt;CPU&gt;, a random sample</span>" in render_html(report)
