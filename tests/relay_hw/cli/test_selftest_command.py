"""`relay-hw selftest`: what it prints, what an owner of a board can send, and its exit status."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga.soc_map import SocMap
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.isa.errors import AccelError
from relay_hw.accel.sim.functional import FunctionalDevice
from relay_hw.cli.main import main
from relay_hw.target.accel import devices

Captured = pytest.CaptureFixture[str]


def test_a_sound_device(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "found" / "selftest.json"
    assert main(["selftest", "--device", "functional", "--programs", "2", "-o", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tiny on functional" and lines[-1] == f"written to {file}"
    row: dict[str, Any] = json.loads(file.read_text())
    assert row["ok"] and row["device"] == "functional" and row["board"] is None and row["programs"] == 2
    assert row["config"]["name"] == "tiny" and row["config_hash"] == load_config("tiny").hash32
    assert {test["name"]: test["ok"] for test in row["tests"]}["registers"] is None
    assert main(["selftest", "--device", "cycle", "--config", "ecp5", "--programs", "1", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["config"]["name"] == "ecp5" and len(row["tests"]) == 6


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a bitstream whose board falls silent when a program is launched."""

    class Board(FunctionalDevice):
        def launch(self, *_: Any) -> Any:
            raise AccelError("link x must give 4 bytes in time, not 0; is the board connected?")

    config = load_config("ecp5")
    kinds = [
        replace(kind, open=lambda _config, _options: Board(config)) if kind.name == "fpga" else kind
        for kind in devices.DEVICES
    ]
    monkeypatch.setattr(devices, "DEVICES", tuple(kinds))
    soc = SocMap("ulx3s", "ecp5", config.hash32, 50_000_000, 1 << 25, 1_000_000)
    (tmp_path / "soc.json").write_text(soc.to_json())
    (tmp_path / "report.json").write_text(json.dumps({"design": "ulx3s-ecp5", "seed": 3, "used": {}}))
    return tmp_path


def test_a_board_that_falls_silent(board: Path, capsys: Captured) -> None:
    assert main(["selftest", "--port", "x", "--soc", str(board), "--json"]) == 1
    row = json.loads(capsys.readouterr().out)
    assert not row["ok"] and row["board"] == "ulx3s" and row["config"]["name"] == "ecp5"
    assert row["soc"]["memory_bytes"] == 1 << 25
    assert row["bitstream"]["design"] == "ulx3s-ecp5" and row["bitstream"]["seed"] == 3
    assert row["bitstream"]["sha256"] is None and "used" not in row["bitstream"]
    assert main(["selftest", "--port", "x", "--soc", str(board / "soc.json")]) == 1
    out = capsys.readouterr().out
    assert "ecp5 on ulx3s" in out and "FAILED" in out and "not run: programs ended with an error" in out


def refuse(capsys: Captured, sentence: str, *arguments: object) -> None:
    assert main(["selftest", *map(str, arguments)]) == 2
    assert sentence in capsys.readouterr().err


def test_what_is_refused(board: Path, capsys: Captured) -> None:
    refuse(capsys, "must be the soc.json of `relay-hw bitstream`", "--port", "x", "--soc", board / "none")
    refuse(capsys, "a count must be an integer of at least 1, not 0", "--programs", 0)
    (board / "report.json").write_text("{")
    refuse(capsys, "report.json must be the report of `relay-hw bitstream`", "--port", "x", "--soc", board)


def test_no_port(capsys: Captured) -> None:
    refuse(capsys, "device fpga must have a port and the folder of its bitstream: --port PORT --soc FOLDER")
