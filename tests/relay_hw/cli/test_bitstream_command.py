"""`relay-hw bitstream`: what its report says, with stubs in the place of tools that take minutes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga.sim import netlist
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.selftest import Finding
from relay_hw.cli.main import main
from tests.accel.fpga.stubs import stubbed_flow

Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from stubbed_flow(tmp_path, monkeypatch)


def bitstream(folder: Path, *more: str) -> int:
    return main(["bitstream", "--part", "lfe5u-25f", "--config", "tiny", "-o", str(folder), *more])


def report(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "report.json").read_text())


def test_the_report_says_what_was_made_of_what_with_what(tmp_path: Path, capsys: Captured) -> None:
    assert bitstream(tmp_path / "out") == 0
    row = report(tmp_path / "out")
    assert row["macs_per_cycle"] == load_config("tiny").macs_per_cycle == 16
    assert row["clocks"] == {"clk": {"mhz": 51, "asked_mhz": 25}} and row["timing_met"]
    assert row["tools"] == {"yosys": "stub 1", "nextpnr-ecp5": "stub 1", "ecppack": "stub 1"}
    # Nothing was run: the report must not look as if it had been.
    assert row["netlist"] is None
    said = capsys.readouterr().out
    assert "MACs              16 per cycle" in said and "netlist: not simulated (--programs N simulates it)" in said


def found(ok: bool) -> list[Finding]:
    return [Finding("identity", True, "tiny"), Finding("memory", None, "no"), Finding("programs", ok, "byte 3 differs")]


def test_the_report_says_what_ran_on_the_netlist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(netlist, "netlist_findings", lambda *args: asked.append(args) or found(True))
    assert bitstream(tmp_path / "out", "--programs", "7") == 0
    ((config, part, programs, *_),) = asked
    assert (config, part.name, programs) == (load_config("tiny"), "lfe5u-25f", 7)
    row = report(tmp_path / "out")["netlist"]
    assert (row["programs"], row["ok"], row["part"]) == (7, True, "lfe5u-25f")
    assert [test["name"] for test in row["tests"]] == ["identity", "memory", "programs"]
    assert "self-test passed, 7 random programs ran on it" in capsys.readouterr().out


def test_a_wrong_netlist_is_not_routed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setattr(netlist, "netlist_findings", lambda *_: found(False))
    assert bitstream(tmp_path / "out", "--programs", "7") == 1
    assert "netlist: self-test FAILED: programs: byte 3 differs" in capsys.readouterr().out
    assert not list((tmp_path / "out").iterdir())
