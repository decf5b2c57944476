"""Gowin's parts: the same flow with other tools, clocks that are believed in part, what a part has."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from relay_hw.accel.fpga import gowin
from relay_hw.accel.fpga.families import toolchain
from relay_hw.accel.fpga.flow import build_bitstream
from relay_hw.accel.fpga.parts import PARTS, Family, FlowError, find_part
from relay_hw.accel.fpga.report import read_timing
from relay_hw.accel.fpga.route import is_large
from relay_hw.accel.fpga.socs import part_soc
from relay_hw.accel.isa.config import load_config
from tests.accel.fpga.extra import needs_gowin
from tests.accel.fpga.test_flow import design
from tests.told import told

PART = find_part("gw2a-18c")


@needs_gowin
def test_a_small_design_becomes_a_bitstream_and_a_second_run_nothing_new(tmp_path: Path) -> None:
    given = replace(design(), part=PART, constraints=gowin.constraints(PART))
    built = build_bitstream(given, [1], tmp_path)
    report = built.report
    # A text of bits, one frame a line.
    assert set(built.data) == set(b"01\n") and built.data.count(b"\n") > 1000
    stage = next(tmp_path.iterdir())
    netlist = json.loads((stage / "netlist-1.json").read_text())["modules"]["echo"]
    kinds = Counter(cell["type"] for cell in netlist["cells"].values())
    assert report["used"]["luts"] == sum(kinds[f"LUT{size}"] for size in range(1, 5)) + kinds["ALU"] > 20
    assert report["used"]["flip_flops"] == sum(n for kind, n in kinds.items() if kind.startswith("DFF")) > 20
    # What nextpnr was asked for and what it promises count four fifths.
    (found,) = json.loads((stage / "report-1.json").read_text())["fmax"].values()
    (clock,) = report["clocks"].values()
    assert report["derate"] == 0.8 and report["untimed"] == ["block RAMs", "multipliers"]
    assert clock["asked_mhz"] == 25 and abs(found["constraint"] - 25 / 0.8) < 0.01
    assert abs(clock["mhz"] - 0.8 * found["achieved"]) < 0.01 and report["timing_met"]
    said: list[str] = []
    assert build_bitstream(given, [1], tmp_path, told(said)) == built and said == []


def cell(kind: str, **pins: int | str) -> dict[str, Any]:
    return {"type": kind, "connections": {pin: [bit] for pin, bit in pins.items()}}


# A value that two flip-flops hold, one of a carry, one of a memory, a constant, and what no flip-flop holds.
HELD = (
    *(cell("LUT4", F=2), cell("DFFE", D=2), cell("DFF", D=2), cell("ALU", SUM=3, COUT=4), cell("DFFR", D=3)),
    *(cell("RAM16SDP4", DO=5), cell("DFFE", D=5), cell("DFFS", D="1"), cell("LUT2", F=6), cell("ALU", COUT=7)),
)


def test_a_flip_flop_shares_a_place_with_what_it_holds() -> None:
    module = {"cells": {str(k): cell for k, cell in enumerate(HELD)}}
    takes = gowin.places(module, PART)
    assert takes == gowin.Places(logic=2, carries=2, flip_flops=3, left=20736 - 8)
    gowin.check_room(module, PART)
    message = (
        "a netlist for gw2a-18c must take at most 6 LUT4 beside its memories of LUTs, not 7: 2 of logic, 2 of carries, "
        "3 in front of flip-flops"
    )
    with pytest.raises(FlowError, match=f"^{re.escape(message)}$"):
        gowin.check_room(module, replace(PART, luts=14))


@needs_gowin
def test_what_has_no_room_is_not_placed(tmp_path: Path) -> None:
    given = replace(design(), part=replace(PART, luts=24), constraints=gowin.constraints(PART))
    with pytest.raises(FlowError, match=r"a netlist for gw2a-18c must take at most 24 LUT4 beside .*, not \d+: "):
        build_bitstream(given, [1], tmp_path)


@pytest.mark.parametrize("name", ["gw2a-18c", "gw5ast-138c"])
def test_each_port_of_the_system_has_a_pin_of_its_own(name: str) -> None:
    part = find_part(name)
    made = part_soc(load_config("tiny"), part, memory_bytes=4096).design
    ports = set(re.findall(r"^    (?:in|out)put wire (\w+)", made.files[f"{made.top}.v"], re.M))
    rows = re.findall(r'^IO_LOC "(\w+)" (\w+);$', made.constraints, re.M)
    assert {port for port, _ in rows} == ports and len({pin for _, pin in rows}) == len(ports) == 5
    assert not part.sites()


def test_clocks_are_believed_in_part() -> None:
    row = {"achieved": 100.0, "constraint": 50.0}
    report = {"fmax": {"clk": row}, "critical_paths": [], "utilization": {}}
    assert read_timing(report, derate=0.8).clocks == {"clk": (80.0, 40.0)}


def test_cells_are_counted_by_what_they_take() -> None:
    counts = {"LUT1": 1, "LUT4": 2, "ALU": 3, "RAM16SDP4": 4, "DFFRE": 5, "DFF": 1, "SDPX9B": 6, "pROM": 1}
    found = toolchain(PART).cells.resources(counts | {"MULT9X9": 3, "MULT18X18": 2, "MULT36X36": 1})
    assert found == {
        **{"luts": 1 + 2 + 3 + 8 * 4, "luts_as_memory": 32, "flip_flops": 6, "block_rams": 7},
        # Halves of blocks: 3, 4 and 8.
        "multipliers": 8,
    }


def test_large_parts_are_placed_and_routed_at_once_too() -> None:
    assert [part.name for part in PARTS if is_large(part)] == ["lfe5u-85f"]


def test_each_part_has_tools() -> None:
    assert {part.family for part in PARTS} == set(Family)
    for part in PARTS:
        assert len(toolchain(part).tools) == 3
