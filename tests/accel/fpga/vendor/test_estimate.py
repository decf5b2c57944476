"""Estimates for other makers' parts: counts from yosys' words, results that are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from relay_hw.accel.fpga.vendor import estimate as room
from relay_hw.accel.fpga.vendor.targets import TARGETS, Form, Target
from relay_hw.accel.isa.config import load_config
from tests.accel.fpga.extra import needs_yosys

TINY = load_config("tiny")
XILINX = """
=== relay_hw_ip ===

       5   LUT6
       9   DSP48E1

=== design hierarchy ===

      50 cells
       3   DSP48E1
      10   FDRE
       2   FDSE
       4   LUT2
       6   LUT6
       2   RAM32M
       3   RAMB18E1
       1   RAMB36E1
      19   CARRY4
"""
INTEL = """
       7   MISTRAL_ALUT4
       2   MISTRAL_ALUT6
       4   MISTRAL_ALUT_ARITH
       9   MISTRAL_FF
       2   MISTRAL_M10K
      20   MISTRAL_MLAB
       5   MISTRAL_MUL18X18
"""


@pytest.mark.parametrize(
    ("form", "text", "expected"),
    [
        (Form.VIVADO, XILINX, {"luts": 18, "flip_flops": 12, "block_rams": 3, "multipliers": 3}),
        (Form.QUARTUS, INTEL, {"luts": 18, "flip_flops": 9, "block_rams": 2, "multipliers": 3}),
    ],
)
def test_counts(
    form: Form, text: str, expected: dict[str, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What yosys says is counted once, and read again from then on."""
    ran: list[list[str]] = []

    def run(folder: Path, commands: list[str], _listen: object) -> None:
        ran.append(commands)
        assert (folder / "relay_hw_ip.v").exists() and (folder / "vta_isa.vh").exists()
        (folder / "stat.txt").write_text(text)

    monkeypatch.setattr(room, "run_yosys", run)
    target = next(target for target in TARGETS if target.form is form)
    found = room.estimate(target, TINY, tmp_path)
    assert found["used"] == expected
    assert found["share"]["luts"] == round(expected["luts"] / target.available["luts"], 3)
    assert f"-family {target.family} " in ran[0][1] and "relay_hw_ip.v" in ran[0][0]
    assert room.estimate(target, TINY, tmp_path) == found and len(ran) == 1
    room.estimate(target, load_config("ecp5"), tmp_path)
    assert len(ran) == 2


@pytest.mark.long
@needs_yosys
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_tiny_is_synthesised_and_fits(target: Target, tmp_path: Path) -> None:
    found = room.estimate(target, TINY, tmp_path)
    print(f"{target.name}: {found['used']}")
    used = found["used"]
    # A block of Cyclone V holds three products of 9 bits, one of the others one.
    products = 3 if target.form is Form.QUARTUS else 1
    assert TINY.macs_per_cycle / products <= used["multipliers"] <= 40
    assert 1000 <= used["luts"] <= 20_000 and 2000 <= used["flip_flops"] <= 12_000
    assert used["block_rams"] >= 4 and all(share < 0.5 for share in found["share"].values())
