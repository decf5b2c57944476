"""Kept results with a wrong bit, cut, empty or exchanged: made again each time, and never used."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from relay_hw.accel.fpga import flow, route, synth, tools
from relay_hw.accel.fpga.flow import build_bitstream
from relay_hw.accel.fpga.sim import board
from relay_hw.accel.fpga.tools import Listener
from relay_hw.accel.fpga.vendor import estimate
from relay_hw.accel.fpga.vendor.targets import TARGETS
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim import verilator
from relay_hw.accel.sim.result_cache import read_bytes, read_row, write_bytes, write_row
from relay_hw.accel.sim.verilator import Build, build_library
from tests.accel.fpga.test_flow import design
from tests.flips import COUNTS, spoiled

CONTENT = bytes(range(256)) * 8
TINY = load_config("tiny")


def check(
    files: Sequence[Path], count: int, use: Callable[[], object], made: list[str], unread: tuple[str, ...] = ()
) -> None:
    """`use` gives the same whatever is spoiled, and makes it again each time; files that begin by `unread` only where
    they are needed for something else."""
    want, tried = use(), 0
    for what in spoiled(files, count):
        made.clear()
        assert use() == want, what
        assert made or what.startswith(unread), what
        tried += 1
    assert tried > count
    made.clear()
    assert use() == want and not made


def of_entries(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


@COUNTS
def test_libraries_of_the_verilog(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(build: Build, _tools: object, work: Path, _cache: Path) -> None:
        made.append(build.name)
        (work / verilator.LIBRARY).write_bytes(CONTENT + build.name.encode())
        (work / "build.json").write_text("{}")

    monkeypatch.setattr(verilator, "_build_into", make)
    builds = [Build.of(TINY), Build.of(load_config("default"))]

    def use() -> list[bytes]:
        return [build_library(build, cache=tmp_path).read_bytes() for build in builds]

    use()
    check(of_entries(tmp_path), count, use, made)


def test_entries_in_the_place_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is whole, and the other one's."""
    made: list[str] = []

    def make(build: Build, _tools: object, work: Path, _cache: Path) -> None:
        made.append(build.name)
        (work / verilator.LIBRARY).write_bytes(build.name.encode())

    monkeypatch.setattr(verilator, "_build_into", make)
    tiny, default = (build_library(Build.of(config), cache=tmp_path) for config in (TINY, load_config("default")))
    shutil.rmtree(default.parent)
    shutil.copytree(tiny.parent, default.parent)
    assert build_library(Build.of(load_config("default")), cache=tmp_path).read_bytes() == b"default"
    assert made == ["tiny", "default", "default"]


@COUNTS
def test_models_of_boards(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def make(_model: object, _tools: object, work: Path, _cache: Path) -> None:
        made.append("board")
        (work / "board").write_bytes(CONTENT)

    monkeypatch.setattr(board, "_build_into", make)
    model = board.BoardModel("top", {"top.v": "module top; endmodule"}, "clk", "rst", "rx", "tx")
    board.build_board(model, cache=tmp_path)
    check(of_entries(tmp_path), count, lambda: board.build_board(model, cache=tmp_path).read_bytes(), made)


def stub_tool(made: list[str], files: Mapping[str, str]) -> Callable[..., None]:
    """A tool that writes a few bytes into the files that the real one would write."""

    def run(stage: Path, name: str, words: Sequence[str], _listen: Listener | None = None) -> None:
        made.append(name)
        options = dict(pairwise(words))
        for file, text in files.items():
            (stage / file).write_text(text)
        if "--textcfg" in options:
            (stage / options["--textcfg"]).write_text(f"bits of seed {options['--seed']}")
            clock = {"achieved": 50 + int(options["--seed"]), "constraint": 25}
            report = {"fmax": {"clk": clock}, "utilization": {}, "critical_paths": []}
            (stage / options["--report"]).write_text(json.dumps(report))
        if name == "ecppack":
            (stage / words[-1]).write_bytes(b"packed " + (stage / words[-2]).read_bytes())

    return run


@COUNTS
def test_steps_of_a_bitstream(tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Synthesis, floorplan, place and route, packing."""
    made: list[str] = []
    netlist = {"modules": {"echo": {"ports": {}, "cells": {}, "netnames": {}, "attributes": {}}}}
    run = stub_tool(made, {"mapped.json": json.dumps(netlist)})
    for module in (flow, route, tools):
        monkeypatch.setattr(module, "run_tool", run)
    monkeypatch.setattr(flow, "floorplanned", lambda module, *_rest: made.append("floorplan") or module)
    build_bitstream(design(), [1, 2], tmp_path)
    stage = next(path for path in tmp_path.iterdir() if path.is_dir())
    seals = [path for path in stage.iterdir() if not path.suffix]
    files = sorted({*seals, *(stage / name for seal in seals for name in json.loads(seal.read_bytes())["files"])})
    assert len(files) == 6 + 9
    between = ("laid_out", "netlist")
    check(files, count, lambda: build_bitstream(design(), [1, 2], tmp_path), made, between)


@COUNTS
@pytest.mark.parametrize("which", ["count", "estimate"])
def test_syntheses(tmp_path: Path, count: int, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    stat = "=== vta_top ===\n   42 cells\n     40 LUT4\n      2 TRELLIS_FF\n"
    monkeypatch.setattr(tools, "run_tool", stub_tool(made, {"stat.txt": stat}))

    def use() -> object:
        if which == "count":
            return {**synth.synthesise(TINY, tmp_path), "seconds": 0}
        return estimate.estimate(TARGETS[0], TINY, tmp_path)

    use()
    stage = next(path for path in tmp_path.iterdir() if path.is_dir())
    names = (synth.COUNTED, synth.CELLS) if which == "count" else ("estimated", "stat.txt")
    check([stage / name for name in names], count, use, made)


@COUNTS
def test_rows_and_arrays_of_comparisons_and_tuning(tmp_path: Path, count: int) -> None:
    rows = [tmp_path / name for name in ("one.json", "two.json")]
    blobs = [tmp_path / name for name in ("one.arrays", "two.arrays")]
    for path in rows:
        write_row(path, path.stem, {"cycles": {1: 1e-05, 2: 30}, "name": path.stem + "é"})
    for path in blobs:
        write_bytes(path, path.stem, CONTENT + path.stem.encode())
    want: dict[Path, object] = {path: read_row(path, path.stem) for path in rows}
    want |= {path: read_bytes(path, path.stem) for path in blobs}
    assert None not in want.values()
    refused, tried = 0, 0
    for what in spoiled([*rows, *blobs], count):
        found: dict[Path, object] = {path: read_row(path, path.stem) for path in rows}
        found |= {path: read_bytes(path, path.stem) for path in blobs}
        assert all(value in (None, want[path]) for path, value in found.items()), what
        refused += None in found.values()
        tried += 1
    assert refused == tried > count
