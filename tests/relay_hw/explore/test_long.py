"""Explorations at full length: points against Verilog, fronts with and without skipping, kills, a point to the end."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relay_hw.accel.fpga.synth import cache_folder, synthesise
from relay_hw.accel.isa.program import SectionKind
from relay_hw.accel.sim.dram_timing import memory_model
from relay_hw.accel.sim.rtl_device import RtlDevice
from relay_hw.cli.main import main
from relay_hw.explore import Exploration, ExploreOptions, Space, explore
from relay_hw.explore.main import JOURNAL
from relay_hw.explore.results import State
from relay_hw.explore.search import Search
from relay_hw.explore.space import spanned
from relay_hw.runtime.compile import compile_model
from relay_hw.runtime.models import Model, load_model
from relay_hw.runtime.options import CompileOptions
from relay_hw.target.accel.residency import Footprints
from relay_hw.target.accel.steady import steady
from tests.processes import alive_with, left_with
from tests.relay_hw.small_models import save_data, save_plain

ROOT = Path(__file__).parents[3]
MODEL = ROOT.parent / "shared" / "models" / "resnet8_cifar10"
pytestmark = pytest.mark.long
needs_model = pytest.mark.skipif(not MODEL.exists(), reason="ResNet-8 must lie in ../shared/models")
needs_dask = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="this system has no /proc")
SIXTY = spanned(
    {
        "block_in": (4, 8, 16),
        "block_out": (4, 8, 16, 32, 64),
        "out_lanes": (4, 16),
        "acc_depth": (512, 2048),
    }
)


@pytest.fixture(scope="module")
def model() -> tuple[Model, dict[str, Any]]:
    with np.load(MODEL / "calibration.npz") as archive:
        calibration = dict(archive)
    return load_model(MODEL / "model.onnx", samples=calibration), calibration


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("explored")


def explored(given: tuple[Model, dict[str, Any]], space: Space, work: Path, **more: Any) -> Exploration:
    model, calibration = given
    options = ExploreOptions(space=space, search=Search.GRID, work=work, processes=2, name="resnet8", **more)
    return explore(model.mod, options, calibration=calibration, params=model.params)


@needs_model
def test_the_front_of_sixty_points_is_the_same_with_and_without_skipping(
    model: tuple[Model, dict[str, Any]], work: Path, tmp_path: Path
) -> None:
    """Skipping is measured in a folder of its own, so that it does not find what the other one measured."""
    some = explored(model, SIXTY, tmp_path)
    whole = explored(model, SIXTY, work, skips=False)
    print(f"{len(some.of(State.SKIPPED))} of {SIXTY.size} points skipped, {len(whole.front)} on the front")
    assert SIXTY.size == 60 and not whole.of(State.SKIPPED)
    assert some.front == whole.front
    for number in some.front:
        assert some[number] == whole[number]


@needs_model
def test_ten_sampled_points_equal_the_verilog_to_the_cycle(model: tuple[Model, dict[str, Any]], work: Path) -> None:
    given, calibration = model
    whole = explored(model, SIXTY, work, skips=False)
    for row in random.Random(7).sample(whole.of(State.DONE), 10):
        design = whole.design(row.number)
        compiled = compile_model(
            given.mod,
            CompileOptions(config=design.config, host_target="numpy", memory=design.memory, resident=design.resident),
            params=given.params,
            calibration=calibration,
        )
        programs = {name: segment.program for name, segment in compiled.segments.items()}
        device = RtlDevice(design.config, memory_model(design.memory))
        state = steady(Footprints(design.config), programs, compiled.calls.order)

        def clock(name: str, kind: SectionKind, device: RtlDevice = device, programs: Any = programs) -> int:
            device.load(programs[name])
            if kind is SectionKind.PROGRAM and programs[name].resident is not None:
                device.launch(SectionKind.RESIDENT)
            return device.launch(kind).counters["CYCLES"]

        cycles = state.total(clock)
        assert row.measured is not None
        print(f"#{row.number} {row.point}: {row.measured.cycles:,} cycles, {cycles:,} on RTL")
        assert cycles == row.measured.cycles


@needs_model
def test_a_point_of_the_front_compiles_simulates_and_synthesises(
    model: tuple[Model, dict[str, Any]], work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = explored(model, SIXTY, work, skips=False)
    smallest = min(whole.front, key=lambda number: whole.share(whole[number]) or 0.0)
    for name, content in whole.files().items():
        (tmp_path / name).write_bytes(content)
    assert main(["explore", "--apply", str(smallest), "-o", str(tmp_path)]) == 0
    path, build = tmp_path / f"point-{smallest}.json", tmp_path / "build"
    words = [str(MODEL / "model.onnx"), "--calibration", str(MODEL / "calibration.npz"), "--config", str(path)]
    capsys.readouterr()
    assert main(["compile", *words, "-o", str(build), "--json"]) == 0
    measured = whole[smallest].measured
    assert measured is not None
    assert json.loads(capsys.readouterr().out)["cycles"] == measured.cycles
    assert main(["verify", str(build), "--device", "rtl", "--samples", "1"]) == 0
    found = synthesise(whole.config(smallest), cache_folder())
    placed = whole[smallest].placed
    assert placed is not None
    assert (placed.area.block_rams, placed.area.multipliers) == (found["block_rams"], found["multipliers"])
    assert placed.area.luts == pytest.approx(found["luts"], rel=0.10)


KILLED = (
    "--axis", "block_in=4,8,16", "--axis", "block_out=4,8", "--axis", "inp_depth=256..2048", "--axis",
    "axi_data_bits=64,128", "--config", "tiny", "--all", "--processes", "2",
)  # fmt: skip
POINTS = 48


@needs_dask
@pytest.mark.parametrize("whom", ["worker", "driver"])
def test_a_kill_loses_nothing(tmp_path: Path, whom: str) -> None:
    pytest.importorskip("distributed", reason="the extra explore is not installed")
    save_plain(tmp_path / "plain.onnx")
    save_data(tmp_path / "calibration.npz", 6, seed=6)
    words = ["explore", str(tmp_path / "plain.onnx"), "--calibration", str(tmp_path / "calibration.npz"), *KILLED]
    command = [sys.executable, "-m", "relay_hw.cli", *words]
    mark = f"mark-{uuid.uuid4()}"
    journal = tmp_path / "report" / "work" / JOURNAL
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "report")], cwd=ROOT, env=os.environ | {"MARK": mark}
    ) as running:
        wait_for(lambda: len(kept(journal)) >= 8)
        if whom == "driver":
            running.kill()
            running.wait()
            assert not left_with(mark)
            before = kept(journal)
            assert 8 <= len(before) < POINTS
            subprocess.run([*command, "-o", str(tmp_path / "report")], cwd=ROOT, check=True)
            after = kept(journal)
            # A row that was there is the same row: it was not measured, and not written, again.
            assert before.items() <= after.items()
        else:
            os.kill(max(pid for pid in alive_with(mark) if is_worker(pid)), signal.SIGKILL)
            assert running.wait() == 0
            after = kept(journal)
    assert len(after) == POINTS
    main([*words[:-2], "--processes", "1", "-o", str(tmp_path / "other")])
    for name in ("explore.json", "explore.csv", "explore.html"):
        assert (tmp_path / "report" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def kept(journal: Path) -> dict[str, tuple[str, float]]:
    """Rows with the seconds that each took, which no second measurement would give again."""
    if not journal.exists():
        return {}
    with sqlite3.connect(journal) as database:
        try:
            rows = database.execute("SELECT key, content, seconds FROM results").fetchall()
        except sqlite3.OperationalError:  # not there yet
            return {}
    return {key: (content, seconds) for key, content, seconds in rows}


def is_worker(pid: int) -> bool:
    """Whether a process of the cluster measures points: the nannies' children."""
    return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()


def wait_for(condition: Any) -> None:
    until = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)
