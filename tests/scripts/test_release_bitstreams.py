"""Bitstreams to be given away: complete, hashed, the same for the same bitstreams; stubs stand for tools of hours."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from relay_hw.accel.fpga.sim import netlist
from relay_hw.accel.sim.selftest import Finding
from scripts import release_bitstreams as release
from tests.accel.fpga.extra import needs_litex
from tests.accel.fpga.stubs import stubbed_flow

REPORT = {
    "clocks": {"sys": {"mhz": 81.66, "asked_mhz": 80}, "eth": {"mhz": 300.0, "asked_mhz": 125}},
    "macs_per_cycle": 128,
    "timing_met": True,
    "tools": {"yosys": "0.70", "nextpnr-ecp5": "0.11"},
}


def test_equal_bitstreams_give_equal_zips() -> None:
    files = {"b.json": b"{}", "a.bit": bytes(range(256)) * 9}
    data = release.zipped(files)
    assert data == release.zipped(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


def test_how_to_start_each_board() -> None:
    text = release.readme({release.stem(board, fit): REPORT for board, fit in release.fits()})
    for board, fit in release.fits():
        (row,) = (line for line in text.splitlines() if f"{release.stem(board, fit)}.bit" in line)
        assert "| 128 | 81.7 MHz of 80 | nextpnr-ecp5 0.11, yosys 0.70 |" in row and f"-b {board.loader} " in row
    assert "--device fpga --port /dev/ttyUSB0 --soc ." in text and "--device fpga --soc ." in text


def test_a_missed_clock_is_said() -> None:
    missed = REPORT | {"timing_met": False, "clocks": {"sys": {"mhz": 74.0, "asked_mhz": 80}}}
    assert "| 74.0 MHz of 80, MISSED |" in release.readme({"ulx3s-85f-ecp5": missed})


@pytest.fixture
def _stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    yield from stubbed_flow(tmp_path, monkeypatch)


@needs_litex
@pytest.mark.usefixtures("_stubs")
def test_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board whose tools are stubs: everything is there, hashed; what failed is missing, and said by the status."""
    ok = {"mini": True}
    monkeypatch.setattr(
        netlist, "netlist_findings", lambda config, *_: [Finding("programs", ok[config.name], "none differs")]
    )
    out = tmp_path / "out"
    assert release.main(["-o", str(out), "--only", "colorlight", "--programs", "3"]) == 0
    assert {path.name for path in out.iterdir()} == {"colorlight-i5-mini.zip", "SHA256SUMS", "README.md"}
    data = (out / "colorlight-i5-mini.zip").read_bytes()
    assert (out / "SHA256SUMS").read_text() == f"{hashlib.sha256(data).hexdigest()}  colorlight-i5-mini.zip\n"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert set(archive.namelist()) == {"colorlight-i5-mini.bit", "soc.json", "report.json"}
        assert json.loads(archive.read("report.json"))["netlist"]["programs"] == 3
    assert release.main(["-o", str(out), "--only", "colorlight", "--programs", "3"]) == 0
    assert (out / "colorlight-i5-mini.zip").read_bytes() == data
    # What others have put there stays.
    (out / "holiday.zip").write_bytes(b"PK")
    ok["mini"] = False
    assert release.main(["-o", str(out), "--only", "colorlight", "--programs", "3"]) == 1
    assert {path.name for path in out.iterdir()} == {"SHA256SUMS", "README.md", "holiday.zip"}
