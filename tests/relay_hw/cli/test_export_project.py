"""`relay-hw export --form vivado|quartus`: what is written, what is refused, nothing half-written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga.vendor import estimate as room
from relay_hw.accel.isa.config import load_config
from relay_hw.cli.main import main
from tests.relay_hw.small_models import save_data, save_plain

Captured = pytest.CaptureFixture[str]


def export(*arguments: object) -> int:
    return main(["export", *map(str, arguments)])


def test_a_project(tmp_path: Path, capsys: Captured) -> None:
    folder = tmp_path / "a" / "b"
    for _ in range(2):
        assert export("--form", "vivado", "--board", "pynq-z1", "-o", folder, "--json") == 0
        row: dict[str, Any] = json.loads(capsys.readouterr().out)
        assert row["config"] == "ecp5" and row["estimate"] is None
        assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(
            row["files"]
        )
    assert json.loads((folder / "soc.json").read_text())["clock_hz"] == 50_000_000
    assert export("--form", "vivado", "--board", "pynq-z1", "-o", folder, "--clock", "62.5", "--config", "tiny") == 0
    assert "tiny for Digilent PYNQ-Z1" in capsys.readouterr().out
    soc = json.loads((folder / "soc.json").read_text())
    assert (soc["config"], soc["clock_hz"]) == ("tiny", 62_500_000)


def test_the_accelerator_of_a_build(tmp_path: Path, capsys: Captured) -> None:
    save_plain(tmp_path / "net.onnx")
    save_data(tmp_path / "data.npz", 4)
    more = ["--calibration", str(tmp_path / "data.npz"), "--config", "tiny", "-o", str(tmp_path / "build")]
    assert main(["compile", str(tmp_path / "net.onnx"), *more]) == 0
    project = ["--form", "quartus", "--board", "de10nano", "-o", tmp_path / "out"]
    assert export(tmp_path / "build", *project) == 0
    soc = json.loads((tmp_path / "out" / "soc.json").read_text())
    assert (soc["config"], soc["config_hash"]) == ("tiny", load_config("tiny").hash32)
    capsys.readouterr()
    assert export(tmp_path / "build", *project, "--config", "tiny") == 2
    assert "the accelerator must come from BUILD or --config, not both" in capsys.readouterr().err


def test_an_estimate(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    text = "  7   LUT6\n  5   FDRE\n  2   RAMB36E1\n  3   DSP48E1\n"
    monkeypatch.setattr(room, "run_yosys", lambda folder, *_: (folder / "stat.txt").write_text(text))
    arguments = ["--form", "vivado", "--board", "ultra96", "-o", tmp_path / "out", "--estimate"]
    assert export(*arguments) == 0
    out = capsys.readouterr().out
    assert "xczu3eg-sbva484-1-e, estimated by yosys:" in out and "multipliers        3 of     360    0.8 %" in out
    assert json.loads((tmp_path / "out" / "estimate.json").read_text())["used"]["luts"] == 7


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "export to C must have a BUILD"),
        (["--board", "pynq-z1"], "--board must come with --form vivado or quartus, not c"),
        (["--config", "tiny"], "--config must come with --form vivado or quartus, not c"),
        (["--clock", "50"], "--clock must come with --form vivado or quartus, not c"),
        (["--estimate"], "--estimate must come with --form vivado or quartus, not c"),
        (["--form", "vivado"], "a project for vivado must have a board: --board NAME"),
        (["--form", "vivado", "--board", "ulx3s"], "board for vivado must be one of pynq-z1, ultra96, not ulx3s"),
        (["--form", "quartus", "--board", "pynq-z1"], "board for quartus must be one of de10nano, not pynq-z1"),
        (["--form", "vivado", "--board", "pynq-z1", "--clock", "fast"], "a clock must be a number of MHz, not fast"),
        (["--form", "vivado", "--board", "pynq-z1", "--clock", "900"], "clock must be from 1 to 400 MHz, not 900"),
        (["--form", "vivado", "--board", "pynq-z1", "--config", "none"], "none"),
    ],
)
def test_what_is_refused(arguments: list[str], sentence: str, tmp_path: Path, capsys: Captured) -> None:
    assert export(*arguments, "-o", tmp_path / "out") == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and sentence in lines[0] and "internal error" not in lines[0]
    assert not (tmp_path / "out").exists()


def test_a_folder_of_somebody_else(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    project = ["--form", "vivado", "--board", "pynq-z1", "-o"]
    assert export(*project, tmp_path) == 2
    assert "must be a new folder or an older export, not something else" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert export(*project, tmp_path / "mine.txt") == 2
    assert "mine.txt" in capsys.readouterr().err
