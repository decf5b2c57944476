"""`relay-hw bitstream` with the configuration `tiny` on the smallest part: routed, packed, as fast as asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relay_hw.accel.fpga.part_top import TOP
from relay_hw.accel.fpga.parts import MACROS, find_part
from relay_hw.cli.main import main
from tests.accel.fpga.extra import needs_tools


@needs_tools
@pytest.mark.long
def test_tiny_fits_the_smallest_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    # A cache of its own: what is found here is made here.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert main(["bitstream", "--part", "lfe5u-25f", "--config", "tiny", "--programs", "20", "-o", str(out)]) == 0
    report = json.loads((out / "report.json").read_text())
    assert report["timing_met"] and report["clocks"]["clk_i"]["mhz"] > 50
    # The accelerator's netlist did what the functional simulator does.
    netlist = report["netlist"]
    assert (netlist["ok"], netlist["programs"]) == (True, 20)
    assert {test["name"] for test in netlist["tests"] if test["ok"]} >= {"identity", "registers", "programs", "faults"}
    used, sizes = report["used"], ("luts", "block_rams", "multipliers")
    assert all(used[key] > 0 for key in sizes) and find_part("lfe5u-25f").holds(*(used[key] for key in sizes)), used
    assert (out / "lfe5u-25f-tiny.bit").stat().st_size > 100_000
    # Every block RAM and multiplier is where the floorplan wants it.
    (stage,) = (path.parent for path in (tmp_path / "cache").rglob("netlist-1.json"))
    module = json.loads((stage / "netlist-1.json").read_text())["modules"][TOP]
    sites = [cell["attributes"]["BEL"] for cell in module["cells"].values() if cell["type"] in MACROS]
    assert len(set(sites)) == len(sites) == used["block_rams"] + used["multipliers"]
    assert "target 25 MHz: met" in capsys.readouterr().out
