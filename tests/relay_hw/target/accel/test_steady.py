"""Steady state: one figure for an inference among many, whoever shows it, and loads that repeat are in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.accel.isa.program import SectionKind
from relay_hw.compare.hardware_cost import costs
from relay_hw.compare.places import Place
from relay_hw.runtime.artifact import Artifact
from relay_hw.runtime.compile import CompiledModel, compile_model
from relay_hw.runtime.execute import Executor
from relay_hw.runtime.options import CompileOptions
from relay_hw.runtime.profile import profile
from relay_hw.runtime.result import Result
from relay_hw.runtime.static_report import static_report
from relay_hw.runtime.why import explain
from relay_hw.support.progress import SILENT
from relay_hw.target.accel.devices import DeviceOptions, close_device, open_device
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import Turns, steady
from tests.relay_hw.steady_networks import LOOPS, NETWORKS, Network, network
from tests.relay_hw.target.accel.test_residency import OVER_A, TINY, A, B

# Images and dense layers, attention, a loop.
FEW = (0, 2, 28)


def test_loads_that_repeat_are_part_of_an_inference() -> None:
    programs = {"a": A, "b": B, "over": OVER_A}
    cycles = {("a", SectionKind.PROGRAM): 10, ("a", SectionKind.RESIDENT): 3, ("b", SectionKind.PROGRAM): 20}
    cycles |= {("b", SectionKind.RESIDENT): 5, ("over", SectionKind.PROGRAM): 1, ("over", SectionKind.RESIDENT): 2}

    def clock(name: str, kind: SectionKind) -> int:
        return cycles[name, kind]

    apart = steady(Footprints(TINY), programs, ("a", "b", "a"))
    assert (apart.reloads, apart.once, apart.launches) == ((False,) * 3, ("a", "b"), 3)
    assert (apart.total(clock), apart.total_once(clock)) == (40, 8)
    evicted = steady(Footprints(TINY), programs, ("a", "b", "over", "a"))
    assert (evicted.reloads, evicted.once, evicted.launches) == ((False, False, True, True), ("a", "b"), 6)
    assert (evicted.total(clock), evicted.total_once(clock)) == (46, 8)
    assert evicted.turns == {"a": Turns(2, 1, 1), "b": Turns(1, 0, 1), "over": Turns(1, 1, 0)}
    last = steady(Footprints(TINY), programs, ("a", "over"))
    assert (last.reloads, last.once, last.total(clock)) == ((True, True), (), 16)
    assert steady(Footprints(TINY), programs, ()).launches == 0


def build(net: Network, folder: Path, resident: str = "auto") -> tuple[CompiledModel, Artifact]:
    mod, data = net
    params = {name: value for name, value in data.items() if name != "x"}
    calibration = {"x": data["x"]}
    compiled = compile_model(
        mod, CompileOptions(host_target="numpy", resident=resident), params=params, calibration=calibration
    )
    return compiled, compiled.save(folder / resident)


def run(artifact: Artifact, net: Network, device: str, samples: int, chunk: int = 1) -> Result:
    opened = open_device(device, artifact.config)
    try:
        return Executor(artifact, opened).run({"x": net[1]["x"]}, samples, chunk=chunk)
    finally:
        close_device(opened)


def check_figures(net: Network, folder: Path, regions: int = 3) -> None:
    """Whoever times one inference finds the same, of a network of at least so many regions."""
    compiled, artifact = build(net, folder)
    assert len(artifact.manifest.regions) >= regions
    timing = open_device("cycle", artifact.config, DeviceOptions(timing_only=True))
    report = profile(artifact, timing, "cycle")
    assert report.cycles == sum(row.cycles or 0 for row in report.layers)
    wanted = (report.cycles, report.launches)
    assert static_report(artifact.manifest).cycles == report.cycles
    found = explain(artifact, changes=[])
    assert (found.cycles, found.report.launches) == wanted
    imported, quantized = compiled.stages["imported"], compiled.stages["quantized"]
    sample = {"x": net[1]["x"][0].reshape(compiled.inputs[0].shape)}
    ((built,), _) = costs(imported, quantized, compiled.strategy, [Place(artifact.config)], sample, SILENT)
    cost = built.cost
    assert (cost.cycles, cost.launches, cost.dram_bytes) == (*wanted, report.traffic.total)
    for device in ("cycle", "rtl"):
        result = run(artifact, net, device, 1)
        assert result.cycles is not None
        assert (result.cycles[0], result.chunk_launches[0]) == wanted, device
        assert result.resident_cycles == (report.resident_cycles or 0), device


def test_there_are_thirty_networks() -> None:
    assert len(NETWORKS) >= 30


@pytest.mark.parametrize("number", FEW)
def test_everybody_shows_the_same_inference(number: int, tmp_path: Path) -> None:
    check_figures(network(number), tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("number", [number for number in NETWORKS if number not in FEW])
def test_everybody_shows_the_same_inference_of_all(number: int, tmp_path: Path) -> None:
    check_figures(network(number), tmp_path)


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "newton" else pytest.mark.long) for n in LOOPS])
def test_everybody_shows_the_same_inference_of_a_small_loop(name: str, tmp_path: Path) -> None:
    check_figures(LOOPS[name](), tmp_path, regions=1)
